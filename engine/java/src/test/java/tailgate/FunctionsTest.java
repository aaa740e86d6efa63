package tailgate;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.Lab.*;

import java.util.*;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

/** Answers as PostgreSQL 15 gives them, through generated code. A line: expression over the column x, x, answer or SQLSTATE and message. */
class FunctionsTest {
  private static final StructType X = schema("x string");
  private final Map<String, Linear> compiled = new HashMap<>();

  private String answer(String expression, String x) {
    Linear linear = compiled.computeIfAbsent(expression, e -> new Linear(empty(X).selectExpr("cast(" + e + " as string)")));
    try {
      UnsafeRow row = linear.apply(new GenericInternalRow(new Object[] {UTF8String.fromString(x)}));
      return row.isNullAt(0) ? "NULL" : row.getString(0);
    } catch (RuntimeException e) {
      SqlError error = linear.error(e);
      return error.sqlstate() + " " + error.getMessage();
    }
  }

  private void are(String expression, String... pairs) {
    for (int i = 0; i < pairs.length; i += 2) assertEquals(pairs[i + 1], answer(expression, pairs[i]), expression + " of " + pairs[i]);
  }

  @Test
  void canonicalText() {
    are("tg_jsonb_parse(x)", "{\"b\":[1,2 ,{}],\"a\":1,\"aa\":null, \"b\" : true}", "{\"a\": 1, \"b\": true, \"aa\": null}", "{\"b\":{\"z\":1,\"y\":[]},\"a\":[]}", "{\"a\": [], \"b\": {\"y\": [], \"z\": 1}}",
        " 1.0 ", "1.0", "1e2", "100", "1.50e1", "15.0", "1E-3", "0.001", "-0", "0", "-0.0", "0.0", "-0e1", "0", "12345678901234567890.10", "12345678901234567890.10",
        "\"a\\u0041\\/\\n\\u001f\u00e4\ud83d\ude00\\ud83d\\ude00\\\"\"", "\"aA/\\n\\u001f\u00e4\ud83d\ude00\ud83d\ude00\\\"\"", "[]", "[]", "true", "true", "null", "null",
        "{\"\u00e9\":1,\"zz\":2,\"a\":3}", "{\"a\": 3, \"zz\": 2, \"\u00e9\": 1}",
        "", "22P02 invalid input syntax for type json", "{", "22P02 invalid input syntax for type json", "1 2", "22P02 invalid input syntax for type json", "nan", "22P02 invalid input syntax for type json",
        "01", "22P02 invalid input syntax for type json", "'a'", "22P02 invalid input syntax for type json", "[1,]", "22P02 invalid input syntax for type json",
        "\"\\u0000\"", "22P05 unsupported Unicode escape sequence", "\"\\ud83d\"", "22P02 invalid input syntax for type json", "1e999999", "22003 value overflows numeric format", null, "NULL");
    String deep = "[".repeat(1500) + "]".repeat(1500);
    are("tg_jsonb_parse(x)", deep, deep);
  }

  @Test
  void parts() {
    String doc = "{\"a\": {\"b\": [10, \"x\\ny\", null, {\"c\": \"]\"}]}, \"t\": \"s\", \"\\\"q\": 1, \"n\": null}";
    are("tg_jsonb_get(x, 'a')", doc, "{\"b\": [10, \"x\\ny\", null, {\"c\": \"]\"}]}", "[1]", "NULL", "1", "NULL", "{}", "NULL", null, "NULL");
    are("tg_jsonb_get(x, 't')", doc, "\"s\"");
    are("tg_jsonb_get(x, 'n')", doc, "null");
    are("tg_jsonb_get(x, '\"q')", doc, "1");
    are("tg_jsonb_get(x, 1)", "[1, [2, 3], 4]", "[2, 3]", "[1]", "NULL", "[]", "NULL", "{\"1\": 2}", "NULL", "5", "NULL");
    are("tg_jsonb_get(x, -1)", "[1, [2, 3], 4]", "4", "[]", "NULL");
    are("tg_jsonb_get(x, cast(-4 as bigint))", "[1, 2, 3]", "NULL");
    are("tg_jsonb_get_text(x, 't')", doc, "s");
    are("tg_jsonb_get_text(x, 'n')", doc, "NULL");
    are("tg_jsonb_get_text(x, 'a')", doc, "{\"b\": [10, \"x\\ny\", null, {\"c\": \"]\"}]}");
    are("tg_jsonb_get_text(x, 1)", "[0, \"x\\ny\\u00e9\"]", "x\nyé");
    are("tg_jsonb_path(x, array('a', 'b', '3', 'c'))", doc, "\"]\"");
    are("tg_jsonb_path(x, array('a', 'b', '-1'))", doc, "{\"c\": \"]\"}");
    are("tg_jsonb_path(x, array('a', 'b', 'x'))", doc, "NULL");
    are("tg_jsonb_path(x, array('a', null))", doc, "NULL");
    are("tg_jsonb_path(x, cast(array() as array<string>))", "{\"a\": 1}", "{\"a\": 1}");
    are("tg_jsonb_path_text(x, array('a', 'b', '1'))", doc, "x\ny");
    are("tg_jsonb_typeof(x)", "1", "number", "-1", "number", "\"a\"", "string", "{}", "object", "[]", "array", "true", "boolean", "null", "null");
    are("tg_jsonb_array_length(x)", "[1, {\"a\": [2, 3]}, \"],\"]", "3", "[]", "0", "1", "22023 cannot get array length of a scalar", "{}", "22023 cannot get array length of a non-array");
  }

