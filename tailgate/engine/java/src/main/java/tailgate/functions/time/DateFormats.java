package tailgate.functions.time;

import java.time.LocalDate;
import java.time.temporal.IsoFields;
import java.time.temporal.JulianFields;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.numeric.Numerals;

/**
 * to_char() of timestamps and intervals, in English.
 *
 * <p>Generated code calls the functions ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/time/date_formats.py} computes the same and names the sources.
 */
public final class DateFormats {
  private DateFormats() {}

  /** The fields that a pattern can name; {@code date} is null for an interval. */
  private record Fields(int year, int month, int dayOfMonth, long micros, LocalDate date, String zone) {
    int shownYear() { return date == null ? year : shown(year); }

    long hours() { return micros / TimeUnits.HOUR; }

    long minutes() { return micros % TimeUnits.HOUR / TimeUnits.MINUTE; }

    long seconds() { return micros % TimeUnits.MINUTE / TimeUnits.SECOND; }

    long fraction() { return micros % TimeUnits.SECOND; }

    /**
     * Returns the month of RM. Intervals have no month 0: negative ones count from December, whole
     * years are 12 or -12 months.
     */
    int romanMonth() {
      if (month == 0) return year > 0 ? 12 : 1;
      return month > 0 ? month : 13 + month;
    }

    /** Returns the days of an interval, with 30 days in a month. */
    long days() { return (year * 12L + month) * 30 + dayOfMonth; }
  }

  /** Returns an astronomical year as it is counted: 0 is 1 BC. */
  private static int shown(int year) { return year > 0 ? year : 1 - year; }

  public static UTF8String toCharTimestamp(long micros, UTF8String pattern) { return toChar(micros, pattern, ""); }

  public static UTF8String toCharTimestamptz(long micros, UTF8String pattern) { return toChar(micros, pattern, "UTC"); }

  private static UTF8String toChar(long micros, UTF8String pattern, String zone) {
    if (Timestamps.isInfinite(micros)) return null;
    LocalDate date = LocalDate.ofEpochDay(Math.floorDiv(micros, TimeUnits.DAY));
    long time = Math.floorMod(micros, TimeUnits.DAY);
    return write(new Fields(date.getYear(), date.getMonthValue(), date.getDayOfMonth(), time, date, zone), pattern);
  }

  public static UTF8String toCharInterval(InternalRow interval, UTF8String pattern) {
    Interval i = Interval.of(interval);
    return write(new Fields(i.months() / 12, i.months() % 12, i.days(), i.micros(), null, ""), pattern);
  }

  private static UTF8String write(Fields f, UTF8String pattern) {
    if (pattern.numBytes() == 0) return null;
    StringBuilder out = new StringBuilder();
    for (DatePattern.Part p : DatePattern.parts(pattern)) out.append(p.isField() ? field(f, p) : p.spelling());
    return UTF8String.fromString(out.toString());
  }

  // ---- fields -----------------------------------------------------------------------------------

  private static String field(Fields f, DatePattern.Part p) {
    String text = time(f, p);
    if (text == null) text = yearMonthDay(f, p);
    if (text == null && f.date == null) text = intervalDay(f, p);
    return text == null ? calendar(f, p) : text;
  }

  /** Returns a field of the time of day or the time zone, or null for other fields. */
  private static String time(Fields f, DatePattern.Part p) {
    boolean afternoon = Math.floorMod(f.hours(), 24) >= 12;
    return switch (p.field()) {
      case "HH24" -> number(p, f.hours(), 2);
      case "HH", "HH12" -> number(p, f.hours() % 12 == 0 ? 12 : f.hours() % 12, 2);
      case "MI" -> number(p, f.minutes(), 2);
      case "SS" -> number(p, f.seconds(), 2);
      case "MS", "FF3" -> fraction(p, f.fraction() / 1000, 3);
      case "US", "FF6" -> fraction(p, f.fraction(), 6);
      case "FF1" -> fraction(p, f.fraction() / 100_000, 1);
      case "FF2" -> fraction(p, f.fraction() / 10_000, 2);
      case "FF4" -> fraction(p, f.fraction() / 100, 4);
      case "FF5" -> fraction(p, f.fraction() / 10, 5);
      case "SSSS", "SSSSS" -> number(p, f.hours() * 3600 + f.minutes() * 60 + f.seconds(), 0);
      case "AM", "PM" -> cased(p, afternoon ? "pm" : "am");
      case "A.M.", "P.M." -> cased(p, afternoon ? "p.m." : "a.m.");
      case "TZ" -> dateOnly(f, cased(p, f.zone));
      case "TZH", "OF" -> dateOnly(f, "+00");
      case "TZM" -> dateOnly(f, "00");
      default -> null;
    };
  }

