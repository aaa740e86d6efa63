package tailgate.functions.json;

import static tailgate.Expressions.assertResults;

import org.junit.jupiter.api.Test;

/** Functions that parse and read jsonb. */
class JsonbTest {
  @Test
  void parsesToCanonicalText() {
    assertResults("tg_jsonb_parse(x)",
        "{\"b\":[1,2 ,{}],\"a\":1,\"aa\":null, \"b\" : true}", "{\"a\": 1, \"b\": true, \"aa\": null}",
        "{\"b\":{\"z\":1,\"y\":[]},\"a\":[]}", "{\"a\": [], \"b\": {\"y\": [], \"z\": 1}}",
        " 1.0 ", "1.0",
        "1e2", "100",
        "1.50e1", "15.0",
        "1E-3", "0.001",
        "-0", "0",
        "-0.0", "0.0",
        "-0e1", "0",
        "12345678901234567890.10", "12345678901234567890.10",
        "\"a\\u0041\\/\\n\\u001f\u00e4\ud83d\ude00\\ud83d\\ude00\\\"\"",
            "\"aA/\\n\\u001f\u00e4\ud83d\ude00\ud83d\ude00\\\"\"",
        "[]", "[]",
        "true", "true",
        "null", "null",
        "{\"\u00e9\":1,\"zz\":2,\"a\":3}", "{\"a\": 3, \"zz\": 2, \"\u00e9\": 1}",
        "", "22P02 invalid input syntax for type json",
        "{", "22P02 invalid input syntax for type json",
        "1 2", "22P02 invalid input syntax for type json",
        "nan", "22P02 invalid input syntax for type json",
        "01", "22P02 invalid input syntax for type json",
        "'a'", "22P02 invalid input syntax for type json",
        "[1,]", "22P02 invalid input syntax for type json",
        "\"\\u0000\"", "22P05 unsupported Unicode escape sequence",
        "\"\\ud83d\"", "22P02 invalid input syntax for type json",
        "1e999999", "22003 value overflows numeric format",
        null, "NULL");
    String deep = "[".repeat(1500) + "]".repeat(1500);
    assertResults("tg_jsonb_parse(x)", deep, deep);
  }

  @Test
  void readsParts() {
    String doc = "{\"a\": {\"b\": [10, \"x\\ny\", null, {\"c\": \"]\"}]}, \"t\": \"s\", \"\\\"q\": 1, \"n\": null}";
    assertResults("tg_jsonb_get(x, 'a')",
        doc, "{\"b\": [10, \"x\\ny\", null, {\"c\": \"]\"}]}",
        "[1]", "NULL",
        "1", "NULL",
        "{}", "NULL",
        null, "NULL");
    assertResults("tg_jsonb_get(x, 't')", doc, "\"s\"");
    assertResults("tg_jsonb_get(x, 'n')", doc, "null");
    assertResults("tg_jsonb_get(x, '\"q')", doc, "1");
    assertResults("tg_jsonb_get(x, 1)",
        "[1, [2, 3], 4]", "[2, 3]",
        "[1]", "NULL",
        "[]", "NULL",
        "{\"1\": 2}", "NULL",
        "5", "NULL");
    assertResults("tg_jsonb_get(x, -1)", "[1, [2, 3], 4]", "4", "[]", "NULL");
    assertResults("tg_jsonb_get(x, cast(-4 as bigint))", "[1, 2, 3]", "NULL");
    assertResults("tg_jsonb_get_text(x, 't')", doc, "s");
    assertResults("tg_jsonb_get_text(x, 'n')", doc, "NULL");
    assertResults("tg_jsonb_get_text(x, 'a')", doc, "{\"b\": [10, \"x\\ny\", null, {\"c\": \"]\"}]}");
    assertResults("tg_jsonb_get_text(x, 1)", "[0, \"x\\ny\\u00e9\"]", "x\nyé");
    assertResults("tg_jsonb_path(x, array('a', 'b', '3', 'c'))", doc, "\"]\"");
    assertResults("tg_jsonb_path(x, array('a', 'b', '-1'))", doc, "{\"c\": \"]\"}");
    assertResults("tg_jsonb_path(x, array('a', 'b', 'x'))", doc, "NULL");
    assertResults("tg_jsonb_path(x, array('a', null))", doc, "NULL");
    assertResults("tg_jsonb_path(x, cast(array() as array<string>))", "{\"a\": 1}", "{\"a\": 1}");
    assertResults("tg_jsonb_path_text(x, array('a', 'b', '1'))", doc, "x\ny");
    assertResults("tg_jsonb_typeof(x)",
        "1", "number",
        "-1", "number",
        "\"a\"", "string",
        "{}", "object",
        "[]", "array",
        "true", "boolean",
        "null", "null");
    assertResults("tg_jsonb_array_length(x)",
        "[1, {\"a\": [2, 3]}, \"],\"]", "3",
        "[]", "0",
        "1", "22023 cannot get array length of a scalar",
        "{}", "22023 cannot get array length of a non-array");
  }

