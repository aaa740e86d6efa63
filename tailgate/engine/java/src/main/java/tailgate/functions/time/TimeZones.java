package tailgate.functions.time;

import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneOffsetTransition;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.TextCache;

/**
 * Time zones by name, abbreviation or offset, and AT TIME ZONE.
 *
 * <p>Generated code calls the functions ({@code Functions}); arguments are not NULL. {@code
 * tailgate/values/times/zones.py} and {@code tailgate/sql/compute/time/zones.py} compute the same and name the sources.
 */
public final class TimeZones {
  private static final Map<String, Integer> MINUTES_BY_ABBREVIATION = new HashMap<>();  // east of UTC
  private static final Map<String, ZoneId> ZONES_BY_NAME = new HashMap<>();  // names in lower case
  private static final Pattern POSIX =
      Pattern.compile("(?:[A-Za-z]+|<[^>]+>)?([+-]?)(\\d{1,2})(?::?(\\d{2}))?(?::?(\\d{2}))?");
  private static final int CACHE_MAX = 1000;  // names: the prefix of an offset is any word
  private static final TextCache<ZoneId> CACHE = new TextCache<>(CACHE_MAX, name -> zone(name.toString()));

  static {
    abbreviations(0, "utc gmt z zulu ut wet uct");
    abbreviations(60, "cet met bst west");
    abbreviations(120, "cest mest eet sast ist");
    abbreviations(180, "eest msk idt");
    abbreviations(240, "msd gst");
    abbreviations(300, "pkt uzt");
    abbreviations(345, "npt");
    abbreviations(360, "bdst");
    abbreviations(420, "ict wib");
    abbreviations(480, "awst hkt sgt pht wita");
    abbreviations(540, "jst kst wit");
    abbreviations(570, "acst");
    abbreviations(600, "aest");
    abbreviations(630, "acdt");
    abbreviations(660, "aedt");
    abbreviations(720, "nzst");
    abbreviations(780, "nzdt");
    abbreviations(-150, "ndt");
    abbreviations(-180, "adt art brt");
    abbreviations(-210, "nst nft");
    abbreviations(-240, "ast edt clt");
    abbreviations(-300, "est cdt");
    abbreviations(-360, "cst mdt");
    abbreviations(-420, "mst pdt");
    abbreviations(-480, "pst akdt");
    abbreviations(-540, "akst hdt");
    abbreviations(-600, "hst");
    for (String name : ZoneId.getAvailableZoneIds()) {
      if (!name.startsWith("SystemV")) ZONES_BY_NAME.put(name.toLowerCase(Locale.ROOT), ZoneId.of(name));
    }
  }

  private static void abbreviations(int minutes, String names) {
    for (String name : names.split(" ")) MINUTES_BY_ABBREVIATION.put(name, minutes);
  }

  private TimeZones() {}

  /**
   * Returns the zone with a name. A number is an offset in hours west of UTC, as in POSIX. Throws
   * 22023.
   */
  static ZoneId zone(String name) {
    String lower = name.toLowerCase(Locale.ROOT);
    Integer minutes = MINUTES_BY_ABBREVIATION.get(lower);
    if (minutes != null) return ZoneOffset.ofTotalSeconds(minutes * 60);
    if (ZONES_BY_NAME.containsKey(lower)) return ZONES_BY_NAME.get(lower);
    Matcher m = POSIX.matcher(name);
    int seconds = !m.matches() ? Integer.MAX_VALUE : Integer.parseInt(m.group(2)) * 3600
        + (m.group(3) == null ? 0 : Integer.parseInt(m.group(3)) * 60)
        + (m.group(4) == null ? 0 : Integer.parseInt(m.group(4)));
    if (seconds > ZoneOffset.MAX.getTotalSeconds()) {
      throw SqlError.invalidParameter("time zone \"" + name + "\" not recognized");
    }
    return ZoneOffset.ofTotalSeconds(m.group(1).equals("-") ? seconds : -seconds);
  }

  /** Returns the zone of an abbreviation in lower case, or null. */
  static ZoneId abbreviation(String name) {
    Integer minutes = MINUTES_BY_ABBREVIATION.get(name);
    return minutes == null ? null : ZoneOffset.ofTotalSeconds(minutes * 60);
  }

  public static ZoneId zone(UTF8String name) {
    return CACHE.get(name);
  }

  /**
   * Converts a local time to UTC, both in microseconds. A time that a change of the clock skips is
   * read with the offset before the change; a time that occurs twice with the offset after it.
   */
  public static long toUtc(long local, ZoneId zone) {
    if (Timestamps.isInfinite(local)) return local;
    LocalDateTime time = LocalDateTime.ofEpochSecond(Math.floorDiv(local, TimeUnits.SECOND), 0, ZoneOffset.UTC);
    ZoneOffsetTransition change = zone.getRules().getTransition(time);
    ZoneOffset offset;
    if (change == null) offset = zone.getRules().getOffset(time);
    else offset = change.isGap() ? change.getOffsetBefore() : change.getOffsetAfter();
    return shifted(local, -offset.getTotalSeconds() * TimeUnits.SECOND);
  }

  public static long toLocal(long utc, ZoneId zone) {
    if (Timestamps.isInfinite(utc)) return utc;
    Instant instant = Instant.ofEpochSecond(Math.floorDiv(utc, TimeUnits.SECOND));
    return shifted(utc, zone.getRules().getOffset(instant).getTotalSeconds() * TimeUnits.SECOND);
  }

  /** Returns a timestamp that is some microseconds later. Throws 22008. */
  private static long shifted(long micros, long by) {
    if (Timestamps.isInfinite(micros)) return micros;
    try {
      return Timestamps.inRange(Math.addExact(micros, by));
    } catch (ArithmeticException e) {
      throw Timestamps.outOfRange("timestamp out of range");
    }
  }

  @Returns("timestamp")
  public static long timestampAtZone(UTF8String name, long local) {
    return Timestamps.isInfinite(local) ? local : toUtc(local, zone(name));
  }

  @Returns("timestamp_ntz")
  public static long timestamptzAtZone(UTF8String name, long utc) {
    return Timestamps.isInfinite(utc) ? utc : toLocal(utc, zone(name));
  }

  /** Returns an offset east of UTC in seconds, without a fraction. It may have more than a day. */
  static long offsetSeconds(InternalRow offset) {
    Interval i = Interval.of(offset);
    if (i.months() != 0 || i.days() != 0) {
      String shown = TimeOutput.interval(offset);
      throw SqlError.invalidParameter("interval time zone \"" + shown + "\" must not include months or days");
    }
    return i.micros() / TimeUnits.SECOND;
  }

  @Returns("timestamp")
  public static long timestampAtOffset(InternalRow offset, long local) {
    return shifted(local, -offsetSeconds(offset) * TimeUnits.SECOND);
  }

  @Returns("timestamp_ntz")
  public static long timestamptzAtOffset(InternalRow offset, long utc) {
    return shifted(utc, offsetSeconds(offset) * TimeUnits.SECOND);
  }
}
