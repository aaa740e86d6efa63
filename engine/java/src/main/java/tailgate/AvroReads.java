package tailgate;

import java.io.*;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.ZoneOffset;
import java.util.*;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.spark.sql.catalyst.expressions.codegen.*;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.AvroTypes.Unit;

/**
 * A writer's and a reader's schema to a tree of reads, once per writer schema. Each read takes one value from the message and writes it into one slot of the row; what
 * the reader does not have is skipped. Source: Avro 1.12 specification, "Schema Resolution".
 */
final class AvroReads {
  private final UnsafeRowWriter out;

  /** `out` is the row that the reads write into. */
  AvroReads(UnsafeRowWriter out) { this.out = out; }

  /** Takes one value of the writer's from the message into one slot. */
  interface Read { void read(AvroBytes in, UnsafeWriter out, int slot); }

  Read resolve(Schema from, Schema to) {
    if (from.getType() == Schema.Type.UNION) {
      Read[] branches = from.getTypes().stream().map(t -> resolve(t, to)).toArray(Read[]::new);
      return (in, out, slot) -> branches[in.index(branches.length)].read(in, out, slot);
    }
    if (from.getType() == Schema.Type.NULL) {
      int size = size(AvroTypes.type(to));
      return to.isNullable() ? (in, out, slot) -> setNull(out, slot, size) : mismatch(from, to);
    }
    if (AvroTypes.several(to)) return several(from, to);
    Schema target = AvroTypes.present(to);
    Unit unit = AvroTypes.unit(target) == null || AvroTypes.unit(from) == null ? AvroTypes.unit(target) : AvroTypes.unit(from);
    boolean whole = from.getType() == Schema.Type.INT || from.getType() == Schema.Type.LONG;
    boolean bytes = from.getType() == Schema.Type.BYTES || from.getType() == Schema.Type.STRING;
    return switch (target.getType()) {
      case BOOLEAN -> from.getType() != Schema.Type.BOOLEAN ? mismatch(from, to) : (in, out, slot) -> out.write(slot, in.bytes[in.at++] != 0);
      case INT, LONG -> {
        if (!whole) yield mismatch(from, to);
        if (unit != null && !AvroTypes.unit(target).type().equals(unit.type())) yield mismatch(from, to);
        if (size(AvroTypes.type(target)) == 4) yield (in, out, slot) -> out.write(slot, narrow(in.number()));
        yield unit == null ? (in, out, slot) -> out.write(slot, in.number()) : (in, out, slot) -> out.write(slot, unit.of(in.number()));
      }
      case FLOAT -> whole ? (in, out, slot) -> out.write(slot, (float) in.number())
          : from.getType() == Schema.Type.FLOAT ? (in, out, slot) -> out.write(slot, in.float32()) : mismatch(from, to);
      case DOUBLE -> whole ? (in, out, slot) -> out.write(slot, (double) in.number())
          : from.getType() == Schema.Type.FLOAT ? (in, out, slot) -> out.write(slot, (double) in.float32())
          : from.getType() == Schema.Type.DOUBLE ? (in, out, slot) -> out.write(slot, in.float64()) : mismatch(from, to);
      case STRING -> {
        if (from.getType() == Schema.Type.ENUM) yield symbols(from, from.getEnumSymbols(), null);
        if (!bytes) yield mismatch(from, to);
        yield AvroTypes.ZONED.equals(target.getProp("connect.name")) ? AvroReads::zoned : AvroReads::text;
      }
      case ENUM -> from.getType() == Schema.Type.ENUM ? symbols(from, target.getEnumSymbols(), target.getEnumDefault()) : mismatch(from, to);
      case BYTES, FIXED -> {
        if (!bytes && from.getType() != Schema.Type.FIXED) yield mismatch(from, to);
        int fixed = from.getType() == Schema.Type.FIXED ? from.getFixedSize() : -1;
        if (!(target.getLogicalType() instanceof LogicalTypes.Decimal d)) yield fixed < 0 ? AvroReads::copy : (in, out, slot) -> out.write(slot, in.bytes, in.pass(fixed), fixed);
        yield from.getLogicalType() instanceof LogicalTypes.Decimal w ? decimal(w.getScale(), d.getPrecision(), d.getScale(), fixed) : mismatch(from, to);
      }
      case ARRAY -> from.getType() == Schema.Type.ARRAY ? array(from.getElementType(), target.getElementType()) : mismatch(from, to);
      case MAP -> from.getType() == Schema.Type.MAP ? map(from.getValueType(), target.getValueType()) : mismatch(from, to);
      case RECORD -> AvroTypes.variable(target) ? AvroTypes.variable(from) ? AvroReads::variable : mismatch(from, to) : from.getType() == Schema.Type.RECORD ? record(from, target) : mismatch(from, to);
      case NULL, UNION -> mismatch(from, to);
    };
  }