  @Test
  void containment() {
    are("tg_jsonb_contains(x, '{\"b\": {\"c\": [1, 2]}}')", "{\"a\": 1, \"b\": {\"c\": [2, 3, 1], \"d\": 1}}", "true", "{\"b\": {\"c\": [2]}}", "false", "{\"b\": 1}", "false", "[]", "false");
    are("tg_jsonb_contains(x, '[1, [2]]')", "[[3, 2], 1.0]", "true", "[1, 2]", "false");
    are("tg_jsonb_contains(x, '\"bar\"')", "[\"foo\", \"bar\"]", "true", "\"bar\"", "true", "[[\"bar\"]]", "false", "{\"bar\": 1}", "false");
    are("tg_jsonb_contains(x, '[\"bar\"]')", "\"bar\"", "false");
    are("tg_jsonb_contains(x, '{}')", "{\"a\": 1}", "true", "[]", "false");
    are("tg_jsonb_exists(x, 'b')", "{\"a\": 1, \"b\": 2}", "true", "{\"a\": \"b\"}", "false", "[\"a\", \"b\"]", "true", "[[\"b\"]]", "false", "\"b\"", "true", "1", "false");
  }

  @Test
  void numbersOfJson() {
    are("tg_jsonb_int4(x)", "2.5", "3", "-2.5", "-3", "2147483648", "22003 integer out of range", "\"1\"", "22023 cannot cast jsonb string to type integer", "null", "22023 cannot cast jsonb null to type integer",
        "true", "22023 cannot cast jsonb boolean to type integer", "{}", "22023 cannot cast jsonb object to type integer", "[]", "22023 cannot cast jsonb array to type integer");
    are("tg_jsonb_int2(x)", "32767", "32767", "32767.5", "22003 smallint out of range");
    are("tg_jsonb_int8(x)", "9223372036854775807", "9223372036854775807", "9223372036854775808", "22003 bigint out of range");
    are("tg_jsonb_numeric(x, 10, 2)", "1.005", "1.01", "123456789.1", "22003 numeric field overflow");
    are("tg_jsonb_numeric(x)", "1.5", "1.5000000000000000");
    are("tg_jsonb_float8(x)", "1.5", "1.5");
    are("tg_jsonb_bool(x)", "true", "true", "1", "22023 cannot cast jsonb numeric to type boolean");
  }

  @Test
  void numbers() {
    are("tg_text_to_int4(x)", " 12\n", "12", "-2147483648", "-2147483648", "+7", "7", "2147483648", "22003 value \"2147483648\" is out of range for type integer", "99999999999999999999", "22003 value \"99999999999999999999\" is out of range for type integer",
        "", "22P02 invalid input syntax for type integer: \"\"", "1.0", "22P02 invalid input syntax for type integer: \"1.0\"", "1 2", "22P02 invalid input syntax for type integer: \"1 2\"", "-", "22P02 invalid input syntax for type integer: \"-\"", null, "NULL");
    are("tg_text_to_int8(x)", "-9223372036854775808", "-9223372036854775808", "9223372036854775808", "22003 value \"9223372036854775808\" is out of range for type bigint");
    are("tg_text_to_int2(x)", "40000", "22003 value \"40000\" is out of range for type smallint");
    are("tg_text_to_float8(x)", "1e3", "1000.0", ".5", "0.5", "5.", "5.0", "NaN", "NaN", "-infinity", "-Infinity", "1e400", "22003 \"1e400\" is out of range for type double precision",
        "1e-400", "22003 \"1e-400\" is out of range for type double precision", "0e-400", "0.0", "1d", "22P02 invalid input syntax for type double precision: \"1d\"", "x", "22P02 invalid input syntax for type double precision: \"x\"");
    are("tg_text_to_numeric(x, 5, 2)", "1.005", "1.01", "-1.005", "-1.01", "999.995", "22003 numeric field overflow", "1e2", "100.00", "x", "22P02 invalid input syntax for type numeric: \"x\"", "NaN", "22003 numeric field overflow", "1e-99999999", "0.00", "1e99999999", "22003 numeric field overflow");
    are("tg_text_to_bool(x)", "t", "true", "YES", "true", "of", "false", " 0 ", "false", "o", "22P02 invalid input syntax for type boolean: \"o\"", "", "22P02 invalid input syntax for type boolean: \"\"");
  }

