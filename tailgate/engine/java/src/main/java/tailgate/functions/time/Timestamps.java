package tailgate.functions.time;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.time.DayOfWeek;
import java.time.LocalDate;
import java.time.temporal.IsoFields;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.numeric.Numbers;

/**
 * The limits of dates and timestamps, their arithmetic, and EXTRACT. A date is days since 1970, a
 * timestamp is microseconds since 1970. Infinity is the largest number, -infinity its negative.
 *
 * <p>Generated code calls the public functions ({@code Functions}); arguments are not NULL. {@code
 * tailgate/values/times/calendar.py} has the same limits.
 */
public final class Timestamps {
  static final int INFINITE_DAY = Integer.MAX_VALUE;
  static final long INFINITE = Long.MAX_VALUE;
  static final int FIRST_DAY = -2_440_588;  // 4714-11-24 BC
  private static final int LAST_DAY = 2_145_042_905;  // 5874897-12-31
  static final long FIRST = FIRST_DAY * TimeUnits.DAY;
  static final long LAST = INFINITE - 1;  // where 64 bits end, in the year 294247
  private static final long FAR = 4_000_000_000_000_000_000L;  // milliseconds
  private static final long EPOCH_2000 = 946_684_800_000_000L;
  private static final int MICRO_DIGITS = 6;

  private Timestamps() {}

  static boolean isInfinite(int day) { return day == INFINITE_DAY || day == -INFINITE_DAY; }

  static boolean isInfinite(long micros) { return micros == INFINITE || micros == -INFINITE; }

  /** Returns whether a date is neither infinity nor -infinity. */
  public static boolean isFiniteDate(int day) { return !isInfinite(day); }

  /** Returns whether a timestamp is neither infinity nor -infinity. */
  public static boolean isFiniteTimestamp(long micros) { return !isInfinite(micros); }

  /** Returns a day. Throws 22008 if it is not a finite date. */
  static int dayInRange(long day) {
    if (day < FIRST_DAY || day > LAST_DAY) throw outOfRange("date out of range");
    return (int) day;
  }

  /** Returns microseconds. Throws 22008 if they are not a finite timestamp. */
  static long inRange(long micros) {
    if (micros < FIRST || micros > LAST) throw outOfRange("timestamp out of range");
    return micros;
  }

  static SqlError outOfRange(String message) { return new SqlError("22008", message); }

  // ---- casts ------------------------------------------------------------------------------------

  @Returns("timestamp_ntz")
  public static long dateToTimestamp(int day) {
    if (isInfinite(day)) return day > 0 ? INFINITE : -INFINITE;
    if (day < FIRST_DAY || day > LAST / TimeUnits.DAY) throw outOfRange("date out of range for timestamp");
    return day * TimeUnits.DAY;
  }

  @Returns("timestamp")
  public static long dateToTimestamptz(int day) { return dateToTimestamp(day); }

  /**
   * Returns a date as a timestamp that it is compared with: dates after the last timestamp are the
   * last timestamp.
   */
  @Returns("timestamp_ntz")
  public static long dateBesideTimestamp(int day) {
    return !isInfinite(day) && day > LAST / TimeUnits.DAY ? LAST : dateToTimestamp(day);
  }

  @Returns("timestamp")
  public static long dateBesideTimestamptz(int day) { return dateBesideTimestamp(day); }

  /**
   * Returns the first millisecond since 1970 at or after a time, or strictly after it. An infinite
   * time is before or after all others.
   */
  public static long firstMillisecond(long micros, boolean after) {
    if (isInfinite(micros)) return micros > 0 ? FAR : -FAR;
    return after ? Math.floorDiv(micros, 1000) + 1 : -Math.floorDiv(-micros, 1000);
  }

  @Returns("date")
  public static int timestampToDate(long micros) {
    if (isInfinite(micros)) return micros > 0 ? INFINITE_DAY : -INFINITE_DAY;
    return (int) Math.floorDiv(micros, TimeUnits.DAY);
  }

  /** Rounds a timestamp to a number of digits of a second, as PostgreSQL does: from the year 2000. */
  static long rounded(long micros, int digits) {
    if (isInfinite(micros)) return micros;
    BigDecimal since2000 = BigDecimal.valueOf(micros - EPOCH_2000, MICRO_DIGITS).setScale(digits, RoundingMode.HALF_UP);
    return inRange(since2000.movePointRight(MICRO_DIGITS).longValueExact() + EPOCH_2000);
  }

  @Returns("timestamp_ntz")
  public static long roundTimestamp(long micros, int digits) { return rounded(micros, digits); }

  @Returns("timestamp")
  public static long roundTimestamptz(long micros, int digits) { return rounded(micros, digits); }

  // ---- arithmetic -------------------------------------------------------------------------------

