package tailgate;

import static org.junit.jupiter.api.Assertions.*;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.ThreadMXBean;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.avro.Schema;
import org.apache.avro.generic.*;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.util.RandomData;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.*;

/**
 * Broken messages of every format: a decoder gives a value or an SqlError, in time and memory that the message's length bounds, and goes on afterwards.
 *
 * <p>TAILGATE_FUZZ: how many messages in all; TAILGATE_SEED: the same ones again.
 */
class FuzzTest {
  private static final int MESSAGES = Integer.parseInt(System.getenv().getOrDefault("TAILGATE_FUZZ", "20000"));
  private static final long SEED = Long.parseLong(System.getenv().getOrDefault("TAILGATE_SEED", "" + System.nanoTime() % 1_000_000));
  private static final long BYTES = 64L << 20, BYTES_PER_BYTE = 1000;  // that a decoder may ask for
  private static final long MILLIS = 2_000, MILLIS_PER_MEGABYTE = 5_000;  // of CPU that it may take; a thousand times of what an honest message of its length takes
  private static final Path FIXTURES = Path.of("../../tests/fixtures/debezium");
  private static final Path PROTOBUF = Path.of("../../tests/fixtures/protobuf");
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<Integer, String> SCHEMAS = new ConcurrentHashMap<>();
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static HttpServer registry;
  private final Random random = new Random(SEED);

  /** A format and messages that it decodes. */
  private record Fuzzed(String name, Format format, List<byte[]> seeds) {}

  @BeforeAll
  static void start() throws Exception {
    System.setProperty("sun.net.httpserver.nodelay", "true");
    registry = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    registry.createContext("/schemas/ids/", exchange -> {
      int id = Integer.parseInt(exchange.getRequestURI().getPath().replaceAll(".*/", ""));
      byte[] answer = JSON.writeValueAsBytes(Map.of("schema", SCHEMAS.getOrDefault(id, "")));
      exchange.sendResponseHeaders(SCHEMAS.containsKey(id) ? 200 : 404, answer.length);
      exchange.getResponseBody().write(answer);
      exchange.close();
    });
    registry.start();
  }

  @AfterAll
  static void stop() { registry.stop(0); }

  @Test
  void brokenMessages() throws Exception {
    List<Fuzzed> all = formats();
    Map<String, int[]> outcomes = new TreeMap<>();
    Map<Fuzzed, List<String>> before = new HashMap<>();
    for (Fuzzed f : all) before.put(f, shown(f));
    long used = 0, slowest = 0, largest = 0;
    for (int i = 0; i < MESSAGES; i++) {
      Fuzzed f = all.get(i % all.size());
      byte[] broken = broken(f.seeds.get(random.nextInt(f.seeds.size())));
      int[] outcome = outcomes.computeIfAbsent(f.name, n -> new int[2]);
      long allocated = THREADS.getCurrentThreadAllocatedBytes(), began = THREADS.getCurrentThreadCpuTime();
      try {
        f.format.decode(broken);
        outcome[0]++;
      } catch (SqlError e) {
        outcome[1]++;
      } catch (Throwable e) {
        throw new AssertionError(e + told(f, i, broken), e);
      }
      long asked = THREADS.getCurrentThreadAllocatedBytes() - allocated, millis = (THREADS.getCurrentThreadCpuTime() - began) / 1_000_000;
      slowest = Math.max(slowest, millis);
      largest = Math.max(largest, asked);
      if (asked > BYTES + BYTES_PER_BYTE * broken.length) fail(asked + " bytes of memory" + told(f, i, broken));
      if (millis > MILLIS + MILLIS_PER_MEGABYTE * broken.length / 1_000_000) fail(millis + " ms" + told(f, i, broken));
      if (i == MESSAGES / 10) used = heap();
    }
    System.out.println("fuzz: slowest " + slowest + " ms, largest " + largest + " bytes of memory");
    for (Fuzzed f : all) assertEquals(before.get(f), shown(f), f.name + " goes on after errors");
    assertTrue(heap() < used + (64L << 20), "memory stays flat");
    outcomes.forEach((name, o) -> {
      System.out.println("fuzz: " + name + ": " + o[0] + " decoded, " + o[1] + " not");
      assertTrue(o[1] > 0, name);
    });
  }

  private static String told(Fuzzed f, int i, byte[] broken) {
    return ": seed " + SEED + ", message " + i + " of " + f.name + ", " + broken.length + " bytes: " + Base64.getEncoder().encodeToString(Arrays.copyOf(broken, Math.min(broken.length, 300)));
  }

