package tailgate.functions.time;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.Month;
import java.time.ZoneId;
import java.time.temporal.JulianFields;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.text.TextInput;

/**
 * The input functions of dates, timestamps and times, as PostgreSQL 15 reads them with DateStyle
 * "ISO, MDY": a date, then optionally a time, a zone and an era.
 *
 * <p>They throw 22007 for a syntax error and 22008 for a field out of range. Infinity and words
 * whose meaning depends on the current time (now, today) are not supported (0A000).
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL.
 */
public final class TimeInput {
  private static final String MONTH_NAME = "(?<name>[A-Za-z]{3,9})\\.?";
  private static final String MONTH = "(?<month>\\d{1,2})";
  private static final String DAY = "(?<day>\\d{1,2})";
  private static final String YEAR = "(?<year>\\d{4,6})";
  private static final String ORDINAL_DATE = "(?<year>\\d{4})-(?<ordinal>\\d{3})";
  private static final String JULIAN_DATE = "[Jj](?<julian>\\d{1,7})";
  private static final List<Pattern> DATES = patterns(
      YEAR + "-" + MONTH + "-" + DAY,
      "(?<year>\\d{4})(?<month>\\d{2})(?<day>\\d{2})",
      YEAR + "/" + MONTH + "/" + DAY,
      MONTH + "[/-]" + DAY + "[/-]" + YEAR,
      MONTH_NAME + "[ -]+" + DAY + ",?[ -]+" + YEAR,
      DAY + "[ -]+" + MONTH_NAME + ",?[ -]+" + YEAR,
      YEAR + "[ -]+" + MONTH_NAME + "[ -]+" + DAY,
      ORDINAL_DATE,
      JULIAN_DATE);
  private static final Pattern TIME = Pattern.compile(
      "(?:[T ]\\s*)(?<hour>\\d{1,2}(?=:)|\\d{2})"
          + ":?(?<minute>(?<=:)\\d{1,2}|\\d{2})"
          + "(?::?(?<second>(?<=:)\\d{1,2}|\\d{2})(?<fraction>[.]\\d*)?)?"
          + "\\s*(?<half>[AaPp][Mm](?![A-Za-z]))?\\s*(?<zone>.*)",
      Pattern.DOTALL);
  private static final Pattern HOUR_12 = Pattern.compile("(\\d{1,2})\\s*([AaPp][Mm])");
  private static final Pattern OFFSET =
      Pattern.compile("(?<sign>[+-])(?<hours>\\d{1,2})(?::?(?<minutes>\\d{2})(?::?(?<seconds>\\d{2}))?)?");
  private static final List<String> MONTHS =
      List.of("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec");
  private static final LocalDate FIRST = LocalDate.of(-4713, 11, 24);
  private static final LocalDate LAST = LocalDate.of(294_276, 12, 31);
  private static final int OFFSET_HOURS_MAX = 15;
  private static final double EPOCH_2000_S = 946_684_800;  // PostgreSQL's epoch, in seconds since 1970

  private TimeInput() {}

  private static List<Pattern> patterns(String... dates) {
    return Arrays.stream(dates).map(d -> Pattern.compile(d + "(?<rest>(?:[T\\s].*)?)", Pattern.DOTALL)).toList();
  }

  public static int toDate(UTF8String text) { return Math.toIntExact(parse(text, "date").date.toEpochDay()); }

  /** Returns microseconds without a zone; a zone in the text is ignored. */
  public static long toTimestamp(UTF8String text) {
    Moment m = parse(text, "timestamp");
    return micros(m.date, m.micros, 0, text);
  }

  public static long toTimestamptz(UTF8String text) { return toTimestamptz(text, UTF8String.fromString("UTC")); }

  /** Returns microseconds in UTC. A text without a zone is read in {@code defaultZone}. */
  public static long toTimestamptz(UTF8String text, UTF8String defaultZone) {
    Moment m = parse(text, "timestamp with time zone");
    if (m.offset != null) return micros(m.date, m.micros, m.offset, text);
    ZoneId zone = m.zone != null ? m.zone : TimeZones.zone(defaultZone);
    return TimeZones.toUtc(micros(m.date, m.micros, 0, text), zone);
  }