  /** A column that became wider than it was for the reader: values that fit are read, which Avro's rules do not ask for. */
  private static int narrow(long value) {
    if (value != (int) value) throw new SqlError("22003", "integer out of range");
    return (int) value;
  }

  /** Fails when such a value comes, not before: one branch of a union may never be used. */
  private static Read mismatch(Schema from, Schema to) {
    return (in, out, slot) -> { throw new SqlError("22P02", "a value of type " + from.getType().getName() + " cannot be read as " + to.getType().getName()); };
  }

  /** One of several types into its member: that of the same name and type, else the first that it can be read as. */
  private Read several(Schema from, Schema to) {
    List<Schema> branches = AvroTypes.branches(to);
    int chosen = -1;
    for (int i = 0; i < branches.size() && chosen < 0; i++) if (branches.get(i).getType() == from.getType() && branches.get(i).getFullName().equals(from.getFullName())) chosen = i;
    for (int i = 0; i < branches.size() && chosen < 0; i++)
      if (org.apache.avro.SchemaCompatibility.checkReaderWriterCompatibility(branches.get(i), from).getType() == org.apache.avro.SchemaCompatibility.SchemaCompatibilityType.COMPATIBLE) chosen = i;
    if (chosen < 0) return mismatch(from, to);
    UnsafeRowWriter members = new UnsafeRowWriter(out, branches.size());
    Read read = resolve(from, branches.get(chosen));
    int member = chosen, n = branches.size();
    return (in, out, slot) -> {
      int before = out.cursor();
      members.resetRowWriter();
      for (int i = 0; i < n; i++) if (i != member) members.setNullAt(i);
      read.read(in, members, member);
      out.setOffsetAndSizeFromPreviousCursor(slot, before);
    };
  }

  private Read record(Schema from, Schema to) {
    UnsafeRowWriter row = new UnsafeRowWriter(out, to.getFields().size());
    List<Schema.Field> fields = from.getFields();
    Read[] reads = new Read[fields.size()];
    int[] slots = new int[fields.size()];
    Set<Integer> written = new HashSet<>();
    for (int i = 0; i < reads.length; i++) {
      Schema.Field wanted = wanted(to, fields.get(i).name());
      reads[i] = wanted == null ? skip(fields.get(i).schema()) : resolve(fields.get(i).schema(), wanted.schema());
      slots[i] = wanted == null ? -1 : wanted.pos();
      written.add(slots[i]);
    }
    List<Read> defaults = new ArrayList<>();
    for (Schema.Field f : to.getFields()) if (!written.contains(f.pos())) defaults.add(missing(f));
    return (in, out, slot) -> {
      int before = out.cursor();
      row.resetRowWriter();
      for (int i = 0; i < reads.length; i++) reads[i].read(in, row, slots[i]);
      for (Read d : defaults) d.read(in, row, -1);
      out.setOffsetAndSizeFromPreviousCursor(slot, before);
    };
  }

  private static Schema.Field wanted(Schema to, String name) {
    Schema.Field field = to.getField(name);
    if (field == null) for (Schema.Field f : to.getFields()) if (f.aliases().contains(name)) return f;
    return field;
  }

