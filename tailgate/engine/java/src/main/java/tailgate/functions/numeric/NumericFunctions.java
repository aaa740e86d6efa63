package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;

/**
 * Functions of numeric and of integers. The last two arguments of a function with a numeric result
 * are the result's precision and scale.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/numeric/numeric_functions.py} computes the same and names the sources.
 */
public final class NumericFunctions {
  private static final MathContext EXACT = new MathContext(80, RoundingMode.HALF_EVEN);
  // A quotient of logarithms is rounded to these digits first, so that log(1000) is 3.
  private static final MathContext LOGARITHM = new MathContext(60);
  private static final int RESULT_DIGITS_MAX = 60;  // before the decimal point
  private static final int ROUND_DIGITS_MAX = 200;
  private static final BigDecimal TWO = BigDecimal.valueOf(2);
  private static final BigDecimal LN_10 = ln(new BigDecimal("2.5")).add(ln(TWO).multiply(TWO), EXACT);

  private NumericFunctions() {}

  private static Decimal result(BigDecimal value, int precision, int scale) {
    if (value.signum() != 0 && value.precision() - value.scale() > RESULT_DIGITS_MAX) throw Numbers.fieldOverflow();
    return (Decimal) Numbers.of(value, DataTypes.createDecimalType(precision, scale));
  }

  private static BigDecimal of(Decimal value) { return value.toJavaBigDecimal(); }

  private static SqlError divisionByZero() { return new SqlError("22012", "division by zero"); }

  // ---- series -----------------------------------------------------------------------------------

  /** Returns the integers from `first` to `last`, which is in the direction of the step, and some ten million steps away at most. */
  @Returns("array<bigint>")
  public static ArrayData integerSeries(long first, long last, long step) {
    long distance = step > 0 ? last - first : first - last;  // these two are unsigned
    long length = step > 0 ? step : -step;
    long[] values = new long[Math.toIntExact(Long.divideUnsigned(distance, length)) + 1];
    for (int i = 0; i < values.length; i++) values[i] = first + i * step;
    return UnsafeArrayData.fromPrimitiveArray(values);
  }

  // ---- powers and logarithms --------------------------------------------------------------------

  public static Decimal numericPower(Decimal x, Decimal y, int precision, int scale) {
    BigDecimal base = of(x);
    BigDecimal exponent = of(y);
    if (base.signum() == 0 && exponent.signum() < 0) {
      throw new SqlError("2201F", "zero raised to a negative power is undefined");
    }
    boolean integral = exponent.stripTrailingZeros().scale() <= 0;
    if (base.signum() < 0 && !integral) {
      throw new SqlError("2201F", "a negative number raised to a non-integer power yields a complex result");
    }
    if (exponent.signum() == 0 || base.compareTo(BigDecimal.ONE) == 0) {
      return result(BigDecimal.ONE, precision, scale);
    }
    if (base.signum() == 0) return result(BigDecimal.ZERO, precision, scale);
    double magnitude = exponent.doubleValue() * Math.log10(Math.abs(base.doubleValue()));
    if (magnitude > 40) throw Numbers.fieldOverflow();
    if (magnitude < -60) return result(BigDecimal.ZERO, precision, scale);
    if (integral && exponent.abs().compareTo(BigDecimal.valueOf(100_000)) < 0) {
      return result(base.pow(exponent.intValueExact(), EXACT), precision, scale);
    }
    BigDecimal power = exp(exponent.multiply(ln(base.abs()), EXACT));
    boolean negative = base.signum() < 0 && exponent.toBigInteger().testBit(0);
    return result(negative ? power.negate() : power, precision, scale);
  }

  public static Decimal numericSqrt(Decimal x, int precision, int scale) {
    if (of(x).signum() < 0) throw new SqlError("2201F", "cannot take square root of a negative number");
    return result(of(x).sqrt(EXACT), precision, scale);
  }

  public static Decimal numericExp(Decimal x, int precision, int scale) {
    if (of(x).compareTo(BigDecimal.valueOf(100)) > 0) throw Numbers.fieldOverflow();
    boolean underflow = of(x).compareTo(BigDecimal.valueOf(-200)) <= 0;
    return result(underflow ? BigDecimal.ZERO : exp(of(x)), precision, scale);
  }

