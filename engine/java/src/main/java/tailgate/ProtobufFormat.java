package tailgate;

import static tailgate.ProtobufBytes.*;

import java.util.*;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.ProtobufTypes.*;

/**
 * A Protobuf message to columns in their stored form, a column for each field.
 *
 * <pre>   [0 | schema id | message indexes |] fields ──► by number, the last of each; of a oneof the last; messages that come twice are one ──► columns
 *        bytes missing, no such message, not UTF-8, a required field missing ──► dead letter</pre>
 *
 * <p>Fields are known by their numbers, so that messages of older and newer schemas need no translation: what the reader does not know is passed over. Messages within, maps and
 * lists of messages are jsonb ({@link ProtobufJson}).
 */
final class ProtobufFormat extends Format {
  private static final long serialVersionUID = 1;
  private static final int SLOTS = 4_000_000;  // fields of all messages in a message: two bytes may make one of hundreds
  private final String spec;
  private transient ProtobufTypes types;
  private transient Message root;
  private transient StructType type;
  private transient int[] index;
  private transient ProtobufJson json;
  private transient int slots;

  ProtobufFormat(String spec) {
    this.spec = spec;
    type();
  }

  @Override DataType type() {
    if (type != null) return type;
    types = new ProtobufTypes(spec);
    root = types.root();
    json = new ProtobufJson();
    if (!types.spec.get("index").isNull()) {
      index = new int[types.spec.get("index").size()];
      for (int i = 0; i < index.length; i++) index[i] = types.spec.get("index").get(i).intValue();
    }
    StructType struct = new StructType();
    for (var c : types.spec.get("columns")) struct = struct.add(c.get("name").textValue(), StructType.fromDDL("x " + c.get("spark").textValue()).apply(0).dataType());
    return type = struct;
  }

  @Override Object decode(byte[] bytes) {
    type();
    ProtobufBytes in = new ProtobufBytes(bytes);
    if (index != null) framed(in);
    slots = 0;
    Object[] values = read(root, null, in, bytes.length, 0, 0);
    Object[] row = new Object[values.length];
    for (Field f : root.fields) row[f.place] = column(f, values[f.place]);
    return new GenericInternalRow(row);
  }

  /** Confluent's header: which of the schema's messages this is. */
  private void framed(ProtobufBytes in) {
    int end = in.bytes.length;
    if (end < 6 || in.bytes[0] != 0) throw malformed("not in Confluent's wire format");
    in.at = 5;
    long n = zigzag(in.varint(end));
    if (n < 0 || n > end - in.at) throw cut();
    int[] found = new int[Math.max(1, (int) n)];  // none stand for the first message
    for (int i = 0; i < n; i++) found[i] = (int) zigzag(in.varint(end));
    if (!Arrays.equals(found, index)) throw malformed("message " + Arrays.toString(found) + " of the schema, the source reads " + Arrays.toString(index));
  }

  // ---- reading ------------------------------------------------------------------------------------------------------------------

  /** The fields of a message, onto those of one that came before. `group`: the number of the group that it is, or 0. */
  private Object[] read(Message m, Object[] before, ProtobufBytes in, int end, int group, int depth) {
    deeper(depth);
    if (before == null && (slots += m.fields.length + 4) > SLOTS) throw new SqlError("54000", "too many messages in a message");
    Object[] values = before == null ? new Object[m.fields.length] : before;
    while (in.at < end) {
      int tag = in.tag(end);
      if (tag == (group << 3 | END) && group != 0) return values;
      Field f = m.field(tag >>> 3);
      if (f == null || !field(m, f, values, tag, in, end, depth)) in.skip(tag, end, depth + 1);
    }
    if (group != 0) throw cut();
    return values;
  }

