package tailgate;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import org.apache.spark.sql.types.*;

/** Exact numbers to results of a type, rounded half away from zero as PostgreSQL's numeric is, or 22003. */
final class Numbers {
  private Numbers() {}

  /** Catalyst's form of a number. */
  static Object of(BigDecimal value, DataType type) {
    if (type instanceof DecimalType d) {
      if (digits(value) > d.precision()) throw new SqlError("22003", "numeric field overflow");
      BigDecimal rounded = rounded(value, d.scale());
      if (rounded.precision() > d.precision()) throw new SqlError("22003", "numeric field overflow");
      return Decimal.apply(rounded, d.precision(), d.scale());
    }
    if (type == DataTypes.DoubleType) return finite(value.doubleValue());
    if (type == DataTypes.FloatType) return (float) finite(value.floatValue());
    if (type == DataTypes.LongType || type instanceof DayTimeIntervalType) return whole(value, 63, type instanceof DayTimeIntervalType ? "interval" : "bigint").longValue();
    if (type == DataTypes.IntegerType || type instanceof YearMonthIntervalType) return whole(value, 31, type instanceof YearMonthIntervalType ? "interval" : "integer").intValue();
    if (type == DataTypes.ShortType) return whole(value, 15, "smallint").shortValue();
    if (type == DataTypes.ByteType) return whole(value, 7, "tinyint").byteValue();
    throw new IllegalArgumentException("a number is no " + type.catalogString());
  }

  static Object quotient(BigDecimal sum, long n, DataType type) {
    if (type == DataTypes.DoubleType || type == DataTypes.FloatType) return of(sum.divide(BigDecimal.valueOf(n), java.math.MathContext.DECIMAL128), type);
    return of(sum.divide(BigDecimal.valueOf(n), type instanceof DecimalType d ? d.scale() : 0, RoundingMode.HALF_UP), type);
  }

  private static BigInteger whole(BigDecimal value, int bits, String name) {
    if (digits(value) <= bits && rounded(value, 0).unscaledValue().bitLength() <= bits) return rounded(value, 0).unscaledValue();
    throw new SqlError(name.equals("interval") ? "22008" : "22003", name + " out of range");
  }

  /** Before the point; below zero, the zeros behind it. A few bytes of a message may say that there are 2³¹ of them, so this is asked before anything is computed. */
  private static long digits(BigDecimal value) { return value.signum() == 0 ? 0 : (long) value.precision() - value.scale(); }

  private static BigDecimal rounded(BigDecimal value, int scale) { return value.signum() == 0 || digits(value) < -scale ? BigDecimal.valueOf(0, scale) : value.setScale(scale, RoundingMode.HALF_UP); }

  private static double finite(double value) {
    if (Double.isInfinite(value)) throw overflow();
    return value;
  }

  static SqlError overflow() { return new SqlError("22003", "value out of range: overflow"); }

  /** Of a JSON number with few digits and no exponent, quickly; null if it is not such a one, or has more digits behind the point than `scale`. */
  static Decimal few(char[] text, int from, int length, int precision, int scale) {
    if (length > 18 || precision > 18) return null;
    boolean negative = text[from] == '-';
    long value = 0;
    int digits = 0, behind = -1;
    for (int i = negative ? 1 : 0; i < length; i++) {
      char c = text[from + i];
      if (c >= '0' && c <= '9') {
        value = value * 10 + c - '0';
        if (value != 0) digits++;
        if (behind >= 0) behind++;
      } else if (c == '.' && behind < 0) behind = 0;
      else return null;
    }
    if (behind > scale) return null;
    int zeros = scale - Math.max(behind, 0);
    if (digits + zeros > precision) return null;
    for (int i = 0; i < zeros; i++) value *= 10;
    return Decimal.createUnsafe(negative ? -value : value, precision, scale);
  }
}