  /** Computes e^x: halves x until its power series is short, then squares the sum as often. */
  private static BigDecimal exp(BigDecimal x) {
    int halvings = 0;
    BigDecimal small = x;
    while (small.abs().compareTo(new BigDecimal("0.01")) > 0) {
      small = small.divide(TWO, EXACT);
      halvings++;
    }
    BigDecimal sum = BigDecimal.ONE;
    BigDecimal term = BigDecimal.ONE;
    for (int n = 1; term.signum() != 0 && term.precision() - term.scale() > -82; n++) {
      term = term.multiply(small, EXACT).divide(BigDecimal.valueOf(n), EXACT);
      sum = sum.add(term, EXACT);
    }
    while (halvings-- > 0) sum = sum.multiply(sum, EXACT);
    return sum;
  }

  private static void checkPositive(BigDecimal value) {
    if (value.signum() > 0) return;
    String kind = value.signum() == 0 ? "zero" : "a negative number";
    throw new SqlError("2201E", "cannot take logarithm of " + kind);
  }

  /**
   * Computes the natural logarithm: Halley's method triples the digits of the double's logarithm in
   * each step.
   */
  private static BigDecimal ln(BigDecimal x) {
    checkPositive(x);
    if (x.compareTo(BigDecimal.ONE) == 0) return BigDecimal.ZERO;
    int exponent = x.precision() - x.scale() - 1;
    BigDecimal mantissa = x.movePointLeft(exponent);
    BigDecimal y = BigDecimal.valueOf(Math.log(mantissa.doubleValue()));
    for (int i = 0; i < 4; i++) {
      BigDecimal e = exp(y);
      y = y.add(mantissa.subtract(e, EXACT).multiply(TWO).divide(mantissa.add(e, EXACT), EXACT), EXACT);
    }
    return exponent == 0 ? y : y.add(LN_10.multiply(BigDecimal.valueOf(exponent), EXACT), EXACT);
  }

  public static Decimal numericLn(Decimal x, int precision, int scale) { return result(ln(of(x)), precision, scale); }

  public static Decimal numericLog10(Decimal x, int precision, int scale) {
    return result(ln(of(x)).divide(LN_10, EXACT).round(LOGARITHM), precision, scale);
  }

  public static Decimal numericLog(Decimal base, Decimal x, int precision, int scale) {
    checkPositive(of(base));
    checkPositive(of(x));
    BigDecimal divisor = ln(of(base));
    if (divisor.signum() == 0) throw divisionByZero();
    return result(ln(of(x)).divide(divisor, EXACT).round(LOGARITHM), precision, scale);
  }

  // ---- division ---------------------------------------------------------------------------------

  public static Decimal numericDiv(Decimal x, Decimal y, int precision, int scale) {
    if (of(y).signum() == 0) throw divisionByZero();
    return result(of(x).divideToIntegralValue(of(y)), precision, scale);
  }

  private static BigDecimal gcd(BigDecimal a, BigDecimal b) {
    int scale = Math.max(a.scale(), b.scale());
    return new BigDecimal(a.setScale(scale).unscaledValue().gcd(b.setScale(scale).unscaledValue()), scale);
  }

  public static Decimal numericGcd(Decimal x, Decimal y, int precision, int scale) {
    return result(gcd(of(x), of(y)), precision, scale);
  }

  public static Decimal numericLcm(Decimal x, Decimal y, int precision, int scale) {
    if (of(x).signum() == 0 || of(y).signum() == 0) return result(BigDecimal.ZERO, precision, scale);
    return result(of(x).multiply(of(y).divideToIntegralValue(gcd(of(x), of(y)))).abs(), precision, scale);
  }

  public static long gcdInt8(long a, long b) {
    return checked(BigInteger.valueOf(a).gcd(BigInteger.valueOf(b)), 63, "bigint").longValue();
  }

  public static int gcdInt4(int a, int b) {
    return checked(BigInteger.valueOf(a).gcd(BigInteger.valueOf(b)), 31, "integer").intValue();
  }

  public static long lcmInt8(long a, long b) {
    return checked(lcm(BigInteger.valueOf(a), BigInteger.valueOf(b)), 63, "bigint").longValue();
  }

  public static int lcmInt4(int a, int b) {
    return checked(lcm(BigInteger.valueOf(a), BigInteger.valueOf(b)), 31, "integer").intValue();
  }

