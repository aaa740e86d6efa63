package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Locale;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * to_char() of numbers, in the C locale.
 *
 * <p>Generated code calls the functions ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/numeric/number_formats.py} computes the same and names the sources.
 */
public final class NumberFormats {
  private static final int ROMAN_WIDTH = 15;

  private NumberFormats() {}

  public static UTF8String toCharNumeric(Decimal value, UTF8String pattern) {
    if (pattern.numBytes() == 0) return pattern;
    NumberPattern p = NumberPattern.of(pattern);
    return UTF8String.fromString(format(p, value.toJavaBigDecimal()));
  }

  public static UTF8String toCharGeneral(General value, UTF8String pattern) {
    if (pattern.numBytes() == 0) return pattern;
    NumberPattern p = NumberPattern.of(pattern);
    if (p.has("RN")) return UTF8String.fromString(roman(p, BigDecimal.valueOf(GeneralNumerics.generalToInt4(value))));
    if (p.has("EEEE")) {
      String text = value.isFinite() ? scientific(p, value.value(), false) : withoutExponent(p, p.integerDigits);
      return UTF8String.fromString(text);
    }
    if (value.isFinite()) return UTF8String.fromString(format(p, value.value()));
    String digits = value.isNan() ? "NaN" : "Infinity";
    int integerDigits = p.integerDigits + (p.has("V") ? p.shiftDigits : 0);
    return UTF8String.fromString(new NumberWriter(p, integerDigits, p.fractionDigits, value.signum() < 0 ? '-' : '+', digits).write());
  }

  public static UTF8String toCharFloat8(double value, UTF8String pattern) {
    return toChar(value, FloatOutput.text(value), pattern, 15);
  }

  public static UTF8String toCharFloat4(float value, UTF8String pattern) {
    return toChar(value, FloatOutput.text(value), pattern, 6);
  }

  private static UTF8String toChar(double value, String shortest, UTF8String pattern, int significantDigits) {
    if (pattern.numBytes() == 0) return pattern;
    NumberPattern p = NumberPattern.of(pattern);
    return UTF8String.fromString(format(p, value, shortest, significantDigits));
  }

  private static String format(NumberPattern p, double value, String shortest, int significantDigits) {
    boolean special = Double.isNaN(value) || Double.isInfinite(value);
    if (special && p.has("EEEE")) return withoutExponent(p, p.integerDigits + 1);
    if (special && !p.has("RN")) {
      String name = Double.isNaN(value) ? "NaN" : "Infinity";
      return new NumberWriter(p, p.integerDigits, p.fractionDigits, value < 0 ? '-' : '+', name).write();
    }
    BigDecimal exact = special ? BigDecimal.ZERO : new BigDecimal(value);
    if (p.has("RN")) return roman(p, special ? exact : new BigDecimal(shortest));
    if (p.has("EEEE")) return scientific(p, exact);
    int fractionDigits = p.fractionDigits;
    if (!p.has("V")) {
      int integerDigits = exact.abs().setScale(0, RoundingMode.HALF_EVEN).toPlainString().length();
      fractionDigits = Math.max(0, Math.min(fractionDigits, significantDigits - integerDigits));
    }
    boolean negative = value < 0 || value == 0 && 1 / value < 0;
    return decimal(p, exact, fractionDigits, RoundingMode.HALF_EVEN, negative);
  }

  private static String format(NumberPattern p, BigDecimal value) {
    if (p.has("RN")) return roman(p, value);
    if (p.has("EEEE")) return scientific(p, value);
    return decimal(p, value, p.fractionDigits, RoundingMode.HALF_UP, false);
  }

  /**
   * Formats a number in decimal notation. A negative number that rounds to 0 has no sign unless
   * {@code negative}.
   */
  private static String decimal(
      NumberPattern p, BigDecimal value, int fractionDigits, RoundingMode rounding, boolean negative) {
    boolean shifted = p.has("V");
    BigDecimal rounded = (shifted ? value.movePointRight(p.shiftDigits) : value).setScale(fractionDigits, rounding);
    int integerDigits = p.integerDigits + (shifted ? p.shiftDigits : 0);
    char sign = rounded.signum() < 0 || negative ? '-' : '+';
    String digits = rounded.abs().toPlainString();
    return new NumberWriter(p, integerDigits, fractionDigits, sign, digits).write();
  }

  private static String scientific(NumberPattern p, BigDecimal value) { return scientific(p, value, true); }

  /** `carries`: a mantissa that is rounded to 10 becomes 1, as of floats. */
  private static String scientific(NumberPattern p, BigDecimal value, boolean carries) {
    int fractionDigits = p.fractionDigits;
    if (value.signum() == 0) return " 0" + (fractionDigits > 0 ? "." + "0".repeat(fractionDigits) : "") + "e+00";
    int exponent = value.precision() - value.scale() - 1;
    BigDecimal mantissa = value.movePointLeft(exponent).setScale(fractionDigits, RoundingMode.HALF_UP);
    if (carries && mantissa.abs().compareTo(BigDecimal.TEN) >= 0) {
      mantissa = value.movePointLeft(++exponent).setScale(fractionDigits, RoundingMode.HALF_UP);
    }
    String sign = value.signum() < 0 ? "" : " ";
    String exponentSign = exponent < 0 ? "-" : "+";
    return sign + mantissa.toPlainString() + "e" + exponentSign + String.format("%02d", Math.abs(exponent));
  }

  /** Formats NaN and infinities in scientific notation. */
  private static String withoutExponent(NumberPattern p, int integerDigits) {
    return " " + "#".repeat(integerDigits) + "." + "#".repeat(p.fractionDigits + 4);
  }

  private static String roman(NumberPattern p, BigDecimal value) {
    BigDecimal number = value.setScale(0, RoundingMode.HALF_UP);
    boolean representable = number.signum() > 0 && number.compareTo(BigDecimal.valueOf(3999)) <= 0;
    String numeral = representable ? Numerals.roman(number.intValue()) : "#".repeat(ROMAN_WIDTH);
    StringBuilder out = new StringBuilder();
    for (NumberPattern.Part part : p.parts) {
      if (part.keyword().isEmpty()) out.append(part.text());
      if (!part.keyword().equalsIgnoreCase("RN")) continue;
      String cased = part.keyword().equals("RN") ? numeral : numeral.toLowerCase(Locale.ROOT);
      if (!p.has("FM")) out.append(" ".repeat(Math.max(ROMAN_WIDTH - cased.length(), 0)));
      out.append(cased);
    }
    return out.toString();
  }
}
