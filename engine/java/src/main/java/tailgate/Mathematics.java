package tailgate;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;

/**
 * Functions of exact numbers, and those of floats. The twin of sql/compute/mathematics.py, which names its sources. Results of a numeric are rounded to the scale asked for.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class Mathematics {
  private static final MathContext EXACT = new MathContext(80, RoundingMode.HALF_EVEN);
  private static final BigDecimal TWO = BigDecimal.valueOf(2), LN_10 = ln(new BigDecimal("2.5")).add(ln(TWO).multiply(TWO), EXACT);

  private Mathematics() {}

  private static Decimal made(BigDecimal value, int precision, int scale) {
    if (value.signum() != 0 && value.precision() - value.scale() > 60) throw new SqlError("22003", "numeric field overflow");
    return (Decimal) Numbers.of(value, DataTypes.createDecimalType(precision, scale));
  }

  private static BigDecimal of(Decimal value) { return value.toJavaBigDecimal(); }

  // ---- exact --------------------------------------------------------------------------------------------------------------------

  public static Decimal numericPower(Decimal x, Decimal y, int precision, int scale) {
    BigDecimal a = of(x), b = of(y);
    if (a.signum() == 0 && b.signum() < 0) throw new SqlError("2201F", "zero raised to a negative power is undefined");
    boolean whole = b.stripTrailingZeros().scale() <= 0;
    if (a.signum() < 0 && !whole) throw new SqlError("2201F", "a negative number raised to a non-integer power yields a complex result");
    if (b.signum() == 0 || a.compareTo(BigDecimal.ONE) == 0) return made(BigDecimal.ONE, precision, scale);
    if (a.signum() == 0) return made(BigDecimal.ZERO, precision, scale);
    double size = b.doubleValue() * Math.log10(Math.abs(a.doubleValue()));
    if (size > 40) throw new SqlError("22003", "numeric field overflow");
    if (size < -60) return made(BigDecimal.ZERO, precision, scale);
    if (whole && b.abs().compareTo(BigDecimal.valueOf(100_000)) < 0) return made(a.pow(b.intValueExact(), EXACT), precision, scale);
    BigDecimal found = exp(b.multiply(ln(a.abs()), EXACT));
    return made(a.signum() < 0 && b.toBigInteger().testBit(0) ? found.negate() : found, precision, scale);
  }

  public static Decimal numericSqrt(Decimal x, int precision, int scale) {
    if (of(x).signum() < 0) throw new SqlError("2201F", "cannot take square root of a negative number");
    return made(of(x).sqrt(EXACT), precision, scale);
  }

  public static Decimal numericExp(Decimal x, int precision, int scale) {
    if (of(x).compareTo(BigDecimal.valueOf(100)) > 0) throw new SqlError("22003", "numeric field overflow");
    return made(of(x).compareTo(BigDecimal.valueOf(-200)) > 0 ? exp(of(x)) : BigDecimal.ZERO, precision, scale);
  }

  /** By halving the argument until the series is short, and squaring as often. */
  private static BigDecimal exp(BigDecimal x) {
    int halvings = 0;
    BigDecimal small = x;
    while (small.abs().compareTo(new BigDecimal("0.01")) > 0) {
      small = small.divide(TWO, EXACT);
      halvings++;
    }
    BigDecimal sum = BigDecimal.ONE, term = BigDecimal.ONE;
    for (int n = 1; term.signum() != 0 && term.precision() - term.scale() > -82; n++) {
      term = term.multiply(small, EXACT).divide(BigDecimal.valueOf(n), EXACT);
      sum = sum.add(term, EXACT);
    }
    while (halvings-- > 0) sum = sum.multiply(sum, EXACT);
    return sum;
  }

  private static void positive(BigDecimal value) {
    if (value.signum() <= 0) throw new SqlError("2201E", "cannot take logarithm of " + (value.signum() == 0 ? "zero" : "a negative number"));
  }

  /** By Newton's method from the float's logarithm: each step doubles its digits. */
  private static BigDecimal ln(BigDecimal x) {
    positive(x);
    if (x.compareTo(BigDecimal.ONE) == 0) return BigDecimal.ZERO;
    int exponent = x.precision() - x.scale() - 1;
    BigDecimal mantissa = x.movePointLeft(exponent);
    BigDecimal y = BigDecimal.valueOf(Math.log(mantissa.doubleValue()));
    for (int i = 0; i < 4; i++) {
      BigDecimal e = exp(y);
      y = y.add(mantissa.subtract(e, EXACT).multiply(TWO).divide(mantissa.add(e, EXACT), EXACT), EXACT);  // Halley's: three times its digits
    }
    return exponent == 0 ? y : y.add(LN_10.multiply(BigDecimal.valueOf(exponent), EXACT), EXACT);
  }

  public static Decimal numericLn(Decimal x, int precision, int scale) { return made(ln(of(x)), precision, scale); }

  public static Decimal numericLog10(Decimal x, int precision, int scale) { return made(ln(of(x)).divide(LN_10, EXACT).round(new MathContext(60)), precision, scale); }

  public static Decimal numericLog(Decimal base, Decimal x, int precision, int scale) {
    positive(of(base));
    positive(of(x));
    BigDecimal divisor = ln(of(base));
    if (divisor.signum() == 0) throw new SqlError("22012", "division by zero");
    return made(ln(of(x)).divide(divisor, EXACT).round(new MathContext(60)), precision, scale);
  }

  public static Decimal numericDiv(Decimal x, Decimal y, int precision, int scale) {
    if (of(y).signum() == 0) throw new SqlError("22012", "division by zero");
    return made(of(x).divideToIntegralValue(of(y)), precision, scale);
  }

  private static BigDecimal gcd(BigDecimal a, BigDecimal b) {
    int scale = Math.max(a.scale(), b.scale());
    return new BigDecimal(a.setScale(scale).unscaledValue().gcd(b.setScale(scale).unscaledValue()), scale);
  }

  public static Decimal numericGcd(Decimal x, Decimal y, int precision, int scale) { return made(gcd(of(x), of(y)), precision, scale); }

  public static Decimal numericLcm(Decimal x, Decimal y, int precision, int scale) {
    if (of(x).signum() == 0 || of(y).signum() == 0) return made(BigDecimal.ZERO, precision, scale);
    return made(of(x).multiply(of(y).divideToIntegralValue(gcd(of(x), of(y)))).abs(), precision, scale);
  }

  public static Decimal factorial(long n, int precision, int scale) {
    if (n < 0) throw new SqlError("22003", "factorial of a negative number is undefined");
    if (n > 33) throw new SqlError("22003", "numeric field overflow");  // the last below 1e38
    BigInteger found = BigInteger.ONE;
    for (long i = 2; i <= n; i++) found = found.multiply(BigInteger.valueOf(i));
    return made(new BigDecimal(found), precision, scale);
  }

  public static long gcdInt8(long a, long b) { return whole(BigInteger.valueOf(a).gcd(BigInteger.valueOf(b)), 63, "bigint").longValue(); }

  public static int gcdInt4(int a, int b) { return whole(BigInteger.valueOf(a).gcd(BigInteger.valueOf(b)), 31, "integer").intValue(); }

  public static long lcmInt8(long a, long b) { return whole(lcm(BigInteger.valueOf(a), BigInteger.valueOf(b)), 63, "bigint").longValue(); }

  public static int lcmInt4(int a, int b) { return whole(lcm(BigInteger.valueOf(a), BigInteger.valueOf(b)), 31, "integer").intValue(); }

  private static BigInteger lcm(BigInteger a, BigInteger b) { return a.signum() == 0 || b.signum() == 0 ? BigInteger.ZERO : a.divide(a.gcd(b)).multiply(b).abs(); }

  private static BigInteger whole(BigInteger value, int bits, String type) {
    if (value.bitLength() > bits) throw new SqlError("22003", type + " out of range");
    return value;
  }

  public static int minScale(Decimal x) { return of(x).signum() == 0 ? 0 : Math.max(0, of(x).stripTrailingZeros().scale()); }

  public static Decimal numericRound(Decimal x, int digits, int precision, int scale) { return made(of(x).setScale(Math.max(-200, Math.min(digits, 200)), RoundingMode.HALF_UP), precision, scale); }

  public static Decimal numericTrunc(Decimal x, int digits, int precision, int scale) { return made(of(x).setScale(Math.max(-200, Math.min(digits, 200)), RoundingMode.DOWN), precision, scale); }

  private static SqlError bucket(String message) { return new SqlError("2201G", message); }

  private static void buckets(int count, boolean equal) {
    if (count <= 0) throw bucket("count must be greater than zero");
    if (equal) throw bucket("lower bound cannot equal upper bound");
  }

  public static int widthBucketNumeric(Decimal x, Decimal from, Decimal to, int count) {
    BigDecimal value = of(x), low = of(from), high = of(to);
    buckets(count, low.compareTo(high) == 0);
    boolean up = low.compareTo(high) < 0;
    if (up ? value.compareTo(low) < 0 : value.compareTo(low) > 0) return 0;
    if (up ? value.compareTo(high) >= 0 : value.compareTo(high) <= 0) return over(count);
    return value.subtract(low).multiply(BigDecimal.valueOf(count)).divideToIntegralValue(high.subtract(low)).intValue() + 1;
  }

  private static int over(int count) {
    if (count == Integer.MAX_VALUE) throw new SqlError("22003", "integer out of range");
    return count + 1;
  }

  public static int widthBucketFloat8(double value, double low, double high, int count) {
    if (Double.isNaN(value) || Double.isNaN(low) || Double.isNaN(high)) throw bucket("operand, lower bound, and upper bound cannot be NaN");
    if (Double.isInfinite(low) || Double.isInfinite(high)) throw bucket("lower and upper bounds must be finite");
    buckets(count, low == high);
    boolean up = low < high;
    if (up ? value < low : value > low) return 0;
    if (up ? value >= high : value <= high) return over(count);
    return (int) (count * (up ? (value - low) / (high - low) : (low - value) / (low - high))) + 1;
  }

  public static short shiftLeftInt2(short a, int count) { return (short) (a << count); }

  public static int shiftLeftInt4(int a, int count) { return a << count; }

  public static long shiftLeftInt8(long a, int count) { return a << count; }

  public static short shiftRightInt2(short a, int count) { return (short) (a >> count); }

  public static int shiftRightInt4(int a, int count) { return a >> count; }

  public static long shiftRightInt8(long a, int count) { return a >> count; }

  // ---- floats -------------------------------------------------------------------------------------------------------------------

  public static double powerFloat8(double a, double b) {
    if (Double.isNaN(a)) return b == 0 ? 1 : a;
    if (Double.isNaN(b)) return a == 1 ? 1 : b;
    if (a == 1 || b == 0) return 1;
    if (a == 0 && b < 0) throw new SqlError("2201F", "zero raised to a negative power is undefined");
    if (a < 0 && !Double.isInfinite(b) && b != Math.floor(b)) throw new SqlError("2201F", "a negative number raised to a non-integer power yields a complex result");
    if (a == -1 && Double.isInfinite(b)) return 1;
    double found = Math.pow(a, b);
    boolean finite = !Double.isInfinite(a) && !Double.isInfinite(b);
    if (Double.isInfinite(found) && finite) throw Numbers.overflow();
    if (found == 0 && a != 0 && finite) throw new SqlError("22003", "value out of range: underflow");
    return found;
  }

  public static double cbrt(double x) { return Math.cbrt(x); }

  private static SqlError input() { return new SqlError("22003", "input is out of range"); }

  private static double finite(double x) {
    if (Double.isInfinite(x)) throw input();
    return x;
  }

  private static double unit(double x) {
    if (x < -1 || x > 1) throw input();
    return x;
  }

  public static double sin(double x) { return Math.sin(finite(x)); }

  public static double cos(double x) { return Math.cos(finite(x)); }

  public static double tan(double x) { return Math.tan(finite(x)); }

  public static double cot(double x) { return 1 / Math.tan(finite(x)); }

  public static double asin(double x) { return Math.asin(unit(x)); }

  public static double acos(double x) { return Math.acos(unit(x)); }

  public static double atan(double x) { return Math.atan(x); }

  public static double sinh(double x) { return Math.sinh(x); }

  public static double cosh(double x) { return Math.cosh(x); }

  public static double tanh(double x) { return Math.tanh(x); }

  public static double asinh(double x) {
    double a = Math.abs(x);
    if (Double.isInfinite(x) || x == 0) return x;
    double found = a > 1e8 ? Math.log(a) + Math.log(2) : Math.log1p(a + a * a / (1 + Math.sqrt(a * a + 1)));
    return Math.copySign(found, x);
  }

  public static double acosh(double x) {
    if (x < 1) throw input();
    return x > 1e8 ? Math.log(x) + Math.log(2) : Math.log1p(x - 1 + Math.sqrt((x - 1) * (x - 1) + 2 * (x - 1)));
  }

  public static double atanh(double x) { return Math.abs(unit(x)) == 1 ? Math.copySign(Double.POSITIVE_INFINITY, x) : 0.5 * Math.log1p(2 * x / (1 - x)); }

  public static double atan2(double y, double x) { return Math.atan2(y, x); }

  private static final double RADIAN = 0.0174532925199432957692;

  private static double sin30(double x) { return Math.sin(x * RADIAN) / Math.sin(30 * RADIAN) / 2; }

  private static double cos60(double x) { return 1 - (1 - Math.cos(x * RADIAN)) / (1 - Math.cos(60 * RADIAN)) / 2; }

  private static double sinQuadrant(double x) { return x <= 30 ? sin30(x) : cos60(90 - x); }

  private static double cosQuadrant(double x) { return x <= 60 ? cos60(x) : sin30(90 - x); }

  public static double sind(double x) {
    double r = finite(x) % 360, sign = 1;
    if (r < 0) {
      r = -r;
      sign = -1;
    }
    if (r > 180) {
      r = 360 - r;
      sign = -sign;
    }
    return sign * sinQuadrant(r > 90 ? 180 - r : r);
  }

  public static double cosd(double x) {
    double r = Math.abs(finite(x) % 360);
    if (r > 180) r = 360 - r;
    return r > 90 ? -cosQuadrant(180 - r) : cosQuadrant(r);
  }

  /** The angle in the first quadrant, and the sign of its tangent. */
  private static double[] tangent(double x) {
    double r = finite(x) % 360, sign = 1;
    if (r < 0) {
      r = -r;
      sign = -1;
    }
    if (r > 180) {
      r = 360 - r;
      sign = -sign;
    }
    return r > 90 ? new double[] {180 - r, -sign} : new double[] {r, sign};
  }

  public static double tand(double x) {
    double[] t = tangent(x);
    double found = t[1] * (t[0] == 90 ? Double.POSITIVE_INFINITY : sinQuadrant(t[0]) / cosQuadrant(t[0]) / (sinQuadrant(45) / cosQuadrant(45)));
    return found == 0 ? 0 : found;
  }

  public static double cotd(double x) {
    double[] t = tangent(x);
    double found = t[1] * (t[0] == 0 ? Math.copySign(Double.POSITIVE_INFINITY, t[0]) : cosQuadrant(t[0]) / sinQuadrant(t[0]) / (cosQuadrant(45) / sinQuadrant(45)));
    return found == 0 ? 0 : found;
  }

  private static double asinQuadrant(double x) { return x <= 0.5 ? Math.asin(x) / Math.asin(0.5) * 30 : 90 - Math.acos(x) / Math.acos(0.5) * 60; }

  public static double asind(double x) { return unit(x) >= 0 ? asinQuadrant(x) : -asinQuadrant(-x); }

  public static double acosd(double x) {
    if (Double.isNaN(unit(x))) return x;
    return x < 0 ? 90 + asinQuadrant(-x) : x <= 0.5 ? 90 - Math.asin(x) / Math.asin(0.5) * 30 : Math.acos(x) / Math.acos(0.5) * 60;
  }

  public static double atand(double x) { return Math.atan(x) / Math.atan(1) * 45; }

  public static double atan2d(double y, double x) { return Math.atan2(y, x) / Math.atan(1) * 45; }
}
