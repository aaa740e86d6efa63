package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.function.Predicate;

/**
 * The output functions of the floating-point types: the fewest digits that read back as the same
 * number. An exponent is used below 1e-4, and from 1e15 (double) or 1e6 (float) on.
 */
public final class FloatOutput {
  private FloatOutput() {}

  public static String text(double value) {
    if (value == 0 || Double.isNaN(value) || Double.isInfinite(value)) return special(value);
    BigDecimal exact = new BigDecimal(value);
    return printed(shortest(exact, 17, nearest(exact, Math.nextUp(value), Math.nextDown(value))), 15);
  }

  public static String text(float value) {
    if (value == 0 || Float.isNaN(value) || Float.isInfinite(value)) return special(value);
    BigDecimal exact = new BigDecimal(value);
    return printed(shortest(exact, 9, nearest(exact, Math.nextUp(value), Math.nextDown(value))), 6);
  }

  private static String special(double value) {
    if (value == 0) return 1 / value < 0 ? "-0" : "0";
    return Double.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  }

  /** Returns a test whether a number is nearer to a value than to the value's neighbours. */
  private static Predicate<BigDecimal> nearest(BigDecimal value, double above, double below) {
    BigDecimal two = BigDecimal.valueOf(2);
    // The largest number has no neighbour on one side; it is as far from both limits.
    BigDecimal low = Double.isInfinite(below) ? null : value.add(new BigDecimal(below)).divide(two);
    BigDecimal high = Double.isInfinite(above) ? value.multiply(two).subtract(low) : value.add(new BigDecimal(above)).divide(two);
    BigDecimal least = low == null ? value.multiply(two).subtract(high) : low;
    return d -> d.compareTo(high) < 0 && d.compareTo(least) > 0;
  }

  /** Rounds to the fewest digits that pass the test, by binary search; more digits always pass. */
  private static BigDecimal shortest(BigDecimal exact, int digitsMax, Predicate<BigDecimal> test) {
    int low = 1;
    int high = digitsMax;
    while (low < high) {
      int middle = (low + high) / 2;
      if (test.test(exact.round(new MathContext(middle, RoundingMode.HALF_EVEN)))) high = middle;
      else low = middle + 1;
    }
    return exact.round(new MathContext(low, RoundingMode.HALF_EVEN));
  }

  private static String printed(BigDecimal value, int exponentFrom) {
    String digits = value.unscaledValue().abs().toString();
    int exponent = digits.length() - 1 - value.scale();
    digits = digits.replaceAll("0+$", "");
    String sign = value.signum() < 0 ? "-" : "";
    if (exponent >= exponentFrom || exponent < -4) {
      String fraction = digits.length() > 1 ? "." + digits.substring(1) : "";
      String exponentSign = exponent < 0 ? "-" : "+";
      return sign + digits.charAt(0) + fraction + "e" + exponentSign + String.format("%02d", Math.abs(exponent));
    }
    if (exponent < 0) return sign + "0." + "0".repeat(-exponent - 1) + digits;
    int integerDigits = exponent + 1;
    if (digits.length() <= integerDigits) return sign + digits + "0".repeat(integerDigits - digits.length());
    return sign + digits.substring(0, integerDigits) + "." + digits.substring(integerDigits);
  }
}
