package tailgate;

import java.time.*;
import java.time.zone.ZoneOffsetTransition;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Time zones by name, abbreviation or offset, and AT TIME ZONE. The twin of sql/input/zones.py and sql/compute/zones.py, which name their sources.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class Zones {
  private static final Map<String, Integer> ABBREVIATIONS = new HashMap<>();  // minutes east
  private static final Map<String, ZoneId> NAMES = new HashMap<>();
  private static final Pattern POSIX = Pattern.compile("(?:[A-Za-z]{3,}|<[^>]+>)?([+-]?)(\\d{1,2})(?::?(\\d{2}))?(?::?(\\d{2}))?");
  private static final ConcurrentHashMap<UTF8String, ZoneId> FOUND = new ConcurrentHashMap<>();

  static {
    Object[] table = {0, "utc gmt z zulu ut wet uct", 60, "cet met bst west", 120, "cest mest eet sast ist", 180, "eest msk idt", 240, "msd gst", 300, "pkt uzt", 345, "npt", 360, "bdst", 420, "ict wib", 480,
        "awst hkt sgt pht wita", 540, "jst kst wit", 570, "acst", 600, "aest", 630, "acdt", 660, "aedt", 720, "nzst", 780, "nzdt", -150, "ndt", -180, "adt art brt", -210, "nst nft", -240, "ast edt clt", -300,
        "est cdt", -360, "cst mdt", -420, "mst pdt", -480, "pst akdt", -540, "akst hdt", -600, "hst"};
    for (int i = 0; i < table.length; i += 2) for (String name : ((String) table[i + 1]).split(" ")) ABBREVIATIONS.put(name, (Integer) table[i]);
    for (String name : ZoneId.getAvailableZoneIds()) if (!name.startsWith("SystemV")) NAMES.put(name.toLowerCase(Locale.ROOT), ZoneId.of(name));
  }

  private Zones() {}

  /** 22023. Numbers are POSIX's: hours west. */
  static ZoneId zone(String name) {
    String lower = name.toLowerCase(Locale.ROOT);
    Integer minutes = ABBREVIATIONS.get(lower);
    if (minutes != null) return ZoneOffset.ofTotalSeconds(minutes * 60);
    if (NAMES.containsKey(lower)) return NAMES.get(lower);
    Matcher m = POSIX.matcher(name);
    if (!m.matches() || Integer.parseInt(m.group(2)) > 18) throw Strings.parameter("time zone \"" + name + "\" not recognized");
    int seconds = Integer.parseInt(m.group(2)) * 3600 + (m.group(3) == null ? 0 : Integer.parseInt(m.group(3)) * 60) + (m.group(4) == null ? 0 : Integer.parseInt(m.group(4)));
    return ZoneOffset.ofTotalSeconds(m.group(1).equals("-") ? seconds : -seconds);
  }

  static ZoneId zone(UTF8String name) {
    ZoneId found = FOUND.get(name);
    if (found == null) FOUND.put(name.clone(), found = zone(name.toString()));
    return found;
  }

  /** A local time that was skipped is read with the offset before the change, one that came twice with the one after it. */
  static long toUtc(long local, ZoneId zone) {
    LocalDateTime time = LocalDateTime.ofEpochSecond(Math.floorDiv(local, 1_000_000L), 0, ZoneOffset.UTC);
    ZoneOffsetTransition change = zone.getRules().getTransition(time);
    ZoneOffset offset = change == null ? zone.getRules().getOffset(time) : change.isGap() ? change.getOffsetBefore() : change.getOffsetAfter();
    return local - offset.getTotalSeconds() * 1_000_000L;
  }

  static long toLocal(long moment, ZoneId zone) { return moment + zone.getRules().getOffset(Instant.ofEpochSecond(Math.floorDiv(moment, 1_000_000L))).getTotalSeconds() * 1_000_000L; }

  @Functions.Returns("timestamp")
  public static long timestampAtZone(UTF8String name, long local) { return toUtc(local, zone(name)); }

  @Functions.Returns("timestamp_ntz")
  public static long timestamptzAtZone(UTF8String name, long moment) { return toLocal(moment, zone(name)); }

  private static long fixed(InternalRow offset) {
    Times.Interval i = Times.Interval.of(offset);
    if (i.months() != 0 || i.days() != 0) throw Strings.parameter("interval time zone must not include months or days");
    return i.micros();
  }

  @Functions.Returns("timestamp")
  public static long timestampAtOffset(InternalRow offset, long local) { return local - fixed(offset); }

  @Functions.Returns("timestamp_ntz")
  public static long timestamptzAtOffset(InternalRow offset, long moment) { return moment + fixed(offset); }
}
