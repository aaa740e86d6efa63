package tailgate.formats.avro;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeArrayWriter;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.formats.avro.AvroTypes.Unit;
import tailgate.functions.numeric.Numbers;
import tailgate.functions.text.Utf8;

/**
 * Resolves a writer's and a reader's schema into a tree of readers, once for each writer's schema.
 * Fields that the reader's schema does not have are skipped.
 *
 * <p>Source: Avro 1.12 specification, "Schema Resolution".
 */
final class AvroResolver {
  private final UnsafeRowWriter out;

  /**
   * @param out the row that the readers write
   */
  AvroResolver(UnsafeRowWriter out) { this.out = out; }

  /** Reads one value of the writer's schema and writes it to a slot of a row. */
  interface ValueReader {
    void read(AvroInput in, UnsafeWriter out, int slot);
  }

  ValueReader resolve(Schema from, Schema to) {
    if (from.getType() == Schema.Type.UNION) {
      ValueReader[] branches = from.getTypes().stream().map(t -> resolve(t, to)).toArray(ValueReader[]::new);
      return (in, out, slot) -> branches[in.index(branches.length)].read(in, out, slot);
    }
    if (from.getType() == Schema.Type.NULL) {
      int size = slotSize(AvroTypes.type(to));
      return to.isNullable() ? (in, out, slot) -> setNull(out, slot, size) : mismatch(from, to);
    }
    if (AvroTypes.isStructUnion(to)) return unionMember(from, to);
    Schema target = AvroTypes.nonNull(to);
    Schema.Type type = from.getType();
    boolean isInteger = type == Schema.Type.INT || type == Schema.Type.LONG;
    boolean isBytes = type == Schema.Type.BYTES || type == Schema.Type.STRING;
    ValueReader reader = switch (target.getType()) {
      case BOOLEAN -> type == Schema.Type.BOOLEAN
          ? (in, out, slot) -> out.write(slot, in.bytes[in.at++] != 0)
          : null;
      case INT, LONG -> isInteger ? integer(from, target) : null;
      case FLOAT -> isInteger
          ? (in, out, slot) -> out.write(slot, (float) in.integer())
          : type == Schema.Type.FLOAT ? (in, out, slot) -> out.write(slot, in.float32()) : null;
      case DOUBLE -> isInteger ? (in, out, slot) -> out.write(slot, (double) in.integer()) : float64(type);
      case STRING -> {
        if (type == Schema.Type.ENUM) yield symbols(from, from.getEnumSymbols(), null);
        if (!isBytes) yield null;
        yield AvroTypes.isZonedTimestamp(target) ? AvroResolver::zonedTimestamp : AvroResolver::text;
      }
      case ENUM -> type == Schema.Type.ENUM
          ? symbols(from, target.getEnumSymbols(), target.getEnumDefault())
          : null;
      case BYTES, FIXED -> isBytes || type == Schema.Type.FIXED ? binary(from, target) : null;
      case ARRAY -> type == Schema.Type.ARRAY ? array(from.getElementType(), target.getElementType()) : null;
      case MAP -> type == Schema.Type.MAP ? map(from.getValueType(), target.getValueType()) : null;
      case RECORD -> {
        if (!AvroTypes.isVariableScaleDecimal(target)) yield type == Schema.Type.RECORD ? record(from, target) : null;
        yield AvroTypes.isVariableScaleDecimal(from) ? AvroResolver::variableScaleDecimal : null;
      }
      case NULL, UNION -> null;
    };
    return reader == null ? mismatch(from, to) : reader;
  }

  /**
   * Returns a reader that fails. It fails for a value only, because a branch of a union may never
   * occur.
   */
  private static ValueReader mismatch(Schema from, Schema to) {
    String message =
        "a value of type " + from.getType().getName() + " cannot be read as " + to.getType().getName();
    return (in, out, slot) -> { throw Format.malformed(message); };
  }

  // ---- numbers ----------------------------------------------------------------------------------

  private static ValueReader integer(Schema from, Schema target) {
    Unit targetUnit = AvroTypes.unit(target);
    Unit sourceUnit = AvroTypes.unit(from);
    Unit unit = targetUnit == null || sourceUnit == null ? targetUnit : sourceUnit;
    if (unit != null && !targetUnit.type().equals(unit.type())) return null;
    if (slotSize(AvroTypes.type(target)) == 4) return (in, out, slot) -> out.write(slot, narrowed(in.integer()));
    if (unit == null) return (in, out, slot) -> out.write(slot, in.integer());
    return (in, out, slot) -> out.write(slot, unit.convert(in.integer()));
  }

  /**
   * Returns a long as an int. Avro does not allow this resolution, but a column may have become
   * wider.
   */
  private static int narrowed(long value) {
    if (value != (int) value) throw new SqlError("22003", "integer out of range");
    return (int) value;
  }

