package tailgate.functions.time;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.numeric.Numbers;

/**
 * Functions of time with time zone, whose value is one number: the time in UTC, then the offset west
 * of UTC.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/values/times/zoned_times.py} describes the number and names the source.
 */
public final class ZonedTimes {
  private static final int OFFSET_BITS = 17;
  private static final long OFFSET_ZERO = 1 << (OFFSET_BITS - 1);
  private static final int MICRO_DIGITS = 6;
  private static final int MINUTE = 60;
  private static final int HOUR = 3600;

  private ZonedTimes() {}

  /** Returns the value of microseconds since midnight and an offset in seconds east of UTC. */
  static long zoned(long micros, long east) {
    return (micros - east * TimeUnits.SECOND << OFFSET_BITS) + OFFSET_ZERO - east;
  }

  /** Returns the offset of a value in seconds east of UTC. */
  private static long east(long value) { return OFFSET_ZERO - (value & (1 << OFFSET_BITS) - 1); }

  /** Returns the microseconds since midnight of UTC, which may be on the day before or after. */
  private static long utc(long value) { return value >> OFFSET_BITS; }

  /** Returns the microseconds since midnight of a value. */
  public static long timetzToTime(long value) { return utc(value) + east(value) * TimeUnits.SECOND; }

  // ---- text -------------------------------------------------------------------------------------

  /** Reads a time. A text without a zone is in UTC. */
  public static long textToTimetz(UTF8String text) {
    TimeInput.TimeOfDay time = TimeInput.timeOfDay(text, "time with time zone");
    ZoneId zone = time.zone() == null ? ZoneOffset.UTC : time.zone();
    if (zone.getRules().isFixedOffset()) {
      return zoned(time.micros(), zone.getRules().getOffset(Instant.EPOCH).getTotalSeconds());
    }
    long local = time.date().toEpochDay() * TimeUnits.DAY + time.micros();
    return zoned(time.micros(), (local - TimeZones.toUtc(local, zone)) / TimeUnits.SECOND);
  }

  public static UTF8String timetzToText(long value) {
    long east = east(value);
    long seconds = Math.abs(east);
    StringBuilder text = new StringBuilder(TimeOutput.time(timetzToTime(value)));
    text.append(String.format("%c%02d", east < 0 ? '-' : '+', seconds / HOUR));
    if (seconds % HOUR != 0) text.append(String.format(":%02d", seconds / MINUTE % MINUTE));
    if (seconds % MINUTE != 0) text.append(String.format(":%02d", seconds % MINUTE));
    return UTF8String.fromString(text.toString());
  }

  // ---- casts ------------------------------------------------------------------------------------

  public static long timeToTimetz(long micros) { return zoned(micros, 0); }

  public static long roundTimetz(long value, int digits) {
    long unit = BigDecimal.ONE.movePointRight(MICRO_DIGITS - digits).longValueExact();
    return zoned((timetzToTime(value) + unit / 2) / unit * unit, east(value));
  }

  // ---- parts ------------------------------------------------------------------------------------

  public static Decimal extractTimetz(UTF8String word, long value, int precision, int scale) {
    long east = east(value);
    BigDecimal part = switch (TimeUnits.unit(word)) {
      case "timezone" -> BigDecimal.valueOf(east);
      case "timezone_hour" -> BigDecimal.valueOf(east / HOUR);
      case "timezone_minute" -> BigDecimal.valueOf(east / MINUTE % MINUTE);
      case "epoch" -> BigDecimal.valueOf(utc(value), MICRO_DIGITS);
      default -> Times.part(word, timetzToTime(value), "time with time zone");
    };
    return (Decimal) Numbers.of(part, DataTypes.createDecimalType(precision, scale));
  }

  /** Returns the seconds since midnight of UTC, summed in PostgreSQL's order. */
  public static double epochTimetz(long value) { return timetzToTime(value) / 1e6 - east(value); }

  // ---- arithmetic -------------------------------------------------------------------------------

  public static long timetzAdd(long value, InternalRow interval) {
    return zoned(Times.timeAdd(timetzToTime(value), interval), east(value));
  }

  public static long timetzSubtract(long value, InternalRow interval) {
    return zoned(Times.timeSubtract(timetzToTime(value), interval), east(value));
  }

  /** Returns the moment of a date and a time. */
  @Returns("timestamp")
  public static long dateAtTimetz(int day, long value) {
    long midnight = Timestamps.dateToTimestamp(day);
    return Timestamps.isInfinite(midnight) ? midnight : Timestamps.inRange(midnight + utc(value));
  }

  /** Returns the same time at another offset from UTC. */
  public static long timetzAtOffset(InternalRow offset, long value) {
    long east = TimeZones.offsetSeconds(offset);
    if (Math.abs(east) > ZoneOffset.MAX.getTotalSeconds()) throw new SqlError("22009", "time zone displacement out of range");
    return zoned(Math.floorMod(utc(value) + east * TimeUnits.SECOND, TimeUnits.DAY), east);
  }
}
