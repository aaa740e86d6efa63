package tailgate;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Values as bytes whose unsigned order is the values' order, or its reverse; and back.
 *
 * <p>Whole numbers: big-endian, sign flipped. Floating point: the bits, all flipped below zero; -0.0 is 0.0 and NaN is the greatest. Decimals: the unscaled number in 16 bytes.
 * Text and binary: the bytes, a zero as 0 255, and 0 0 at the end, so that the reverse order is right too. Structs: fields one after the other, NULL last.
 */
final class Ordered {
  private final DataType type;
  private final boolean reverse;

  Ordered(DataType type, boolean reverse) {
    if (!supported(type)) throw new IllegalArgumentException("no order of " + type.catalogString());
    this.type = type;
    this.reverse = reverse;
  }

  private static boolean supported(DataType type) {
    if (type instanceof StructType s) {
      for (StructField f : s.fields()) if (!supported(f.dataType())) return false;
      return true;
    }
    return size(type) > 0 || type instanceof StringType || type == DataTypes.BinaryType;
  }

  /** Bytes of a whole number or of what is stored like one; 16 for a decimal; 0 for others. */
  private static int size(DataType type) {
    if (type instanceof DecimalType) return 16;
    if (type == DataTypes.BooleanType || type == DataTypes.ByteType) return 1;
    if (type == DataTypes.ShortType) return 2;
    if (type == DataTypes.IntegerType || type == DataTypes.DateType || type == DataTypes.FloatType || type instanceof YearMonthIntervalType) return 4;
    if (type == DataTypes.LongType || type == DataTypes.TimestampType || type == DataTypes.TimestampNTZType || type == DataTypes.DoubleType || type instanceof DayTimeIntervalType) return 8;
    return 0;
  }

  byte[] encode(SpecializedGetters row, int column) {
    ByteArrayOutputStream out = new ByteArrayOutputStream(16);
    encode(row, column, type, out);
    return reversed(out.toByteArray());
  }

  Object decode(byte[] bytes) { return decode(ByteBuffer.wrap(reversed(bytes.clone())), type); }

  private byte[] reversed(byte[] bytes) {
    if (reverse) for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) ~bytes[i];
    return bytes;
  }

  private static void encode(SpecializedGetters row, int column, DataType type, ByteArrayOutputStream out) {
    if (type instanceof StructType s) {
      InternalRow struct = row.getStruct(column, s.length());
      for (int i = 0; i < s.length(); i++) {
        out.write(struct.isNullAt(i) ? 1 : 0);
        if (!struct.isNullAt(i)) encode(struct, i, s.apply(i).dataType(), out);
      }
    } else if (type instanceof DecimalType d) decimal(row.getDecimal(column, d.precision(), d.scale()).toJavaBigDecimal().setScale(d.scale()).unscaledValue(), out);
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

  /** The bits of a double as a signed number in the same order. Its own inverse, but for -0.0 and NaN. */
  private static long ordered(double value) {
    long bits = Double.doubleToLongBits(value == 0 ? 0.0 : value);
    return bits ^ bits >> 63 & Long.MAX_VALUE;
  }

  private static long ordered(float value) {
    int bits = Float.floatToIntBits(value == 0 ? 0f : value);
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

  private static Object decode(ByteBuffer in, DataType type) {
    if (type instanceof StructType s) {
      Object[] fields = new Object[s.length()];
      for (int i = 0; i < fields.length; i++) if (in.get() == 0) fields[i] = decode(in, s.apply(i).dataType());
      return new GenericInternalRow(fields);
    }
    if (type instanceof DecimalType d) {
      byte[] bytes = new byte[16];
      in.get(bytes);
      bytes[0] ^= (byte) 0x80;
      return Decimal.apply(new BigDecimal(new BigInteger(bytes), d.scale()), d.precision(), d.scale());
    }
    if (type instanceof StringType) return UTF8String.fromBytes(unescaped(in));
    if (type == DataTypes.BinaryType) return unescaped(in);
    if (type == DataTypes.BooleanType) return in.get() != 0;
    return switch (size(type)) {
      case 1 -> (byte) (in.get() ^ Byte.MIN_VALUE);
      case 2 -> (short) (in.getShort() ^ Short.MIN_VALUE);
      case 4 -> {
        int value = in.getInt() ^ Integer.MIN_VALUE;
        if (type != DataTypes.FloatType) yield value;
        yield Float.intBitsToFloat(value ^ value >> 31 & Integer.MAX_VALUE);
      }
      default -> {
        long value = in.getLong() ^ Long.MIN_VALUE;
        if (type != DataTypes.DoubleType) yield value;
        yield Double.longBitsToDouble(value ^ value >> 63 & Long.MAX_VALUE);
      }
    };
  }

  private static byte[] unescaped(ByteBuffer in) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    while (true) {
      byte b = in.get();
      if (b == 0 && in.get() == 0) return out.toByteArray();
      out.write(b);
    }
  }
}
