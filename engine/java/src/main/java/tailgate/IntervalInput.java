package tailgate;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;

/** Text to an interval: `1 year 2 mons -3 days 04:05:06.7`, `1-2`, `P1Y2M3DT4H`. The twin of to_interval() in sql/input/times.py. */
final class IntervalInput {
  private static final Map<String, long[]> UNITS = new HashMap<>();  // months, days, microseconds
  private static final Pattern PART = Pattern.compile(
      "\\s*(?:(?<sign>[+-])?(?<hour>\\d+):(?<minute>\\d{1,2})(?::(?<second>\\d{1,2}(?:\\.\\d*)?))?|(?<years>[+-]?\\d+)-(?<months>\\d{1,2})(?![\\d-])|(?<amount>[+-]?(?:\\d+\\.?\\d*|\\.\\d+))\\s*(?<unit>[a-zA-Z]+)?)");
  private static final Pattern ISO = Pattern.compile("P(?<d>[^T]*)(?:T(?<t>.*))?"), ISO_PART = Pattern.compile("([+-]?\\d+(?:\\.\\d+)?)([YMWDHS])");

  static {
    unit(12, 0, 0, "year years y yr yrs");
    unit(1, 0, 0, "month months mon mons");
    unit(120, 0, 0, "decade decades dec decs");
    unit(1200, 0, 0, "century centuries cent c");
    unit(12000, 0, 0, "millennium millennia mil mils");
    unit(0, 7, 0, "week weeks w");
    unit(0, 1, 0, "day days d");
    unit(0, 0, 3_600_000_000L, "hour hours h hr hrs");
    unit(0, 0, 60_000_000, "minute minutes m min mins");
    unit(0, 0, 1_000_000, "second seconds s sec secs");
    unit(0, 0, 1_000, "millisecond milliseconds ms msec msecs");
    unit(0, 0, 1, "microsecond microseconds us usec usecs");
  }

  private static void unit(long months, long days, long micros, String names) { for (String name : names.split(" ")) UNITS.put(name, new long[] {months, days, micros}); }

  private BigDecimal months = BigDecimal.ZERO, days = BigDecimal.ZERO, micros = BigDecimal.ZERO;

  private void add(BigDecimal amount, long[] unit) {
    if (unit[0] != 0) {
      BigDecimal all = amount.multiply(BigDecimal.valueOf(unit[0])), whole = all.setScale(0, RoundingMode.DOWN);
      months = months.add(whole);
      // a fraction of a month is days of 30
      if (unit[0] == 1 && all.compareTo(whole) != 0) add(all.subtract(whole).multiply(BigDecimal.valueOf(30)), new long[] {0, 1, 0});
    } else if (unit[1] != 0) {
      BigDecimal all = amount.multiply(BigDecimal.valueOf(unit[1])), whole = all.setScale(0, RoundingMode.DOWN);
      days = days.add(whole);
      micros = micros.add(all.subtract(whole).multiply(BigDecimal.valueOf(Times.DAY)));
    } else micros = micros.add(amount.multiply(BigDecimal.valueOf(unit[2])));
  }

  static Times.Interval parse(UTF8String text) {
    IntervalInput i = new IntervalInput();
    i.read(text);
    if (!within(i.months, 31) || !within(i.days, 31) || !within(i.micros, 63)) throw new SqlError("22008", "interval field value out of range: \"" + text + "\"");
    return new Times.Interval(i.months.intValue(), i.days.intValue(), i.micros.setScale(0, RoundingMode.HALF_EVEN).longValue());
  }

  private static boolean within(BigDecimal value, int bits) { return value.setScale(0, RoundingMode.HALF_EVEN).toBigInteger().bitLength() <= bits; }

  private void read(UTF8String text) {
    String s = TextInput.trimmed(text);
    Matcher iso = ISO.matcher(text.toString());
    if (text.numChars() > 1 && iso.matches()) {
      iso(iso.group("d"), "YMWD", text);
      iso(iso.group("t") == null ? "" : iso.group("t"), "HMS", text);
      return;
    }
    boolean ago = s.toLowerCase(Locale.ROOT).endsWith("ago");
    String rest = s.substring(s.startsWith("@") ? 1 : 0, s.length() - (ago ? 3 : 0));
    if (rest.isBlank()) throw invalid(text);
    Set<Object> seen = new HashSet<>();
    for (int at = 0; at < rest.length() && !rest.substring(at).isBlank(); ) {
      Matcher m = PART.matcher(rest).region(at, rest.length());
      if (!m.lookingAt() || m.end() == at) throw invalid(text);
      String part = m.group("hour") != null ? "time" : m.group("years") != null ? "years" : m.group("unit") == null ? "" : m.group("unit").toLowerCase(Locale.ROOT);
      if (!seen.add(UNITS.containsKey(part) ? UNITS.get(part) : part)) throw invalid(text);
      if (m.group("hour") != null) {
        BigDecimal seconds = m.group("second") == null ? BigDecimal.ZERO : new BigDecimal(m.group("second"));
        BigDecimal amount = BigDecimal.valueOf(Long.parseLong(m.group("hour")) * 60 + Long.parseLong(m.group("minute"))).multiply(BigDecimal.valueOf(60)).add(seconds).multiply(BigDecimal.valueOf(1_000_000));
        micros = "-".equals(m.group("sign")) ? micros.subtract(amount) : micros.add(amount);
      } else if (m.group("years") != null) {
        int sign = m.group("years").startsWith("-") ? -1 : 1;
        months = months.add(new BigDecimal(m.group("years")).multiply(BigDecimal.valueOf(12))).add(BigDecimal.valueOf(sign * Long.parseLong(m.group("months"))));
      } else {
        Matcher following = PART.matcher(rest).region(m.end(), rest.length());
        boolean day = following.lookingAt() && following.group("hour") != null;  // 3 4:05:06
        long[] unit = m.group("unit") == null ? UNITS.get(day ? "day" : "second") : UNITS.get(part);
        if (unit == null) throw invalid(text);
        add(new BigDecimal(m.group("amount")), unit);
      }
      at = m.end();
    }
    if (ago) {
      months = months.negate();
      days = days.negate();
      micros = micros.negate();
    }
  }

  private void iso(String part, String units, UTF8String text) {
    Matcher m = ISO_PART.matcher(part);
    int at = 0;
    while (m.find()) {
      if (m.start() != at || units.indexOf(m.group(2)) < 0) throw invalid(text);
      String name = switch (m.group(2)) {
        case "Y" -> "year";
        case "W" -> "week";
        case "D" -> "day";
        case "H" -> "hour";
        case "S" -> "second";
        default -> units.equals("HMS") ? "minute" : "month";
      };
      add(new BigDecimal(m.group(1)), UNITS.get(name));
      at = m.end();
    }
    if (at != part.length()) throw invalid(text);
  }

  private static SqlError invalid(UTF8String text) { return new SqlError("22007", "invalid input syntax for type interval: \"" + text + "\""); }
}