  @Test
  void times() {
    are("tg_text_to_date(x)", "2020-02-29", "2020-02-29", "20200229", "2020-02-29", "1/2/2020", "2020-01-02", "Jan 2, 2020", "2020-01-02", "2 January 2020", "2020-01-02", "2020-01-02 10:00", "2020-01-02", "epoch", "1970-01-01",
        "2019-02-29", "22008 date/time field value out of range: \"2019-02-29\"", "2020-13-01", "22008 date/time field value out of range: \"2020-13-01\"", "x", "22007 invalid input syntax for type date: \"x\"", "", "22007 invalid input syntax for type date: \"\"");
    are("tg_text_to_timestamp(x)", "2020-01-02 03:04:05.1234567", "2020-01-02 03:04:05.123457", "2020-01-02T03:04", "2020-01-02 03:04:00", "2020-01-02 24:00:00", "2020-01-03 00:00:00", "2020-01-02", "2020-01-02 00:00:00", "2020-01-02 03:04:05+02", "2020-01-02 03:04:05",
        "2020-01-02 11:04 PM", "2020-01-02 23:04:00", "2020-01-02 25:00", "22008 date/time field value out of range: \"2020-01-02 25:00\"", "2020-01-02 03:04:05 x!", "22007 invalid input syntax for type timestamp: \"2020-01-02 03:04:05 x!\"");
    are("tg_text_to_timestamptz(x)", "2020-01-02 03:04:05+02", "2020-01-02 01:04:05", "2020-01-02T03:04:05.5Z", "2020-01-02 03:04:05.5", "2020-01-02 03:04:05 -03:30", "2020-01-02 06:34:05", "2020-07-02 03:04:05 Europe/Berlin", "2020-07-02 01:04:05",
        "2020-01-02 03:04:05 Mars/Olympus", "22023 time zone \"Mars/Olympus\" not recognized", "2020-01-02", "2020-01-02 00:00:00");
    are("tg_text_to_timestamptz(x, 'America/New_York')", "2020-01-02 03:04:05", "2020-01-02 08:04:05");
    are("tg_to_timestamp(cast(x as double))", "1.5", "1970-01-01 00:00:01.5", "1577934245.123456", "2020-01-02 03:04:05.123456", "NaN", "22008 timestamp cannot be NaN", "Infinity", "22008 timestamp out of range: \"Infinity\"");
  }

  @Test
  void bytes() {
    are("tg_convert_from(unhex(x), 'UTF8')", "c3a4", "ä", "61ff62", "22021 invalid byte sequence for encoding \"UTF8\": 0xff", "6100", "22021 invalid byte sequence for encoding \"UTF8\": 0x00", "e228a1", "22021 invalid byte sequence for encoding \"UTF8\": 0xe2 0x28 0xa1",
        "eda080", "22021 invalid byte sequence for encoding \"UTF8\": 0xed 0xa0 0x80", "c3", "22021 invalid byte sequence for encoding \"UTF8\": 0xc3", "f09f9880", "\ud83d\ude00");
    are("tg_convert_from(unhex(x), 'LATIN1')", "e4", "ä");
    are("tg_convert_from(unhex(x), 'nope')", "e4", "22023 invalid source encoding name \"nope\"");
  }

  @Test
  void required() {
    are("tg_required(x, concat('null value in ', 'column'))", "a", "a", null, "22004 null value in column");
    are("tg_required(cast(x as int), 'no') + 1", "1", "2", null, "22004 no");
    are("tg_required(cast(x as decimal(10,2)), 'no')", "1", "1.00", null, "22004 no");
    assertFalse(empty(X).selectExpr("tg_required(x, 'm') y").schema().apply(0).nullable());
  }

  @Test
  void positions() {
    are("tg_position(cast(x as bigint), 5)", "0", "00000", "42", "00042", "12345", "12345", "123456", "123456", null, "NULL");
    are("tg_position(cast(x as bigint), 20)", "9223372036854775807", "09223372036854775807");
    are("tg_position(cast(x as bigint), 5)", "-1", "22023 a position below zero: -1");
  }

  /** Spark's own errors in PostgreSQL's words. */
  @Test
  void translated() {
    are("1 / cast(x as int)", "0", "22012 division by zero", "y", "22P02 invalid input syntax for type integer: \"y\"", "99999999999", "22003 value \"99999999999\" is out of range for type integer");
    are("cast(x as int) + 1", "2147483647", "22003 integer out of range");
    are("cast(x as bigint) + 1", "9223372036854775807", "22003 bigint out of range");
    are("case when x = '1' then cast(x as bigint) * 9223372036854775807 when x <> '5' then -cast(x as int) * 2 end", "2147483647", "22003 integer out of range", "-2147483648", "22003 integer out of range", "1", "9223372036854775807");
    are("cast(cast(x as bigint) as int)", "2147483648", "22003 integer out of range");
    are("cast(cast(x as int) as smallint)", "40000", "22003 smallint out of range");
    are("cast(cast(x as decimal(10,2)) as decimal(4,2))", "100", "22003 numeric field overflow");
    are("cast(x as date)", "it's", "22007 invalid input syntax for type date: \"it's\"");
    are("cast(x as int) % 0", "1", "22012 division by zero");
    are("raise_error(x)", "boo", "P0001 boo");
  }
}
