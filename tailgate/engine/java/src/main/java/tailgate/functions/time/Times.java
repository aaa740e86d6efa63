package tailgate.functions.time;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.numeric.Numbers;

/**
 * Functions of dates, timestamps and times. A date is days since 1970-01-01, a timestamp is
 * microseconds since then, and a time is microseconds since midnight.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/time/times.py} computes the same and names the sources.
 */
public final class Times {
  private static final int DAY_OF_2000 = 10_957;  // PostgreSQL's epoch, in days since 1970

  private Times() {}

  // ---- construction -----------------------------------------------------------------------------

  /** Returns a date. A negative year is BC. */
  @Returns("date")
  public static int makeDate(int year, int month, int day) {
    String date = String.format("%d-%02d-%02d", year, month, day);
    long days;
    try {
      if (year == 0) throw new DateTimeException(date);
      days = LocalDate.of(year < 0 ? year + 1 : year, month, day).toEpochDay();
    } catch (DateTimeException e) {
      throw new SqlError("22008", "date field value out of range: " + date);
    }
    try {
      return Timestamps.dayInRange(days);
    } catch (SqlError e) {
      throw new SqlError("22008", "date out of range: " + date);
    }
  }

  public static long makeTime(int hour, int minute, double seconds) {
    long micros = micros(seconds);
    long time = hour * TimeUnits.HOUR + minute * TimeUnits.MINUTE + micros;
    boolean validSeconds = micros >= 0 && micros <= TimeUnits.MINUTE;
    if (hour < 0 || hour > 24 || minute < 0 || minute > 59 || !validSeconds || time > TimeUnits.DAY) {
      String text = String.format("%d:%02d:%s", hour, minute, shortText(seconds));
      throw new SqlError("22008", "time field value out of range: " + text);
    }
    return time;
  }

  /** Returns seconds in microseconds, or -1 if they are out of range. */
  private static long micros(double seconds) {
    if (Double.isNaN(seconds) || Double.isInfinite(seconds) || Math.abs(seconds) > 1e6) return -1;
    BigDecimal exact = new BigDecimal(Double.toString(seconds)).movePointRight(6);
    return exact.setScale(0, RoundingMode.HALF_EVEN).longValue();
  }

  private static String shortText(double seconds) {
    boolean integral = seconds == Math.rint(seconds) && Math.abs(seconds) < 1e6;
    return integral ? String.valueOf((long) seconds) : String.valueOf(seconds);
  }

  @Returns("timestamp_ntz")
  public static long makeTimestamp(int year, int month, int day, int hour, int minute, double seconds) {
    return dateAtTime(makeDate(year, month, day), makeTime(hour, minute, seconds));
  }

  @Returns("timestamp")
  public static long makeTimestamptz(
      int year, int month, int day, int hour, int minute, double seconds, UTF8String zone) {
    long local = makeTimestamp(year, month, day, hour, minute, seconds);
    String name = zone.toString();
    // A numeric zone counts hours east, as in a literal; TimeZones reads it as in POSIX, west.
    if (name.matches("[+-]\\d.*")) name = (name.charAt(0) == '+' ? "-" : "+") + name.substring(1);
    return TimeZones.toUtc(local, TimeZones.zone(name));
  }

  @Returns("timestamp_ntz")
  public static long dateAtTime(int day, long micros) {
    long midnight = Timestamps.dateToTimestamp(day);
    return Timestamps.isInfinite(midnight) ? midnight : Timestamps.inRange(midnight + micros);
  }

  // ---- parts ------------------------------------------------------------------------------------

  private static final Set<String> WITHIN_DAYS = Set.of("microsecond", "millisecond", "second", "minute", "hour");

  private static long truncated(UTF8String word, long value, String type) {
    if (Timestamps.isInfinite(value)) return value;
    String unit = TimeUnits.unit(word);
    long size = switch (unit) {
      case "microsecond" -> 1;
      case "millisecond" -> 1000;
      case "second" -> TimeUnits.SECOND;
      case "minute" -> TimeUnits.MINUTE;
      case "hour" -> TimeUnits.HOUR;
      case "day" -> TimeUnits.DAY;
      default -> 0;
    };
    if (size > 0) return Timestamps.inRange(value - Math.floorMod(value, size));
    LocalDate date = LocalDate.ofEpochDay(Math.floorDiv(value, TimeUnits.DAY));
    int year = date.getYear();
    LocalDate first = switch (unit) {
      case "week" -> date.minusDays(date.getDayOfWeek().getValue() - 1);
      case "month" -> date.withDayOfMonth(1);
      case "quarter" -> LocalDate.of(year, (date.getMonthValue() - 1) / 3 * 3 + 1, 1);
      case "year" -> LocalDate.of(year, 1, 1);
      case "decade" -> LocalDate.of(Math.floorDiv(year, 10) * 10, 1, 1);
      case "century" -> LocalDate.of(Math.floorDiv(year - 1, 100) * 100 + 1, 1, 1);
      case "millennium" -> LocalDate.of(Math.floorDiv(year - 1, 1000) * 1000 + 1, 1, 1);
      default -> throw TimeUnits.unsupported(word, type);
    };
    return Timestamps.inRange(first.toEpochDay() * TimeUnits.DAY);
  }