  /** A field that the writer does not have: its default, encoded once and read like a value. */
  private Read missing(Schema.Field field) {
    if (!field.hasDefaultValue()) return (in, out, slot) -> { throw new SqlError("22P02", "no field " + field.name() + ", and it has no default"); };
    AvroBytes value = new AvroBytes();
    try (var bytes = new ByteArrayOutputStream()) {
      BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
      new GenericDatumWriter<Object>(field.schema()).write(GenericData.get().getDefaultValue(field), encoder);
      encoder.flush();
      value.bytes = bytes.toByteArray();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    Read read = resolve(field.schema(), field.schema());
    return (in, out, slot) -> {
      value.at = 0;
      read.read(value, out, field.pos());
    };
  }

  private Read array(Schema from, Schema to) {
    int size = size(AvroTypes.type(to));
    UnsafeArrayWriter array = new UnsafeArrayWriter(out, size);
    Read item = resolve(from, to), skip = skip(from);
    return (in, out, slot) -> {
      int start = in.at, n = in.items(() -> skip.read(in, null, 0)), before = out.cursor();
      in.at = start;
      array.initialize(n);
      int[] i = {0};
      in.items(() -> item.read(in, array, i[0]++));
      out.setOffsetAndSizeFromPreviousCursor(slot, before);
    };
  }

  /** As Spark lays it out: eight bytes with the size of the keys, the keys, the values. Hence two passes. */
  private Read map(Schema from, Schema to) {
    UnsafeArrayWriter keys = new UnsafeArrayWriter(out, 8), values = new UnsafeArrayWriter(out, size(AvroTypes.type(to)));
    Read item = resolve(from, to), skip = skip(from);
    return (in, out, slot) -> {
      int start = in.at, n = in.items(() -> { in.pass(in.length()); skip.read(in, null, 0); }), before = out.cursor();
      out.grow(8);
      out.increaseCursor(8);
      int[] i = {0};
      in.at = start;
      keys.initialize(n);
      in.items(() -> { text(in, keys, i[0]++); skip.read(in, null, 0); });
      Platform.putLong(out.getBuffer(), before, out.cursor() - before - 8);
      i[0] = 0;
      in.at = start;
      values.initialize(n);
      in.items(() -> { in.pass(in.length()); item.read(in, values, i[0]++); });
      out.setOffsetAndSizeFromPreviousCursor(slot, before);
    };
  }

  private static Read symbols(Schema from, List<String> allowed, String other) {
    UTF8String[] symbols = from.getEnumSymbols().stream().map(s -> UTF8String.fromString(allowed.contains(s) ? s : other)).toArray(UTF8String[]::new);
    return (in, out, slot) -> {
      UTF8String symbol = symbols[in.index(symbols.length)];
      if (symbol == null) throw new SqlError("22P02", "a symbol that the enum " + from.getName() + " does not have");
      out.write(slot, symbol);
    };
  }

  private static Read decimal(int from, int precision, int scale, int fixed) {
    return (in, out, slot) -> {
      int length = fixed < 0 ? in.length() : fixed, at = in.pass(length);
      BigDecimal value = new BigDecimal(new BigInteger(in.bytes, at, length), from).setScale(scale);
      if (value.precision() > precision) throw new SqlError("22P02", "a decimal of " + value.precision() + " digits, at most " + precision + " fit");
      out.write(slot, Decimal.apply(value, precision, scale), precision, scale);
    };
  }

  /** Scale and unscaled value, in this order. */
  private static void variable(AvroBytes in, UnsafeWriter out, int slot) {
    int scale = (int) in.number(), length = in.length(), at = in.pass(length);
    DecimalType type = AvroTypes.VARIABLE;
    out.write(slot, (Decimal) Numbers.of(new BigDecimal(length == 0 ? BigInteger.ZERO : new BigInteger(in.bytes, at, length), scale), type), type.precision(), type.scale());
  }

  private static void copy(AvroBytes in, UnsafeWriter out, int slot) {
    int length = in.length();
    out.write(slot, in.bytes, in.pass(length), length);
  }

  private static void text(AvroBytes in, UnsafeWriter out, int slot) {
    int length = in.length(), at = in.pass(length);
    Utf8.check(in.bytes, at, at + length);
    out.write(slot, in.bytes, at, length);
  }

  private static void zoned(AvroBytes in, UnsafeWriter out, int slot) {
    int length = in.length();
    UTF8String text = Utf8.text(in.bytes, in.pass(length), length);
    scala.Option<Object> micros = DateTimeUtils.stringToTimestamp(text, ZoneOffset.UTC);
    if (micros.isEmpty()) throw new SqlError("22P02", "\"" + text + "\" is not a timestamp");
    out.write(slot, (long) micros.get());
  }

  private static int size(DataType type) { return type instanceof BooleanType ? 1 : type instanceof IntegerType || type instanceof DateType || type instanceof FloatType ? 4 : 8; }

  private static void setNull(UnsafeWriter out, int slot, int size) {
    if (size == 1) out.setNull1Bytes(slot);
    else if (size == 4) out.setNull4Bytes(slot);
    else out.setNull8Bytes(slot);
  }

  /** Passes over a value; writes nothing. */
  private static Read skip(Schema s) { return (in, out, slot) -> in.skip(s); }
}
