package tailgate.rows;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Encodes values as bytes whose unsigned order is the order of the values, or its reverse, and
 * decodes them.
 *
 * <p>Integers: big-endian with the sign flipped. Floating point: the bits, all flipped for negative
 * numbers; -0.0 becomes 0.0, and NaN is the greatest value. Decimals: the unscaled number in 16
 * bytes. Text and binary: the bytes, with 0 encoded as 0 255, and 0 0 at the end, so that the
 * reverse order is correct too. Structs: the fields in order, NULL last. Arrays: the elements in
 * order, each with a marker, so that a prefix sorts before a longer array; NULL last.
 */
public final class OrderedCodec {
  private final DataType type;
  private final boolean reverse, exact;

  OrderedCodec(DataType type, boolean reverse) { this(type, reverse, false); }

  /**
   * `exact`: -0.0 is distinct from 0.0 and sorts before it, so that decoding returns exactly the
   * encoded value.
   */
  OrderedCodec(DataType type, boolean reverse, boolean exact) {
    this.exact = exact;
    if (!supported(type)) throw new IllegalArgumentException("no order of " + type.catalogString());
    this.type = type;
    this.reverse = reverse;
  }

  private static boolean supported(DataType type) {
    if (type instanceof StructType s) {
      for (StructField f : s.fields()) if (!supported(f.dataType())) return false;
      return true;
    }
    if (type instanceof ArrayType a) return supported(a.elementType());
    return size(type) > 0 || type instanceof StringType || type == DataTypes.BinaryType;
  }

  /**
   * Returns the size in bytes of an integer or a type stored as one; 16 for a decimal; 0 for other
   * types.
   */
  private static int size(DataType type) {
    if (type instanceof DecimalType) return 16;
    if (type == DataTypes.BooleanType || type == DataTypes.ByteType) return 1;
    if (type == DataTypes.ShortType) return 2;
    if (type == DataTypes.IntegerType || type == DataTypes.DateType || type == DataTypes.FloatType
        || type instanceof YearMonthIntervalType)
      return 4;
    if (type == DataTypes.LongType || type == DataTypes.TimestampType
        || type == DataTypes.TimestampNTZType || type == DataTypes.DoubleType
        || type instanceof DayTimeIntervalType)
      return 8;
    return 0;
  }

  public byte[] encode(SpecializedGetters row, int column) {
    ByteArrayOutputStream out = new ByteArrayOutputStream(16);
    encode(row, column, type, out);
    return reversed(out.toByteArray());
  }

  public Object decode(byte[] bytes) { return decode(new Reader(bytes)); }

  /** Decodes the next value. */
  public Object decode(Reader in) {
    in.mask = reverse ? 255 : 0;
    return decode(in, type);
  }

  /** A position in an array of bytes. */
  public static final class Reader {
    private final byte[] bytes;
    private int at, mask;

    public Reader(byte[] bytes) { this.bytes = bytes; }

    public int at() { return at; }

    /** Returns the next byte without a conversion. */
    int plain() { return bytes[at++]; }

    private int get() { return (bytes[at++] ^ mask) & 255; }

    /** Reads a big-endian integer of `size` bytes with its sign flipped. */
    private long whole(int size) {
      long value = (byte) (get() ^ 0x80);
      for (int i = 1; i < size; i++) value = value << 8 | get();
      return value;
    }
  }

