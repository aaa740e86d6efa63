package tailgate.formats.ksqldb;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.junit.jupiter.api.Test;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.formats.Formats;

/** ksqlDB's formats JSON, DELIMITED and KAFKA. */
class KsqldbFormatsTest {
  private static final String ALL = """
      [{"name": "I", "type": "int4", "spark": "int"}, {"name": "L", "type": "int8", "spark": "bigint"},
       {"name": "D", "type": "float8", "spark": "double"}, {"name": "N", "type": "numeric", "spark": "decimal(6,2)"},
       {"name": "S", "type": "text", "spark": "string"}, {"name": "B", "type": "bool", "spark": "boolean"},
       {"name": "DAY", "type": "date", "spark": "date"}, {"name": "TIME", "type": "time", "spark": "bigint"},
       {"name": "AT", "type": "timestamp", "spark": "timestamp_ntz"}]""";

  private static Format format(String name, String columns, boolean wrapped) {
    return Formats.ksqldb(
        "{\"format\": \"" + name + "\", \"delimiter\": \",\", \"wrapped\": " + wrapped + ", \"columns\": " + columns + "}", "", "");
  }

  private static Format single(String name, String type, String spark) {
    return format(name, "[{\"name\": \"K\", \"type\": \"" + type + "\", \"spark\": \"" + spark + "\"}]", false);
  }

  private static String decode(Format format, byte[] bytes) {
    try {
      Object catalyst = format.decode(bytes);
      if (catalyst == null) return null;
      return String.valueOf(CatalystTypeConverters.createToScalaConverter(format.type()).apply(catalyst));
    } catch (SqlError e) {
      return e.sqlstate() + " " + e.getMessage();
    }
  }

  private static String decode(Format format, String text) { return decode(format, text.getBytes(StandardCharsets.UTF_8)); }

  @Test
  void jsonMembersMatchRegardlessOfCase() {
    Format f = format("JSON", ALL, true);
    assertEquals("[1,9007199254740993,0.5,1.24,é,true,1970-01-03,1000,1970-01-01T00:00:01.500]", decode(f,
        "{\"i\": 1, \"L\": 9007199254740993, \"d\": 5e-1, \"n\": 1.240, \"s\": \"é\", \"b\": true, \"day\": 2,"
            + " \"time\": 1, \"at\": 1500, \"extra\": [{}]}"));
    assertEquals("[2,null,null,null,null,null,null,null,null]", decode(f, "{\"i\": 1, \"I\": 2}"));
    assertNull(decode(f, "null"));
  }

  @Test
  void jsonValuesAreConverted() {
    Format f = format("JSON", ALL, true);
    assertEquals("[1,-2,3.0,1.50,{\"x\":[1,2.0]},null,null,null,null]", decode(f,
        "{\"I\": 1.9, \"L\": \"-2\", \"D\": 3, \"N\": \"1.5\", \"S\": {\"x\" : [1, 2.0]}, \"B\": null}"));
    assertEquals("[0,null,null,null,null,null,null,null,null]", decode(f, "{\"I\": 1e-400000000}"));
    assertEquals("[null,null,null,null,12,null,null,null,null]", decode(f, "{\"S\": 12}"));
    assertEquals("[null,null,null,null,[a, 1.0, [null, {\"x\":[2]}]],null,null,null,null]",
        decode(f, "{\"S\": [\"a\", 1.0, [null, {\"x\": [2]}]]}"));
    String[][] errors = {
        {"{\"I\": 2147483648}", "22003 int out of range"},
        {"{\"I\": 1e400}", "22003 int out of range"},
        {"{\"L\": 1e400000000}", "22003 bigint out of range"},
        {"{\"N\": 1.235}", "22P02 Cannot fit decimal '1.235' into DECIMAL(6,2) without rounding."},
        {"{\"N\": 1e-400000000}", "22P02 Cannot fit decimal '1E-400000000' into DECIMAL(6,2) without rounding."},
        {"{\"I\": \"a\"}", "22P02 invalid input syntax for type int: \"a\""},
        {"{\"S\": [\"a\\u0000\"]}", "22021 invalid byte sequence for encoding \"UTF8\": 0x00"},
        {"{\"S\": [\"\\ud800\"]}", "22P02 Unicode escape of an unpaired surrogate"},
        {"{\"B\": 1}", "22P02 column \"B\" is of type boolean but the value is a JSON number"},
        {"{\"I\": []}", "22P02 column \"I\" is of type int but the value is a JSON array"},
        {"[1]", "22P02 column \"the value\" is of type " + f.type().catalogString() + " but the value is a JSON array"},
        {"{\"I\": 1", "22P02 invalid input syntax for type json"},
        {"{} {}", "22P02 invalid input syntax for type json"},
    };
    for (String[] error : errors) assertEquals(error[1], decode(f, error[0]));
  }

  @Test
  void jsonMayFollowTheIdOfASchema() {
    assertEquals("[7]", decode(single("JSON", "int4", "int"), "\0\0\0\0\1" + "7"));
    assertEquals("22P02 not in Confluent's wire format", decode(single("JSON", "int4", "int"), "\0\0\0"));
  }

  @Test
  void oneJsonValueIsTheOnlyColumn() {
    assertEquals("[7]", decode(single("JSON", "int4", "int"), "7"));
    assertEquals("[a]", decode(single("JSON", "text", "string"), "\"a\""));
    assertNull(decode(single("JSON", "int4", "int"), "null"));
  }

  @Test
  void aLineHasAFieldForEachColumn() {
    Format f = format("DELIMITED", ALL, true);
    assertEquals("[1,-2,0.5,1.20,a,b,true,1970-01-03,5000,1970-01-01T00:00:00.006]", decode(f, "1,-2,.5,1.2,\"a,b\",TRUE,2,5,6"));
    assertEquals("[null,null,null,null,null,null,null,null,null]", decode(f, ",,,,,,,,"));
    assertEquals("[null,null,null,1.50,null,null,null,null,null]", decode(f, ",,,\"1.500\",\"\",,,,"));
    assertEquals("22P04 the line has 2 fields, expected 9", decode(f, "1,2"));
    assertEquals("22P02 invalid input syntax for type int: \"x\"", decode(f, "x,,,,,,,,"));
  }

  @Test
  void primitivesAreBigEndian() {
    assertEquals("[258]", decode(single("KAFKA", "int4", "int"), new byte[] {0, 0, 1, 2}));
    assertEquals("[-1]", decode(single("KAFKA", "int8", "bigint"), new byte[] {-1, -1, -1, -1, -1, -1, -1, -1}));
    assertEquals("[1.0]", decode(single("KAFKA", "float8", "double"), new byte[] {0x3f, (byte) 0xf0, 0, 0, 0, 0, 0, 0}));
    assertEquals("[é]", decode(single("KAFKA", "text", "string"), "é"));
    assertEquals("22P02 a value of type int has 4 bytes, not 1", decode(single("KAFKA", "int4", "int"), "1"));
  }
}
