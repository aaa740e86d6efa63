package tailgate.formats.protobuf;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.formats.protobuf.ProtobufSchema.Field;
import tailgate.formats.protobuf.ProtobufSchema.Message;
import tailgate.functions.json.Jsonb;
import tailgate.functions.text.Utf8;
import tailgate.functions.time.Interval;

/**
 * A Protobuf message as a struct with a column for each field, in its stored form.
 *
 * <pre>
 *   [0 | schema id | message indexes |] fields ──► values by field number ──► columns
 *        truncated, another message, not UTF-8, a required field missing ──► dead letter
 * </pre>
 *
 * <p>The last value of a field counts, and of a oneof the last field; values of a message field are
 * merged. Fields are identified by number, so messages of older and newer schemas can be read;
 * unknown fields are skipped. Nested messages, maps and lists of messages are jsonb ({@link
 * ProtobufJson}).
 */
public final class ProtobufFormat extends Format {
  private static final long serialVersionUID = 1;
  // Fields of all nested messages of a message; two bytes can denote a message with hundreds.
  private static final int FIELDS_MAX = 4_000_000;
  private final String spec;
  private transient StructType type;
  private transient Message root;
  private transient int[] messageIndexes;  // null if messages have no header of the wire format
  private transient int fieldCount;

  /**
   * @param spec the schema as {@link ProtobufSchema} reads it
   */
  public ProtobufFormat(String spec) {
    this.spec = spec;
    type();
  }

  @Override public DataType type() {
    if (type != null) return type;
    ProtobufSchema schema = new ProtobufSchema(spec);
    root = schema.root();
    var indexes = schema.spec.get("index");
    if (!indexes.isNull()) {
      messageIndexes = new int[indexes.size()];
      for (int i = 0; i < messageIndexes.length; i++) messageIndexes[i] = indexes.get(i).intValue();
    }
    StructType struct = new StructType();
    for (var c : schema.spec.get("columns")) {
      DataType columnType = StructType.fromDDL("x " + c.get("spark").textValue()).apply(0).dataType();
      struct = struct.add(c.get("name").textValue(), columnType);
    }
    return type = struct;
  }

  @Override public Object decode(byte[] bytes) {
    Object[] values = values(bytes);
    Object[] row = new Object[values.length];
    for (Field f : root.fields) row[f.index] = column(f, values[f.index]);
    return new GenericInternalRow(row);
  }

  /** Returns the fields of a message by name, as {@link ProtobufTree} describes. */
  public Map<String, Object> tree(byte[] bytes) {
    Object[] values = values(bytes);
    return ProtobufTree.of(root, values);
  }

  private Object[] values(byte[] bytes) {
    type();
    ProtobufInput in = new ProtobufInput(bytes);
    if (messageIndexes != null) readHeader(in);
    fieldCount = 0;
    return readMessage(root, null, in, bytes.length, 0, 0);
  }

  /** Reads Confluent's header, which says which of the schema's messages follows. */
  private void readHeader(ProtobufInput in) {
    int end = in.bytes.length;
    if (end < 6 || in.bytes[0] != 0) throw malformed("not in Confluent's wire format");
    in.at = 5;
    long n = ProtobufInput.zigzag(in.varint(end));
    if (n < 0 || n > end - in.at) throw truncated();
    int[] indexes = new int[Math.max(1, (int) n)];  // no indexes denote the first message
    for (int i = 0; i < n; i++) indexes[i] = (int) ProtobufInput.zigzag(in.varint(end));
    if (!Arrays.equals(indexes, messageIndexes)) {
      throw malformed("message " + Arrays.toString(indexes) + " of the schema, the source reads "
          + Arrays.toString(messageIndexes));
    }
  }

  // ---- values by field --------------------------------------------------------------------------

  /**
   * Reads a message's fields.
   *
   * @param previous an earlier value of the same field, which is completed, or null
   * @param group the field number if the message is a group, else 0
   */
  private Object[] readMessage(Message m, Object[] previous, ProtobufInput in, int end, int group, int depth) {
    ProtobufInput.checkDepth(depth);
    if (previous == null && (fieldCount += m.fields.length + 4) > FIELDS_MAX) {
      throw new SqlError("54000", "the message contains too many messages");
    }
    Object[] values = previous == null ? new Object[m.fields.length] : previous;
    while (in.at < end) {
      int tag = in.tag(end);
      if (group != 0 && tag == ProtobufInput.groupEndTag(group)) return values;
      Field f = m.field(ProtobufInput.fieldNumber(tag));
      if (f == null || !readField(m, f, values, tag, in, end, depth)) in.skip(tag, end, depth + 1);
    }
    if (group != 0) throw truncated();
    return values;
  }

  /**
   * Reads a field's value. Returns false, and reads nothing, if the field has another wire type.
   */
  private boolean readField(Message m, Field f, Object[] values, int tag, ProtobufInput in, int end, int depth) {
    int wireType = ProtobufInput.wireType(tag);
    if (f.isRepeated && f.isPackable && wireType == ProtobufInput.LENGTH_DELIMITED) {
      int from = in.skipDelimited(end);
      int to = in.at;
      List<Object> list = list(f, values);
      for (in.at = from; in.at < to; ) list.add(readScalar(f, in, to));
      return true;
    }
    if (wireType != wireType(f)) return false;
    if (!f.isMessage) put(m, f, values, readScalar(f, in, end));
    else if (f.isMap()) putEntry(f, values, readNested(f, null, wireType, in, end, depth));
    else put(m, f, values, readNested(f, f.isRepeated ? null : (Object[]) values[f.index], wireType, in, end, depth));
    return true;
  }

