package tailgate.formats;

import static tailgate.formats.Mutator.text;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.util.RandomData;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.types.StructType;
import tailgate.errors.SqlError;

/** A format, and valid messages that the fuzz test damages. */
record FuzzSubject(String name, Format format, List<byte[]> messages) {
  private static final Path DEBEZIUM = Path.of("../../../tests/fixtures/debezium");
  private static final Path PROTOBUF = Path.of("../../../tests/fixtures/protobuf");
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Returns the decoded messages as text. */
  List<String> decoded() {
    var converter = CatalystTypeConverters.createToScalaConverter(format.type());
    return messages.stream()
        .map(m -> String.valueOf(converter.apply(format.decode(m))).replaceAll("\\[B@[0-9a-f]+", "bytes"))
        .toList();
  }

  static List<FuzzSubject> all(StubRegistry registry) throws IOException {
    List<FuzzSubject> subjects = new ArrayList<>();
    addAvro(subjects, registry);
    addConnect(subjects);
    addText(subjects);
    subjects.add(everyAvroType());
    addProtobuf(subjects, "three", "shop.v1.Everything");
    addProtobuf(subjects, "two", "shop.old.Old");
    return subjects;
  }

  /** Returns the values of a table's topic. */
  private static List<byte[]> messages(String folder, String table) throws IOException {
    List<byte[]> messages = new ArrayList<>();
    try (var files = Files.newDirectoryStream(DEBEZIUM.resolve(folder), "*." + table + ".jsonl")) {
      for (Path file : files) {
        for (String line : Files.readAllLines(file)) {
          JsonNode value = JSON.readTree(line).get("value_b64");
          if (!value.isNull()) messages.add(Base64.getDecoder().decode(value.textValue()));
        }
      }
    }
    return messages;
  }

  private static void addAvro(List<FuzzSubject> subjects, StubRegistry registry) throws IOException {
    int idOffset = 0;
    for (String folder : List.of("postgres-avro", "mariadb-avro")) {
      idOffset += 1000;
      registry.load(DEBEZIUM.resolve(folder + "/schemas.json"), idOffset);
      for (String table : List.of("users", "items", "purchases", "notes")) {
        List<byte[]> messages = messages(folder, table);
        for (byte[] m : messages) ByteBuffer.wrap(m).putInt(1, idOffset + ByteBuffer.wrap(m).getInt(1));
        String newestSchema = registry.schema(ByteBuffer.wrap(messages.get(messages.size() - 1)).getInt(1));
        Format format = Formats.avro(newestSchema, registry.url(), "");
        subjects.add(new FuzzSubject(folder + " " + table, format, messages));
      }
    }
  }

  private static void addConnect(List<FuzzSubject> subjects) throws IOException {
    String items = """
        {"envelope": true, "before": true, "decimals": "precise", "columns": [
          {"name": "id", "type": "int4", "spark": "int"},
          {"name": "name", "type": "text", "spark": "string"},
          {"name": "price", "type": "numeric", "spark": "decimal(7,2)", "precision": 2},
          {"name": "amount", "type": "numeric", "spark": "decimal(38,16)"},
          {"name": "weight", "type": "float8", "spark": "double"},
          {"name": "tags", "type": "jsonb", "spark": "string"},
          {"name": "words", "type": "text", "spark": "array<string>", "array": true},
          {"name": "picture", "type": "bytea", "spark": "binary"},
          {"name": "code", "type": "uuid", "spark": "string"},
          {"name": "updated_at", "type": "timestamp", "spark": "timestamp_ntz", "precision": 3}]}""";
    String purchases = """
        {"envelope": true, "before": false, "decimals": "precise", "columns": [
          {"name": "user_id", "type": "int8", "spark": "bigint"},
          {"name": "quantity", "type": "int2", "spark": "smallint"},
          {"name": "price", "type": "numeric", "spark": "decimal(12,4)", "precision": 4},
          {"name": "ship_time", "type": "time", "spark": "bigint"},
          {"name": "wait", "type": "interval", "spark": "struct<months: int, days: int, micros: bigint>"},
          {"name": "bought_at", "type": "timestamptz", "spark": "timestamp"}]}""";
    for (String folder : List.of("postgres-json", "postgres-jsonschema")) {
      subjects.add(new FuzzSubject(folder + " items", Formats.connectJson(items), messages(folder, "items")));
      subjects.add(
          new FuzzSubject(folder + " purchases", Formats.connectJson(purchases), messages(folder, "purchases")));
    }
  }