  private static long heap() {
    System.gc();
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  private static List<String> shown(Fuzzed f) {
    var convert = CatalystTypeConverters.createToScalaConverter(f.format.type());
    return f.seeds.stream().map(s -> String.valueOf(convert.apply(f.format.decode(s))).replaceAll("\\[B@[0-9a-f]+", "bytes")).toList();
  }

  // ---- damage ---------------------------------------------------------------------------------------------------------------------

  private byte[] broken(byte[] message) {
    for (int n = 1 + random.nextInt(3); n > 0; n--) message = damaged(message);
    return message;
  }

  private byte[] damaged(byte[] m) {
    int at = random.nextInt(m.length + 1);
    byte[] out = m.clone();
    switch (random.nextInt(12)) {
      case 0 -> { return Arrays.copyOf(m, at); }
      case 1 -> { if (at < m.length) out[at] ^= (byte) (1 << random.nextInt(8)); }
      case 2 -> { if (at < m.length) out[at] = (byte) random.nextInt(); }
      case 3 -> { return inserted(m, at, bytes(1 + random.nextInt(8))); }
      case 4 -> { return inserted(m, at, varint(random.nextBoolean() ? random.nextLong() : (1L << random.nextInt(63)) - random.nextInt(2))); }
      case 5 -> { return overwritten(m, at, varint(-random.nextLong(Long.MAX_VALUE))); }
      case 6 -> { return inserted(m, at, Arrays.copyOfRange(m, at, at + random.nextInt(m.length - at + 1))); }
      case 7 -> { if (m.length >= 5) ByteBuffer.wrap(out).putInt(1, random.nextInt(4) == 0 ? random.nextInt() : random.nextInt(20)); }
      case 8 -> { return inserted(m, at, nested()); }
      case 9 -> { return inserted(m, number(m, at), text(NUMBERS[random.nextInt(NUMBERS.length)])); }
      case 10 -> { return inserted(m, at, STRANGE[random.nextInt(STRANGE.length)]); }
      default -> { return overwritten(m, at, new byte[random.nextInt(m.length + 1)]); }
    }
    return out;
  }

  private static final String[] NUMBERS = {"e999999999", "e-999999999", "E+2147483647", "0".repeat(1000), "9".repeat(40_000), "1e131071", "-", ".", "1e", "18446744073709551616"};
  private static final byte[][] STRANGE = {{(byte) 0xff}, {(byte) 0xc0, (byte) 0x80}, {(byte) 0xed, (byte) 0xa0, (byte) 0x80}, {(byte) 0xf4, (byte) 0x90, (byte) 0x80, (byte) 0x80}, {0}, text("\\ud800"),
      text("\\u0000"), text("\""), text("{"), text("}"), text("["), text("]"), text(","), text("null"), text("\n"), text("\"schema\":{},\"payload\":"), text("\"schema\":{\"fields\":[{\"field\":\"after\"}]},"),
      text("\"after\":[],"), text("\"source\":{\"connector\":\"x\"},"), text("{\"scale\":-2147483648,\"value\":\"AQ==\"}"), text("{\"scale\":2147483647,\"value\":\"AQ==\"}"), text("P99999999999999999Y")};
  private static final String[] OPENINGS = {"[", "{\"a\":", "{\"after\":", "[[],", "(", "a ", "\"\","};

  private byte[] nested() { return random.nextInt(40) == 0 ? text(OPENINGS[random.nextInt(OPENINGS.length)].repeat(1 + random.nextInt(200_000))) : text(OPENINGS[random.nextInt(OPENINGS.length)].repeat(random.nextInt(3000))); }

  /** Behind a digit at or after a place, so that numbers become others. */
  private static int number(byte[] m, int at) {
    for (int i = at; i < m.length; i++) if (m[i] >= '0' && m[i] <= '9') return i + 1;
    return at;
  }

  private byte[] bytes(int n) {
    byte[] b = new byte[n];
    random.nextBytes(b);
    return b;
  }

  private static byte[] text(String s) { return s.getBytes(StandardCharsets.UTF_8); }

  private static byte[] varint(long n) {
    var out = new ByteArrayOutputStream();
    for (; (n & ~127L) != 0; n >>>= 7) out.write((int) (n & 127 | 128));
    out.write((int) n);
    return out.toByteArray();
  }

  private static byte[] inserted(byte[] m, int at, byte[] b) {
    byte[] out = Arrays.copyOf(m, m.length + b.length);
    System.arraycopy(b, 0, out, at, b.length);
    System.arraycopy(m, at, out, at + b.length, m.length - at);
    return out;
  }

  private static byte[] overwritten(byte[] m, int at, byte[] b) {
    byte[] out = m.clone();
    System.arraycopy(b, 0, out, at, Math.min(b.length, m.length - at));
    return out;
  }

  // ---- formats --------------------------------------------------------------------------------------------------------------------

  private List<Fuzzed> formats() throws Exception {
    List<Fuzzed> all = new ArrayList<>();
    String url = "http://127.0.0.1:" + registry.getAddress().getPort();
    int base = 0;
    for (String folder : List.of("postgres-avro", "mariadb-avro")) {
      base += 1000;
      for (JsonNode s : JSON.readTree(FIXTURES.resolve(folder + "/schemas.json").toFile())) SCHEMAS.put(base + s.get("id").intValue(), s.get("schema").isTextual() ? s.get("schema").textValue() : s.get("schema").toString());
      for (String table : List.of("users", "items", "purchases", "notes")) {
        List<byte[]> seeds = messages(folder, table);
        for (byte[] m : seeds) ByteBuffer.wrap(m).putInt(1, base + ByteBuffer.wrap(m).getInt(1));
        String newest = SCHEMAS.get(ByteBuffer.wrap(seeds.get(seeds.size() - 1)).getInt(1));
        all.add(new Fuzzed(folder + " " + table, Format.avro(newest, url, ""), seeds));
      }
    }
    for (String folder : List.of("postgres-json", "postgres-jsonschema")) {
      all.add(new Fuzzed(folder + " items", Format.connectJson("{\"envelope\": true, \"before\": true, \"decimals\": \"precise\", \"columns\": [{\"name\": \"id\", \"type\": \"int4\", \"spark\": \"int\"}, {\"name\": \"name\", \"type\": \"text\", \"spark\": \"string\"},"
          + " {\"name\": \"price\", \"type\": \"numeric\", \"spark\": \"decimal(7,2)\", \"precision\": 2}, {\"name\": \"amount\", \"type\": \"numeric\", \"spark\": \"decimal(38,16)\"}, {\"name\": \"weight\", \"type\": \"float8\", \"spark\": \"double\"},"
          + " {\"name\": \"tags\", \"type\": \"jsonb\", \"spark\": \"string\"}, {\"name\": \"words\", \"type\": \"text\", \"spark\": \"array<string>\", \"array\": true}, {\"name\": \"picture\", \"type\": \"bytea\", \"spark\": \"binary\"},"
          + " {\"name\": \"code\", \"type\": \"uuid\", \"spark\": \"string\"}, {\"name\": \"updated_at\", \"type\": \"timestamp\", \"spark\": \"timestamp_ntz\", \"precision\": 3}]}"), messages(folder, "items")));
      all.add(new Fuzzed(folder + " purchases", Format.connectJson("{\"envelope\": true, \"before\": false, \"decimals\": \"precise\", \"columns\": [{\"name\": \"user_id\", \"type\": \"int8\", \"spark\": \"bigint\"}, {\"name\": \"quantity\", \"type\": \"int2\", \"spark\": \"smallint\"},"
          + " {\"name\": \"price\", \"type\": \"numeric\", \"spark\": \"decimal(12,4)\", \"precision\": 4}, {\"name\": \"ship_time\", \"type\": \"time\", \"spark\": \"bigint\"},"
          + " {\"name\": \"wait\", \"type\": \"interval\", \"spark\": \"struct<months: int, days: int, micros: bigint>\"}, {\"name\": \"bought_at\", \"type\": \"timestamptz\", \"spark\": \"timestamp\"}]}"), messages(folder, "purchases")));
    }
    List<byte[]> views = List.of(text("{\"i\": 1, \"l\": 9007199254740993, \"s\": \"\u00e9\", \"d\": 0.5, \"f\": 1.5, \"n\": 1.23, \"w\": 12345678901234567890.1, \"b\": true, \"t\": \"2020-01-02T03:04:05+02:00\", \"m\": \"2020-01-02 03:04:05.123456\","
        + " \"dt\": \"2020-01-02\", \"a\": [1, null], \"o\": {\"x\": 1, \"y\": \"z\"}, \"raw\": \"AQID\", \"sh\": 7, \"more\": {\"i\": [1, {}]}}"), text("{\"user_id\": 5, \"s\": \"/products/7\", \"i\": null}"));
    StructType columns = StructType.fromDDL("i int, l bigint, s string, d double, f float, n decimal(6,2), w decimal(38,16), b boolean, t timestamp, m timestamp_ntz, dt date, a array<int>, o struct<x: int, y: string>, raw binary, sh smallint");
    all.add(new Fuzzed("JSON columns", Format.jsonColumns(columns), views));
    all.add(new Fuzzed("JSON", Format.json(), views));
    all.add(new Fuzzed("CSV", Format.csv(3, ",", new String[0], true), List.of(text("1,\"a \"\"b\"\"\",c"), text("7,,\"x\ny\""))));
    all.add(new Fuzzed("CSV HEADER", Format.csv(2, ";", new String[] {"id", "name"}, false), List.of(text("name;id\nAnn;7"), text("id;name\r\n8;Bob\r\n"))));
    all.add(new Fuzzed("REGEX", Format.regex("^(?<ip>[0-9.]+) (?<url>\\S+)"), List.of(text("10.0.0.1 /index.html"))));
    all.add(new Fuzzed("REGEX alternatives", Format.regex("^((?:[a-z0-9]|\\.| )*) ((?:a+)+)$"), List.of(text("10.0.0.1 aaaa"))));
    all.add(new Fuzzed("TEXT", Format.text(), List.of(text("h\u00e9llo \ud83d\ude00"))));
    all.add(everyAvroType());
    for (String[] of : new String[][] {{"three", "shop.v1.Everything"}, {"two", "shop.old.Old"}}) {
      List<byte[]> seeds = new ArrayList<>();
      for (String line : Files.readAllLines(PROTOBUF.resolve("messages.jsonl"))) {
        JsonNode m = JSON.readTree(line);
        if (m.get("message").textValue().equals(of[1])) seeds.add(Base64.getDecoder().decode(m.get("bytes").textValue()));
      }
      all.add(new Fuzzed("Protobuf " + of[1], Format.protobuf(Files.readString(PROTOBUF.resolve(of[0] + ".spec.json"))), seeds));
    }
    return all;
  }

  private static List<byte[]> messages(String folder, String table) throws Exception {
    List<byte[]> all = new ArrayList<>();
    try (var files = Files.newDirectoryStream(FIXTURES.resolve(folder), "*." + table + ".jsonl")) {
      for (Path file : files)
        for (String line : Files.readAllLines(file)) {
          JsonNode value = JSON.readTree(line).get("value_b64");
          if (!value.isNull()) all.add(Base64.getDecoder().decode(value.textValue()));
        }
    }
    return all;
  }

  private static Fuzzed everyAvroType() throws Exception {
    StringBuilder fields = new StringBuilder();
    String[] types = {"\"null\"", "\"boolean\"", "\"int\"", "\"long\"", "\"float\"", "\"double\"", "\"bytes\"", "\"string\"", "{\"type\": \"fixed\", \"name\": \"f16\", \"size\": 16}",
        "{\"type\": \"enum\", \"name\": \"e\", \"symbols\": [\"A\", \"B\"]}", "{\"type\": \"array\", \"items\": \"long\"}", "{\"type\": \"array\", \"items\": \"null\"}",
        "{\"type\": \"array\", \"items\": {\"type\": \"array\", \"items\": {\"type\": \"record\", \"name\": \"none\", \"fields\": []}}}", "{\"type\": \"map\", \"values\": \"string\"}",
        "{\"type\": \"map\", \"values\": {\"type\": \"array\", \"items\": \"boolean\"}}", "[\"null\", \"int\"]", "[\"null\", \"int\", \"string\"]", "{\"type\": \"record\", \"name\": \"r2\", \"fields\": [{\"name\": \"x\", \"type\": [\"null\", \"double\"]}]}",
        "{\"type\": \"bytes\", \"logicalType\": \"decimal\", \"precision\": 10, \"scale\": 2}", "{\"type\": \"int\", \"logicalType\": \"date\"}", "{\"type\": \"long\", \"logicalType\": \"timestamp-millis\"}",
        "{\"type\": \"long\", \"logicalType\": \"time-micros\"}", "{\"type\": \"record\", \"name\": \"v\", \"connect.name\": \"io.debezium.data.VariableScaleDecimal\", \"fields\": [{\"name\": \"scale\", \"type\": \"int\"}, {\"name\": \"value\", \"type\": \"bytes\"}]}"};
    for (int i = 0; i < types.length; i++) fields.append(i == 0 ? "" : ", ").append("{\"name\": \"c").append(i).append("\", \"type\": ").append(types[i]).append("}");
    String json = "{\"type\": \"record\", \"name\": \"all\", \"fields\": [" + fields + "]}";
    Schema schema = AvroTypes.parse(json);
    Format format = Format.avroInline(json, false);
    List<byte[]> seeds = new ArrayList<>();
    for (Object value : new RandomData(schema, 400, 1)) {
      var out = new ByteArrayOutputStream();
      GenericRecord row = (GenericRecord) value;
      row.put("c18", ByteBuffer.wrap(new byte[] {1, 2}));
      row.put("c19", 1);
      row.put("c20", 2L);
      row.put("c21", 3L);
      ((GenericRecord) row.get("c22")).put("scale", 3);
      ((GenericRecord) row.get("c22")).put("value", ByteBuffer.wrap(new byte[] {5}));
      var encoder = EncoderFactory.get().binaryEncoder(out, null);
      new GenericDatumWriter<Object>(schema).write(row, encoder);
      encoder.flush();
      try {
        format.decode(out.toByteArray());
        seeds.add(out.toByteArray());
      } catch (SqlError nullsOfNoBytes) {
        continue;
      }
    }
    return new Fuzzed("Avro of every type", format, seeds);
  }
}