  /** False if a value of this field is not written so. */
  @SuppressWarnings("unchecked")
  private boolean field(Message m, Field f, Object[] values, int tag, ProtobufBytes in, int end, int depth) {
    int wire = tag & 7;
    if (f.repeated && f.packable && wire == LENGTH) {
      int from = in.length(end), to = in.at;
      List<Object> list = list(f, values);
      for (in.at = from; in.at < to; ) list.add(scalar(f, in, to));
      return true;
    }
    if (wire != wire(f)) return false;
    if (!f.isMessage) {
      Object value = scalar(f, in, end);
      if (f.repeated) list(f, values).add(value);
      else set(m, f, values, value);
      return true;
    }
    Object[] before = f.repeated ? null : (Object[]) values[f.place], value;
    if (wire == GROUP) value = read(f.of, before, in, end, f.number, depth + 1);
    else {
      int from = in.length(end), to = in.at;
      in.at = from;
      value = read(f.of, before, in, to, 0, depth + 1);
    }
    if (f.isMap()) {
      if (values[f.place] == null) values[f.place] = new LinkedHashMap<Object, Object>();
      Field key = f.of.fields[0], of = f.of.fields[1];
      ((Map<Object, Object>) values[f.place]).put(ProtobufTypes.or(value[0], key.absent()), value[1] != null ? value[1] : of.isMessage ? new Object[of.of.fields.length] : of.absent());
    } else if (f.repeated) list(f, values).add(value);
    else set(m, f, values, value);
    return true;
  }

  @SuppressWarnings("unchecked")
  private static List<Object> list(Field f, Object[] values) {
    if (values[f.place] == null) values[f.place] = new ArrayList<>();
    return (List<Object>) values[f.place];
  }

  private static void set(Message m, Field f, Object[] values, Object value) {
    if (!f.oneof.isEmpty()) for (Field other : m.fields) if (other != f && other.oneof.equals(f.oneof)) values[other.place] = null;
    values[f.place] = value;
  }

  private static int wire(Field f) {
    return switch (f.type) {
      case "double", "fixed64", "sfixed64" -> FIXED64;
      case "float", "fixed32", "sfixed32" -> FIXED32;
      case "string", "bytes", "message" -> LENGTH;
      case "group" -> GROUP;
      default -> VARINT;
    };
  }

  private static Object scalar(Field f, ProtobufBytes in, int end) {
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
      case "sint32" -> (int) zigzag(in.varint(end) & 0xffff_ffffL);
      case "sint64" -> zigzag(in.varint(end));
      case "string" -> Utf8.text(bytes(in, end));
      case "bytes" -> bytes(in, end);
      default -> throw new IllegalStateException(f.type);
    };
  }

  private static byte[] bytes(ProtobufBytes in, int end) {
    int from = in.length(end);
    return Arrays.copyOfRange(in.bytes, from, in.at);
  }

  // ---- columns ------------------------------------------------------------------------------------------------------------------

  private Object column(Field f, Object value) {
    if (f.isMap() || f.repeated && f.isMessage && !single(f)) return UTF8String.fromBytes(Jsonb.canonical(json.of(f, value)));
    if (!f.repeated) return value == null ? missing(f) : one(f, value);
    List<?> list = value == null ? List.of() : (List<?>) value;
    Object[] elements = new Object[list.size()];
    for (int i = 0; i < elements.length; i++) elements[i] = one(f, list.get(i));
    return new GenericArrayData(elements);
  }

  static SqlError required(Field f) { return malformed("no value of required field " + f.name); }

  private Object missing(Field f) {
    if (f.required) throw required(f);
    Object absent = f.absent();
    return absent == null ? null : one(f, absent);
  }

  /** Whether a message is one value of a column's type. */
  private static boolean single(Field f) { return f.of.known == Known.TIMESTAMP || f.of.known == Known.DURATION || f.of.known == Known.WRAPPER; }

  private Object one(Field f, Object value) {
    if (f.isMessage) {
      Object[] message = (Object[]) value;
      return switch (f.of.known) {
        case TIMESTAMP -> ProtobufTypes.timestamp(message);
        case DURATION -> new GenericInternalRow(new Object[] {0, 0, ProtobufTypes.duration(message)});
        case WRAPPER -> one(f.of.fields[0], ProtobufTypes.or(message[0], f.of.fields[0].absent()));
        default -> UTF8String.fromBytes(Jsonb.canonical(json.of(f, value)));
      };
    }
    if (f.type.equals("enum")) return f.symbol(value);
    return f.isUnsigned64() ? ProtobufTypes.unsigned((Long) value) : value;
  }
}
