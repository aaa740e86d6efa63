package tailgate.errors;

import static tailgate.Expressions.assertResults;

import org.junit.jupiter.api.Test;

/** Errors of Spark, translated to PostgreSQL. */
class SparkErrorsTest {
  @Test
  void translates() {
    assertResults("1 / cast(x as int)",
        "0", "22012 division by zero",
        "y", "22P02 invalid input syntax for type integer: \"y\"",
        "99999999999", "22003 value \"99999999999\" is out of range for type integer");
    assertResults("cast(x as int) + 1", "2147483647", "22003 integer out of range");
    assertResults("cast(x as bigint) + 1", "9223372036854775807", "22003 bigint out of range");
    assertResults("case when x = '1' then cast(x as bigint) * 9223372036854775807 "
            + "when x <> '5' then -cast(x as int) * 2 end",
        "2147483647", "22003 integer out of range",
        "-2147483648", "22003 integer out of range",
        "1", "9223372036854775807");
    assertResults("cast(cast(x as bigint) as int)", "2147483648", "22003 integer out of range");
    assertResults("cast(cast(x as int) as smallint)", "40000", "22003 smallint out of range");
    assertResults("cast(cast(x as decimal(10,2)) as decimal(4,2))", "100", "22003 numeric field overflow");
    assertResults("cast(x as date)", "it's", "22007 invalid input syntax for type date: \"it's\"");
    assertResults("cast(x as int) % 0", "1", "22012 division by zero");
    assertResults("raise_error(x)", "boo", "P0001 boo");
  }
}