  /**
   * Returns a field of the year, month and day, which intervals have too, or null for other fields.
   */
  private static String yearMonthDay(Fields f, DatePattern.Part p) {
    return switch (p.field()) {
      case "Q" -> f.month == 0 ? "" : number(p, (f.month - 1) / 3 + 1, 1);
      case "MM" -> number(p, f.month, 2);
      case "RM" -> f.month == 0 && f.year == 0 ? "" : padded(p, cased(p, Numerals.roman(f.romanMonth())), 4);
      case "DD" -> number(p, f.dayOfMonth, 2);
      case "DDD" -> number(p, f.date == null ? f.days() : f.date.getDayOfYear(), 3);
      case "CC" -> {
        int century = f.year / 100;
        if (f.date != null) century = f.year > 0 ? (f.year - 1) / 100 + 1 : century - 1;
        yield number(p, century, Math.abs(century) < 100 ? 2 : 0);
      }
      case "Y,YYY" -> withEnding(p, f.shownYear() / 1000 + "," + String.format("%03d", f.shownYear() % 1000));
      case "YYYY" -> number(p, f.shownYear(), 4);
      case "YYY" -> number(p, f.shownYear() % 1000, 3);
      case "YY" -> number(p, f.shownYear() % 100, 2);
      case "Y" -> number(p, f.shownYear() % 10, 1);
      default -> null;
    };
  }

  private static String intervalDay(Fields f, DatePattern.Part p) {
    return switch (p.field()) {
      case "WW" -> number(p, (f.days() - 1) / 7 + 1, 2);
      case "W" -> number(p, (f.dayOfMonth - 1) / 7 + 1, 1);
      case "J" -> number(p, julianDay(f.year, f.month, f.dayOfMonth), 0);
      default -> null;
    };
  }

  /** Returns a field that only dates have. */
  private static String calendar(Fields f, DatePattern.Part p) {
    dateOnly(f, "");
    LocalDate date = f.date;
    int isoWeek = date.get(IsoFields.WEEK_OF_WEEK_BASED_YEAR);
    int isoYear = shown(Timestamps.isoYear(date));
    int weekday = date.getDayOfWeek().getValue();
    String monthName = DatePattern.MONTHS.get(f.month - 1);
    String dayName = DatePattern.DAYS.get(weekday % 7);
    return switch (p.field()) {
      case "AD", "BC" -> cased(p, f.year > 0 ? "AD" : "BC");
      case "A.D.", "B.C." -> cased(p, f.year > 0 ? "A.D." : "B.C.");
      case "MONTH" -> padded(p, cased(p, monthName), 9);
      case "MON" -> cased(p, monthName.substring(0, 3));
      case "DAY" -> padded(p, cased(p, dayName), 9);
      case "DY" -> cased(p, dayName.substring(0, 3));
      case "D" -> number(p, weekday % 7 + 1, 1);
      case "ID" -> number(p, weekday, 1);
      case "IDDD" -> number(p, (isoWeek - 1) * 7L + weekday, 3);
      case "WW" -> number(p, (date.getDayOfYear() - 1) / 7 + 1, 2);
      case "W" -> number(p, (f.dayOfMonth - 1) / 7 + 1, 1);
      case "IW" -> number(p, isoWeek, 2);
      case "IYYY" -> number(p, isoYear, 4);
      case "IYY" -> number(p, isoYear % 1000, 3);
      case "IY" -> number(p, isoYear % 100, 2);
      case "I" -> number(p, isoYear % 10, 1);
      case "J" -> number(p, date.getLong(JulianFields.JULIAN_DAY), 0);
      default -> "";  // FX
    };
  }

  /** Computes PostgreSQL's date2j(), which accepts months and days out of range. */
  private static int julianDay(int year, int month, int day) {
    int y = month > 2 ? year + 4800 : year + 4799;
    int m = month > 2 ? month + 1 : month + 13;
    int century = y / 100;
    return y * 365 - 32167 + y / 4 - century + century / 4 + 7834 * m / 256 + day;
  }

  /** Returns the text. Throws 22007 for an interval. */
  private static String dateOnly(Fields f, String text) {
    if (f.date == null) throw new SqlError("22007", "invalid format specification for an interval value");
    return text;
  }

  // ---- text of a field --------------------------------------------------------------------------

  private static String number(DatePattern.Part p, long value, int width) {
    String digits = String.valueOf(Math.abs(value));
    // The minus sign takes the place of a digit in these fields.
    boolean signInWidth = p.field().equals("DD") || p.field().equals("DDD") || p.field().equals("WW");
    int digitWidth = value < 0 && signInWidth ? width - 1 : width;
    String zeros = p.fillMode() ? "" : "0".repeat(Math.max(digitWidth - digits.length(), 0));
    return withEnding(p, (value < 0 ? "-" : "") + zeros + digits);
  }

  private static String fraction(DatePattern.Part p, long value, int width) {
    int digitWidth = value < 0 ? Math.max(width - 1, 1) : width;
    return withEnding(p, (value < 0 ? "-" : "") + String.format("%0" + digitWidth + "d", Math.abs(value)));
  }

  /** Appends the ending of an ordinal number if the field has the suffix TH or th. */
  private static String withEnding(DatePattern.Part p, String number) {
    if (p.suffix().isEmpty()) return number;
    String ending = Numerals.ordinalEnding(number);
    return number + (p.suffix().equals("TH") ? ending.toUpperCase(Locale.ROOT) : ending);
  }

  /** Returns a text in the case of the field's spelling: upper, lower, or mixed. */
  private static String cased(DatePattern.Part p, String text) {
    if (p.spelling().equals(p.spelling().toUpperCase(Locale.ROOT))) return text.toUpperCase(Locale.ROOT);
    return p.spelling().equals(p.spelling().toLowerCase(Locale.ROOT)) ? text.toLowerCase(Locale.ROOT) : text;
  }

  private static String padded(DatePattern.Part p, String text, int width) {
    return p.fillMode() ? text : text + " ".repeat(Math.max(width - text.length(), 0));
  }
}
