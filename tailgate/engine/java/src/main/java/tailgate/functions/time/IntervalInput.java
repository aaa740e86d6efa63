package tailgate.functions.time;

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
import tailgate.errors.SqlError;
import tailgate.functions.text.TextInput;

/**
 * The input function of interval: {@code 1 year 2 mons -3 days 04:05:06.7}, {@code 1-2}, {@code
 * P1Y2M3DT4H}. to_interval() in {@code tailgate/sql/input/intervals.py} computes the same.
 */
public final class IntervalInput {
  /** The length of a unit; one part is not 0. */
  private record Unit(int months, int days, long micros) {}

  private static final Map<String, Unit> UNITS = new HashMap<>();
  private static final Pattern PART = Pattern.compile(
      "\\s*(?:(?<sign>[+-])?(?<hour>\\d+):(?<minute>\\d{1,2})(?::(?<second>\\d{1,2}(?:\\.\\d*)?))?"
          + "|(?<years>[+-]?\\d+)-(?<months>\\d{1,2})(?![\\d-])"
          + "|(?<amount>[+-]?(?:\\d+\\.?\\d*|\\.\\d+))\\s*(?<unit>[a-zA-Z]+)?)");
  private static final Pattern ISO = Pattern.compile("P(?<date>[^T]*)(?:T(?<time>.*))?");
  private static final Pattern ISO_PART = Pattern.compile("([+-]?\\d+(?:\\.\\d+)?)([YMWDHS])");

  static {
    unit(12, 0, 0, "year years y yr yrs");
    unit(1, 0, 0, "month months mon mons");
    unit(120, 0, 0, "decade decades dec decs");
    unit(1200, 0, 0, "century centuries cent c");
    unit(12000, 0, 0, "millennium millennia mil mils");
    unit(0, 7, 0, "week weeks w");
    unit(0, 1, 0, "day days d");
    unit(0, 0, TimeUnits.HOUR, "hour hours h hr hrs");
    unit(0, 0, TimeUnits.MINUTE, "minute minutes m min mins");
    unit(0, 0, TimeUnits.SECOND, "second seconds s sec secs");
    unit(0, 0, 1_000, "millisecond milliseconds ms msec msecs");
    unit(0, 0, 1, "microsecond microseconds us usec usecs");
  }

  private static void unit(int months, int days, long micros, String names) {
    for (String name : names.split(" ")) UNITS.put(name, new Unit(months, days, micros));
  }

  private final UTF8String text;
  private BigDecimal months = BigDecimal.ZERO;
  private BigDecimal days = BigDecimal.ZERO;
  private BigDecimal micros = BigDecimal.ZERO;

  private IntervalInput(UTF8String text) { this.text = text; }

  /** Returns the interval. Throws 22007 or 22008. */
  public static Interval parse(UTF8String text) {
    IntervalInput i = new IntervalInput(text);
    Matcher iso = ISO.matcher(text.toString());
    if (text.numChars() > 1 && iso.matches()) i.readIso(iso);
    else i.read(TextInput.trimmed(text));
    if (!fits(i.months, 31) || !fits(i.days, 31) || !fits(i.micros, 63)) {
      throw new SqlError("22008", "interval field value out of range: \"" + text + "\"");
    }
    long micros = i.micros.setScale(0, RoundingMode.HALF_EVEN).longValue();
    return new Interval(i.months.intValue(), i.days.intValue(), micros);
  }

  private static boolean fits(BigDecimal value, int bits) {
    return value.setScale(0, RoundingMode.HALF_EVEN).toBigInteger().bitLength() <= bits;
  }