  @Test
  void testsContainment() {
    assertResults("tg_jsonb_contains(x, '{\"b\": {\"c\": [1, 2]}}')",
        "{\"a\": 1, \"b\": {\"c\": [2, 3, 1], \"d\": 1}}", "true",
        "{\"b\": {\"c\": [2]}}", "false",
        "{\"b\": 1}", "false",
        "[]", "false");
    assertResults("tg_jsonb_contains(x, '[1, [2]]')", "[[3, 2], 1.0]", "true", "[1, 2]", "false");
    assertResults("tg_jsonb_contains(x, '\"bar\"')",
        "[\"foo\", \"bar\"]", "true",
        "\"bar\"", "true",
        "[[\"bar\"]]", "false",
        "{\"bar\": 1}", "false");
    assertResults("tg_jsonb_contains(x, '[\"bar\"]')", "\"bar\"", "false");
    assertResults("tg_jsonb_contains(x, '{}')", "{\"a\": 1}", "true", "[]", "false");
    assertResults("tg_jsonb_exists(x, 'b')",
        "{\"a\": 1, \"b\": 2}", "true",
        "{\"a\": \"b\"}", "false",
        "[\"a\", \"b\"]", "true",
        "[[\"b\"]]", "false",
        "\"b\"", "true",
        "1", "false");
  }

  @Test
  void readsIndexesInPathsAsStrtoint() {
    assertResults("tg_jsonb_delete_path('[0, 1]', array(x))",
        " 1", "[0]",
        "+1", "[0]",
        "-1", "[0]",
        "1 ", "22P02 path element at position 1 is not an integer: \"1 \"",
        "99999999999", "22P02 path element at position 1 is not an integer: \"99999999999\"");
  }

  @Test
  void castsToOtherTypes() {
    assertResults("tg_jsonb_int4(x)",
        "2.5", "3",
        "-2.5", "-3",
        "2147483648", "22003 integer out of range",
        "\"1\"", "22023 cannot cast jsonb string to type integer",
        "null", "22023 cannot cast jsonb null to type integer",
        "true", "22023 cannot cast jsonb boolean to type integer",
        "{}", "22023 cannot cast jsonb object to type integer",
        "[]", "22023 cannot cast jsonb array to type integer");
    assertResults("tg_jsonb_int2(x)", "32767", "32767", "32767.5", "22003 smallint out of range");
    assertResults("tg_jsonb_int8(x)",
        "9223372036854775807", "9223372036854775807",
        "9223372036854775808", "22003 bigint out of range");
    assertResults("tg_jsonb_numeric(x, 10, 2)",
        "1.005", "1.01",
        "123456789.1", "22003 numeric field overflow");
    assertResults("tg_jsonb_numeric(x)", "1.5", "1.5000000000000000");
    assertResults("tg_jsonb_float8(x)", "1.5", "1.5");
    assertResults("tg_jsonb_bool(x)", "true", "true", "1", "22023 cannot cast jsonb numeric to type boolean");
  }
}