  private Object[] readNested(Field f, Object[] previous, int wireType, ProtobufInput in, int end, int depth) {
    if (wireType == ProtobufInput.GROUP_START) return readMessage(f.message, previous, in, end, f.number, depth + 1);
    int from = in.skipDelimited(end);
    int to = in.at;
    in.at = from;
    return readMessage(f.message, previous, in, to, 0, depth + 1);
  }

  private static void put(Message m, Field f, Object[] values, Object value) {
    if (f.isRepeated) {
      list(f, values).add(value);
      return;
    }
    if (!f.oneof.isEmpty()) {
      for (Field other : m.fields) if (other != f && other.oneof.equals(f.oneof)) values[other.index] = null;
    }
    values[f.index] = value;
  }

  @SuppressWarnings("unchecked")
  private static void putEntry(Field f, Object[] values, Object[] entry) {
    if (values[f.index] == null) values[f.index] = new LinkedHashMap<Object, Object>();
    Field keyField = f.message.fields[0];
    Field valueField = f.message.fields[1];
    Object key = entry[0] == null ? keyField.missingValue() : entry[0];
    Object value = entry[1];
    if (value == null) {
      value = valueField.isMessage ? new Object[valueField.message.fields.length] : valueField.missingValue();
    }
    ((Map<Object, Object>) values[f.index]).put(key, value);
  }

  @SuppressWarnings("unchecked")
  private static List<Object> list(Field f, Object[] values) {
    if (values[f.index] == null) values[f.index] = new ArrayList<>();
    return (List<Object>) values[f.index];
  }

  private static int wireType(Field f) {
    return switch (f.type) {
      case "double", "fixed64", "sfixed64" -> ProtobufInput.FIXED64;
      case "float", "fixed32", "sfixed32" -> ProtobufInput.FIXED32;
      case "string", "bytes", "message" -> ProtobufInput.LENGTH_DELIMITED;
      case "group" -> ProtobufInput.GROUP_START;
      default -> ProtobufInput.VARINT;
    };
  }

  private static Object readScalar(Field f, ProtobufInput in, int end) {
    return switch (f.type) {
      case "double" -> Double.longBitsToDouble(in.fixed64(end));
      case "float" -> Float.intBitsToFloat(in.fixed32(end));
      case "int64", "uint64" -> in.varint(end);
      case "int32", "enum" -> (int) in.varint(end);
      case "fixed64", "sfixed64" -> in.fixed64(end);
      case "fixed32" -> in.fixed32(end) & 0xffff_ffffL;
      case "sfixed32" -> in.fixed32(end);
      case "bool" -> in.varint(end) != 0;
      case "uint32" -> in.varint(end) & 0xffff_ffffL;
      case "sint32" -> (int) ProtobufInput.zigzag(in.varint(end) & 0xffff_ffffL);
      case "sint64" -> ProtobufInput.zigzag(in.varint(end));
      case "string" -> Utf8.text(readBytes(in, end));
      case "bytes" -> readBytes(in, end);
      default -> throw new IllegalStateException(f.type);
    };
  }

  private static byte[] readBytes(ProtobufInput in, int end) {
    int from = in.skipDelimited(end);
    return Arrays.copyOfRange(in.bytes, from, in.at);
  }

  // ---- columns ----------------------------------------------------------------------------------

  private static Object column(Field f, Object value) {
    if (f.isMap() || f.isRepeated && f.isMessage && !isScalarMessage(f.message)) return json(f, value);
    if (!f.isRepeated) return value == null ? missing(f) : scalar(f, value);
    List<?> list = value == null ? List.of() : (List<?>) value;
    Object[] elements = new Object[list.size()];
    for (int i = 0; i < elements.length; i++) elements[i] = scalar(f, list.get(i));
    return new GenericArrayData(elements);
  }

  private static UTF8String json(Field f, Object value) {
    return UTF8String.fromBytes(Jsonb.canonical(ProtobufJson.of(f, value)));
  }

  private static Object missing(Field f) {
    if (f.isRequired) throw f.missingRequired();
    Object value = f.missingValue();
    return value == null ? null : scalar(f, value);
  }

  /** Returns whether a message becomes a value of a SQL type other than jsonb. */
  private static boolean isScalarMessage(Message m) {
    return switch (m.wellKnown) {
      case TIMESTAMP, DURATION, WRAPPER -> true;
      default -> false;
    };
  }

  private static Object scalar(Field f, Object value) {
    if (f.isMessage) {
      Object[] fields = (Object[]) value;
      return switch (f.message.wellKnown) {
        case TIMESTAMP -> WellKnownValues.timestampMicros(fields);
        case DURATION -> new Interval(0, 0, WellKnownValues.durationMicros(fields)).row();
        case WRAPPER -> {
          Field wrapped = f.message.fields[0];
          yield scalar(wrapped, fields[0] == null ? wrapped.missingValue() : fields[0]);
        }
        default -> json(f, value);
      };
    }
    if (f.type.equals("enum")) return f.symbol(value);
    return f.isUnsigned64() ? unsigned((Long) value) : value;
  }

  private static Decimal unsigned(long value) {
    return Decimal.apply(new BigDecimal(new BigInteger(Long.toUnsignedString(value))), 20, 0);
  }
}
