package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.TextInput;

/**
 * The input functions of the number types and of boolean: PostgreSQL 15's syntax and messages.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL.
 */
public final class NumberInput {
  private static final Pattern NUMBER = Pattern.compile("[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?");
  private static final Pattern INFINITY = Pattern.compile("[+-]?inf(inity)?");
  // Numbers that strtod() of C reads besides decimal numbers.
  private static final Pattern HEXADECIMAL =
      Pattern.compile("[+-]?0[xX](?:[0-9a-fA-F]+\\.?[0-9a-fA-F]*|\\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?");
  private static final Pattern NAN = Pattern.compile("[+-]?nan(?:\\(\\w*\\))?", Pattern.CASE_INSENSITIVE);
  // Digits and exponents beyond this scale never fit 38 digits, and expanding them takes long.
  private static final int SCALE_MAX = 20_000;

  // Longer numbers do not fit, and reading their digits takes seconds.
  private static final int GENERAL_LENGTH_MAX = General.DIGITS_MAX + General.SCALE_MAX + 100;
  private static final int EXPONENT_MAX = 999_999;

  private NumberInput() {}

  public static short toInt2(UTF8String text) {
    return (short) integer(text, "smallint", Short.MIN_VALUE, Short.MAX_VALUE);
  }

  public static int toInt4(UTF8String text) {
    return (int) integer(text, "integer", Integer.MIN_VALUE, Integer.MAX_VALUE);
  }

  public static long toInt8(UTF8String text) { return integer(text, "bigint", Long.MIN_VALUE, Long.MAX_VALUE); }

  private static long integer(UTF8String text, String type, long min, long max) {
    String s = TextInput.trimmed(text);
    int begin = s.startsWith("-") || s.startsWith("+") ? 1 : 0;
    if (begin == s.length()) throw TextInput.invalid(type, text);
    for (int i = begin; i < s.length(); i++) {
      if (s.charAt(i) < '0' || s.charAt(i) > '9') throw TextInput.invalid(type, text);
    }
    BigInteger large = s.length() < 19 ? null : new BigInteger(s);
    if (large == null || large.bitLength() < 64) {
      long number = large == null ? Long.parseLong(s) : large.longValue();
      if (number >= min && number <= max) return number;
    }
    throw new SqlError("22003", "value \"" + text + "\" is out of range for type " + type);
  }

  public static float toFloat4(UTF8String text) {
    double wide = floatingPoint(text, "real");
    String s = TextInput.trimmed(text);
    float value = NUMBER.matcher(s).matches() ? Float.parseFloat(s) : (float) wide;
    if (!Double.isInfinite(wide) && Float.isInfinite(value) || wide != 0 && value == 0) {
      throw outOfRange(text, "real");
    }
    return value;
  }

  public static double toFloat8(UTF8String text) { return floatingPoint(text, "double precision"); }

  private static double floatingPoint(UTF8String text, String type) {
    String s = TextInput.trimmed(text);
    if (NUMBER.matcher(s).matches()) {
      double value = Double.parseDouble(s);
      if (Double.isInfinite(value) || value == 0 && !isZero(s)) throw outOfRange(text, type);
      return value;
    }
    Matcher hexadecimal = HEXADECIMAL.matcher(s);
    if (hexadecimal.matches()) {
      double value = Double.parseDouble(hexadecimal.group(1) == null ? s + "p0" : s);
      if (Double.isInfinite(value)) throw outOfRange(text, type);
      return value;
    }
    if (NAN.matcher(s).matches()) return Double.NaN;
    return switch (s.toLowerCase(Locale.ROOT)) {
      case "inf", "+inf", "infinity", "+infinity" -> Double.POSITIVE_INFINITY;
      case "-inf", "-infinity" -> Double.NEGATIVE_INFINITY;
      default -> throw TextInput.invalid(type, text);
    };
  }

  private static boolean isZero(String number) {
    return number.split("[eE]")[0].chars().noneMatch(c -> c >= '1' && c <= '9');
  }

  public static Decimal toNumeric(UTF8String text, int precision, int scale) {
    String s = TextInput.trimmed(text);
    if (!NUMBER.matcher(s).matches()) {
      if (INFINITY.matcher(s.toLowerCase(Locale.ROOT)).matches()) throw Numbers.fieldOverflow();
      if (s.equalsIgnoreCase("nan")) throw new SqlError("0A000", "numeric '" + s + "' is not supported");
      throw TextInput.invalid("numeric", text);
    }
    try {
      BigDecimal value = new BigDecimal(s);
      if (value.signum() == 0) {
        value = BigDecimal.ZERO;
      } else if (Math.abs((long) value.scale()) > SCALE_MAX) {
        if (value.scale() < 0) throw Numbers.fieldOverflow();
        value = BigDecimal.ZERO;
      }
      return (Decimal) Numbers.of(value, DataTypes.createDecimalType(precision, scale));
    } catch (NumberFormatException | ArithmeticException e) {
      throw new SqlError("22003", "value overflows numeric format");
    }
  }

  /** Returns a number with the display scale of its text, NaN or an infinity. */
  public static General toGeneral(UTF8String text) {
    String s = TextInput.trimmed(text);
    if (!NUMBER.matcher(s).matches()) {
      return switch (s.toLowerCase(Locale.ROOT)) {
        case "nan" -> General.NAN;
        case "inf", "+inf", "infinity", "+infinity" -> General.INFINITY;
        case "-inf", "-infinity" -> General.MINUS_INFINITY;
        default -> throw TextInput.invalid("numeric", text);
      };
    }
    if (s.length() > GENERAL_LENGTH_MAX) throw General.overflow();
    try {
      BigDecimal value = new BigDecimal(s);
      if (value.scale() > General.SCALE_MAX || value.scale() < -EXPONENT_MAX) throw General.overflow();
      return General.of(General.of(value).value().setScale(Math.max(value.scale(), 0)));
    } catch (NumberFormatException | ArithmeticException e) {
      throw General.overflow();
    }
  }

  public static boolean toBool(UTF8String text) {
    String s = TextInput.trimmed(text).toLowerCase(Locale.ROOT);
    if (!s.isEmpty()) {
      if ("true".startsWith(s) || "yes".startsWith(s) || s.equals("on") || s.equals("1")) return true;
      if ("false".startsWith(s) || "no".startsWith(s) || s.equals("off") || s.equals("of") || s.equals("0")) {
        return false;
      }
    }
    throw TextInput.invalid("boolean", text);
  }

  private static SqlError outOfRange(UTF8String text, String type) {
    return new SqlError("22003", "\"" + TextInput.trimmed(text) + "\" is out of range for type " + type);
  }
}
