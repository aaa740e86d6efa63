package tailgate.functions.numeric;

import java.math.BigDecimal;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * to_number(), in the C locale.
 *
 * <p>Generated code calls the function ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/numeric/number_parsing.py} computes the same and names the sources.
 */
public final class NumberParsing {
  private NumberParsing() {}

  public static Decimal toNumber(UTF8String text, UTF8String pattern, int precision, int scale) {
    BigDecimal value = number(text, pattern);
    return value == null ? null : (Decimal) Numbers.of(value, DataTypes.createDecimalType(precision, scale));
  }

  public static General toNumberGeneral(UTF8String text, UTF8String pattern) {
    BigDecimal value = number(text, pattern);
    return value == null ? null : General.of(value);
  }

  private static BigDecimal number(UTF8String text, UTF8String pattern) {
    if (pattern.numBytes() == 0) return null;
    NumberPattern p = NumberPattern.of(pattern);
    if (p.has("RN")) throw new SqlError("0A000", "\"RN\" not supported for input");
    if (p.has("EEEE")) throw new SqlError("0A000", "\"EEEE\" not supported for input");
    String digits = new Reader(text.toString(), p).read().trim();
    BigDecimal value;
    try {
      value = new BigDecimal(digits);
    } catch (NumberFormatException e) {
      throw new SqlError("22P02", "invalid input syntax for type numeric: \"" + digits + "\"");
    }
    if (p.has("V")) {
      value = value.movePointLeft(p.shiftDigits);
    } else if (p.integerDigits + p.fractionDigits > 0 && value.signum() != 0
        && value.precision() - value.scale() > p.integerDigits) {
      throw Numbers.fieldOverflow();
    }
    return value;
  }

  /** Reads one number by a pattern: the input half of PostgreSQL's NUM_processor(). */
  private static final class Reader {
    private final String text;
    private final NumberPattern pattern;
    private final StringBuilder digits = new StringBuilder();
    private int at;
    private int integerDigits;
    private int fractionDigits;
    private char sign = ' ';
    private boolean pointRead;

    Reader(String text, NumberPattern pattern) {
      this.text = text;
      this.pattern = pattern;
    }

    private char peek() { return at < text.length() ? text.charAt(at) : 0; }

    private boolean peekIsSign() { return peek() == '+' || peek() == '-'; }

    /** Returns the number's text, with a sign or a blank first. */
    String read() {
      for (NumberPattern.Part part : pattern.parts) {
        if (at >= text.length()) break;
        switch (part.keyword()) {
          case "9", "0", ".", "D" -> {
            readDigit(part.keyword());
            at++;
          }
          case ",", "G" -> at += peek() == ',' ? 1 : 0;
          case "L" -> skipText(1);
          case "TH", "th" -> skipText(2);
          case "MI" -> readSign("-");
          case "PL" -> readSign("+");
          case "SG" -> readSign("+-");
          case "" -> at++;
          default -> {}
        }
      }
      int length = digits.length();
      boolean endsAtPoint = length > 0 && digits.charAt(length - 1) == '.';
      return sign + (endsAtPoint ? digits.substring(0, length - 1) : digits.toString());
    }

    private void readSign(String signs) {
      if (signs.indexOf(peek()) >= 0) sign = text.charAt(at++);
      else skipText(1);
    }

    /** Skips up to some characters that cannot be part of a number. */
    private void skipText(int count) {
      for (int n = count; n > 0 && at < text.length() && "0123456789.,+-".indexOf(peek()) < 0; n--) at++;
    }

    private void readDigit(String keyword) {
      if (peek() == ' ') at++;
      if (at >= text.length()) return;
      boolean firstDigit = integerDigits + fractionDigits == 0 && (keyword.equals("0") || keyword.equals("9"));
      if (sign == ' ' && firstDigit) readLeadingSign();
      if (at >= text.length()) return;
      boolean read = false;
      if (peek() >= '0' && peek() <= '9') {
        if (pointRead && fractionDigits == pattern.fractionDigits) return;
        digits.append(peek());
        if (pointRead) fractionDigits++;
        else integerDigits++;
        read = true;
      } else if (pattern.has(".") && !pointRead && peek() == '.') {
        digits.append('.');
        pointRead = true;
        read = true;
      }
      if (sign == ' ' && integerDigits + fractionDigits > 0) readTrailingSign(read);
    }

    private void readLeadingSign() {
      if (pattern.has("S") && pattern.signFirst) {
        if (peekIsSign()) sign = text.charAt(at++);
      } else if (peek() == '-' || pattern.has("PR") && peek() == '<') {
        sign = '-';
        at++;
      } else if (peek() == '+') {
        sign = text.charAt(at++);
      }
    }

    private void readTrailingSign(boolean digitRead) {
      if (pattern.has("S") && digitRead && at + 1 < text.length() && !Character.isDigit(text.charAt(at + 1))) {
        if ("+-".indexOf(text.charAt(at + 1)) >= 0) sign = text.charAt(++at);
      } else if (!digitRead && pattern.has("PL", "MI") && peekIsSign()) {
        sign = peek();
      }
    }
  }
}
