package tailgate.formats;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import tailgate.errors.SqlError;

/** Plain formats and JSON. */
class FormatTest {
  private static byte[] utf8(String text) { return text.getBytes(StandardCharsets.UTF_8); }

  /** Returns the decoded value as text, null for NULL, or an error's SQLSTATE and message. */
  private static String decode(Format format, String value) {
    try {
      Object catalyst = format.decode(utf8(value));
      if (catalyst == null) return null;
      return String.valueOf(CatalystTypeConverters.createToScalaConverter(format.type()).apply(catalyst));
    } catch (SqlError e) {
      return e.sqlstate() + " " + e.getMessage();
    }
  }

  private static final StructType COLUMNS = StructType.fromDDL(
      "i int, l bigint, s string, d double, n decimal(6,2), b boolean, t timestamp, dt date, "
          + "a array<int>, o struct<x: int, y: string>, raw binary")
      .add("j", "string", true, new MetadataBuilder().putBoolean("jsonb", true).build());

  @Test
  void jsonColumnsAreReadByName() {
    Format f = Formats.jsonColumns(COLUMNS);
    String row = "{\"extra\": {\"i\": [1]}, \"i\": 1, \"l\": 9007199254740993, \"s\": \"é\", \"d\": 5e-1, "
        + "\"n\": 1.235, \"b\": true, \"t\": \"2020-01-02T03:04:05+02:00\", \"dt\": \"2020-01-02\", "
        + "\"a\": [1, null], \"o\": {\"x\": 1, \"z\": 0}, \"j\": {\"b\": 1.0, \"a\": 1}}";
    assertEquals("[1,9007199254740993,é,0.5,1.24,true,2020-01-02 01:04:05.0,2020-01-02,"
        + "ArraySeq(1, null),[1,null],null,{\"a\": 1, \"b\": 1.0}]", decode(f, row));
    assertEquals("[null,null,null,null,null,null,null,null,null,null,null,null]", decode(f, "{\"i\": null}"));
    assertEquals("[2,null,null,null,null,null,null,null,null,null,null,null]", decode(f, "{\"i\": 1, \"i\": 2}"));
    assertNull(decode(f, "null"));
  }

  @Test
  void jsonColumnsOfOtherTypesAreErrors() {
    Format f = Formats.jsonColumns(COLUMNS);
    String invalidJson = "22P02 invalid input syntax for type json";
    String[][] errors = {
        {"{\"i\": \"1\"}", "22P02 column \"i\" is of type int but the value is a JSON string"},
        {"{\"i\": 1.0}", "22P02 column \"i\" is of type int but the value is a JSON number"},
        {"{\"i\": 2147483648}", "22003 integer out of range"},
        {"{\"l\": 9223372036854775808}", "22003 bigint out of range"},
        {"{\"n\": 12345.6}", "22003 numeric field overflow"},
        {"{\"s\": 1}", "22P02 column \"s\" is of type string but the value is a JSON number"},
        {"{\"s\": {}}", "22P02 column \"s\" is of type string but the value is a JSON object"},
        {"{\"o\": {\"x\": true}}", "22P02 column \"x\" is of type int but the value is a JSON boolean"},
        {"[]", "22P02 column \"the value\" is of type " + COLUMNS.catalogString()
            + " but the value is a JSON array"},
        {"{\"t\": \"x\"}", "22007 invalid input syntax for type timestamp with time zone: \"x\""},
        {"{\"i\": 1", invalidJson},
        {"{} {}", invalidJson},
        {"", invalidJson},
    };
    for (String[] error : errors) assertEquals(error[1], decode(f, error[0]));
    assertEquals(2, ((InternalRow) f.decode(utf8("{\"i\": 2}"))).getInt(0), "decodes after an error");
  }

  @Test
  void bothJsonFormatsRaiseOneErrorForAnotherType() {
    Format columns = Formats.jsonColumns(StructType.fromDDL("i int, raw binary"));
    Format connect = Formats.connectJson("""
        {"columns": [{"name": "i", "type": "int4", "spark": "int", "array": false},
          {"name": "raw", "type": "bytea", "spark": "binary", "array": false}],
          "envelope": false, "before": false, "decimals": "precise"}""");
    for (String value : new String[] {"{\"i\": \"1\"}", "{\"i\": true}", "{\"i\": {}}", "{\"i\": []}", "{\"raw\": 1}"}) {
      assertEquals(decode(columns, value), decode(connect, value));
    }
    assertEquals("22P02 column \"raw\" is of type binary but the value is a JSON null", decode(connect, "{\"raw\": [1, null]}"));
  }

  @Test
  void bytesAndText() {
    assertArrayEquals(new byte[] {1, 0}, (byte[]) Formats.bytes().decode(new byte[] {1, 0}));
    assertEquals("é", decode(Formats.text(), "é"));
    assertEquals("22021 invalid byte sequence for encoding \"UTF8\": 0x00", decode(Formats.text(), "a\0"));
    assertEquals("{\"a\": 1}", decode(Formats.json(), " {\"a\":1}"));
    assertNull(Formats.none().decode(new byte[] {1}));
  }
}
