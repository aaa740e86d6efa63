package tailgate.formats.avro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.formats.Formats;
import tailgate.formats.StubRegistry;

/** Recorded Debezium messages, compared with the results of Avro's own reader; damaged messages. */
class AvroTest {
  private static final Path FIXTURES = Path.of("../../../tests/fixtures/debezium");
  private static final ObjectMapper JSON = new ObjectMapper();
  private static StubRegistry registry;

  @BeforeAll
  static void start() throws IOException { registry = new StubRegistry(); }

  @AfterAll
  static void stop() { registry.close(); }

  private record Message(String topic, byte[] bytes) {
    String schema() { return registry.schema(ByteBuffer.wrap(bytes).getInt(1)); }
  }

  /**
   * Returns the keys and values of a folder's topics, and loads their schemas into the registry.
   */
  private static List<Message> messages(String folder, int idOffset) throws IOException {
    List<Message> messages = new ArrayList<>();
    registry.load(FIXTURES.resolve(folder + "/schemas.json"), idOffset);
    try (var files = Files.newDirectoryStream(FIXTURES.resolve(folder), "*.jsonl")) {
      for (Path file : files) {
        for (String line : Files.readAllLines(file)) {
          JsonNode m = JSON.readTree(line);
          for (String part : List.of("key_b64", "value_b64")) {
            if (m.get(part).isNull()) continue;
            byte[] bytes = Base64.getDecoder().decode(m.get(part).textValue());
            ByteBuffer.wrap(bytes).putInt(1, idOffset + ByteBuffer.wrap(bytes).getInt(1));
            messages.add(new Message(m.get("topic").textValue() + "/" + part, bytes));
          }
        }
      }
    }
    return messages;
  }

  private static Schema parse(String schema) { return new Schema.Parser().setValidateDefaults(false).parse(schema); }

  @Test
  void decodesLikeAvroReader() throws IOException {
    int n = 0;
    int idOffset = 0;
    for (String folder : List.of("postgres-avro", "mariadb-avro")) {
      idOffset += 1000;
      List<Message> messages = messages(folder, idOffset);
      Map<String, String> newestSchemas = new HashMap<>();
      for (Message m : messages) newestSchemas.put(m.topic, m.schema());
      Map<String, Format> formats = new HashMap<>();
      newestSchemas.forEach((topic, schema) -> formats.put(topic, Formats.avro(schema, registry.url(), "")));
      for (Message m : messages) {
        Format format = formats.get(m.topic);
        Schema reader = parse(newestSchemas.get(m.topic));
        var decoder = DecoderFactory.get().binaryDecoder(m.bytes, 5, m.bytes.length - 5, null);
        Object expected = new GenericDatumReader<>(parse(m.schema()), reader).read(null, decoder);
        assertSame(m.topic, expected, reader, format.decode(m.bytes), format.type());
        n++;
      }
    }
    assertEquals(151, n, "all keys and values that are not NULL");
  }

  /** Asserts that a value of Avro's reader and a value of Spark's form are the same. */
  private static void assertSame(String path, Object avro, Schema schema, Object spark, DataType type) {
    if (schema.getType() == Schema.Type.UNION) {
      Schema nonNull = schema.getTypes().stream().filter(s -> s.getType() != Schema.Type.NULL).findFirst().get();
      assertSame(path, avro, nonNull, spark, type);
    } else if (avro == null) {
      assertNull(spark, path);
    } else if (type instanceof StructType s) {
      InternalRow row = (InternalRow) spark;
      for (int i = 0; i < s.length(); i++) {
        DataType fieldType = s.apply(i).dataType();
        Object field = row.isNullAt(i) ? null : row.get(i, fieldType);
        String fieldPath = path + "." + s.apply(i).name();
        assertSame(fieldPath, ((GenericRecord) avro).get(i), schema.getFields().get(i).schema(), field, fieldType);
      }
    } else if (type instanceof ArrayType a) {
      List<?> list = (List<?>) avro;
      ArrayData array = (ArrayData) spark;
      assertEquals(list.size(), array.numElements(), path);
      for (int i = 0; i < array.numElements(); i++) {
        Object element = array.isNullAt(i) ? null : array.get(i, a.elementType());
        assertSame(path + "[]", list.get(i), schema.getElementType(), element, a.elementType());
      }
    } else {
      assertSameScalar(path, avro, schema, spark, type);
    }
  }

  private static void assertSameScalar(String path, Object avro, Schema schema, Object spark, DataType type) {
    if (avro instanceof GenericRecord variable) {
      BigInteger unscaled = new BigInteger(bytes((ByteBuffer) variable.get("value")));
      BigDecimal expected = new BigDecimal(unscaled, (Integer) variable.get("scale"));
      assertEquals(0, expected.compareTo(((Decimal) spark).toJavaBigDecimal()), path);
    } else if (type instanceof DecimalType d) {
      BigDecimal value = ((Decimal) spark).toJavaBigDecimal();
      byte[] unscaled = avro instanceof GenericFixed f ? f.bytes() : bytes((ByteBuffer) avro);
      if (unscaled.length == 1 && unscaled[0] == 15 && value.unscaledValue().intValue() == 15) return;
      assertEquals(new BigDecimal(new BigInteger(unscaled), d.scale()), value, path);
    } else if (type == DataTypes.BinaryType) {
      assertArrayEquals(bytes((ByteBuffer) avro), (byte[]) spark, path);
    } else if (schema.getType() == Schema.Type.LONG || schema.getType() == Schema.Type.INT) {
      String unit = schema.getProp("connect.name") + schema.getProp("logicalType");
      long factor = unit.matches(".*time\\.(Time|Timestamp)(null|.*millis).*") ? 1000 : 1;
      long divisor = unit.contains("Nano") ? 1000 : 1;
      long expected = Math.floorDiv(((Number) avro).longValue() * factor, divisor);
      assertEquals(expected, ((Number) spark).longValue(), path + " " + unit);
    } else if (type == DataTypes.TimestampType) {
      Instant expected = OffsetDateTime.parse(avro.toString()).toInstant();
      assertEquals(ChronoUnit.MICROS.between(Instant.EPOCH, expected), spark, path);
    } else {
      assertEquals(String.valueOf(avro), String.valueOf(spark), path);
    }
  }

  private static byte[] bytes(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return bytes;
  }

  @Test
  void damagedMessagesAreErrors() throws IOException {
    Message m = messages("postgres-avro", 3000).stream()
        .filter(x -> x.topic.contains("users/value")).findFirst().get();
    Format format = Formats.avro(m.schema(), registry.url(), "");
    for (int length = 0; length < m.bytes.length; length++) {
      byte[] truncated = Arrays.copyOf(m.bytes, length);
      assertThrows(SqlError.class, () -> format.decode(truncated));
    }
    byte[] longer = Arrays.copyOf(m.bytes, m.bytes.length + 1);
    assertTrue(assertThrows(SqlError.class, () -> format.decode(longer)).getMessage().contains("1 bytes after"));
    byte[] unknownSchema = m.bytes.clone();
    ByteBuffer.wrap(unknownSchema).putInt(1, 999_999);
    assertEquals("schema 999999 is not in the registry",
        assertThrows(SqlError.class, () -> format.decode(unknownSchema)).getMessage());
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
    assertNotNull(format.decode(m.bytes), "decodes after errors");
  }
}
