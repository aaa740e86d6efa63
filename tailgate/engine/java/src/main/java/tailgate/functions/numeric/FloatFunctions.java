package tailgate.functions.numeric;

import tailgate.errors.SqlError;

/**
 * Functions of floating-point numbers: powers, roots, and trigonometry in radians and degrees.
 * Functions in degrees are exact at multiples of 30, as in PostgreSQL.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/numeric/float_functions.py} computes the same and names the sources.
 */
public final class FloatFunctions {
  private static final double RADIANS_PER_DEGREE = 0.0174532925199432957692;

  private FloatFunctions() {}

  public static double powerFloat8(double a, double b) {
    if (Double.isNaN(a)) return b == 0 ? 1 : a;
    if (Double.isNaN(b)) return a == 1 ? 1 : b;
    if (a == 1 || b == 0) return 1;
    if (a == 0 && b < 0) throw new SqlError("2201F", "zero raised to a negative power is undefined");
    if (a < 0 && !Double.isInfinite(b) && b != Math.floor(b)) {
      throw new SqlError("2201F", "a negative number raised to a non-integer power yields a complex result");
    }
    if (a == -1 && Double.isInfinite(b)) return 1;
    double power = Math.pow(a, b);
    boolean finiteArguments = !Double.isInfinite(a) && !Double.isInfinite(b);
    if (Double.isInfinite(power) && finiteArguments) throw Numbers.overflow();
    if (power == 0 && a != 0 && finiteArguments) throw new SqlError("22003", "value out of range: underflow");
    return power;
  }

  public static double cbrt(double x) { return Math.cbrt(x); }

  private static SqlError outOfRange() { return new SqlError("22003", "input is out of range"); }

  private static double checkFinite(double x) {
    if (Double.isInfinite(x)) throw outOfRange();
    return x;
  }

  /** Returns an argument between -1 and 1, or NaN. */
  private static double checkUnit(double x) {
    if (x < -1 || x > 1) throw outOfRange();
    return x;
  }

  // ---- radians ----------------------------------------------------------------------------------

  public static double sin(double x) { return Math.sin(checkFinite(x)); }

  public static double cos(double x) { return Math.cos(checkFinite(x)); }

  public static double tan(double x) { return Math.tan(checkFinite(x)); }

  public static double cot(double x) { return 1 / Math.tan(checkFinite(x)); }

  public static double asin(double x) { return Math.asin(checkUnit(x)); }

  public static double acos(double x) { return Math.acos(checkUnit(x)); }

  public static double atan(double x) { return Math.atan(x); }

  public static double atan2(double y, double x) { return Math.atan2(y, x); }

  public static double sinh(double x) { return Math.sinh(x); }

  public static double cosh(double x) { return Math.cosh(x); }

  public static double tanh(double x) { return Math.tanh(x); }

  public static double asinh(double x) {
    double a = Math.abs(x);
    if (Double.isInfinite(x) || x == 0) return x;
    double magnitude = a > 1e8 ? Math.log(a) + Math.log(2) : Math.log1p(a + a * a / (1 + Math.sqrt(a * a + 1)));
    return Math.copySign(magnitude, x);
  }

  public static double acosh(double x) {
    if (x < 1) throw outOfRange();
    return x > 1e8 ? Math.log(x) + Math.log(2) : Math.log1p(x - 1 + Math.sqrt((x - 1) * (x - 1) + 2 * (x - 1)));
  }

  public static double atanh(double x) {
    if (Math.abs(checkUnit(x)) == 1) return Math.copySign(Double.POSITIVE_INFINITY, x);
    return 0.5 * Math.log1p(2 * x / (1 - x));
  }

  // ---- degrees ----------------------------------------------------------------------------------

  /** Computes the sine of 0 to 30 degrees; exactly 0.5 at 30. */
  private static double sin0To30(double x) {
    return Math.sin(x * RADIANS_PER_DEGREE) / Math.sin(30 * RADIANS_PER_DEGREE) / 2;
  }

  /** Computes the cosine of 0 to 60 degrees; exactly 0.5 at 60. */
  private static double cos0To60(double x) {
    return 1 - (1 - Math.cos(x * RADIANS_PER_DEGREE)) / (1 - Math.cos(60 * RADIANS_PER_DEGREE)) / 2;
  }

  private static double sin0To90(double x) { return x <= 30 ? sin0To30(x) : cos0To60(90 - x); }

  private static double cos0To90(double x) { return x <= 60 ? cos0To60(x) : sin0To30(90 - x); }

  /**
   * An angle between 0 and 180 degrees, and the sign of its sine (1 or -1) before it was reduced to
   * that range.
   */
  private record HalfTurn(double angle, double sign) {
    static HalfTurn of(double x) {
      double angle = checkFinite(x) % 360;
      double sign = 1;
      if (angle < 0) {
        angle = -angle;
        sign = -1;
      }
      return angle > 180 ? new HalfTurn(360 - angle, -sign) : new HalfTurn(angle, sign);
    }
  }

  public static double sind(double x) {
    HalfTurn h = HalfTurn.of(x);
    return h.sign * sin0To90(h.angle > 90 ? 180 - h.angle : h.angle);
  }

  public static double cosd(double x) {
    double angle = HalfTurn.of(x).angle;
    return angle > 90 ? -cos0To90(180 - angle) : cos0To90(angle);
  }

  public static double tand(double x) {
    HalfTurn h = HalfTurn.of(x);
    double angle = h.angle > 90 ? 180 - h.angle : h.angle;
    double sign = h.angle > 90 ? -h.sign : h.sign;
    if (angle == 90) return sign * Double.POSITIVE_INFINITY;
    return withoutNegativeZero(sign * (sin0To90(angle) / cos0To90(angle) / (sin0To90(45) / cos0To90(45))));
  }

  public static double cotd(double x) {
    HalfTurn h = HalfTurn.of(x);
    double angle = h.angle > 90 ? 180 - h.angle : h.angle;
    double sign = h.angle > 90 ? -h.sign : h.sign;
    if (angle == 0) return sign * Math.copySign(Double.POSITIVE_INFINITY, angle);
    return withoutNegativeZero(sign * (cos0To90(angle) / sin0To90(angle) / (cos0To90(45) / sin0To90(45))));
  }

  private static double withoutNegativeZero(double x) { return x == 0 ? 0 : x; }

  private static double asin0To1(double x) {
    return x <= 0.5 ? Math.asin(x) / Math.asin(0.5) * 30 : 90 - Math.acos(x) / Math.acos(0.5) * 60;
  }

  private static double acos0To1(double x) {
    return x <= 0.5 ? 90 - Math.asin(x) / Math.asin(0.5) * 30 : Math.acos(x) / Math.acos(0.5) * 60;
  }

  public static double asind(double x) { return checkUnit(x) >= 0 ? asin0To1(x) : -asin0To1(-x); }

  public static double acosd(double x) {
    if (Double.isNaN(checkUnit(x))) return x;
    return x < 0 ? 90 + asin0To1(-x) : acos0To1(x);
  }

  public static double atand(double x) { return Math.atan(x) / Math.atan(1) * 45; }

  public static double atan2d(double y, double x) { return Math.atan2(y, x) / Math.atan(1) * 45; }
}
