package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Locale;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.TextInput;

/**
 * Functions of money, which is a number of cents.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/numeric/amounts.py} and {@code tailgate/values/numbers/money.py} compute the
 * same and name the source.
 */
public final class Amounts {
  private static final int CENTS = 100;
  private static final int CENT_DIGITS = 2;
  private static final double LONG_END = 0x1p63;
  private static final String[] SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen "
      + "fourteen fifteen sixteen seventeen eighteen nineteen").split(" ");
  private static final String[] TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split(" ");
  private static final String[] GROUPS = {" quadrillion ", " trillion ", " billion ", " million ", " thousand ", ""};

  private Amounts() {}

  // ---- text -------------------------------------------------------------------------------------

  /** Reads an amount such as $1,234.56, -12.3 or (1), rounded to cents. */
  public static long textToMoney(UTF8String text) { return new AmountInput(text).read(); }

  public static UTF8String moneyToText(long cents) {
    BigDecimal amount = BigDecimal.valueOf(cents, CENT_DIGITS).abs();
    return UTF8String.fromString((cents < 0 ? "-$" : "$") + String.format(Locale.ROOT, "%,.2f", amount));
  }

  /** Reads the parts of a text from left to right. */
  private static final class AmountInput {
    private final UTF8String source;
    private final String text;
    private int at;
    private boolean isNegative;

    AmountInput(UTF8String source) {
      this.source = source;
      this.text = source.toString();
    }

    private char next() { return at < text.length() ? text.charAt(at) : '\0'; }

    private boolean isDigit() { return next() >= '0' && next() <= '9'; }

    private void skipSymbol() {
      while (TextInput.isSpace(next())) at++;
      if (next() == '$') at++;
      while (TextInput.isSpace(next())) at++;
    }

    long read() {
      skipSymbol();
      if (next() == '-' || next() == '(') isNegative = true;
      if (isNegative || next() == '+') at++;
      skipSymbol();
      StringBuilder digits = new StringBuilder("0");
      int decimals = -1;  // digits after the point, or -1 before it
      for (; at < text.length(); at++) {
        if (isDigit() && decimals < CENT_DIGITS) {
          digits.append(next());
          if (decimals >= 0) decimals++;
        } else if (next() == '.' && decimals < 0) {
          decimals = 0;
        } else if (next() != ',') {
          break;
        }
      }
      boolean roundsUp = isDigit() && next() >= '5';
      for (int i = Math.max(decimals, 0); i < CENT_DIGITS; i++) digits.append('0');
      while (isDigit()) at++;
      for (; at < text.length(); at++) {
        if (next() == '-') isNegative = true;
        else if (!TextInput.isSpace(next()) && next() != ')' && next() != '+' && next() != '$') throw TextInput.invalid("money", source);
      }
      BigDecimal amount = new BigDecimal(digits.toString()).add(roundsUp ? BigDecimal.ONE : BigDecimal.ZERO);
      try {
        return (isNegative ? amount.negate() : amount).longValueExact();
      } catch (ArithmeticException e) {
        throw new SqlError("22003", "value \"" + source + "\" is out of range for type money");
      }
    }
  }

  // ---- numbers ----------------------------------------------------------------------------------

  static SqlError outOfRange() { return new SqlError("22003", "bigint out of range"); }

  /** Returns an amount in cents, rounded half away from zero. */
  static long cents(BigDecimal amount) {
    BigDecimal cents = amount.movePointRight(CENT_DIGITS).setScale(0, RoundingMode.HALF_UP);
    try {
      return cents.longValueExact();
    } catch (ArithmeticException e) {
      throw outOfRange();
    }
  }

  public static long numericToMoney(Decimal amount) { return cents(amount.toJavaBigDecimal()); }

  private static long rounded(double cents) {
    double rounded = Math.rint(cents);
    if (!(rounded >= -LONG_END && rounded < LONG_END)) throw outOfRange();
    return (long) rounded;
  }

  public static long moneyTimes(long cents, double factor) { return rounded(cents * factor); }

  public static long moneyOver(long cents, double divisor) {
    if (divisor == 0) throw GeneralNumerics.divisionByZero();
    return rounded(cents / divisor);
  }

  public static double moneyRatio(long a, long b) {
    if (b == 0) throw GeneralNumerics.divisionByZero();
    return (double) a / b;
  }

  // ---- words ------------------------------------------------------------------------------------

  /** Returns an amount in words, with PostgreSQL's blanks. */
  public static UTF8String cashWords(long value) {
    long dollars = Math.abs(value / CENTS);
    int cents = (int) Math.abs(value % CENTS);
    StringBuilder text = new StringBuilder();
    long size = 1_000_000_000_000_000L;
    for (String name : GROUPS) {
      int group = (int) (dollars / size % 1000);
      if (group > 0) text.append(words(group)).append(name);
      size /= 1000;
    }
    if (text.isEmpty()) text.append("zero");
    if (value < 0) text.insert(0, "minus ");
    text.append(dollars == 1 ? " dollar and " : " dollars and ").append(words(cents)).append(cents == 1 ? " cent" : " cents");
    text.setCharAt(0, Character.toUpperCase(text.charAt(0)));
    return UTF8String.fromString(text.toString());
  }

  /** Returns a number below 1000 in words. */
  private static String words(int number) {
    int rest = number % CENTS;
    String below = rest < 20 ? SMALL[rest] : TENS[rest / 10] + (rest % 10 > 0 ? " " + SMALL[rest % 10] : "");
    if (number < CENTS) return below;
    return SMALL[number / CENTS] + " hundred" + (rest == 0 ? "" : rest < 20 ? " and " + below : " " + below);
  }
}
