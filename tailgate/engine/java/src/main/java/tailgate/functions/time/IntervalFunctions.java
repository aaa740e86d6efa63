package tailgate.functions.time;

import java.math.BigDecimal;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.numeric.Numbers;

/**
 * Functions of intervals.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/time/interval_functions.py} computes the same and names the sources.
 */
public final class IntervalFunctions {
  private IntervalFunctions() {}

  private interface Computation {
    Interval run();
  }

  /** Returns the stored form of a result. Throws 22008 if the computation overflows. */
  private static InternalRow row(Computation computation) {
    try {
      return computation.run().row();
    } catch (ArithmeticException e) {
      throw Interval.outOfRange();
    }
  }

  // ---- arithmetic -------------------------------------------------------------------------------

  public static InternalRow intervalAdd(InternalRow x, InternalRow y) {
    Interval a = Interval.of(x);
    Interval b = Interval.of(y);
    return row(() -> Interval.of(
        (long) a.months() + b.months(), (long) a.days() + b.days(), Math.addExact(a.micros(), b.micros())));
  }

  public static InternalRow intervalSubtract(InternalRow x, InternalRow y) {
    Interval a = Interval.of(x);
    Interval b = Interval.of(y);
    return row(() -> Interval.of(
        (long) a.months() - b.months(), (long) a.days() - b.days(), Math.subtractExact(a.micros(), b.micros())));
  }

  public static InternalRow intervalNegate(InternalRow x) {
    Interval a = Interval.of(x);
    return row(() -> Interval.of(-(long) a.months(), -(long) a.days(), Math.negateExact(a.micros())));
  }

  public static InternalRow intervalMultiply(InternalRow x, double factor) {
    Interval a = Interval.of(x);
    return rounded(a.months() * factor, a.days() * factor, a.micros() * factor);
  }

  public static InternalRow intervalDivide(InternalRow x, double divisor) {
    Interval a = Interval.of(x);
    if (divisor == 0) throw new SqlError("22012", "division by zero");
    return rounded(a.months() / divisor, a.days() / divisor, a.micros() / divisor);
  }

  private static double roundToMicros(double seconds) { return Math.rint(seconds * 1e6) / 1e6; }

  /**
   * Returns an interval of integers: fractions of months become days (30 each), fractions of days
   * become time.
   */
  private static InternalRow rounded(double months, double days, double micros) {
    if (!(Math.abs(months) < 1L << 31) || !(Math.abs(days) < 1L << 31) || Double.isNaN(micros)) {
      throw Interval.outOfRange();
    }
    int wholeMonths = (int) months;
    int wholeDays = (int) days;
    double monthDays = roundToMicros((months - wholeMonths) * 30);
    double seconds = roundToMicros((days - wholeDays + monthDays - (int) monthDays) * 86400);
    long totalDays = wholeDays;
    if (Math.abs(seconds) >= 86400) {
      totalDays += (int) (seconds / 86400);
      seconds -= (int) (seconds / 86400) * 86400;
    }
    double totalMicros = micros + seconds * 1e6;
    if (!(Math.abs(totalMicros) < 9.223372036854775807e18)) throw Interval.outOfRange();
    return Interval.of(wholeMonths, totalDays + (int) monthDays, (long) Math.rint(totalMicros)).row();
  }

  // ---- justification ----------------------------------------------------------------------------

  public static InternalRow justifyHours(InternalRow x) {
    Interval a = Interval.of(x);
    long[] daysMicros = sameSign(a.days() + a.micros() / TimeUnits.DAY, a.micros() % TimeUnits.DAY, TimeUnits.DAY);
    return Interval.of(a.months(), daysMicros[0], daysMicros[1]).row();
  }

  public static InternalRow justifyDays(InternalRow x) {
    Interval a = Interval.of(x);
    long[] monthsDays = sameSign((long) a.months() + a.days() / 30, a.days() % 30, 30);
    return Interval.of(monthsDays[0], monthsDays[1], a.micros()).row();
  }

  public static InternalRow justifyInterval(InternalRow x) {
    Interval a = Interval.of(x);
    long days = a.days() + a.micros() / TimeUnits.DAY;
    long micros = a.micros() % TimeUnits.DAY;
    long months = a.months() + days / 30;
    days %= 30;
    if (months > 0 && (days < 0 || days == 0 && micros < 0)) {
      months--;
      days += 30;
    } else if (months < 0 && (days > 0 || days == 0 && micros > 0)) {
      months++;
      days -= 30;
    }
    long[] daysMicros = sameSign(days, micros, TimeUnits.DAY);
    return Interval.of(months, daysMicros[0], daysMicros[1]).row();
  }

