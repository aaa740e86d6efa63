package tailgate.formats.ksqldb;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.junit.jupiter.api.Test;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.formats.Formats;
import tailgate.formats.StubRegistry;

/** ksqlDB's formats with schemas, and the windows in keys. */
class KsqldbSchemaFormatsTest {
  private static final String COLUMNS = """
      [{"name": "ID", "type": "int8", "spark": "bigint"}, {"name": "N", "type": "numeric", "spark": "decimal(6,2)"},
       {"name": "M", "type": "jsonb", "spark": "string", "nested": "[\\"map\\", \\"int\\"]"},
       {"name": "S", "type": "jsonb", "spark": "string", "nested": "[\\"struct\\", [\\"AT\\", \\"timestamp\\"]]"}]""";
  private static final String AVRO = """
      {"type": "record", "name": "R", "fields": [
        {"name": "id", "type": "int"},
        {"name": "N", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}]},
        {"name": "M", "type": {"type": "array", "items": {"type": "record", "name": "E", "fields": [
          {"name": "key", "type": ["null", "string"]}, {"name": "value", "type": "long"}]}}},
        {"name": "S", "type": {"type": "record", "name": "T", "fields": [{"name": "at", "type": "long"}]}},
        {"name": "other", "type": "string"}]}""";

  private static String spec(String format, String columns, String more) {
    return "{\"format\": \"" + format + "\", \"delimiter\": \",\", \"wrapped\": true, \"columns\": " + columns + more + "}";
  }

  private static String decode(Format format, byte[] bytes) {
    try {
      return String.valueOf(CatalystTypeConverters.createToScalaConverter(format.type()).apply(format.decode(bytes)));
    } catch (SqlError e) {
      return e.sqlstate() + " " + e.getMessage();
    }
  }

  private static String decode(Format format, String hex) { return decode(format, HexFormat.of().parseHex(hex.replace(" ", ""))); }

  @Test
  void avroIsReadByTheWritersSchema() throws Exception {
    try (StubRegistry registry = new StubRegistry()) {
      registry.put(1, AVRO);
      registry.put(2, "\"string\"");
      Format f = Formats.ksqldb(spec("AVRO", COLUMNS, ""), registry.url(), "");
      assertEquals("[5,1.50,{\"a\": 7},{\"AT\": 1}]", decode(f, "00 00000001 0a 02 04 0096 02 02 02 61 0e 00 02 02 78"));
      assertEquals("22P02 the message ends within a value", decode(f, "00 00000001 0a 02"));
      assertEquals("22P02 the value is not a record", decode(f, "00 00000002 02 61"));
      assertEquals("22P02 schema 3 is not in the registry", decode(f, "00 00000003 02"));
      assertEquals("22P02 not in Confluent's wire format", decode(f, "01"));
    }
  }

  @Test
  void aUnionOfSeveralTypesIsAStructure() throws Exception {
    String union = """
        {"type": "record", "name": "R", "fields": [{"name": "S", "type":
          ["null", "string", {"type": "record", "name": "Point", "namespace": "a", "fields": [{"name": "x", "type": "int"}]}, "long"]}]}""";
    String columns = """
        [{"name": "S", "type": "jsonb", "spark": "string", "nested": "[\\"struct\\", [\\"STRING\\", \\"varchar\\"],\
         [\\"POINT\\", [\\"struct\\", [\\"X\\", \\"int\\"]]], [\\"LONG\\", \\"bigint\\"]]"}]""";
    try (StubRegistry registry = new StubRegistry()) {
      registry.put(1, union);
      Format f = Formats.ksqldb(spec("AVRO", columns, ""), registry.url(), "");
      assertEquals("[{\"LONG\": null, \"POINT\": null, \"STRING\": \"a\"}]", decode(f, "00 00000001 02 02 61"));
      assertEquals("[{\"LONG\": null, \"POINT\": {\"X\": 3}, \"STRING\": null}]", decode(f, "00 00000001 04 06"));
      assertEquals("[{\"LONG\": 3, \"POINT\": null, \"STRING\": null}]", decode(f, "00 00000001 06 06"));
      assertEquals("[null]", decode(f, "00 00000001 00"));
    }
  }

  @Test
  void aOneofIsAStructure() {
    String schema = """
        {"message": "M", "index": [0], "columns": [], "enums": {}, "messages": {"M": {"entry": false, "fields": [
          {"number": 1, "name": "id", "type": "int32"},
          {"number": 2, "name": "a", "type": "int32", "oneof": "choice", "presence": true},
          {"number": 3, "name": "b", "type": "string", "oneof": "choice", "presence": true}]}}}""";
    String columns = """
        [{"name": "CHOICE_0", "type": "jsonb", "spark": "string",
          "nested": "[\\"struct\\", [\\"A\\", \\"int\\"], [\\"B\\", \\"varchar\\"]]"},
         {"name": "ID", "type": "int4", "spark": "int"}]""";
    String quoted = "\"" + schema.replace("\"", "\\\"").replace("\n", " ") + "\"";
    Format f = Formats.ksqldb(spec("PROTOBUF", columns, ", \"schema\": " + quoted), "", "");
    assertEquals("[{\"A\": 0, \"B\": null},7]", decode(f, "00 00000001 00 08 07 10 00"));
    assertEquals("[{\"A\": null, \"B\": \"x\"},0]", decode(f, "00 00000001 00 10 01 1a 01 78"));
    assertEquals("[null,7]", decode(f, "00 00000001 00 08 07"));
  }

  @Test
  void jsonFollowsTheIdOfItsSchema() {
    Format f = Formats.ksqldb(spec("JSON_SR", COLUMNS, ""), "", "");
    byte[] json = "12345{\"id\": 5, \"M\": [{\"key\": \"a\", \"value\": 1}]}".getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < 5; i++) json[i] = 0;
    assertEquals("[5,null,{\"a\": 1},null]", decode(f, json));
    assertEquals("22P02 not in Confluent's wire format", decode(f, "7b7d"));
  }

  @Test
  void theBoundsOfAWindowFollowTheKey() {
    String column = "[{\"name\": \"K\", \"type\": \"text\", \"spark\": \"string\"}]";
    Format time = Formats.ksqldb(spec("KAFKA", column, ", \"window\": \"time\", \"window_size\": 10"), "", "");
    Format session = Formats.ksqldb(spec("KAFKA", column, ", \"window\": \"session\", \"window_size\": 0"), "", "");
    assertEquals("[a,258,268]", decode(time, ByteBuffer.allocate(9).put((byte) 'a').putLong(258).array()));
    assertEquals("[a,1,258]", decode(session, ByteBuffer.allocate(17).put((byte) 'a').putLong(258).putLong(1).array()));
    assertEquals("22P02 the key has no window", decode(session, "6100"));
  }
}