  /**
   * Returns microseconds since midnight; a date before the time and a zone after it are ignored.
   */
  public static long toTime(UTF8String text) {
    String s = TextInput.trimmed(text);
    Matcher t = TIME.matcher(" " + s);
    if (t.matches() && !s.matches("(?s)\\d+[-/].*")) {
      // The offset of a zone such as Europe/Berlin depends on the date.
      if (t.group("zone").contains("/")) throw invalid(text, "time");
      return moment(LocalDate.EPOCH, t, text, "time").micros;
    }
    if (s.equalsIgnoreCase("allballs")) return 0;
    Matcher hour = HOUR_12.matcher(s);
    if (hour.matches()) {
      return hour24(Integer.parseInt(hour.group(1)), hour.group(2), text) * TimeUnits.HOUR;
    }
    Moment m;
    try {
      m = parse(text, "time");
    } catch (SqlError e) {
      throw e.sqlstate().equals("22007") ? invalid(text, "time") : e;
    }
    if (s.indexOf(':') < 0) throw invalid(text, "time");  // a date without a time
    return m.micros;
  }

  /** Computes to_timestamp(double precision), from seconds since 1970. */
  public static long toTimestamp(double seconds) {
    if (Double.isNaN(seconds)) throw new SqlError("22008", "timestamp cannot be NaN");
    // PostgreSQL rounds the microseconds since its own epoch.
    double micros = Math.rint((seconds - EPOCH_2000_S) * 1e6) + EPOCH_2000_S * 1e6;
    if (!(micros >= FIRST.toEpochDay() * 86_400e6 && micros < (LAST.toEpochDay() + 1) * 86_400e6)) {
      throw new SqlError("22008", "timestamp out of range: \"" + seconds + "\"");
    }
    return (long) micros;
  }

  private static long micros(LocalDate date, long micros, int offset, UTF8String text) {
    if (date.isBefore(FIRST) || date.isAfter(LAST)) {
      throw new SqlError("22008", "timestamp out of range: \"" + text + "\"");
    }
    long midnight = Math.multiplyExact(date.toEpochDay(), TimeUnits.DAY);
    return Math.addExact(midnight, micros - offset * TimeUnits.SECOND);
  }

  /**
   * A date, the microseconds since its midnight (24:00 is allowed), and an offset in seconds or a
   * zone, or neither.
   */
  private record Moment(LocalDate date, long micros, Integer offset, ZoneId zone) {}

  private static Moment parse(UTF8String text, String type) {
    String s = TextInput.trimmed(text);
    String lower = s.toLowerCase(Locale.ROOT);
    switch (lower) {
      case "epoch" -> { return new Moment(LocalDate.EPOCH, 0, 0, null); }
      case "infinity", "-infinity", "+infinity", "now", "today", "tomorrow", "yesterday" ->
          throw new SqlError("0A000", "\"" + s + "\" is not supported as a value of type " + type);
      default -> {}
    }
    boolean beforeChrist = lower.endsWith(" bc");
    if (beforeChrist || lower.endsWith(" ad")) s = s.substring(0, s.length() - 3).stripTrailing();
    for (Pattern pattern : DATES) {
      Matcher m = pattern.matcher(s);
      if (m.matches()) return moment(m, beforeChrist, text, type);
    }
    throw invalid(text, type);
  }

  private static Moment moment(Matcher m, boolean beforeChrist, UTF8String text, String type) {
    LocalDate date = date(m, beforeChrist, text, type);
    String rest = m.group("rest").isBlank() ? "" : m.group("rest");
    if (rest.isEmpty()) return new Moment(date, 0, null, null);
    Matcher t = TIME.matcher(rest.charAt(0) == 'T' ? rest : " " + rest.strip());
    if (t.matches()) return moment(date, t, text, type);
    return withZone(date, 0, rest.strip(), text, type);  // a zone without a time, such as 2020-01-01 UTC
  }

