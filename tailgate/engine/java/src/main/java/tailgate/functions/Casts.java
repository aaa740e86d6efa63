package tailgate.functions;

import java.math.BigInteger;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.numeric.FloatOutput;
import tailgate.functions.numeric.NumberInput;
import tailgate.functions.time.IntervalInput;
import tailgate.functions.time.TimeInput;
import tailgate.functions.time.TimeOutput;

/**
 * Casts between text and types that Spark casts differently or does not have. Text is as PostgreSQL
 * prints it in UTC with DateStyle ISO and IntervalStyle postgres. {@link NumberInput} has the casts
 * from text to numbers.
 *
 * <p>Generated code calls the functions ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/casts.py} computes the same.
 */
public final class Casts {
  private static final int BYTE_MAX = 255;
  private static final int OCTAL_LENGTH = 4;  // of a byte's text such as \303

  private Casts() {}

  // ---- to text ----------------------------------------------------------------------------------

  public static UTF8String float8ToText(double value) { return UTF8String.fromString(FloatOutput.text(value)); }

  public static UTF8String float4ToText(float value) { return UTF8String.fromString(FloatOutput.text(value)); }

  public static UTF8String timeToText(long micros) { return UTF8String.fromString(TimeOutput.time(micros)); }

  public static UTF8String intervalToText(InternalRow interval) {
    return UTF8String.fromString(TimeOutput.interval(interval));
  }

  public static UTF8String dateToText(int day) { return UTF8String.fromString(TimeOutput.date(day)); }

  public static UTF8String timestampToText(long micros) {
    return UTF8String.fromString(TimeOutput.timestamp(micros, " ", ""));
  }

  public static UTF8String timestamptzToText(long micros) {
    return UTF8String.fromString(TimeOutput.timestamp(micros, " ", "+00"));
  }

  // ---- from text --------------------------------------------------------------------------------

  public static UTF8String textToUuid(UTF8String text) {
    String s = text.toString();
    boolean braces = s.startsWith("{") && s.endsWith("}") && s.length() > 1;
    String body = braces ? s.substring(1, s.length() - 1) : s;
    String digits = body.replace("-", "").toLowerCase(Locale.ROOT);
    boolean valid = digits.matches("[0-9a-f]{32}");
    for (String group : body.split("-", -1)) valid &= !group.isEmpty() && group.length() % 4 == 0;
    if (!valid) throw TextInput.invalid("uuid", text);
    return UTF8String.fromString(String.join("-", digits.substring(0, 8), digits.substring(8, 12),
        digits.substring(12, 16), digits.substring(16, 20), digits.substring(20)));
  }

  public static long textToOid(UTF8String text) {
    String s = TextInput.trimmed(text);
    if (!s.matches("[+-]?[0-9]+")) throw TextInput.invalid("oid", text);
    BigInteger exact = new BigInteger(s);
    long value = exact.bitLength() > 40 ? 1L << 41 : exact.longValue();
    if (value < 0 && value >= Integer.MIN_VALUE) value += 1L << 32;
    if (value < 0 || value >= 1L << 32) {
      throw new SqlError("22003", "value \"" + text + "\" is out of range for type oid");
    }
    return value;
  }

  // ---- "char" -----------------------------------------------------------------------------------

  /** Returns the first byte of a text, or the one that a text such as \303 stands for. */
  public static UTF8String textToChar(UTF8String text) {
    if (text.numBytes() == 0) return text;
    String octal = text.numBytes() == OCTAL_LENGTH ? text.toString() : "";
    boolean isOctal = octal.matches("\\\\[0-7]{3}");
    return character((isOctal ? Integer.parseInt(octal.substring(1), 8) : text.getByte(0)) & BYTE_MAX);
  }

  private static UTF8String character(int number) {
    return number == 0 ? UTF8String.EMPTY_UTF8 : UTF8String.fromString(String.valueOf((char) number));
  }

  private static int number(UTF8String value) { return value.numBytes() == 0 ? 0 : value.toString().charAt(0); }

  public static UTF8String charToText(UTF8String value) {
    int number = number(value);
    return number <= Byte.MAX_VALUE ? value : UTF8String.fromString(String.format("\\%03o", number));
  }

  public static UTF8String int4ToChar(int number) {
    if (number != (byte) number) throw new SqlError("22003", "\"char\" out of range");
    return character(number & BYTE_MAX);
  }

  public static int charToInt4(UTF8String value) { return (byte) number(value); }

  // ---- times ------------------------------------------------------------------------------------

  public static long textToTime(UTF8String text) { return TimeInput.toTime(text); }

  public static InternalRow textToInterval(UTF8String text) { return IntervalInput.parse(text).row(); }
}
