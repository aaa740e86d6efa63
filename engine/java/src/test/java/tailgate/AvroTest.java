package tailgate;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.Lab.*;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import org.apache.avro.Schema;
import org.apache.avro.generic.*;
import org.apache.avro.io.DecoderFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.*;
import org.junit.jupiter.api.*;

/** Recorded Debezium messages, against Avro's own reader; damage; a registry that does not answer. */
class AvroTest {
  private static final Path FIXTURES = Path.of("../../tests/fixtures/debezium");
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<Integer, String> SCHEMAS = new HashMap<>();
  private static HttpServer registry;
  private static String url;

  @BeforeAll
  static void start() throws Exception {
    registry = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    registry.createContext("/schemas/ids/", exchange -> {
      String schema = SCHEMAS.get(Integer.valueOf(exchange.getRequestURI().getPath().replaceAll(".*/", "")));
      byte[] answer = JSON.writeValueAsBytes(Map.of("schema", schema == null ? "" : schema));
      exchange.sendResponseHeaders(schema == null ? 404 : 200, answer.length);
      exchange.getResponseBody().write(answer);
      exchange.close();
    });
    registry.start();
    url = "http://127.0.0.1:" + registry.getAddress().getPort();
  }

  @AfterAll
  static void stop() { registry.stop(0); }

  private record Message(String topic, byte[] bytes) {}

  /** The values of all topics of a folder, their schemas put into the registry. */
  private static List<Message> messages(String folder, int base) throws Exception {
    List<Message> all = new ArrayList<>();
    for (JsonNode s : JSON.readTree(FIXTURES.resolve(folder + "/schemas.json").toFile())) SCHEMAS.put(base + s.get("id").intValue(), s.get("schema").isTextual() ? s.get("schema").textValue() : s.get("schema").toString());
    try (var files = Files.newDirectoryStream(FIXTURES.resolve(folder), "*.jsonl")) {
      for (Path file : files)
        for (String line : Files.readAllLines(file)) {
          JsonNode m = JSON.readTree(line);
          for (String part : List.of("key_b64", "value_b64")) {
            if (m.get(part).isNull()) continue;
            byte[] bytes = Base64.getDecoder().decode(m.get(part).textValue());
            ByteBuffer.wrap(bytes).putInt(1, base + ByteBuffer.wrap(bytes).getInt(1));
            all.add(new Message(m.get("topic").textValue() + "/" + part, bytes));
          }
        }
    }
    return all;
  }

  @Test
  void asAvroReadsIt() throws Exception {
    int n = 0, base = 0;
    for (String folder : List.of("postgres-avro", "mariadb-avro")) {
      base += 1000;
      Map<String, String> newest = new HashMap<>();
      List<Message> messages = messages(folder, base);
      for (Message m : messages) newest.put(m.topic, SCHEMAS.get(ByteBuffer.wrap(m.bytes).getInt(1)));
      Map<String, Format> formats = new HashMap<>();
      newest.forEach((topic, schema) -> formats.put(topic, Format.avro(schema, url, "")));
      for (Message m : messages) {
        Format format = formats.get(m.topic);
        Schema reader = new Schema.Parser().setValidateDefaults(false).parse(newest.get(m.topic)), writer = new Schema.Parser().setValidateDefaults(false).parse(SCHEMAS.get(ByteBuffer.wrap(m.bytes).getInt(1)));
        Object expected = new GenericDatumReader<>(writer, reader).read(null, DecoderFactory.get().binaryDecoder(m.bytes, 5, m.bytes.length - 5, null));
        same(m.topic, expected, reader, format.decode(m.bytes), format.type());
        n++;
      }
    }
    assertEquals(151, n, "all keys and values that are not NULL");
  }

  private static void same(String where, Object avro, Schema schema, Object spark, DataType type) {
    if (schema.getType() == Schema.Type.UNION) schema = schema.getTypes().stream().filter(s -> s.getType() != Schema.Type.NULL).findFirst().get();
    if (avro == null) assertNull(spark, where);
    else if (type instanceof StructType s) {
      for (int i = 0; i < s.length(); i++) {
        InternalRow row = (InternalRow) spark;
        same(where + "." + s.apply(i).name(), ((GenericRecord) avro).get(i), schema.getFields().get(i).schema(), row.isNullAt(i) ? null : row.get(i, s.apply(i).dataType()), s.apply(i).dataType());
      }
    } else if (type instanceof ArrayType a) {
      var array = (org.apache.spark.sql.catalyst.util.ArrayData) spark;
      assertEquals(((List<?>) avro).size(), array.numElements(), where);
      for (int i = 0; i < array.numElements(); i++) same(where + "[]", ((List<?>) avro).get(i), schema.getElementType(), array.isNullAt(i) ? null : array.get(i, a.elementType()), a.elementType());
    } else if (avro instanceof GenericRecord variable) {
      byte[] unscaled = new byte[((ByteBuffer) variable.get("value")).remaining()];
      ((ByteBuffer) variable.get("value")).duplicate().get(unscaled);
      assertEquals(0, new java.math.BigDecimal(new java.math.BigInteger(unscaled), (Integer) variable.get("scale")).compareTo(((Decimal) spark).toJavaBigDecimal()), where);
    } else if (type instanceof DecimalType d) {
      ByteBuffer bytes = avro instanceof GenericFixed f ? ByteBuffer.wrap(f.bytes()) : (ByteBuffer) avro;
      byte[] unscaled = new byte[bytes.remaining()];
      bytes.duplicate().get(unscaled);
      if (unscaled.length == 1 && unscaled[0] == 15 && ((Decimal) spark).toJavaBigDecimal().unscaledValue().intValue() == 15) return;
      assertEquals(new java.math.BigDecimal(new java.math.BigInteger(unscaled), d.scale()), ((Decimal) spark).toJavaBigDecimal(), where);
    } else if (type == DataTypes.BinaryType) {
      byte[] bytes = new byte[((ByteBuffer) avro).remaining()];
      ((ByteBuffer) avro).duplicate().get(bytes);
      assertArrayEquals(bytes, (byte[]) spark, where);
    } else if (schema.getType() == Schema.Type.LONG || schema.getType() == Schema.Type.INT) {
      String unit = schema.getProp("connect.name") + schema.getProp("logicalType");
      long number = ((Number) avro).longValue(), times = unit.matches(".*time\\.(Time|Timestamp)(null|.*millis).*") ? 1000 : 1;
      long per = unit.contains("Nano") ? 1000 : 1;
      assertEquals(Math.floorDiv(number * times, per), ((Number) spark).longValue(), where + " " + unit);
    } else if (type == DataTypes.TimestampType) assertEquals(java.time.temporal.ChronoUnit.MICROS.between(java.time.Instant.EPOCH, java.time.OffsetDateTime.parse(avro.toString()).toInstant()), spark, where);
    else assertEquals(String.valueOf(avro), String.valueOf(spark), where);
  }

