package tailgate;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.Lab.*;

import java.util.*;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

class FormatTest {
  private static Object decoded(Format format, String value) {
    try {
      Object catalyst = format.decode(utf8(value));
      return catalyst == null ? null : String.valueOf(CatalystTypeConverters.createToScalaConverter(format.type()).apply(catalyst));
    } catch (SqlError e) {
      return e.sqlstate() + " " + e.getMessage();
    }
  }

  @Test
  void columnsByName() {
    StructType columns = schema("i int, l bigint, s string, d double, n decimal(6,2), b boolean, t timestamp, dt date, a array<int>, o struct<x: int, y: string>, raw binary")
        .add("j", "string", true, new MetadataBuilder().putBoolean("jsonb", true).build());
    Format f = Format.jsonColumns(columns);
    assertEquals("[1,9007199254740993,é,0.5,1.24,true,2020-01-02 01:04:05.0,2020-01-02,ArraySeq(1, null),[1,null],null,{\"a\": 1, \"b\": 1.0}]", decoded(f,
        "{\"extra\": {\"i\": [1]}, \"i\": 1, \"l\": 9007199254740993, \"s\": \"é\", \"d\": 5e-1, \"n\": 1.235, \"b\": true, \"t\": \"2020-01-02T03:04:05+02:00\", \"dt\": \"2020-01-02\", \"a\": [1, null],"
        + " \"o\": {\"x\": 1, \"z\": 0}, \"j\": {\"b\": 1.0, \"a\": 1}}"));
    assertEquals("[null,null,null,null,null,null,null,null,null,null,null,null]", decoded(f, "{\"i\": null}"));
    assertEquals("[2,null,null,null,null,null,null,null,null,null,null,null]", decoded(f, "{\"i\": 1, \"i\": 2}"));
    assertNull(decoded(f, "null"));
    for (String[] wrong : new String[][] {
        {"{\"i\": \"1\"}", "22P02 column \"i\" is of type int but the value is a JSON string"}, {"{\"i\": 1.0}", "22P02 column \"i\" is of type int but the value is a JSON number"},
        {"{\"i\": 2147483648}", "22003 integer out of range"}, {"{\"l\": 9223372036854775808}", "22003 bigint out of range"}, {"{\"n\": 12345.6}", "22003 numeric field overflow"},
        {"{\"s\": 1}", "22P02 column \"s\" is of type string but the value is a JSON number"}, {"{\"s\": {}}", "22P02 column \"s\" is of type string but the value is a JSON object"},
        {"{\"o\": {\"x\": true}}", "22P02 column \"x\" is of type int but the value is a JSON boolean"}, {"[]", "22P02 column \"the value\" is of type " + columns.catalogString() + " but the value is a JSON array"},
        {"{\"t\": \"x\"}", "22007 invalid input syntax for type timestamp with time zone: \"x\""}, {"{\"i\": 1", "22P02 invalid input syntax for type json"}, {"{} {}", "22P02 invalid input syntax for type json"}, {"", "22P02 invalid input syntax for type json"}})
      assertEquals(wrong[1], decoded(f, wrong[0]));
    assertEquals(2, ((org.apache.spark.sql.catalyst.InternalRow) f.decode(utf8("{\"i\": 2}"))).getInt(0), "goes on after an error");
  }

  @Test
  void bytesAndText() {
    assertArrayEquals(new byte[] {1, 0}, (byte[]) Format.bytes().decode(new byte[] {1, 0}));
    assertEquals("é", decoded(Format.text(), "é"));
    assertEquals("22021 invalid byte sequence for encoding \"UTF8\": 0x00", decoded(Format.text(), "a\0"));
    assertEquals("{\"a\": 1}", decoded(Format.json(), " {\"a\":1}"));
    assertNull(Format.none().decode(new byte[] {1}));
  }

  @Test
  void arrowOfOtherColumns() {
    Circuit c = new Circuit();
    StructType row = schema("a int, b string");
    c.source(1, "a", Decoder.arrow(row), empty(row));
    c.relation(1, row, 0);
    c.output(1, empty(row), 1);
    c.seal();
    Running r = new Running(c, 1);
    r.tick(arrow("a", schema("a bigint, b string"), List.of(plus(1L, "x"))), record("a", 1, null, new byte[] {1, 2, 3}), record("a", 2, null, null),
        arrow("a", row, List.of(new Weighted(row(1, "x"), 3), new Weighted(row(1, "x"), -3), new Weighted(row(2, null), 2))));
    assertEquals(new Bag().add(row(2, null), 2), r.relation(1));
    assertEquals(2L, r.last.counters().get("1.dead_letters"));
  }
}
