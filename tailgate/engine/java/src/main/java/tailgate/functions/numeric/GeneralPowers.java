package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import tailgate.errors.SqlError;

/**
 * Powers and logarithms of general numerics, as exact as their display scale. {@code
 * tailgate/values/numeric/powers.py} computes the same and names the sources.
 */
final class GeneralPowers {
  private static final int EXPONENT_MAX = 6_000;  // of e: beyond it a result overflows, or is 0
  private static final double LOG_10_E = 0.434294481903252;
  private static final double LOG_10 = 2.302585092994046;
  private static final int GUARD = 12;  // digits that are computed and not shown
  private static final int DOUBLE_DIGITS = 15;
  private static final BigDecimal TWO = BigDecimal.valueOf(2);
  private static final BigDecimal NEAR_ONE_MIN = new BigDecimal("0.9");
  private static final BigDecimal NEAR_ONE_MAX = new BigDecimal("1.1");

  private GeneralPowers() {}

  private static MathContext context(int digits) { return new MathContext(Math.max(digits, 1) + GUARD, RoundingMode.HALF_EVEN); }

  private static General rounded(BigDecimal value, int scale) { return General.of(value.setScale(scale, RoundingMode.HALF_UP)); }

  private static General zero(int scale) { return General.of(BigDecimal.valueOf(0, scale)); }

  // ---- e ----------------------------------------------------------------------------------------

  static General exp(General a) {
    if (!a.isFinite()) return a.signum() < 0 ? General.ZERO : a;
    double places = a.value().doubleValue() * LOG_10_E;
    double bounded = Math.max(-2.0 * GeneralNumerics.DISPLAY_SCALE_MAX, Math.min(places, 2.0 * GeneralNumerics.DISPLAY_SCALE_MAX));
    return exp(a.value(), GeneralNumerics.displayScale((int) bounded, a.value()));
  }

  private static General exp(BigDecimal a, int scale) {
    if (a.abs().compareTo(BigDecimal.valueOf(EXPONENT_MAX)) >= 0) {
      if (a.signum() > 0) throw General.overflow();
      return zero(scale);
    }
    return rounded(exp(a, context((int) (a.doubleValue() * LOG_10_E) + scale + 2)), scale);
  }

  /** Returns e^a: halves the argument until its power series is short, then squares the sum as often. */
  private static BigDecimal exp(BigDecimal a, MathContext result) {
    int bits = Math.max(a.precision() - a.scale(), 0) * 10 / 3 + 1;  // of a before the point
    int halvings = bits + (int) Math.sqrt(result.getPrecision());
    MathContext context = new MathContext(result.getPrecision() + halvings / 3 + 2, RoundingMode.HALF_EVEN);
    BigDecimal small = a.divide(new BigDecimal(BigInteger.ONE.shiftLeft(halvings)), context);
    BigDecimal sum = BigDecimal.ONE;
    BigDecimal term = BigDecimal.ONE;
    for (int n = 1; term.signum() != 0 && term.precision() - term.scale() > -context.getPrecision() - 2; n++) {
      term = term.multiply(small, context).divide(BigDecimal.valueOf(n), context);
      sum = sum.add(term, context);
    }
    for (int n = 0; n < halvings; n++) sum = sum.multiply(sum, context);
    return sum;
  }

  // ---- logarithms -------------------------------------------------------------------------------

  private static void checkPositive(int sign) {
    if (sign <= 0) throw new SqlError("2201E", "cannot take logarithm of " + (sign < 0 ? "a negative number" : "zero"));
  }

  static General ln(General a) {
    if (a.isNan()) return a;
    checkPositive(a.signum());
    if (!a.isFinite()) return a;
    int places = logarithmPlaces(a.value());
    int scale = GeneralNumerics.displayScale(places, a.value());
    return rounded(ln(a.value(), places + scale), scale);
  }

