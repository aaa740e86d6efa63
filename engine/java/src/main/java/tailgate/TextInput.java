package tailgate;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.regex.Pattern;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Text to numbers and truth values: PostgreSQL 15's input syntax, and its messages where the text has another. Dates and times are {@link TimeInput}'s.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class TextInput {
  private static final Pattern NUMBER = Pattern.compile("[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?");
  private static final int SCALE_MAX = 20_000;  // digits and exponents beyond it cannot be a decimal of 38 digits, and would cost time

  private TextInput() {}

  public static short toInt2(UTF8String text) { return (short) whole(text, "smallint", Short.MIN_VALUE, Short.MAX_VALUE); }

  public static int toInt4(UTF8String text) { return (int) whole(text, "integer", Integer.MIN_VALUE, Integer.MAX_VALUE); }

  public static long toInt8(UTF8String text) { return whole(text, "bigint", Long.MIN_VALUE, Long.MAX_VALUE); }

  private static long whole(UTF8String text, String type, long min, long max) {
    String s = trimmed(text);
    int begin = s.startsWith("-") || s.startsWith("+") ? 1 : 0;
    if (begin == s.length()) throw invalid(type, text);
    for (int i = begin; i < s.length(); i++) if (s.charAt(i) < '0' || s.charAt(i) > '9') throw invalid(type, text);
    BigInteger value = s.length() < 19 ? null : new BigInteger(s);
    if (value == null || value.bitLength() < 64) {
      long number = value == null ? Long.parseLong(s) : value.longValue();
      if (number >= min && number <= max) return number;
    }
    throw new SqlError("22003", "value \"" + text + "\" is out of range for type " + type);
  }

  public static float toFloat4(UTF8String text) {
    double value = floating(text, "real");
    float narrow = NUMBER.matcher(trimmed(text)).matches() ? Float.parseFloat(trimmed(text)) : (float) value;
    if (!Double.isInfinite(value) && Float.isInfinite(narrow) || value != 0 && narrow == 0) throw outOfRange(text, "real");
    return narrow;
  }

  public static double toFloat8(UTF8String text) { return floating(text, "double precision"); }

  private static double floating(UTF8String text, String type) {
    String s = trimmed(text);
    if (NUMBER.matcher(s).matches()) {
      double value = Double.parseDouble(s);
      if (Double.isInfinite(value) || value == 0 && !zero(s)) throw outOfRange(text, type);
      return value;
    }
    return switch (s.toLowerCase(Locale.ROOT)) {
      case "nan", "+nan", "-nan" -> Double.NaN;
      case "inf", "+inf", "infinity", "+infinity" -> Double.POSITIVE_INFINITY;
      case "-inf", "-infinity" -> Double.NEGATIVE_INFINITY;
      default -> throw invalid(type, text);
    };
  }

  private static boolean zero(String number) { return number.split("[eE]")[0].chars().noneMatch(c -> c >= '1' && c <= '9'); }

  public static Decimal toNumeric(UTF8String text, int precision, int scale) {
    String s = trimmed(text);
    if (!NUMBER.matcher(s).matches()) {
      if (s.toLowerCase(Locale.ROOT).matches("[+-]?nan|[+-]?inf(inity)?")) throw new SqlError("22003", "numeric field overflow");
      throw invalid("numeric", text);
    }
    try {
      BigDecimal value = new BigDecimal(s);
      if (value.signum() == 0) value = BigDecimal.ZERO;
      else if (Math.abs((long) value.scale()) > SCALE_MAX) {
        if (value.scale() < 0) throw new SqlError("22003", "numeric field overflow");
        value = BigDecimal.ZERO;
      }
      return (Decimal) Numbers.of(value, DataTypes.createDecimalType(precision, scale));
    } catch (NumberFormatException | ArithmeticException e) {
      throw new SqlError("22003", "value overflows numeric format");
    }
  }

  public static boolean toBool(UTF8String text) {
    String s = trimmed(text).toLowerCase(Locale.ROOT);
    if (!s.isEmpty()) {
      if ("true".startsWith(s) || "yes".startsWith(s) || s.equals("on") || s.equals("1")) return true;
      if ("false".startsWith(s) || "no".startsWith(s) || s.equals("off") || s.equals("of") || s.equals("0")) return false;
    }
    throw invalid("boolean", text);
  }

  /** convert_from(bytea, name): UTF-8, or an encoding of single bytes. */
  public static UTF8String convertFrom(byte[] bytes, UTF8String encoding) {
    String name = encoding.toString().toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
    Charset charset = switch (name) {
      case "utf8", "unicode", "sqlascii" -> StandardCharsets.UTF_8;
      case "latin1", "iso88591" -> StandardCharsets.ISO_8859_1;
      case "latin9", "iso885915" -> Charset.forName("ISO-8859-15");
      case "win1252", "windows1252" -> Charset.forName("windows-1252");
      default -> throw new SqlError("22023", "invalid source encoding name \"" + encoding + "\"");
    };
    if (charset == StandardCharsets.UTF_8) return Utf8.text(bytes);
    return Utf8.text(new String(bytes, charset));
  }

  /** Without white space at the ends, as C's isspace() sees it. */
  static String trimmed(UTF8String text) {
    String s = text.toString();
    int begin = 0, end = s.length();
    while (begin < end && space(s.charAt(begin))) begin++;
    while (end > begin && space(s.charAt(end - 1))) end--;
    return s.substring(begin, end);
  }

  static boolean space(char c) { return c == ' ' || c >= '\t' && c <= '\r'; }

  static SqlError invalid(String type, UTF8String text) { return new SqlError("22P02", "invalid input syntax for type " + type + ": \"" + text + "\""); }

  private static SqlError outOfRange(UTF8String text, String type) { return new SqlError("22003", "\"" + trimmed(text) + "\" is out of range for type " + type); }
}
