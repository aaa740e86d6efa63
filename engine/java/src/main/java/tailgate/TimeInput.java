package tailgate;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.*;
import java.time.temporal.JulianFields;
import java.util.*;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Text to dates and times, as PostgreSQL 15 reads it with DateStyle "ISO, MDY": a date, then perhaps a time, a zone and an era.
 *
 * <p>22007 if it is no date, 22008 if a field is out of range. Left out, with 0A000: infinity, and words that mean another time at each reading (now, today).
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class TimeInput {
  private static final String MONTH = "(?<name>[A-Za-z]{3,9})\\.?", DAY = "(?<day>\\d{1,2})", YEAR = "(?<year>\\d{4,6})", ORDINAL = "(?<year>\\d{4})-(?<ordinal>\\d{3})", JULIAN = "[Jj](?<julian>\\d{1,7})";
  private static final List<Pattern> DATES = patterns(
      YEAR + "-(?<month>\\d{1,2})-" + DAY, "(?<year>\\d{4})(?<month>\\d{2})(?<day>\\d{2})", YEAR + "/(?<month>\\d{1,2})/" + DAY, "(?<month>\\d{1,2})[/-]" + DAY + "[/-]" + YEAR,
      MONTH + "[ -]+" + DAY + ",?[ -]+" + YEAR, DAY + "[ -]+" + MONTH + ",?[ -]+" + YEAR, YEAR + "[ -]+" + MONTH + "[ -]+" + DAY, ORDINAL, JULIAN);
  private static final Pattern TIME = Pattern.compile(
      "(?:[T ]\\s*)(?<hour>\\d{1,2}(?=:)|\\d{2}):?(?<minute>(?<=:)\\d{1,2}|\\d{2})(?::?(?<second>(?<=:)\\d{1,2}|\\d{2})(?<fraction>[.]\\d*)?)?\\s*(?<half>[AaPp][Mm](?![A-Za-z]))?\\s*(?<zone>.*)", Pattern.DOTALL);
  private static final Pattern OFFSET = Pattern.compile("(?<sign>[+-])(?<hours>\\d{1,2})(?::?(?<minutes>\\d{2})(?::?(?<seconds>\\d{2}))?)?");
  private static final List<String> MONTHS = List.of("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec");
  private static final LocalDate FIRST = LocalDate.of(-4713, 11, 24), LAST = LocalDate.of(294_276, 12, 31);
  private static final int OFFSET_HOURS_MAX = 15;

  private TimeInput() {}

  private static List<Pattern> patterns(String... dates) { return Arrays.stream(dates).map(d -> Pattern.compile(d + "(?<rest>(?:[T\\s].*)?)", Pattern.DOTALL)).toList(); }

  public static int toDate(UTF8String text) { return Math.toIntExact(parse(text, "date").date.toEpochDay()); }

  /** Microseconds, without a zone; one that is written is not looked at. */
  public static long toTimestamp(UTF8String text) {
    Parsed p = parse(text, "timestamp");
    return micros(p.date, p.micros, 0, text);
  }

  public static long toTimestamptz(UTF8String text) { return toTimestamptz(text, UTF8String.fromString("UTC")); }

  /** Microseconds; without a zone in the text it is `zone`'s. */
  public static long toTimestamptz(UTF8String text, UTF8String zone) {
    Parsed p = parse(text, "timestamp with time zone");
    if (p.offset != null) return micros(p.date, p.micros, p.offset, text);
    return Zones.toUtc(micros(p.date, p.micros, 0, text), p.zone != null ? p.zone : Zones.zone(zone));
  }

  /** Microseconds of the day; a date before it and a zone behind it have no meaning. */
  public static long toTime(UTF8String text) {
    String s = trimmed(text);
    Matcher t = TIME.matcher(" " + s);
    if (t.matches() && !s.matches("(?s)\\d+[-/].*")) {
      if (t.group("zone").contains("/")) throw invalid(text, "time");  // whose offset depends on the day
      return timed(LocalDate.EPOCH, t, text, "time").micros;
    }
    if (s.equalsIgnoreCase("allballs")) return 0;
    Matcher half = Pattern.compile("(\\d{1,2})\\s*([AaPp][Mm])").matcher(s);
    if (half.matches()) {
      int hour = Integer.parseInt(half.group(1));
      if (hour < 1 || hour > 12) throw outOfRange(text);
      return (hour % 12 + (half.group(2).equalsIgnoreCase("pm") ? 12 : 0)) * Times.HOUR;
    }
    Parsed p;
    try {
      p = parse(text, "time");
    } catch (SqlError e) {
      throw e.sqlstate().equals("22007") ? invalid(text, "time") : e;
    }
    if (s.indexOf(':') < 0) throw invalid(text, "time");  // a date alone
    return p.micros;
  }

  private static String trimmed(UTF8String text) { return TextInput.trimmed(text); }

  /** to_timestamp(seconds since the epoch) */
  private static final double SINCE_2000_S = 946_684_800;

  public static long toTimestamp(double seconds) {
    if (Double.isNaN(seconds)) throw new SqlError("22008", "timestamp cannot be NaN");
    double micros = Math.rint((seconds - SINCE_2000_S) * 1e6) + SINCE_2000_S * 1e6;  // PostgreSQL rounds what it counts from its epoch
    if (!(micros >= FIRST.toEpochDay() * 86_400e6 && micros < (LAST.toEpochDay() + 1) * 86_400e6)) throw new SqlError("22008", "timestamp out of range: \"" + seconds + "\"");
    return (long) micros;
  }

  private static long micros(LocalDate date, long micros, int offset, UTF8String text) {
    if (date.isBefore(FIRST) || date.isAfter(LAST)) throw new SqlError("22008", "timestamp out of range: \"" + text + "\"");
    return Math.addExact(Math.multiplyExact(date.toEpochDay(), 86_400_000_000L), micros - offset * 1_000_000L);
  }

  /** A day, microseconds of it (24:00 is the next day's begin), and what is known of the zone. */
  private record Parsed(LocalDate date, long micros, Integer offset, ZoneId zone) {}

  private static Parsed parse(UTF8String text, String type) {
    String s = TextInput.trimmed(text), lower = s.toLowerCase(Locale.ROOT);
    switch (lower) {
      case "epoch" -> { return new Parsed(LocalDate.EPOCH, 0, 0, null); }
      case "infinity", "-infinity", "+infinity", "now", "today", "tomorrow", "yesterday" ->
          throw new SqlError("0A000", "\"" + s + "\" is not supported as a value of type " + type);
      default -> {}
    }
    boolean era = lower.endsWith(" bc");
    if (era || lower.endsWith(" ad")) s = s.substring(0, s.length() - 3).stripTrailing();
    for (Pattern pattern : DATES) {
      Matcher m = pattern.matcher(s);
      if (m.matches()) return parsed(m, era, text, type);
    }
    throw invalid(text, type);
  }

  private static Parsed parsed(Matcher m, boolean era, UTF8String text, String type) {
    LocalDate date = date(m, era, text, type);
    String rest = m.group("rest").isBlank() ? "" : m.group("rest");
    if (rest.isEmpty()) return new Parsed(date, 0, null, null);
    Matcher t = TIME.matcher(rest.charAt(0) == 'T' ? rest : " " + rest.strip());
    return t.matches() ? timed(date, t, text, type) : zone(date, 0, rest.strip(), text, type);  // '2020-01-01 UTC'
  }

  private static LocalDate date(Matcher m, boolean era, UTF8String text, String type) {
    if (m.pattern().pattern().startsWith(JULIAN)) return LocalDate.EPOCH.with(JulianFields.JULIAN_DAY, Long.parseLong(m.group("julian")));
    int year = Integer.parseInt(m.group("year")), month = 1, day = 1, days = 0;
    if (m.pattern().pattern().startsWith(ORDINAL)) days = Integer.parseInt(m.group("ordinal"));
    else day = Integer.parseInt(m.group("day"));
    if (m.pattern().pattern().contains("?<name>")) {
      String name = m.group("name").toLowerCase(Locale.ROOT);
      month = MONTHS.indexOf(name.substring(0, 3)) + 1;
      if (month == 0 || name.length() > 3 && !Month.of(month).name().toLowerCase(Locale.ROOT).startsWith(name)) throw invalid(text, type);
    } else if (days == 0) month = Integer.parseInt(m.group("month"));
    if (year == 0) throw outOfRange(text);
    if (era) year = 1 - year;
    try {
      return days > 0 ? LocalDate.ofYearDay(year, days) : LocalDate.of(year, month, day);
    } catch (DateTimeException e) {
      throw outOfRange(text);
    }
  }

  private static Parsed timed(LocalDate date, Matcher t, UTF8String text, String type) {
    int hour = Integer.parseInt(t.group("hour")), minute = Integer.parseInt(t.group("minute")), second = t.group("second") == null ? 0 : Integer.parseInt(t.group("second"));
    String fraction = t.group("fraction"), half = t.group("half");
    long part = fraction == null || fraction.length() == 1 ? 0 : new BigDecimal("0" + fraction).movePointRight(6).setScale(0, RoundingMode.HALF_EVEN).longValue();
    if (half != null) {
      if (hour < 1 || hour > 12) throw outOfRange(text);
      hour = hour % 12 + (half.toLowerCase(Locale.ROOT).equals("pm") ? 12 : 0);
    }
    if (hour > 24 || minute > 59 || second > 60 || hour == 24 && (minute > 0 || second > 0 || part > 0)) throw outOfRange(text);
    return zone(date, ((hour * 60L + minute) * 60 + second) * 1_000_000 + part, t.group("zone").strip(), text, type);
  }

  private static Parsed zone(LocalDate date, long micros, String zone, UTF8String text, String type) {
    if (zone.isEmpty()) return new Parsed(date, micros, null, null);
    if (zone.equalsIgnoreCase("z") || zone.equalsIgnoreCase("utc") || zone.equalsIgnoreCase("gmt")) return new Parsed(date, micros, 0, null);
    Matcher o = OFFSET.matcher(zone);
    if (o.matches()) {
      int hours = Integer.parseInt(o.group("hours")), minutes = number(o.group("minutes")), seconds = number(o.group("seconds"));
      if (hours > OFFSET_HOURS_MAX || minutes > 59 || seconds > 59) throw new SqlError("22009", "time zone displacement out of range: \"" + text + "\"");
      return new Parsed(date, micros, (o.group("sign").equals("-") ? -1 : 1) * ((hours * 60 + minutes) * 60 + seconds), null);
    }
    if (!zone.matches("[A-Za-z][A-Za-z0-9_/+-]*")) throw invalid(text, type);
    try {
      return new Parsed(date, micros, null, Zones.zone(zone));
    } catch (SqlError e) {
      if (!zone.contains("/")) throw invalid(text, type);
      throw e;
    }
  }

  private static int number(String digits) { return digits == null ? 0 : Integer.parseInt(digits); }

  private static SqlError invalid(UTF8String text, String type) { return new SqlError("22007", "invalid input syntax for type " + type + ": \"" + text + "\""); }

  private static SqlError outOfRange(UTF8String text) { return new SqlError("22008", "date/time field value out of range: \"" + text + "\""); }
}