  /**
   * Returns the natural logarithm with at least so many digits. Halley's method triples the digits of the double's logarithm in
   * each step.
   */
  private static BigDecimal ln(BigDecimal a, int digits) {
    if (a.compareTo(BigDecimal.ONE) == 0) return BigDecimal.ZERO;
    int exponent = a.precision() - a.scale() - 1;
    BigDecimal mantissa = a.scaleByPowerOfTen(-exponent);
    BigDecimal distance = a.subtract(BigDecimal.ONE);  // its zeros after the point are lost in e^y
    int lost = Math.max(distance.scale() - distance.precision(), 0);
    MathContext context = context(digits + 2 + lost);
    BigDecimal logarithm = lnOfMantissa(mantissa, context);
    return exponent == 0 ? logarithm : logarithm.add(lnOfMantissa(BigDecimal.TEN, context).multiply(BigDecimal.valueOf(exponent)), context);
  }

  private static BigDecimal lnOfMantissa(BigDecimal mantissa, MathContext context) {
    BigDecimal y = BigDecimal.valueOf(Math.log(mantissa.doubleValue()));
    for (int exact = DOUBLE_DIGITS; ; exact *= 3) {
      BigDecimal power = exp(y, context);
      y = y.add(mantissa.subtract(power, context).multiply(TWO).divide(mantissa.add(power, context), context), context);
      if (exact * 3 > context.getPrecision() + GUARD) return y;
    }
  }

  static General log10(General a) { return log(General.of(BigDecimal.TEN), a); }

  static General log(General base, General a) {
    if (base.isNan() || a.isNan()) return General.NAN;
    if (base.isFinite() && a.isFinite()) {
      checkPositive(base.signum());
      checkPositive(a.signum());
      return log(base.value(), a.value());
    }
    if (base.signum() < 0 || a.signum() < 0) checkPositive(-1);
    if (base.signum() == 0 || a.signum() == 0) checkPositive(0);
    if (!base.isFinite()) return a.isFinite() ? General.ZERO : General.NAN;
    return General.INFINITY;
  }

  private static General log(BigDecimal base, BigDecimal a) {
    if (base.compareTo(BigDecimal.ONE) == 0) throw GeneralNumerics.divisionByZero();
    int places = logarithmPlaces(a) - logarithmPlaces(base);
    int scale = GeneralNumerics.displayScale(places, base, a);
    int digits = Math.max(places + scale, 1) + 8;
    return General.of(ln(a, digits).divide(ln(base, digits), scale + 1, RoundingMode.DOWN).setScale(scale, RoundingMode.HALF_UP));
  }

  /** Returns about log10(|ln(value)|), truncated, for a value above zero. */
  private static int logarithmPlaces(BigDecimal value) {
    if (NEAR_ONE_MIN.compareTo(value) <= 0 && value.compareTo(NEAR_ONE_MAX) <= 0) {
      BigDecimal distance = value.subtract(BigDecimal.ONE);
      if (distance.signum() == 0) return 0;
      return GeneralNumerics.weight(distance) * GeneralNumerics.GROUP + (int) Math.log10(GeneralNumerics.groups(distance, 1));
    }
    int places = GeneralNumerics.weight(value) * GeneralNumerics.GROUP;
    long first = GeneralNumerics.groups(value, 1);
    if (value.compareTo(BigDecimal.valueOf(first).scaleByPowerOfTen(places)) != 0) {  // there is a second group
      first = GeneralNumerics.groups(value, 2);
      places -= GeneralNumerics.GROUP;
    }
    return (int) Math.log10(Math.abs(Math.log(first) + places * LOG_10));
  }

  // ---- powers -----------------------------------------------------------------------------------

  static General power(General a, General b) {
    boolean isOne = a.isFinite() && a.value().compareTo(BigDecimal.ONE) == 0;
    if (a.isNan() || b.isNan()) return b.isFinite() && b.signum() == 0 || isOne ? one() : General.NAN;
    if (a.signum() == 0 && b.signum() < 0) throw new SqlError("2201F", "zero raised to a negative power is undefined");
    boolean isIntegral = b.isFinite() && b.value().remainder(BigDecimal.ONE).signum() == 0;
    if (a.signum() < 0 && b.isFinite() && !isIntegral) {
      throw new SqlError("2201F", "a negative number raised to a non-integer power yields a complex result");
    }
    if (!a.isFinite() || !b.isFinite()) return infinitePower(a, b, isOne);
    if (isIntegral && b.value().toBigInteger().bitLength() < Integer.SIZE) return integerPower(a.value(), b.value().intValue());
    if (a.signum() == 0) return zero(GeneralNumerics.SIGNIFICANT_DIGITS);
    return realPower(a.value(), b.value());
  }