  /** Moves one unit between a large and a small part whose signs differ. */
  private static long[] sameSign(long large, long small, long unit) {
    if (large > 0 && small < 0) return new long[] {large - 1, small + unit};
    if (large < 0 && small > 0) return new long[] {large + 1, small - unit};
    return new long[] {large, small};
  }

  public static InternalRow makeInterval(
      int years, int months, int weeks, int days, int hours, int minutes, double seconds) {
    if (Double.isNaN(seconds) || Double.isInfinite(seconds)) throw Interval.outOfRange();
    long time = hours * TimeUnits.HOUR + minutes * TimeUnits.MINUTE;
    return row(() -> Interval.of(
        years * 12L + months, weeks * 7L + days, Math.addExact(time, (long) Math.rint(seconds * 1e6))));
  }

  // ---- parts ------------------------------------------------------------------------------------

  public static InternalRow dateTruncInterval(UTF8String word, InternalRow value) {
    Interval i = Interval.of(value);
    String unit = TimeUnits.unit(word);
    int monthsPerUnit = switch (unit) {
      case "millennium" -> 12000;
      case "century" -> 1200;
      case "decade" -> 120;
      case "year" -> 12;
      case "quarter" -> 3;
      case "month" -> 1;
      default -> 0;
    };
    if (monthsPerUnit > 0) return new Interval(i.months() / monthsPerUnit * monthsPerUnit, 0, 0).row();
    if (unit.equals("day")) return new Interval(i.months(), i.days(), 0).row();
    long microsPerUnit = switch (unit) {
      case "hour" -> TimeUnits.HOUR;
      case "minute" -> TimeUnits.MINUTE;
      case "second" -> TimeUnits.SECOND;
      case "millisecond" -> 1000;
      case "microsecond" -> 1;
      default -> throw TimeUnits.unsupported(word, "interval");
    };
    return new Interval(i.months(), i.days(), i.micros() / microsPerUnit * microsPerUnit).row();
  }

  public static Decimal extractInterval(UTF8String word, InternalRow value, int precision, int scale) {
    Interval i = Interval.of(value);
    long years = i.months() / 12;
    long months = i.months() % 12;
    long microsOfMinute = i.micros() % TimeUnits.MINUTE;
    BigDecimal part = switch (TimeUnits.unit(word)) {
      case "year" -> BigDecimal.valueOf(years);
      case "month" -> BigDecimal.valueOf(months);
      case "day" -> BigDecimal.valueOf(i.days());
      case "quarter" -> BigDecimal.valueOf(months / 3 + 1);
      case "decade" -> BigDecimal.valueOf(years / 10);
      case "century" -> BigDecimal.valueOf(years / 100);
      case "millennium" -> BigDecimal.valueOf(years / 1000);
      case "hour" -> BigDecimal.valueOf(i.micros() / TimeUnits.HOUR);
      case "minute" -> BigDecimal.valueOf(i.micros() / TimeUnits.MINUTE % 60);
      case "microsecond" -> BigDecimal.valueOf(microsOfMinute);
      case "second" -> BigDecimal.valueOf(microsOfMinute, 6);
      case "millisecond" -> BigDecimal.valueOf(microsOfMinute, 3);
      case "epoch" -> {  // a year has 365.25 days, a month has 30
        long seconds = years * 31_557_600 + months * 2_592_000 + i.days() * 86_400L;
        yield BigDecimal.valueOf(seconds).add(BigDecimal.valueOf(i.micros(), 6));
      }
      default -> throw TimeUnits.unsupported(word, "interval");
    };
    return (Decimal) Numbers.of(part, DataTypes.createDecimalType(precision, scale));
  }

  /**
   * Returns the seconds of an interval for date_part(): a sum of doubles, in PostgreSQL's order.
   */
  public static double epochInterval(InternalRow value) {
    Interval i = Interval.of(value);
    double seconds = i.micros() / 1e6;
    seconds += 365.25 * 86_400 * (i.months() / 12);
    seconds += 30.0 * 86_400 * (i.months() % 12);
    return seconds + 86_400.0 * i.days();
  }
}