  /**
   * Adds an amount of a unit. A fraction of a month becomes days (30 each), a fraction of a day
   * becomes time.
   */
  private void add(BigDecimal amount, Unit unit) {
    if (unit.months != 0) {
      BigDecimal exact = amount.multiply(BigDecimal.valueOf(unit.months));
      BigDecimal whole = exact.setScale(0, RoundingMode.DOWN);
      months = months.add(whole);
      if (unit.months == 1 && exact.compareTo(whole) != 0) {
        add(exact.subtract(whole).multiply(BigDecimal.valueOf(30)), UNITS.get("day"));
      }
    } else if (unit.days != 0) {
      BigDecimal exact = amount.multiply(BigDecimal.valueOf(unit.days));
      BigDecimal whole = exact.setScale(0, RoundingMode.DOWN);
      days = days.add(whole);
      micros = micros.add(exact.subtract(whole).multiply(BigDecimal.valueOf(TimeUnits.DAY)));
    } else {
      micros = micros.add(amount.multiply(BigDecimal.valueOf(unit.micros)));
    }
  }

  /** Reads PostgreSQL's and the SQL standard's format. */
  private void read(String trimmed) {
    boolean ago = trimmed.toLowerCase(Locale.ROOT).endsWith("ago");
    String body = trimmed.substring(trimmed.startsWith("@") ? 1 : 0, trimmed.length() - (ago ? 3 : 0));
    if (body.isBlank()) throw invalid();
    Set<Object> fields = new HashSet<>();  // each may occur once
    for (int at = 0; at < body.length() && !body.substring(at).isBlank(); ) {
      Matcher m = PART.matcher(body).region(at, body.length());
      if (!m.lookingAt() || m.end() == at) throw invalid();
      String unitName = m.group("unit") == null ? "" : m.group("unit").toLowerCase(Locale.ROOT);
      String field = m.group("hour") != null ? "time" : m.group("years") != null ? "years" : unitName;
      if (!fields.add(UNITS.containsKey(field) ? UNITS.get(field) : field)) throw invalid();
      if (m.group("hour") != null) {
        addTime(m);
      } else if (m.group("years") != null) {
        addYearsMonths(m);
      } else {
        Unit unit = unitName.isEmpty() ? defaultUnit(body, m.end()) : UNITS.get(unitName);
        if (unit == null) throw invalid();
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

  private void addTime(Matcher m) {
    BigDecimal seconds = m.group("second") == null ? BigDecimal.ZERO : new BigDecimal(m.group("second"));
    long minutes = Long.parseLong(m.group("hour")) * 60 + Long.parseLong(m.group("minute"));
    BigDecimal allSeconds = BigDecimal.valueOf(minutes).multiply(BigDecimal.valueOf(60)).add(seconds);
    BigDecimal amount = allSeconds.multiply(BigDecimal.valueOf(TimeUnits.SECOND));
    micros = "-".equals(m.group("sign")) ? micros.subtract(amount) : micros.add(amount);
  }

  private void addYearsMonths(Matcher m) {
    int sign = m.group("years").startsWith("-") ? -1 : 1;
    months = months.add(new BigDecimal(m.group("years")).multiply(BigDecimal.valueOf(12)))
        .add(BigDecimal.valueOf(sign * Long.parseLong(m.group("months"))));
  }

  /**
   * Returns the unit of a number without one: days before a time ({@code 3 4:05:06}), else seconds.
   */
  private static Unit defaultUnit(String body, int at) {
    Matcher next = PART.matcher(body).region(at, body.length());
    return UNITS.get(next.lookingAt() && next.group("hour") != null ? "day" : "second");
  }

  /** Reads ISO 8601's format. */
  private void readIso(Matcher iso) {
    readIso(iso.group("date"), "YMWD");
    readIso(iso.group("time") == null ? "" : iso.group("time"), "HMS");
  }

  private void readIso(String parts, String letters) {
    Matcher m = ISO_PART.matcher(parts);
    int at = 0;
    while (m.find()) {
      if (m.start() != at || letters.indexOf(m.group(2)) < 0) throw invalid();
      String unit = switch (m.group(2)) {
        case "Y" -> "year";
        case "W" -> "week";
        case "D" -> "day";
        case "H" -> "hour";
        case "S" -> "second";
        default -> letters.equals("HMS") ? "minute" : "month";
      };
      add(new BigDecimal(m.group(1)), UNITS.get(unit));
      at = m.end();
    }
    if (at != parts.length()) throw invalid();
  }

  private SqlError invalid() {
    return new SqlError("22007", "invalid input syntax for type interval: \"" + text + "\"");
  }
}