  private byte[] reversed(byte[] bytes) {
    if (reverse) for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) ~bytes[i];
    return bytes;
  }

  private void encode(SpecializedGetters row, int column, DataType type, ByteArrayOutputStream out) {
    if (type instanceof StructType s) {
      InternalRow struct = row.getStruct(column, s.length());
      for (int i = 0; i < s.length(); i++) {
        out.write(struct.isNullAt(i) ? 1 : 0);
        if (!struct.isNullAt(i)) encode(struct, i, s.apply(i).dataType(), out);
      }
    } else if (type instanceof ArrayType a) {
      ArrayData array = row.getArray(column);
      for (int i = 0; i < array.numElements(); i++) {
        out.write(array.isNullAt(i) ? 2 : 1);
        if (!array.isNullAt(i)) encode(array, i, a.elementType(), out);
      }
      out.write(0);
    } else if (type instanceof DecimalType d)
      decimal(row.getDecimal(column, d.precision(), d.scale()).toJavaBigDecimal()
          .setScale(d.scale()).unscaledValue(), out);
    else if (type instanceof StringType) escaped(row.getUTF8String(column).getBytes(), out);
    else if (type == DataTypes.BinaryType) escaped(row.getBinary(column), out);
    else if (type == DataTypes.BooleanType) out.write(row.getBoolean(column) ? 1 : 0);
    else if (type == DataTypes.DoubleType) whole(ordered(row.getDouble(column)), 8, out);
    else if (type == DataTypes.FloatType) whole(ordered(row.getFloat(column)), 4, out);
    else
      switch (size(type)) {
        case 1 -> whole(row.getByte(column), 1, out);
        case 2 -> whole(row.getShort(column), 2, out);
        case 4 -> whole(row.getInt(column), 4, out);
        default -> whole(row.getLong(column), 8, out);
      }
  }

  /**
   * Converts the bits of a double to a signed number in the same order. It is its own inverse,
   * except for -0.0 and NaN.
   */
  private long ordered(double value) {
    long bits = Double.doubleToLongBits(value == 0 && !exact ? 0.0 : value);
    return bits ^ bits >> 63 & Long.MAX_VALUE;
  }

  private long ordered(float value) {
    int bits = Float.floatToIntBits(value == 0 && !exact ? 0f : value);
    return bits ^ bits >> 31 & Integer.MAX_VALUE;
  }

  private static void whole(long value, int size, ByteArrayOutputStream out) {
    for (int i = size - 1; i >= 0; i--) out.write((int) (value >> 8 * i) ^ (i == size - 1 ? 0x80 : 0));
  }

  private static void decimal(BigInteger value, ByteArrayOutputStream out) {
    byte[] bytes = value.toByteArray();
    for (int i = 16; i > 0; i--) {
      int b = i > bytes.length ? value.signum() >> 1 : bytes[bytes.length - i];
      out.write(i == 16 ? b ^ 0x80 : b);
    }
  }

  private static void escaped(byte[] bytes, ByteArrayOutputStream out) {
    for (byte b : bytes) {
      out.write(b);
      if (b == 0) out.write(255);
    }
    out.write(0);
    out.write(0);
  }

  private static Object decode(Reader in, DataType type) {
    if (type instanceof StructType s) {
      Object[] fields = new Object[s.length()];
      for (int i = 0; i < fields.length; i++) if (in.get() == 0) fields[i] = decode(in, s.apply(i).dataType());
      return new GenericInternalRow(fields);
    }
    if (type instanceof ArrayType a) {
      List<Object> elements = new ArrayList<>();
      for (int mark = in.get(); mark != 0; mark = in.get()) elements.add(mark == 1 ? decode(in, a.elementType()) : null);
      return new GenericArrayData(elements.toArray());
    }
    if (type instanceof DecimalType d) {
      byte[] bytes = new byte[16];
      for (int i = 0; i < 16; i++) bytes[i] = (byte) in.get();
      bytes[0] ^= (byte) 0x80;
      return Decimal.apply(new BigDecimal(new BigInteger(bytes), d.scale()), d.precision(), d.scale());
    }
    if (type instanceof StringType) return UTF8String.fromBytes(unescaped(in));
    if (type == DataTypes.BinaryType) return unescaped(in);
    if (type == DataTypes.BooleanType) return in.get() != 0;
    return switch (size(type)) {
      case 1 -> (byte) in.whole(1);
      case 2 -> (short) in.whole(2);
      case 4 -> {
        int value = (int) in.whole(4);
        if (type != DataTypes.FloatType) yield value;
        yield Float.intBitsToFloat(value ^ value >> 31 & Integer.MAX_VALUE);
      }
      default -> {
        long value = in.whole(8);
        if (type != DataTypes.DoubleType) yield value;
        yield Double.longBitsToDouble(value ^ value >> 63 & Long.MAX_VALUE);
      }
    };
  }

  private static byte[] unescaped(Reader in) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    while (true) {
      int b = in.get();
      if (b == 0 && in.get() == 0) return out.toByteArray();
      out.write(b);
    }
  }
}
