package tailgate.functions.numeric;

import static tailgate.Expressions.assertResults;

import org.junit.jupiter.api.Test;

/** Casts of text to numbers and boolean. */
class NumberInputTest {
  @Test
  void castsText() {
    assertResults("tg_text_to_int4(x)",
        " 12\n", "12",
        "-2147483648", "-2147483648",
        "+7", "7",
        "2147483648", "22003 value \"2147483648\" is out of range for type integer",
        "99999999999999999999", "22003 value \"99999999999999999999\" is out of range for type integer",
        "", "22P02 invalid input syntax for type integer: \"\"",
        "1.0", "22P02 invalid input syntax for type integer: \"1.0\"",
        "1 2", "22P02 invalid input syntax for type integer: \"1 2\"",
        "-", "22P02 invalid input syntax for type integer: \"-\"",
        null, "NULL");
    assertResults("tg_text_to_int8(x)",
        "-9223372036854775808", "-9223372036854775808",
        "9223372036854775808", "22003 value \"9223372036854775808\" is out of range for type bigint");
    assertResults("tg_text_to_int2(x)", "40000", "22003 value \"40000\" is out of range for type smallint");
    assertResults("tg_text_to_float8(x)",
        "1e3", "1000.0",
        ".5", "0.5",
        "5.", "5.0",
        "NaN", "NaN",
        "-infinity", "-Infinity",
        "1e400", "22003 \"1e400\" is out of range for type double precision",
        "1e-400", "22003 \"1e-400\" is out of range for type double precision",
        "0e-400", "0.0",
        "1d", "22P02 invalid input syntax for type double precision: \"1d\"",
        "x", "22P02 invalid input syntax for type double precision: \"x\"");
    assertResults("tg_text_to_numeric(x, 5, 2)",
        "1.005", "1.01",
        "-1.005", "-1.01",
        "999.995", "22003 numeric field overflow",
        "1e2", "100.00",
        "x", "22P02 invalid input syntax for type numeric: \"x\"",
        "NaN", "0A000 numeric 'NaN' is not supported",
        "1e-99999999", "0.00",
        "1e99999999", "22003 numeric field overflow");
    assertResults("tg_text_to_bool(x)",
        "t", "true",
        "YES", "true",
        "of", "false",
        " 0 ", "false",
        "o", "22P02 invalid input syntax for type boolean: \"o\"",
        "", "22P02 invalid input syntax for type boolean: \"\"");
  }
}