  private static ValueReader float64(Schema.Type from) {
    if (from == Schema.Type.FLOAT) return (in, out, slot) -> out.write(slot, (double) in.float32());
    return from == Schema.Type.DOUBLE ? (in, out, slot) -> out.write(slot, in.float64()) : null;
  }

  private static ValueReader decimal(int sourceScale, int precision, int scale, int fixedSize) {
    return (in, out, slot) -> {
      int length = fixedSize < 0 ? in.length() : fixedSize;
      int at = in.skip(length);
      BigDecimal value = new BigDecimal(new BigInteger(in.bytes, at, length), sourceScale).setScale(scale);
      if (value.precision() > precision) {
        throw Format.malformed("a decimal has " + value.precision() + " digits, at most " + precision + " fit");
      }
      out.write(slot, Decimal.apply(value, precision, scale), precision, scale);
    };
  }

  /** Reads a record of a scale and an unscaled value. */
  private static void variableScaleDecimal(AvroInput in, UnsafeWriter out, int slot) {
    int scale = (int) in.integer();
    int length = in.length();
    int at = in.skip(length);
    BigInteger unscaled = length == 0 ? BigInteger.ZERO : new BigInteger(in.bytes, at, length);
    DecimalType type = AvroTypes.VARIABLE_SCALE_DECIMAL;
    Decimal value = (Decimal) Numbers.of(new BigDecimal(unscaled, scale), type);
    out.write(slot, value, type.precision(), type.scale());
  }

  // ---- text and bytes ---------------------------------------------------------------------------

  private static ValueReader binary(Schema from, Schema target) {
    int fixedSize = from.getType() == Schema.Type.FIXED ? from.getFixedSize() : -1;
    if (target.getLogicalType() instanceof LogicalTypes.Decimal t) {
      if (!(from.getLogicalType() instanceof LogicalTypes.Decimal f)) return null;
      return decimal(f.getScale(), t.getPrecision(), t.getScale(), fixedSize);
    }
    if (fixedSize < 0) return AvroResolver::bytes;
    return (in, out, slot) -> out.write(slot, in.bytes, in.skip(fixedSize), fixedSize);
  }

  private static void bytes(AvroInput in, UnsafeWriter out, int slot) {
    int length = in.length();
    out.write(slot, in.bytes, in.skip(length), length);
  }

  private static void text(AvroInput in, UnsafeWriter out, int slot) {
    int length = in.length();
    int at = in.skip(length);
    Utf8.check(in.bytes, at, at + length);
    out.write(slot, in.bytes, at, length);
  }

  private static void zonedTimestamp(AvroInput in, UnsafeWriter out, int slot) {
    int length = in.length();
    UTF8String text = Utf8.text(in.bytes, in.skip(length), length);
    scala.Option<Object> micros = DateTimeUtils.stringToTimestamp(text, ZoneOffset.UTC);
    if (micros.isEmpty()) throw Format.malformed("\"" + text + "\" is not a timestamp");
    out.write(slot, (long) micros.get());
  }

  private static ValueReader symbols(Schema from, List<String> allowed, String defaultSymbol) {
    UTF8String[] symbols = from.getEnumSymbols().stream()
        .map(s -> UTF8String.fromString(allowed.contains(s) ? s : defaultSymbol))
        .toArray(UTF8String[]::new);
    return (in, out, slot) -> {
      UTF8String symbol = symbols[in.index(symbols.length)];
      if (symbol == null) throw Format.malformed("the enum " + from.getName() + " does not have the symbol");
      out.write(slot, symbol);
    };
  }

  // ---- records and collections ------------------------------------------------------------------

  /**
   * Returns a reader into one member of a union's struct: the member with the same name and type,
   * else the first that the value can be read as.
   */
  private ValueReader unionMember(Schema from, Schema to) {
    List<Schema> branches = AvroTypes.nonNullBranches(to);
    int member = memberIndex(from, branches);
    if (member < 0) return mismatch(from, to);
    int n = branches.size();
    UnsafeRowWriter members = new UnsafeRowWriter(out, n);
    ValueReader reader = resolve(from, branches.get(member));
    return (in, out, slot) -> {
      int start = out.cursor();
      members.resetRowWriter();
      for (int i = 0; i < n; i++) if (i != member) members.setNullAt(i);
      reader.read(in, members, member);
      out.setOffsetAndSizeFromPreviousCursor(slot, start);
    };
  }

  private static int memberIndex(Schema from, List<Schema> branches) {
    for (int i = 0; i < branches.size(); i++) {
      Schema branch = branches.get(i);
      if (branch.getType() == from.getType() && branch.getFullName().equals(from.getFullName())) return i;
    }
    for (int i = 0; i < branches.size(); i++) {
      var compatibility = SchemaCompatibility.checkReaderWriterCompatibility(branches.get(i), from);
      if (compatibility.getType() == SchemaCompatibilityType.COMPATIBLE) return i;
    }
    return -1;
  }

