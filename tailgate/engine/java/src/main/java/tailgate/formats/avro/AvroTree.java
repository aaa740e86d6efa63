package tailgate.formats.avro;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.functions.text.Utf8;

/**
 * Reads messages in Confluent's wire format as trees, by the schema with which they were written: records
 * and maps are Map, arrays List, texts and symbols UTF8String, bytes byte[], numbers Integer, Long, Float,
 * Double or BigDecimal. A union of several types besides null is a Map of the value by the name of its type.
 *
 * <p>Dates and times are their numbers. A reader is used by one thread.
 */
public final class AvroTree implements Serializable {
  private static final long serialVersionUID = 1;
  private final SchemaRegistry registry;
  private transient Map<Integer, Schema> schemas;  // by id

  public AvroTree(SchemaRegistry registry) { this.registry = registry; }

  /**
   * Returns the tree of a message, or null.
   *
   * @throws SqlError if it cannot be decoded
   * @throws UncheckedIOException if the registry does not answer
   */
  public Object read(byte[] message) {
    AvroInput in = new AvroInput();
    in.bytes = message;
    try {
      if (message.length < 5 || message[in.at++] != 0) throw Format.malformed("not in Confluent's wire format");
      Object tree = read(schema(in.schemaId()), in);
      if (in.at != message.length) throw Format.malformed((message.length - in.at) + " bytes after the end of the value");
      return tree;
    } catch (ArrayIndexOutOfBoundsException e) {
      throw Format.truncated();
    } catch (StackOverflowError e) {
      throw SqlError.tooDeep();
    }
  }

  private Schema schema(int id) {
    if (schemas == null) schemas = new HashMap<>();
    Schema cached = schemas.get(id);
    if (cached != null) return cached;
    try {
      List<String> texts = registry.byId(id);
      if (texts == null) throw Format.malformed("schema " + id + " is not in the registry");
      Schema schema = AvroTypes.parse(texts);
      schemas.put(id, schema);
      return schema;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (AvroRuntimeException e) {
      throw Format.malformed("schema " + id + " is not a schema of Avro: " + e.getMessage());
    }
  }

  private static Object read(Schema s, AvroInput in) {
    return switch (s.getType()) {
      case NULL -> null;
      case BOOLEAN -> in.bytes[in.at++] != 0;
      case INT -> (int) in.integer();
      case LONG -> in.integer();
      case FLOAT -> in.float32();
      case DOUBLE -> in.float64();
      case STRING -> text(in);
      case ENUM -> UTF8String.fromString(s.getEnumSymbols().get(in.index(s.getEnumSymbols().size())));
      case BYTES -> number(s, bytes(in, in.length()));
      case FIXED -> number(s, bytes(in, s.getFixedSize()));
      case UNION -> union(s.getTypes(), in);
      case ARRAY -> {
        List<Object> list = new ArrayList<>();
        in.items(() -> list.add(read(s.getElementType(), in)));
        yield list;
      }
      case MAP -> {
        Map<String, Object> map = new LinkedHashMap<>();
        in.items(() -> map.put(text(in).toString(), read(s.getValueType(), in)));
        yield map;
      }
      case RECORD -> {
        Map<String, Object> record = new LinkedHashMap<>();
        for (Schema.Field f : s.getFields()) record.put(f.name(), read(f.schema(), in));
        yield record;
      }
    };
  }

  private static Object union(List<Schema> branches, AvroInput in) {
    Schema branch = branches.get(in.index(branches.size()));
    Object value = read(branch, in);
    long types = branches.stream().filter(b -> b.getType() != Schema.Type.NULL).count();
    return value == null || types == 1 ? value : Map.of(branch.getName(), value);
  }

  private static UTF8String text(AvroInput in) {
    int length = in.length();
    return Utf8.text(in.bytes, in.skip(length), length);
  }

  private static byte[] bytes(AvroInput in, int length) {
    int from = in.skip(length);
    return Arrays.copyOfRange(in.bytes, from, from + length);
  }

  /** Returns the decimal in bytes, or the bytes themselves. */
  private static Object number(Schema s, byte[] bytes) {
    if (!(s.getLogicalType() instanceof LogicalTypes.Decimal decimal)) return bytes;
    return bytes.length == 0 ? BigDecimal.ZERO : new BigDecimal(new BigInteger(bytes), decimal.getScale());
  }
}