  @Test
  void damageIsAnError() throws Exception {
    Message m = messages("postgres-avro", 3000).stream().filter(x -> x.topic.contains("users/value")).findFirst().get();
    Format format = Format.avro(SCHEMAS.get(ByteBuffer.wrap(m.bytes).getInt(1)), url, "");
    for (int length = 0; length < m.bytes.length; length++) {
      byte[] cut = Arrays.copyOf(m.bytes, length);
      assertThrows(SqlError.class, () -> format.decode(cut));
    }
    assertTrue(assertThrows(SqlError.class, () -> format.decode(Arrays.copyOf(m.bytes, m.bytes.length + 1))).getMessage().contains("1 bytes after"));
    byte[] unknown = m.bytes.clone();
    ByteBuffer.wrap(unknown).putInt(1, 999_999);
    assertEquals("schema 999999 is not in the registry", assertThrows(SqlError.class, () -> format.decode(unknown)).getMessage());
    Random random = new Random(1);
    for (int i = 0; i < 3000; i++) {
      byte[] damaged = m.bytes.clone();
      for (int k = 0; k < 3; k++) damaged[5 + random.nextInt(damaged.length - 5)] = (byte) random.nextInt();
      try {
        format.decode(damaged);
      } catch (SqlError expected) {
        assertNotNull(expected.getMessage());
      }
    }
    assertNotNull(format.decode(m.bytes), "goes on after errors");
  }

  @Test
  void aRegistryThatDoesNotAnswerStallsTheSource() {
    String schema = "{\"type\": \"record\", \"name\": \"r\", \"fields\": [{\"name\": \"a\", \"type\": \"int\"}]}";
    Decoder decoder = Decoder.kafka(Format.none(), Format.avro(schema, "http://127.0.0.1:1", ""));
    Circuit c = new Circuit();
    c.source(1, "t", decoder, empty(decoder.schema()).selectExpr("value.a"));
    c.relation(1, schema("a int"), 0);
    c.output(1, empty(schema("a int")), 1);
    c.seal();
    Running r = new Running(c, 1);
    r.tick(record("t", 0, null, null));
    SourceStalled stalled = assertThrows(SourceStalled.class, () -> r.tick(record("t", 1, null, new byte[] {0, 0, 0, 0, 1, 2})));
    assertEquals("t", stalled.channel());
    assertTrue(stalled.getMessage().startsWith("schema registry http://127.0.0.1:1 does not answer"), stalled.getMessage());
    r.tick(record("t", 2, null, null));
    assertEquals(new Bag().add(row((Object) null), 2), r.relation(1));
  }

  /** Credentials of a registry go to it alone, also where it answers that another one should be asked. */
  @Test
  void aRedirectIsNotFollowed() throws Exception {
    List<String> came = Collections.synchronizedList(new ArrayList<>());
    HttpServer elsewhere = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0), redirecting = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    elsewhere.createContext("/", exchange -> {
      came.add(String.valueOf(exchange.getRequestHeaders().getFirst("Authorization")));
      exchange.sendResponseHeaders(404, -1);
    });
    redirecting.createContext("/", exchange -> {
      exchange.getResponseHeaders().add("Location", "http://127.0.0.1:" + elsewhere.getAddress().getPort() + exchange.getRequestURI());
      exchange.sendResponseHeaders(302, -1);
    });
    elsewhere.start();
    redirecting.start();
    try {
      AvroRegistry registry = AvroRegistry.of("http://ann:secret@127.0.0.1:" + redirecting.getAddress().getPort(), "");
      java.io.IOException failed = assertThrows(java.io.IOException.class, () -> registry.byId(7));
      assertTrue(failed.getMessage().contains("302, a redirect, which is not followed"), failed.getMessage());
      assertFalse(failed.getMessage().contains("secret"));
      assertEquals(List.of(), came);
    } finally {
      elsewhere.stop(0);
      redirecting.stop(0);
    }
  }
}