  private ValueReader record(Schema from, Schema to) {
    UnsafeRowWriter row = new UnsafeRowWriter(out, to.getFields().size());
    List<Schema.Field> fields = from.getFields();
    ValueReader[] readers = new ValueReader[fields.size()];
    int[] slots = new int[fields.size()];
    Set<Integer> writtenSlots = new HashSet<>();
    for (int i = 0; i < readers.length; i++) {
      Schema schema = fields.get(i).schema();
      Schema.Field target = fieldNamed(to, fields.get(i).name());
      readers[i] = target == null ? skip(schema) : resolve(schema, target.schema());
      slots[i] = target == null ? -1 : target.pos();
      writtenSlots.add(slots[i]);
    }
    List<ValueReader> defaults = new ArrayList<>();
    for (Schema.Field f : to.getFields()) if (!writtenSlots.contains(f.pos())) defaults.add(defaultValue(f));
    return (in, out, slot) -> {
      int start = out.cursor();
      row.resetRowWriter();
      for (int i = 0; i < readers.length; i++) readers[i].read(in, row, slots[i]);
      for (ValueReader d : defaults) d.read(in, row, -1);
      out.setOffsetAndSizeFromPreviousCursor(slot, start);
    };
  }

  /** Returns the field with a name or alias, or null. */
  private static Schema.Field fieldNamed(Schema record, String name) {
    Schema.Field field = record.getField(name);
    if (field != null) return field;
    for (Schema.Field f : record.getFields()) if (f.aliases().contains(name)) return f;
    return null;
  }

  /** Returns a reader of a field's default, which is encoded once and read like a value. */
  private ValueReader defaultValue(Schema.Field field) {
    if (!field.hasDefaultValue()) {
      return (in, out, slot) -> {
        throw Format.malformed("the field " + field.name() + " is missing and has no default");
      };
    }
    AvroInput value = new AvroInput();
    try (var bytes = new ByteArrayOutputStream()) {
      BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
      new GenericDatumWriter<Object>(field.schema()).write(GenericData.get().getDefaultValue(field), encoder);
      encoder.flush();
      value.bytes = bytes.toByteArray();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    ValueReader reader = resolve(field.schema(), field.schema());
    return (in, out, slot) -> {
      value.at = 0;
      reader.read(value, out, field.pos());
    };
  }

  /**
   * Returns a reader of an array. It reads the array twice, because Spark needs the number of
   * elements first.
   */
  private ValueReader array(Schema from, Schema to) {
    UnsafeArrayWriter array = new UnsafeArrayWriter(out, slotSize(AvroTypes.type(to)));
    ValueReader element = resolve(from, to);
    return (in, out, slot) -> {
      int begin = in.at;
      int n = in.items(() -> in.skip(from));
      int start = out.cursor();
      in.at = begin;
      array.initialize(n);
      int[] i = {0};
      in.items(() -> element.read(in, array, i[0]++));
      out.setOffsetAndSizeFromPreviousCursor(slot, start);
    };
  }

  /**
   * Returns a reader of a map. Spark stores the size of the keys in eight bytes, then all keys,
   * then all values; so the reader counts the entries, then reads the keys, then the values.
   */
  private ValueReader map(Schema from, Schema to) {
    UnsafeArrayWriter keys = new UnsafeArrayWriter(out, 8);
    UnsafeArrayWriter values = new UnsafeArrayWriter(out, slotSize(AvroTypes.type(to)));
    ValueReader value = resolve(from, to);
    return (in, out, slot) -> {
      int begin = in.at;
      int n = in.items(() -> {
        in.skip(in.length());
        in.skip(from);
      });
      int start = out.cursor();
      out.grow(8);
      out.increaseCursor(8);
      int[] i = {0};
      in.at = begin;
      keys.initialize(n);
      in.items(() -> {
        text(in, keys, i[0]++);
        in.skip(from);
      });
      Platform.putLong(out.getBuffer(), start, out.cursor() - start - 8);
      i[0] = 0;
      in.at = begin;
      values.initialize(n);
      in.items(() -> {
        in.skip(in.length());
        value.read(in, values, i[0]++);
      });
      out.setOffsetAndSizeFromPreviousCursor(slot, start);
    };
  }

  // ---- slots ------------------------------------------------------------------------------------

  /** Returns the bytes of a type's slot in an array. */
  private static int slotSize(DataType type) {
    if (type instanceof BooleanType) return 1;
    return type instanceof IntegerType || type instanceof DateType || type instanceof FloatType ? 4 : 8;
  }

  private static void setNull(UnsafeWriter out, int slot, int size) {
    if (size == 1) out.setNull1Bytes(slot);
    else if (size == 4) out.setNull4Bytes(slot);
    else out.setNull8Bytes(slot);
  }

  private static ValueReader skip(Schema s) { return (in, out, slot) -> in.skip(s); }
}