  private static General one() { return General.of(BigDecimal.ONE); }

  private static boolean isOdd(BigDecimal value) { return value.toBigInteger().testBit(0); }

  private static General infinitePower(General a, General b, boolean isOne) {
    if (isOne || b.signum() == 0) return one();
    if (a.signum() == 0) return General.ZERO;
    if (!b.isFinite()) {
      int magnitude = a.isFinite() ? a.value().abs().compareTo(BigDecimal.ONE) : 1;
      if (magnitude == 0) return one();
      return magnitude > 0 == b.signum() > 0 ? General.INFINITY : General.ZERO;
    }
    if (b.signum() < 0) return General.ZERO;
    return a.signum() < 0 && isOdd(b.value()) ? General.MINUS_INFINITY : General.INFINITY;
  }

  private static General integerPower(BigDecimal a, int b) {
    int scale = Math.min(Math.max(GeneralNumerics.SIGNIFICANT_DIGITS, a.scale()), GeneralNumerics.DISPLAY_SCALE_MAX);
    if (b == 0 || b == 1) return rounded(b == 0 ? BigDecimal.ONE : a, scale);
    if (a.signum() == 0) return zero(scale);
    double places = b * decimalLogarithm(a);
    if (places > General.DIGITS_MAX) throw General.overflow();
    if (places + 1 < -scale) return zero(scale);
    int digits = Math.max((int) places, 0) + scale + String.valueOf(Math.abs((long) b)).length();
    return rounded(power(a, b, context(digits)), scale);
  }

  private static BigDecimal power(BigDecimal a, int b, MathContext context) {
    BigDecimal result = BigDecimal.ONE;
    BigDecimal factor = a;
    for (long left = Math.abs((long) b); left > 0; left >>= 1) {
      if ((left & 1) == 1) result = result.multiply(factor, context);
      if (left > 1) factor = factor.multiply(factor, context);
    }
    return b > 0 ? result : BigDecimal.ONE.divide(result, context);
  }

  /** Returns log10(|a|) from its first four groups of digits. */
  private static double decimalLogarithm(BigDecimal a) {
    int count = GeneralNumerics.GROUP;
    return Math.log10(GeneralNumerics.groups(a, count)) + (GeneralNumerics.weight(a) - count + 1) * GeneralNumerics.GROUP;
  }

  /** Returns a power of a value other than zero, as e ^ (b ln |a|). */
  private static General realPower(BigDecimal a, BigDecimal b) {
    BigDecimal base = a.abs();
    int lnPlaces = logarithmPlaces(base);
    double estimate = estimate(base, b, Math.max(8 - lnPlaces, 0));
    if (Math.abs(estimate) > EXPONENT_MAX * 301 / 300.0) {
      if (estimate > 0) throw General.overflow();
      return zero(GeneralNumerics.DISPLAY_SCALE_MAX);
    }
    int places = (int) (estimate * LOG_10_E);
    int scale = GeneralNumerics.displayScale(places, a, b);
    int digits = Math.max(scale + places, 0) + 8 + Math.max(b.precision() - b.scale() - 1, 0) + Math.max(lnPlaces, 0);
    General result = exp(b.multiply(ln(base, digits), context(digits)), scale);
    return a.signum() < 0 && isOdd(b) ? General.of(result.value().negate()) : result;
  }

  /** Returns b ln(base), rounded as by PostgreSQL: the display scale depends on its digits before the decimal point. */
  private static double estimate(BigDecimal base, BigDecimal b, int scale) {
    BigDecimal ln = ln(base, scale + 4).setScale(scale, RoundingMode.HALF_UP);
    return b.multiply(ln).setScale(scale, RoundingMode.HALF_UP).doubleValue();
  }
}
