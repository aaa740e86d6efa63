package tailgate;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.*;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Dates, times and intervals. The twin of sql/compute/times.py, which names its sources. A timestamp is microseconds since 1970, a time microseconds of the day.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class Times {
  static final long DAY = 86_400_000_000L, HOUR = 3_600_000_000L, MINUTE = 60_000_000, SECOND = 1_000_000;
  private static final Map<String, String> SPELLINGS = new HashMap<>();

  static {
    for (String line : ("microsecond microseconds microsecon us usec usecond useconds usecs/millisecond milliseconds millisecon ms msec msecond mseconds msecs/second seconds s sec secs/minute minutes m min mins/"
        + "hour hours h hr hrs/day days d/week weeks w/month months mon mons/quarter qtr/year years y yr yrs/decade decades dec decs/century centuries c cent/millennium millennia mil mils/dow/isodow/doy/epoch/"
        + "isoyear/julian/timezone/timezone_hour timezone_h/timezone_minute timezone_m").split("/"))
      for (String word : line.split(" ")) SPELLINGS.put(word, line.split(" ")[0]);
  }

  private static final java.util.Set<String> UNITS = java.util.Set.of("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium");

  private Times() {}

  record Interval(int months, int days, long micros) {
    static Interval of(InternalRow row) { return new Interval(row.getInt(0), row.getInt(1), row.getLong(2)); }

    static Interval of(long months, long days, long micros) {
      if (months != (int) months || days != (int) days) throw outOfRange();
      return new Interval((int) months, (int) days, micros);
    }

    InternalRow row() { return new GenericInternalRow(new Object[] {months, days, micros}); }
  }

  static SqlError outOfRange() { return new SqlError("22008", "interval out of range"); }

  private interface Made { Interval get(); }

  private static InternalRow row(Made made) {
    try {
      return made.get().row();
    } catch (ArithmeticException e) {
      throw outOfRange();
    }
  }

  // ---- intervals ----------------------------------------------------------------------------------------------------------------

  public static InternalRow intervalAdd(InternalRow x, InternalRow y) {
    Interval a = Interval.of(x), b = Interval.of(y);
    return row(() -> Interval.of((long) a.months + b.months, (long) a.days + b.days, Math.addExact(a.micros, b.micros)));
  }

  public static InternalRow intervalSubtract(InternalRow x, InternalRow y) {
    Interval a = Interval.of(x), b = Interval.of(y);
    return row(() -> Interval.of((long) a.months - b.months, (long) a.days - b.days, Math.subtractExact(a.micros, b.micros)));
  }

  public static InternalRow intervalNegate(InternalRow x) {
    Interval a = Interval.of(x);
    return row(() -> Interval.of(-(long) a.months, -(long) a.days, Math.negateExact(a.micros)));
  }

  public static InternalRow intervalMultiply(InternalRow x, double factor) {
    Interval a = Interval.of(x);
    return scaled(a.months * factor, a.days * factor, a.micros * factor);
  }

  public static InternalRow intervalDivide(InternalRow x, double divisor) {
    Interval a = Interval.of(x);
    if (divisor == 0) throw new SqlError("22012", "division by zero");
    return scaled(a.months / divisor, a.days / divisor, a.micros / divisor);
  }

  private static double round(double seconds) { return Math.rint(seconds * 1e6) / 1e6; }

  /** A part of a month goes to days of 30, a part of a day to hours. */
  private static InternalRow scaled(double months, double days, double micros) {
    if (!(Math.abs(months) < 1L << 31) || !(Math.abs(days) < 1L << 31) || Double.isNaN(micros)) throw outOfRange();
    int month = (int) months, day = (int) days;
    double monthDays = round((months - month) * 30), seconds = round((days - day + monthDays - (int) monthDays) * 86400);
    long allDays = day;
    if (Math.abs(seconds) >= 86400) {
      allDays += (int) (seconds / 86400);
      seconds -= (int) (seconds / 86400) * 86400;
    }
    double total = micros + seconds * 1e6;
    if (!(Math.abs(total) < 9.223372036854775807e18)) throw outOfRange();
    return Interval.of(month, allDays + (int) monthDays, (long) Math.rint(total)).row();
  }

  public static InternalRow justifyHours(InternalRow x) {
    Interval a = Interval.of(x);
    long[] fixed = sameSign(a.days + a.micros / DAY, a.micros % DAY, DAY);
    return Interval.of(a.months, fixed[0], fixed[1]).row();
  }

  public static InternalRow justifyDays(InternalRow x) {
    Interval a = Interval.of(x);
    long[] fixed = sameSign((long) a.months + a.days / 30, a.days % 30, 30);
    return Interval.of(fixed[0], fixed[1], a.micros).row();
  }

  public static InternalRow justifyInterval(InternalRow x) {
    Interval a = Interval.of(x);
    long days = a.days + a.micros / DAY, micros = a.micros % DAY, months = a.months + days / 30;
    days %= 30;
    if (months > 0 && (days < 0 || days == 0 && micros < 0)) {
      months--;
      days += 30;
    } else if (months < 0 && (days > 0 || days == 0 && micros > 0)) {
      months++;
      days -= 30;
    }
    long[] fixed = sameSign(days, micros, DAY);
    return Interval.of(months, fixed[0], fixed[1]).row();
  }

  private static long[] sameSign(long large, long small, long unit) {
    if (large > 0 && small < 0) return new long[] {large - 1, small + unit};
    if (large < 0 && small > 0) return new long[] {large + 1, small - unit};
    return new long[] {large, small};
  }

  public static InternalRow makeInterval(int years, int months, int weeks, int days, int hours, int mins, double secs) {
    if (Double.isNaN(secs) || Double.isInfinite(secs)) throw outOfRange();
    return row(() -> Interval.of(years * 12L + months, weeks * 7L + days, Math.addExact(hours * HOUR + mins * MINUTE, (long) Math.rint(secs * 1e6))));
  }

  // ---- making -------------------------------------------------------------------------------------------------------------------

  private static String g(double seconds) { return seconds == Math.rint(seconds) && Math.abs(seconds) < 1e6 ? String.valueOf((long) seconds) : String.valueOf(seconds); }

  @Functions.Returns("date")
  public static int makeDate(int year, int month, int day) {
    if (year < 0) throw new SqlError("0A000", "years before 1 are not supported");
    if (year > 9999 && month >= 1 && month <= 12 && day >= 1 && day <= 31) throw new SqlError("0A000", "years beyond 9999 are not supported");
    try {
      if (year > 0) return (int) LocalDate.of(year, month, day).toEpochDay();
    } catch (DateTimeException e) {
      // below
    }
    throw new SqlError("22008", String.format("date field value out of range: %d-%02d-%02d", year, month, day));
  }

  public static long makeTime(int hour, int minute, double seconds) {
    long micros = Double.isNaN(seconds) || Double.isInfinite(seconds) || Math.abs(seconds) > 1e6 ? -1
        : new BigDecimal(Double.toString(seconds)).movePointRight(6).setScale(0, RoundingMode.HALF_EVEN).longValue();
    long total = hour * HOUR + minute * MINUTE + micros;
    if (hour < 0 || hour > 24 || minute < 0 || minute > 59 || micros < 0 || micros > MINUTE || total > DAY) throw new SqlError("22008", String.format("time field value out of range: %d:%02d:%s", hour, minute, g(seconds)));
    return total;
  }

  @Functions.Returns("timestamp_ntz")
  public static long makeTimestamp(int year, int month, int day, int hour, int minute, double seconds) { return makeDate(year, month, day) * DAY + makeTime(hour, minute, seconds); }

  @Functions.Returns("timestamp")
  public static long makeTimestamptz(int year, int month, int day, int hour, int minute, double seconds, UTF8String zone) {
    long local = makeTimestamp(year, month, day, hour, minute, seconds);
    String name = zone.toString();
    // here numbers are east, as in a literal
    if (name.matches("[+-]\\d.*")) name = (name.charAt(0) == '+' ? "-" : "+") + name.substring(1);
    return Zones.toUtc(local, Zones.zone(name));
  }

  // ---- parts --------------------------------------------------------------------------------------------------------------------

  private static String unit(UTF8String word) {
    String lower = word.toString().toLowerCase(Locale.ROOT);
    return SPELLINGS.getOrDefault(lower, lower);
  }

  private static SqlError unrecognized(UTF8String word, String type) {
    String lower = word.toString().toLowerCase(Locale.ROOT);
    boolean known = UNITS.contains(unit(word));
    return new SqlError(known ? "0A000" : "22023", "unit \"" + lower + "\" not " + (known ? "supported" : "recognized") + " for type " + type);
  }

  private static long truncated(UTF8String word, long value, String type) {
    String unit = unit(word);
    long size = switch (unit) {
      case "microsecond" -> 1;
      case "millisecond" -> 1000;
      case "second" -> SECOND;
      case "minute" -> MINUTE;
      case "hour" -> HOUR;
      case "day" -> DAY;
      default -> 0;
    };
    if (size > 0) return value - Math.floorMod(value, size);
    LocalDate day = LocalDate.ofEpochDay(Math.floorDiv(value, DAY));
    int y = day.getYear();
    return DAY * switch (unit) {
      case "week" -> day.minusDays(day.getDayOfWeek().getValue() - 1).toEpochDay();
      case "month" -> day.withDayOfMonth(1).toEpochDay();
      case "quarter" -> LocalDate.of(y, (day.getMonthValue() - 1) / 3 * 3 + 1, 1).toEpochDay();
      case "year" -> LocalDate.of(y, 1, 1).toEpochDay();
      case "decade" -> LocalDate.of(Math.max(y / 10 * 10, 1), 1, 1).toEpochDay();
      case "century" -> LocalDate.of((y - 1) / 100 * 100 + 1, 1, 1).toEpochDay();
      case "millennium" -> LocalDate.of((y - 1) / 1000 * 1000 + 1, 1, 1).toEpochDay();
      default -> throw unrecognized(word, type);
    };
  }

  @Functions.Returns("timestamp_ntz")
  public static long dateTruncTimestamp(UTF8String word, long value) { return truncated(word, value, "timestamp without time zone"); }

  @Functions.Returns("timestamp")
  public static long dateTruncTimestamptz(UTF8String word, long value, UTF8String zone) {
    ZoneId at = Zones.zone(zone);
    return Zones.toUtc(truncated(word, Zones.toLocal(value, at), "timestamp with time zone"), at);
  }

  public static InternalRow dateTruncInterval(UTF8String word, InternalRow value) {
    Interval i = Interval.of(value);
    String unit = unit(word);
    int years = switch (unit) {
      case "year" -> 12;
      case "decade" -> 120;
      case "century" -> 1200;
      case "millennium" -> 12000;
      case "quarter" -> 3;
      case "month" -> 1;
      default -> 0;
    };
    if (years > 0) return new Interval(i.months / years * years, 0, 0).row();
    if (unit.equals("day")) return new Interval(i.months, i.days, 0).row();
    long size = switch (unit) {
      case "hour" -> HOUR;
      case "minute" -> MINUTE;
      case "second" -> SECOND;
      case "millisecond" -> 1000;
      case "microsecond" -> 1;
      default -> throw unrecognized(word, "interval");
    };
    return new Interval(i.months, i.days, i.micros / size * size).row();
  }

  private static Decimal exact(BigDecimal value, int precision, int scale) { return (Decimal) Numbers.of(value, DataTypes.createDecimalType(precision, scale)); }

  public static Decimal extractInterval(UTF8String word, InternalRow value, int precision, int scale) {
    Interval i = Interval.of(value);
    long years = i.months / 12, month = i.months % 12, rest = i.micros % MINUTE;
    return exact(switch (unit(word)) {
      case "year" -> BigDecimal.valueOf(years);
      case "month" -> BigDecimal.valueOf(month);
      case "day" -> BigDecimal.valueOf(i.days);
      case "quarter" -> BigDecimal.valueOf(month / 3 + 1);
      case "decade" -> BigDecimal.valueOf(years / 10);
      case "century" -> BigDecimal.valueOf(years / 100);
      case "millennium" -> BigDecimal.valueOf(years / 1000);
      case "hour" -> BigDecimal.valueOf(i.micros / HOUR);
      case "minute" -> BigDecimal.valueOf(i.micros / MINUTE % 60);
      case "microsecond" -> BigDecimal.valueOf(rest);
      case "second" -> BigDecimal.valueOf(rest, 6);
      case "millisecond" -> BigDecimal.valueOf(rest, 3);
      case "epoch" -> BigDecimal.valueOf(years * 31_557_600 + month * 2_592_000 + i.days * 86_400L).add(BigDecimal.valueOf(i.micros, 6));  // a year has 365.25 days
      default -> throw unrecognized(word, "interval");
    }, precision, scale);
  }

  /** As date_part gives it: a sum of doubles, in PostgreSQL's order. */
  public static double epochInterval(InternalRow value) {
    Interval i = Interval.of(value);
    return i.micros / 1e6 + 365.25 * 86_400 * (i.months / 12) + 30.0 * 86_400 * (i.months % 12) + 86_400.0 * i.days;
  }

  public static Decimal extractTime(UTF8String word, long micros, int precision, int scale) {
    return exact(switch (unit(word)) {
      case "hour" -> BigDecimal.valueOf(micros / HOUR);
      case "minute" -> BigDecimal.valueOf(micros / MINUTE % 60);
      case "second" -> BigDecimal.valueOf(micros % MINUTE, 6);
      case "millisecond" -> BigDecimal.valueOf(micros % MINUTE, 3);
      case "microsecond" -> BigDecimal.valueOf(micros % MINUTE);
      case "epoch" -> BigDecimal.valueOf(micros, 6);
      default -> throw unrecognized(word, "time without time zone");
    }, precision, scale);
  }

  @Functions.Returns("timestamp_ntz")
  public static long dateBin(InternalRow stride, long value, long origin) {
    Interval i = Interval.of(stride);
    if (i.months != 0) throw new SqlError("0A000", "timestamps cannot be binned into intervals containing months or years");
    long size = Math.addExact(i.days * DAY, i.micros);
    if (size <= 0) throw new SqlError("22008", "stride must be greater than zero");
    return origin + Math.floorDiv(value - origin, size) * size;
  }

  /** In years, months and days, where a subtraction is in days. */
  public static InternalRow age(long a, long b) {
    boolean negative = a < b;
    long later = negative ? b : a, earlier = negative ? a : b;
    LocalDate x = LocalDate.ofEpochDay(Math.floorDiv(later, DAY)), y = LocalDate.ofEpochDay(Math.floorDiv(earlier, DAY));
    long micros = Math.floorMod(later, DAY) - Math.floorMod(earlier, DAY);
    int days = x.getDayOfMonth() - y.getDayOfMonth(), months = (x.getYear() - y.getYear()) * 12 + x.getMonthValue() - y.getMonthValue();
    if (micros < 0) {
      micros += DAY;
      days--;
    }
    if (days < 0) {
      days += y.lengthOfMonth();
      months--;
    }
    return (negative ? new Interval(-months, -days, -micros) : new Interval(months, days, micros)).row();
  }

  // ---- time of day --------------------------------------------------------------------------------------------------------------

  public static long timeAdd(long micros, InternalRow value) { return Math.floorMod(micros + Interval.of(value).micros % DAY, DAY); }

  public static long timeSubtract(long micros, InternalRow value) { return Math.floorMod(micros - Interval.of(value).micros % DAY, DAY); }

  @Functions.Returns("timestamp_ntz")
  public static long dateAtTime(int day, long micros) { return day * DAY + micros; }
}