  private static LocalDate date(Matcher m, boolean beforeChrist, UTF8String text, String type) {
    String pattern = m.pattern().pattern();
    if (pattern.startsWith(JULIAN_DATE)) {
      return LocalDate.EPOCH.with(JulianFields.JULIAN_DAY, Long.parseLong(m.group("julian")));
    }
    int year = Integer.parseInt(m.group("year"));
    boolean ordinal = pattern.startsWith(ORDINAL_DATE);
    int dayOfYear = ordinal ? Integer.parseInt(m.group("ordinal")) : 0;
    int day = ordinal ? 1 : Integer.parseInt(m.group("day"));
    int month = 1;
    if (pattern.contains("?<name>")) month = month(m.group("name"), text, type);
    else if (dayOfYear == 0) month = Integer.parseInt(m.group("month"));
    if (year == 0) throw outOfRange(text);
    if (beforeChrist) year = 1 - year;
    try {
      return dayOfYear > 0 ? LocalDate.ofYearDay(year, dayOfYear) : LocalDate.of(year, month, day);
    } catch (DateTimeException e) {
      throw outOfRange(text);
    }
  }

  private static int month(String name, UTF8String text, String type) {
    String lower = name.toLowerCase(Locale.ROOT);
    int month = MONTHS.indexOf(lower.substring(0, 3)) + 1;
    if (month == 0) throw invalid(text, type);
    String fullName = Month.of(month).name().toLowerCase(Locale.ROOT);
    if (lower.length() > 3 && !fullName.startsWith(lower)) throw invalid(text, type);
    return month;
  }

  private static int hour24(int hour, String half, UTF8String text) {
    if (hour < 1 || hour > 12) throw outOfRange(text);
    return hour % 12 + (half.equalsIgnoreCase("pm") ? 12 : 0);
  }

  private static Moment moment(LocalDate date, Matcher t, UTF8String text, String type) {
    int hour = Integer.parseInt(t.group("hour"));
    int minute = Integer.parseInt(t.group("minute"));
    int second = number(t.group("second"));
    String fraction = t.group("fraction");
    long micros = 0;
    if (fraction != null && fraction.length() > 1) {
      BigDecimal exact = new BigDecimal("0" + fraction).movePointRight(6);
      micros = exact.setScale(0, RoundingMode.HALF_EVEN).longValue();
    }
    if (t.group("half") != null) hour = hour24(hour, t.group("half"), text);
    boolean afterMidnight = hour == 24 && (minute > 0 || second > 0 || micros > 0);
    if (hour > 24 || minute > 59 || second > 60 || afterMidnight) throw outOfRange(text);
    long time = ((hour * 60L + minute) * 60 + second) * TimeUnits.SECOND + micros;
    return withZone(date, time, t.group("zone").strip(), text, type);
  }

  private static Moment withZone(LocalDate date, long micros, String zone, UTF8String text, String type) {
    if (zone.isEmpty()) return new Moment(date, micros, null, null);
    if (zone.equalsIgnoreCase("z") || zone.equalsIgnoreCase("utc") || zone.equalsIgnoreCase("gmt")) {
      return new Moment(date, micros, 0, null);
    }
    Matcher o = OFFSET.matcher(zone);
    if (o.matches()) return new Moment(date, micros, offset(o, text), null);
    if (!zone.matches("[A-Za-z][A-Za-z0-9_/+-]*")) throw invalid(text, type);
    try {
      return new Moment(date, micros, null, TimeZones.zone(zone));
    } catch (SqlError e) {
      if (!zone.contains("/")) throw invalid(text, type);
      throw e;
    }
  }

  /** Returns an offset in seconds. */
  private static int offset(Matcher o, UTF8String text) {
    int hours = Integer.parseInt(o.group("hours"));
    int minutes = number(o.group("minutes"));
    int seconds = number(o.group("seconds"));
    if (hours > OFFSET_HOURS_MAX || minutes > 59 || seconds > 59) {
      throw new SqlError("22009", "time zone displacement out of range: \"" + text + "\"");
    }
    return (o.group("sign").equals("-") ? -1 : 1) * ((hours * 60 + minutes) * 60 + seconds);
  }

  private static int number(String digits) { return digits == null ? 0 : Integer.parseInt(digits); }

  private static SqlError invalid(UTF8String text, String type) {
    return new SqlError("22007", "invalid input syntax for type " + type + ": \"" + text + "\"");
  }

  private static SqlError outOfRange(UTF8String text) {
    return new SqlError("22008", "date/time field value out of range: \"" + text + "\"");
  }
}