  @Returns("timestamp_ntz")
  public static long dateTruncTimestamp(UTF8String word, long value) {
    return truncated(word, value, "timestamp without time zone");
  }

  @Returns("timestamp")
  public static long dateTruncTimestamptz(UTF8String word, long value, UTF8String zone) {
    if (Timestamps.isInfinite(value)) return value;
    ZoneId zoneId = TimeZones.zone(zone);
    long local = TimeZones.toLocal(value, zoneId);
    long truncated = truncated(word, local, "timestamp with time zone");
    // within a day, the offset stays, also where a change of the clock repeats an hour
    return WITHIN_DAYS.contains(TimeUnits.unit(word)) ? truncated - (local - value) : TimeZones.toUtc(truncated, zoneId);
  }

  public static Decimal extractTime(UTF8String word, long micros, int precision, int scale) {
    BigDecimal part = part(word, micros, "time without time zone");
    return (Decimal) Numbers.of(part, DataTypes.createDecimalType(precision, scale));
  }

  /** Returns a part of microseconds since midnight. {@code type} is the name of their type. */
  static BigDecimal part(UTF8String word, long micros, String type) {
    return switch (TimeUnits.unit(word)) {
      case "hour" -> BigDecimal.valueOf(micros / TimeUnits.HOUR);
      case "minute" -> BigDecimal.valueOf(micros / TimeUnits.MINUTE % 60);
      case "second" -> BigDecimal.valueOf(micros % TimeUnits.MINUTE, 6);
      case "millisecond" -> BigDecimal.valueOf(micros % TimeUnits.MINUTE, 3);
      case "microsecond" -> BigDecimal.valueOf(micros % TimeUnits.MINUTE);
      case "epoch" -> BigDecimal.valueOf(micros, 6);
      default -> throw TimeUnits.unsupported(word, type);
    };
  }

  @Returns("timestamp_ntz")
  public static long dateBin(InternalRow stride, long value, long origin) {
    if (Timestamps.isInfinite(value)) return value;
    if (Timestamps.isInfinite(origin)) throw Timestamps.outOfRange("origin out of range");
    Interval i = Interval.of(stride);
    if (i.months() != 0) {
      throw new SqlError("0A000", "timestamps cannot be binned into intervals containing months or years");
    }
    long size = Math.addExact(i.days() * TimeUnits.DAY, i.micros());
    if (size <= 0) throw new SqlError("22008", "stride must be greater than zero");
    try {
      return Timestamps.inRange(origin + Math.floorDiv(Math.subtractExact(value, origin), size) * size);
    } catch (ArithmeticException e) {
      throw Timestamps.outOfRange("interval out of range");
    }
  }

  // ---- arithmetic -------------------------------------------------------------------------------

  /**
   * Returns the difference of two timestamps in years, months and days, where {@code -} returns
   * days only.
   */
  public static InternalRow age(long a, long b) {
    if (Math.min(a, b) == -Timestamps.INFINITE) throw Timestamps.outOfRange("timestamp out of range");
    boolean negative = a < b;
    long later = negative ? b : a;
    long earlier = negative ? a : b;
    LocalDate laterDate = day(later);
    LocalDate earlierDate = day(earlier);
    int months = (laterDate.getYear() - earlierDate.getYear()) * 12
        + laterDate.getMonthValue() - earlierDate.getMonthValue();
    int days = laterDate.getDayOfMonth() - earlierDate.getDayOfMonth();
    long micros = Math.floorMod(later, TimeUnits.DAY) - Math.floorMod(earlier, TimeUnits.DAY);
    if (micros < 0) {
      micros += TimeUnits.DAY;
      days--;
    }
    if (days < 0) {
      days += earlierDate.lengthOfMonth();
      months--;
    }
    return (negative ? new Interval(-months, -days, -micros) : new Interval(months, days, micros)).row();
  }

  /** Returns the day of a timestamp. That of infinity is the day of the number that stores it in PostgreSQL 15. */
  private static LocalDate day(long micros) {
    return LocalDate.ofEpochDay(Math.floorDiv(micros, TimeUnits.DAY) + (Timestamps.isInfinite(micros) ? DAY_OF_2000 : 0));
  }

  public static long timeAdd(long micros, InternalRow interval) {
    return Math.floorMod(micros + Interval.of(interval).micros() % TimeUnits.DAY, TimeUnits.DAY);
  }

  public static long timeSubtract(long micros, InternalRow interval) {
    return Math.floorMod(micros - Interval.of(interval).micros() % TimeUnits.DAY, TimeUnits.DAY);
  }
}