  private static void addText(List<FuzzSubject> subjects) {
    List<byte[]> json = List.of(
        text("""
            {"i": 1, "l": 9007199254740993, "s": "\u00e9", "d": 0.5, "f": 1.5, "n": 1.23, "w": 12345678901234567890.1, \
            "b": true, "t": "2020-01-02T03:04:05+02:00", "m": "2020-01-02 03:04:05.123456", "dt": "2020-01-02", \
            "a": [1, null], "o": {"x": 1, "y": "z"}, "raw": "AQID", "sh": 7, "more": {"i": [1, {}]}}"""),
        text("{\"user_id\": 5, \"s\": \"/products/7\", \"i\": null}"));
    StructType columns = StructType.fromDDL(
        "i int, l bigint, s string, d double, f float, n decimal(6,2), w decimal(38,16), b boolean, t timestamp, "
            + "m timestamp_ntz, dt date, a array<int>, o struct<x: int, y: string>, raw binary, sh smallint");
    subjects.add(new FuzzSubject("JSON columns", Formats.jsonColumns(columns), json));
    subjects.add(new FuzzSubject("JSON", Formats.json(), json));
    subjects.add(new FuzzSubject("CSV", Formats.csv(3, ",", new String[0], true),
        List.of(text("1,\"a \"\"b\"\"\",c"), text("7,,\"x\ny\""))));
    subjects.add(new FuzzSubject("CSV HEADER", Formats.csv(2, ";", new String[] {"id", "name"}, false),
        List.of(text("name;id\nAnn;7"), text("id;name\r\n8;Bob\r\n"))));
    subjects.add(new FuzzSubject("REGEX", Formats.regex("^(?<ip>[0-9.]+) (?<url>\\S+)"),
        List.of(text("10.0.0.1 /index.html"))));
    subjects.add(new FuzzSubject("REGEX alternatives", Formats.regex("^((?:[a-z0-9]|\\.| )*) ((?:a+)+)$"),
        List.of(text("10.0.0.1 aaaa"))));
    for (String format : List.of("JSON", "DELIMITED")) {
      subjects.add(new FuzzSubject("ksqlDB " + format, Formats.ksqldb("{\"format\": \"" + format + "\"" + """
          , "delimiter": ",", "wrapped": true, "columns": [
            {"name": "I", "type": "int4", "spark": "int"}, {"name": "N", "type": "numeric", "spark": "decimal(6,2)"},
            {"name": "D", "type": "float8", "spark": "double"}, {"name": "S", "type": "text", "spark": "string"},
            {"name": "RAW", "type": "bytea", "spark": "binary"}, {"name": "AT", "type": "timestamp", "spark": "timestamp_ntz"},
            {"name": "A", "type": "jsonb", "spark": "string"}]}""", "", ""), format.equals("JSON")
              ? List.of(text("{\"i\": 1, \"N\": \"1.5\", \"d\": 1e3, \"s\": {\"x\": [1]}, \"raw\": \"AQID\", \"at\": 1500, \"a\": [1]}"))
              : List.of(text("1,1.5,1e3,\"a,b\",AQID,1500,"))));
    }
    subjects.add(new FuzzSubject("TEXT", Formats.text(), List.of(text("h\u00e9llo \ud83d\ude00"))));
  }

  private static void addProtobuf(List<FuzzSubject> subjects, String spec, String message) throws IOException {
    List<byte[]> messages = new ArrayList<>();
    for (String line : Files.readAllLines(PROTOBUF.resolve("messages.jsonl"))) {
      JsonNode m = JSON.readTree(line);
      if (!m.get("message").textValue().equals(message)) continue;
      messages.add(Base64.getDecoder().decode(m.get("bytes").textValue()));
    }
    Format format = Formats.protobuf(Files.readString(PROTOBUF.resolve(spec + ".spec.json")));
    subjects.add(new FuzzSubject("Protobuf " + message, format, messages));
  }

  /** Returns Avro records with a field of every type, with random values. */
  private static FuzzSubject everyAvroType() throws IOException {
    String json = """
        {"type": "record", "name": "all", "fields": [
          {"name": "c0", "type": "null"},
          {"name": "c1", "type": "boolean"},
          {"name": "c2", "type": "int"},
          {"name": "c3", "type": "long"},
          {"name": "c4", "type": "float"},
          {"name": "c5", "type": "double"},
          {"name": "c6", "type": "bytes"},
          {"name": "c7", "type": "string"},
          {"name": "c8", "type": {"type": "fixed", "name": "f16", "size": 16}},
          {"name": "c9", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
          {"name": "c10", "type": {"type": "array", "items": "long"}},
          {"name": "c11", "type": {"type": "array", "items": "null"}},
          {"name": "c12", "type": {"type": "array", "items":
            {"type": "array", "items": {"type": "record", "name": "none", "fields": []}}}},
          {"name": "c13", "type": {"type": "map", "values": "string"}},
          {"name": "c14", "type": {"type": "map", "values": {"type": "array", "items": "boolean"}}},
          {"name": "c15", "type": ["null", "int"]},
          {"name": "c16", "type": ["null", "int", "string"]},
          {"name": "c17", "type":
            {"type": "record", "name": "r2", "fields": [{"name": "x", "type": ["null", "double"]}]}},
          {"name": "c18", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
          {"name": "c19", "type": {"type": "int", "logicalType": "date"}},
          {"name": "c20", "type": {"type": "long", "logicalType": "timestamp-millis"}},
          {"name": "c21", "type": {"type": "long", "logicalType": "time-micros"}},
          {"name": "c22", "type":
            {"type": "record", "name": "v", "connect.name": "io.debezium.data.VariableScaleDecimal",
             "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}]}}]}""";
    Schema schema = new Schema.Parser().setValidateDefaults(false).parse(json);
    Format format = Formats.avroInline(json, false);
    List<byte[]> messages = new ArrayList<>();
    for (Object value : new RandomData(schema, 400, 1)) {
      GenericRecord row = (GenericRecord) value;
      row.put("c18", ByteBuffer.wrap(new byte[] {1, 2}));
      row.put("c19", 1);
      row.put("c20", 2L);
      row.put("c21", 3L);
      ((GenericRecord) row.get("c22")).put("scale", 3);
      ((GenericRecord) row.get("c22")).put("value", ByteBuffer.wrap(new byte[] {5}));
      byte[] message = encode(schema, row);
      try {
        format.decode(message);
        messages.add(message);
      } catch (SqlError e) {
        // an array of nulls, which have no bytes, is refused if it is longer than the message
      }
    }
    return new FuzzSubject("Avro of every type", format, messages);
  }

  private static byte[] encode(Schema schema, GenericRecord row) throws IOException {
    var out = new ByteArrayOutputStream();
    var encoder = EncoderFactory.get().binaryEncoder(out, null);
    new GenericDatumWriter<Object>(schema).write(row, encoder);
    encoder.flush();
    return out.toByteArray();
  }
}
