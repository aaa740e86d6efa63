package tailgate;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Locale;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Values as text, as PostgreSQL prints them with DateStyle ISO, IntervalStyle postgres, at UTC; and text to what TextInput does not read. The twin of sql/compute/casts.py.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class Casts {
  private Casts() {}

  public static UTF8String float8ToText(double value) { return Strings.text(shown(value)); }

  public static UTF8String float4ToText(float value) { return Strings.text(shown(value)); }

  /** The fewest digits within half a unit of the number's last place. */
  static String shown(double value) {
    if (value == 0 || Double.isNaN(value) || Double.isInfinite(value)) return special(value);
    return printed(shortest(new BigDecimal(value), 17, between(new BigDecimal(value), Math.nextUp(value), Math.nextDown(value))), 15);
  }

  static String shown(float value) {
    if (value == 0 || Float.isNaN(value) || Float.isInfinite(value)) return special(value);
    return printed(shortest(new BigDecimal(value), 9, between(new BigDecimal(value), Math.nextUp(value), Math.nextDown(value))), 6);
  }

  private static String special(double value) {
    if (value == 0) return 1 / value < 0 ? "-0" : "0";
    return Double.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  }

  /** Nearer to the number than to both of its neighbours. */
  private static Predicate<BigDecimal> between(BigDecimal value, double above, double below) {
    BigDecimal two = BigDecimal.valueOf(2), high = Double.isInfinite(above) ? null : value.add(new BigDecimal(above)).divide(two), low = Double.isInfinite(below) ? null : value.add(new BigDecimal(below)).divide(two);
    return d -> (high == null || d.compareTo(high) < 0) && (low == null || d.compareTo(low) > 0);
  }

  /** Binary search for the fewest digits: what more digits read back, fewer may not. */
  private static BigDecimal shortest(BigDecimal exact, int most, Predicate<BigDecimal> same) {
    int low = 1, high = most;
    while (low < high) {
      int middle = (low + high) / 2;
      if (same.test(exact.round(new MathContext(middle, RoundingMode.HALF_EVEN)))) high = middle;
      else low = middle + 1;
    }
    return exact.round(new MathContext(low, RoundingMode.HALF_EVEN));
  }

  private static String printed(BigDecimal value, int exponentFrom) {
    String digits = value.unscaledValue().abs().toString();
    int exponent = digits.length() - 1 - value.scale();
    digits = digits.replaceAll("0+$", "");
    String sign = value.signum() < 0 ? "-" : "";
    if (exponent >= exponentFrom || exponent < -4)
      return sign + digits.charAt(0) + (digits.length() > 1 ? "." + digits.substring(1) : "") + "e" + (exponent < 0 ? "-" : "+") + String.format("%02d", Math.abs(exponent));
    if (exponent < 0) return sign + "0." + "0".repeat(-exponent - 1) + digits;
    if (digits.length() <= exponent + 1) return sign + digits + "0".repeat(exponent + 1 - digits.length());
    return sign + digits.substring(0, exponent + 1) + "." + digits.substring(exponent + 1);
  }

  static String time(long micros) {
    long seconds = micros / 1_000_000, part = micros % 1_000_000;
    String text = String.format(Locale.ROOT, "%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
    return part == 0 ? text : (text + String.format(".%06d", part)).replaceAll("0+$", "");
  }

  public static UTF8String timeToText(long micros) { return Strings.text(time(micros)); }

  public static UTF8String intervalToText(InternalRow interval) {
    Times.Interval i = Times.Interval.of(interval);
    StringBuilder out = new StringBuilder();
    boolean before = false;
    long[] numbers = {i.months() / 12, i.months() % 12, i.days()};
    String[] units = {"year", "mon", "day"};
    for (int n = 0; n < 3; n++) {
      if (numbers[n] == 0) continue;
      out.append(out.isEmpty() ? "" : " ").append(before && numbers[n] > 0 ? "+" : "").append(numbers[n]).append(' ').append(units[n]).append(numbers[n] == 1 ? "" : "s");
      before = numbers[n] < 0;
    }
    if (i.micros() != 0 || out.isEmpty()) out.append(out.isEmpty() ? "" : " ").append(i.micros() < 0 ? "-" : before ? "+" : "").append(time(Math.abs(i.micros())));
    return Strings.text(out.toString());
  }

  static String timestamp(long micros, String between) {
    LocalDateTime t = LocalDateTime.ofEpochSecond(Math.floorDiv(micros, 1_000_000L), 0, ZoneOffset.UTC);
    long part = Math.floorMod(micros, 1_000_000L);
    String text = String.format(Locale.ROOT, "%04d-%02d-%02d%s%02d:%02d:%02d", t.getYear(), t.getMonthValue(), t.getDayOfMonth(), between, t.getHour(), t.getMinute(), t.getSecond());
    return part == 0 ? text : (text + String.format(".%06d", part)).replaceAll("0+$", "");
  }

  public static UTF8String timestamptzToText(long micros) { return Strings.text(timestamp(micros, " ") + "+00"); }

  // ---- from text ----------------------------------------------------------------------------------------------------------------

  public static UTF8String textToUuid(UTF8String text) {
    String s = text.toString(), inner = s.startsWith("{") && s.endsWith("}") && s.length() > 1 ? s.substring(1, s.length() - 1) : s, digits = inner.replace("-", "").toLowerCase(Locale.ROOT);
    boolean whole = digits.matches("[0-9a-f]{32}");
    for (String group : inner.split("-", -1)) whole &= !group.isEmpty() && group.length() % 4 == 0;
    if (!whole) throw TextInput.invalid("uuid", text);
    return Strings.text(String.join("-", digits.substring(0, 8), digits.substring(8, 12), digits.substring(12, 16), digits.substring(16, 20), digits.substring(20)));
  }

  public static byte[] textToBytea(UTF8String text) {
    String s = text.toString();
    return s.startsWith("\\x") ? Bytestrings.hexadecimal(s.substring(2)) : Bytestrings.escaped(text.getBytes());
  }

  public static long textToOid(UTF8String text) {
    String s = TextInput.trimmed(text);
    if (!s.matches("[+-]?[0-9]+")) throw TextInput.invalid("oid", text);
    java.math.BigInteger value = new java.math.BigInteger(s);
    if (value.bitLength() > 40) value = java.math.BigInteger.ONE.shiftLeft(41);
    long number = value.longValue();
    if (number < 0 && number >= Integer.MIN_VALUE) number += 1L << 32;
    if (number < 0 || number >= 1L << 32) throw new SqlError("22003", "value \"" + text + "\" is out of range for type oid");
    return number;
  }

  public static long textToTime(UTF8String text) { return TimeInput.toTime(text); }

  public static InternalRow textToInterval(UTF8String text) { return IntervalInput.parse(text).row(); }
}