  /** Returns a timestamp plus months, then days, then time, each times the sign. Throws 22008. */
  static long plus(long micros, Interval interval, int sign) {
    if (isInfinite(micros)) return micros;
    try {
      long result = micros;
      if (interval.months() != 0) {
        LocalDate date = LocalDate.ofEpochDay(Math.floorDiv(micros, TimeUnits.DAY)).plusMonths((long) sign * interval.months());
        long midnight = Math.multiplyExact(date.toEpochDay(), TimeUnits.DAY);
        result = Math.addExact(midnight, Math.floorMod(micros, TimeUnits.DAY));
      }
      result = Math.addExact(result, (long) sign * interval.days() * TimeUnits.DAY);
      return inRange(Math.addExact(result, Math.multiplyExact(interval.micros(), sign)));
    } catch (ArithmeticException e) {
      throw outOfRange("timestamp out of range");
    }
  }

  @Returns("timestamp_ntz")
  public static long timestampPlus(long micros, InternalRow interval, int sign) {
    return plus(micros, Interval.of(interval), sign);
  }

  @Returns("timestamp")
  public static long timestamptzPlus(long micros, InternalRow interval, int sign) {
    return plus(micros, Interval.of(interval), sign);
  }

  /** Returns the difference of two timestamps in days and time, without months. */
  public static InternalRow timestampMinus(long a, long b) {
    if (isInfinite(a) || isInfinite(b)) throw outOfRange("cannot subtract infinite timestamps");
    try {
      long micros = Math.subtractExact(a, b);
      return new Interval(0, (int) (micros / TimeUnits.DAY), micros % TimeUnits.DAY).row();
    } catch (ArithmeticException e) {
      throw outOfRange("interval out of range");
    }
  }

  @Returns("date")
  public static int datePlus(int day, long days) { return isInfinite(day) ? day : dayInRange(day + days); }

  public static int dateMinus(int a, int b) {
    if (isInfinite(a) || isInfinite(b)) throw outOfRange("cannot subtract infinite dates");
    return a - b;
  }

  // ---- parts ------------------------------------------------------------------------------------

  /**
   * Returns a part of a timestamp as decimal(precision, scale). The parts that grow with time are
   * out of range if it is infinite, the others are NULL.
   */
  public static Decimal extractTimestamp(UTF8String unit, long micros, int precision, int scale) {
    String name = unit.toString();
    if (isInfinite(micros)) return infinite(name);
    long time = Math.floorMod(micros, TimeUnits.DAY);
    BigDecimal part = switch (name) {
      case "hour" -> BigDecimal.valueOf(time / TimeUnits.HOUR);
      case "minute" -> BigDecimal.valueOf(time / TimeUnits.MINUTE % 60);
      case "second" -> BigDecimal.valueOf(time % TimeUnits.MINUTE, 6);
      case "millisecond" -> BigDecimal.valueOf(time % TimeUnits.MINUTE, 3);
      case "microsecond" -> BigDecimal.valueOf(time % TimeUnits.MINUTE);
      case "epoch" -> new BigDecimal(BigInteger.valueOf(micros), 6);
      default -> BigDecimal.valueOf(calendarPart(name, Math.floorDiv(micros, TimeUnits.DAY)));
    };
    return (Decimal) Numbers.of(part, DataTypes.createDecimalType(precision, scale));
  }

  /** Returns a part of a date as {@link #extractTimestamp} does. */
  public static Decimal extractDate(UTF8String unit, int day, int precision, int scale) {
    String name = unit.toString();
    if (isInfinite(day)) return infinite(name);
    long part = name.equals("epoch") ? day * 86_400L : calendarPart(name, day);
    return (Decimal) Numbers.of(BigDecimal.valueOf(part), DataTypes.createDecimalType(precision, scale));
  }

  private static Decimal infinite(String unit) {
    return switch (unit) {
      case "year", "isoyear", "decade", "century", "millennium", "epoch", "julian" ->
          throw new SqlError("22003", "numeric field overflow");
      default -> null;
    };
  }

  private static long calendarPart(String unit, long day) {
    LocalDate date = LocalDate.ofEpochDay(day);
    int year = date.getYear();  // astronomical: 0 is 1 BC
    return switch (unit) {
      case "year" -> shown(year);
      case "quarter" -> (date.getMonthValue() + 2) / 3;
      case "month" -> date.getMonthValue();
      case "week" -> date.get(IsoFields.WEEK_OF_WEEK_BASED_YEAR);
      case "day" -> date.getDayOfMonth();
      case "dow" -> date.getDayOfWeek() == DayOfWeek.SUNDAY ? 0 : date.getDayOfWeek().getValue();
      case "isodow" -> date.getDayOfWeek().getValue();
      case "doy" -> date.getDayOfYear();
      case "isoyear" -> shown(isoYear(date));
      case "decade" -> Math.floorDiv(year, 10);
      case "century" -> year > 0 ? (year + 99) / 100 : -((100 - year) / 100);
      case "millennium" -> year > 0 ? (year + 999) / 1000 : -((1000 - year) / 1000);
      case "julian" -> day - FIRST_DAY;
      default -> throw new IllegalArgumentException(unit);
    };
  }

  /** Returns the astronomical year of ISO 8601. */
  static int isoYear(LocalDate date) {
    return date.plusDays(DayOfWeek.THURSDAY.getValue() - date.getDayOfWeek().getValue()).getYear();
  }

  /** Returns an astronomical year as EXTRACT shows it: 0 is -1. */
  private static int shown(int year) { return year > 0 ? year : year - 1; }
}