  private static BigInteger lcm(BigInteger a, BigInteger b) {
    if (a.signum() == 0 || b.signum() == 0) return BigInteger.ZERO;
    return a.divide(a.gcd(b)).multiply(b).abs();
  }

  private static BigInteger checked(BigInteger value, int bits, String type) {
    if (value.bitLength() > bits) throw new SqlError("22003", type + " out of range");
    return value;
  }

  public static Decimal factorial(long n, int precision, int scale) {
    if (n < 0) throw new SqlError("22003", "factorial of a negative number is undefined");
    if (n > 33) throw Numbers.fieldOverflow();  // 34! is above 1e38
    BigInteger product = BigInteger.ONE;
    for (long i = 2; i <= n; i++) product = product.multiply(BigInteger.valueOf(i));
    return result(new BigDecimal(product), precision, scale);
  }

  // ---- rounding ---------------------------------------------------------------------------------

  public static int minScale(Decimal x) {
    return of(x).signum() == 0 ? 0 : Math.max(0, of(x).stripTrailingZeros().scale());
  }

  public static Decimal numericRound(Decimal x, int digits, int precision, int scale) {
    return result(of(x).setScale(boundedDigits(digits), RoundingMode.HALF_UP), precision, scale);
  }

  public static Decimal numericTrunc(Decimal x, int digits, int precision, int scale) {
    return result(of(x).setScale(boundedDigits(digits), RoundingMode.DOWN), precision, scale);
  }

  private static int boundedDigits(int digits) {
    return Math.max(-ROUND_DIGITS_MAX, Math.min(digits, ROUND_DIGITS_MAX));
  }

  // ---- width_bucket -----------------------------------------------------------------------------

  static SqlError invalidBucket(String message) { return new SqlError("2201G", message); }

  static void checkBuckets(int count, boolean equalBounds) {
    if (count <= 0) throw invalidBucket("count must be greater than zero");
    if (equalBounds) throw invalidBucket("lower bound cannot equal upper bound");
  }

  public static int widthBucketNumeric(Decimal x, Decimal from, Decimal to, int count) {
    BigDecimal value = of(x);
    BigDecimal low = of(from);
    BigDecimal high = of(to);
    checkBuckets(count, low.compareTo(high) == 0);
    boolean ascending = low.compareTo(high) < 0;
    if (ascending ? value.compareTo(low) < 0 : value.compareTo(low) > 0) return 0;
    if (ascending ? value.compareTo(high) >= 0 : value.compareTo(high) <= 0) return overflowBucket(count);
    BigDecimal distance = value.subtract(low).multiply(BigDecimal.valueOf(count));
    return distance.divideToIntegralValue(high.subtract(low)).intValue() + 1;
  }

  public static int widthBucketFloat8(double value, double low, double high, int count) {
    if (Double.isNaN(value) || Double.isNaN(low) || Double.isNaN(high)) {
      throw invalidBucket("operand, lower bound, and upper bound cannot be NaN");
    }
    if (Double.isInfinite(low) || Double.isInfinite(high)) {
      throw invalidBucket("lower and upper bounds must be finite");
    }
    checkBuckets(count, low == high);
    boolean ascending = low < high;
    if (ascending ? value < low : value > low) return 0;
    if (ascending ? value >= high : value <= high) return overflowBucket(count);
    double bucket = count * (value - low) / (high - low) + 1; // rounded as in PostgreSQL 15
    if (Double.isNaN(bucket) || Double.isInfinite(bucket)) {
      bucket = count * ((value / 2 - low / 2) / (high / 2 - low / 2)) + 1;
    }
    return (long) bucket > count ? overflowBucket(count) : (int) bucket;
  }

  /** Returns the number of the bucket above the last one. */
  static int overflowBucket(int count) {
    if (count == Integer.MAX_VALUE) throw new SqlError("22003", "integer out of range");
    return count + 1;
  }

  // ---- shifts -----------------------------------------------------------------------------------

  public static short shiftLeftInt2(short a, int count) { return (short) (a << count); }

  public static int shiftLeftInt4(int a, int count) { return a << count; }

  public static long shiftLeftInt8(long a, int count) { return a << count; }

  public static short shiftRightInt2(short a, int count) { return (short) (a >> count); }

  public static int shiftRightInt4(int a, int count) { return a >> count; }

  public static long shiftRightInt8(long a, int count) { return a >> count; }
}
