package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.YearMonthIntervalType;
import tailgate.errors.SqlError;

/**
 * Conversions of exact numbers to values of a SQL type. They round half away from zero, as
 * PostgreSQL's numeric does, and throw 22003 if the value is out of range.
 */
public final class Numbers {
  private static final long[] POWERS = new long[19];  // of ten

  static {
    POWERS[0] = 1;
    for (int i = 1; i < POWERS.length; i++) POWERS[i] = 10 * POWERS[i - 1];
  }

  private Numbers() {}

  /** Returns 10 to an exponent from 0 to 18. */
  static long powerOfTen(int exponent) { return POWERS[exponent]; }

  /** Returns the number of digits of a number that is not negative. */
  static int digits(long value) {
    int digits = (Long.SIZE - Long.numberOfLeadingZeros(value)) * 1233 >> 12;  // 1233 / 4096 is about log10(2)
    return Math.max(digits + (value >= POWERS[digits] ? 1 : 0), 1);
  }

  /** Returns a number as Catalyst's value of a numeric or interval type. */
  public static Object of(BigDecimal value, DataType type) {
    if (type instanceof DecimalType d) return decimal(value, d);
    if (type == DataTypes.DoubleType) return finite(value.doubleValue());
    if (type == DataTypes.FloatType) return (float) finite(value.floatValue());
    if (type == DataTypes.LongType) return integer(value, 63, "bigint").longValue();
    if (type == DataTypes.IntegerType) return integer(value, 31, "integer").intValue();
    if (type == DataTypes.ShortType) return integer(value, 15, "smallint").shortValue();
    if (type == DataTypes.ByteType) return integer(value, 7, "tinyint").byteValue();
    if (type instanceof DayTimeIntervalType) return integer(value, 63, "interval").longValue();
    if (type instanceof YearMonthIntervalType) return integer(value, 31, "interval").intValue();
    throw new IllegalArgumentException("a number cannot be of type " + type.catalogString());
  }

  /** Returns an integer whose last `fractionDigits` digits are after the decimal point, as {@link #of(BigDecimal, DataType)} does. */
  public static Object of(long unscaled, int fractionDigits, DataType type) {
    if (type == DataTypes.LongType && fractionDigits == 0) return unscaled;
    if (type instanceof DecimalType d && d.scale() == fractionDigits) {
      long power = POWERS[Math.min(d.precision(), Decimal.MAX_LONG_DIGITS())];
      if (unscaled > -power && unscaled < power) return Decimal.createUnsafe(unscaled, d.precision(), d.scale());
    }
    return of(BigDecimal.valueOf(unscaled, fractionDigits), type);
  }

  /** Returns a sum divided by a count, as a value of a type. */
  public static Object quotient(BigDecimal sum, long count, DataType type) {
    BigDecimal divisor = BigDecimal.valueOf(count);
    if (type == DataTypes.DoubleType || type == DataTypes.FloatType) {
      return of(sum.divide(divisor, MathContext.DECIMAL128), type);
    }
    return of(sum.divide(divisor, type instanceof DecimalType d ? d.scale() : 0, RoundingMode.HALF_UP), type);
  }

  private static Decimal decimal(BigDecimal value, DecimalType type) {
    if (integerDigits(value) > type.precision()) throw fieldOverflow();
    BigDecimal rounded = rounded(value, type.scale());
    if (rounded.precision() > type.precision()) throw fieldOverflow();
    return Decimal.apply(rounded, type.precision(), type.scale());
  }

  private static BigInteger integer(BigDecimal value, int bits, String typeName) {
    if (integerDigits(value) <= bits) {
      BigInteger integer = rounded(value, 0).unscaledValue();
      if (integer.bitLength() <= bits) return integer;
    }
    throw new SqlError(typeName.equals("interval") ? "22008" : "22003", typeName + " out of range");
  }

  /**
   * Returns the number of digits before the decimal point; negative for a number below 0.1, by its
   * zeros after the point. A message of a few bytes may denote a number with 2³¹ digits, so this is
   * checked before the number is expanded.
   */
  private static long integerDigits(BigDecimal value) {
    return value.signum() == 0 ? 0 : (long) value.precision() - value.scale();
  }

  private static BigDecimal rounded(BigDecimal value, int scale) {
    if (value.signum() == 0 || integerDigits(value) < -scale) return BigDecimal.valueOf(0, scale);
    return value.setScale(scale, RoundingMode.HALF_UP);
  }

  private static double finite(double value) {
    if (Double.isInfinite(value)) throw overflow();
    return value;
  }

  /** Returns 22003, for a floating-point result that is too large. */
  public static SqlError overflow() { return new SqlError("22003", "value out of range: overflow"); }

  /** Returns 22003, for a numeric result that has too many digits. */
  static SqlError fieldOverflow() { return new SqlError("22003", "numeric field overflow"); }

  /**
   * Parses a JSON number that has no exponent, at most 18 characters and at most {@code scale}
   * digits after the decimal point. Returns null for other numbers, which need the slower {@link
   * #of}.
   */
  public static Decimal parseShort(char[] text, int from, int length, int precision, int scale) {
    if (length > 18 || precision > 18) return null;
    boolean negative = text[from] == '-';
    long value = 0;
    int fractionDigits = -1;  // -1 before the decimal point
    for (int i = negative ? 1 : 0; i < length; i++) {
      char c = text[from + i];
      if (c >= '0' && c <= '9') {
        value = value * 10 + c - '0';
        if (fractionDigits >= 0) fractionDigits++;
      } else if (c == '.' && fractionDigits < 0) {
        fractionDigits = 0;
      } else {
        return null;
      }
    }
    return shortDecimal(negative ? -value : value, Math.max(fractionDigits, 0), precision, scale);
  }

  /**
   * Returns an integer of up to 18 digits, the last `fractionDigits` of which are after the decimal point,
   * as a decimal. Returns null if it would have to be rounded or does not fit.
   */
  public static Decimal shortDecimal(long unscaled, int fractionDigits, int precision, int scale) {
    if (precision > 18 || fractionDigits > scale) return null;
    long value = unscaled;
    for (int zeros = scale - fractionDigits; zeros > 0; zeros--) {
      if (Math.abs(value) > Long.MAX_VALUE / 10) return null;
      value *= 10;
    }
    return Math.abs(value) < POWERS[precision] ? Decimal.createUnsafe(value, precision, scale) : null;
  }
}
