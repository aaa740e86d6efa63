package tailgate.functions.ksqldb;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoField;
import java.time.temporal.TemporalAccessor;
import java.time.temporal.TemporalQueries;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.TextCache;
import tailgate.functions.time.TimeZones;

/**
 * ksqlDB's functions of dates and times: formatting and parsing by a pattern, in a time zone. Missing
 * fields are those of 1970-01-01 00:00:00.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/ksqldb/times.py} computes the same and names the sources.
 */
public final class KsqldbTimes {
  private static final long SECOND = 1_000_000;  // microseconds
  private static final int CACHE_MAX = 256;  // patterns
  private static final ZoneId UTC = ZoneId.of("UTC");  // has this name, unlike ZoneOffset.UTC
  private static final LocalDate EPOCH = LocalDate.of(1970, 1, 1);
  private static final UTF8String TIME = UTF8String.fromString("time"), DAY = UTF8String.fromString("day");
  private static final TextCache<DateTimeFormatter> FORMATTERS = new TextCache<>(CACHE_MAX, KsqldbTimes::newFormatter);
  private static final TextCache<DateTimeFormatter> PARSERS = new TextCache<>(CACHE_MAX, KsqldbTimes::newParser);

  /** Letters of patterns, and how often each may occur in a row. */
  private static final Map<Character, Integer> LETTERS = Map.ofEntries(
      Map.entry('y', 9), Map.entry('u', 9), Map.entry('M', 5), Map.entry('L', 5), Map.entry('d', 2), Map.entry('D', 3),
      Map.entry('E', 5), Map.entry('G', 4), Map.entry('Q', 4), Map.entry('q', 4), Map.entry('w', 2), Map.entry('W', 1),
      Map.entry('Y', 9), Map.entry('A', 9), Map.entry('N', 18), Map.entry('O', 4), Map.entry('a', 1),
      Map.entry('H', 2), Map.entry('k', 2), Map.entry('K', 2), Map.entry('h', 2),
      Map.entry('m', 2), Map.entry('s', 2), Map.entry('S', 9), Map.entry('n', 9), Map.entry('X', 5), Map.entry('x', 5),
      Map.entry('Z', 5), Map.entry('e', 5), Map.entry('c', 5), Map.entry('V', 2), Map.entry('z', 4));

  /** Letters that are not parsed. */
  private static final String FORMATS_ONLY = "YQqwWO";
  private static final int FULL = 4, NARROW = 5;  // letters of a full name, and of the first letter alone

  /** An offset from UTC as a text. */
  private static final Pattern OFFSET =
      Pattern.compile("(?:UTC|GMT|UT)?[+-](?:[0-9]|[0-9]{2}|[0-9]{4}|[0-9]{6}|[0-9]{2}(?::[0-9]{2}){1,2})");

  private KsqldbTimes() {}

  private static DateTimeFormatter newParser(UTF8String pattern) {
    checkLetters(pattern.toString(), true);
    return FORMATTERS.get(pattern);
  }

  private static DateTimeFormatter newFormatter(UTF8String pattern) {
    checkLetters(pattern.toString(), false);
    try {
      return DateTimeFormatter.ofPattern(pattern.toString(), Locale.ENGLISH);
    } catch (IllegalArgumentException e) {
      throw SqlError.invalidParameter("invalid pattern \"" + pattern + "\"");
    }
  }

  /** Throws 22023 for letters that the Python implementation lacks, or does not parse. */
  private static void checkLetters(String pattern, boolean parses) {
    boolean quoted = false;
    for (int i = 0; i < pattern.length(); ) {
      char c = pattern.charAt(i);
      int end = i + 1;
      if (c == '\'') {
        quoted = !quoted;
      } else if (!quoted && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')) {
        while (end < pattern.length() && pattern.charAt(end) == c) end++;
        if (end - i > LETTERS.getOrDefault(c, 0)) {
          throw SqlError.invalidParameter("pattern letters \"" + pattern.substring(i, end) + "\" are not supported");
        }
        if (parses && formatsOnly(c, end - i)) {
          String letters = "pattern letters \"" + pattern.substring(i, end);
          throw SqlError.invalidParameter(letters + "\" are not supported when a text is parsed");
        }
      }
      i = end;
    }
  }

  /** Returns the current time in milliseconds, when the record at a place is processed. */
  public static long ksqldbClock(int partition, long offset) { return System.currentTimeMillis(); }

  private static boolean formatsOnly(char letter, int count) {
    return FORMATS_ONLY.indexOf(letter) >= 0 || count == NARROW && "MLEec".indexOf(letter) >= 0 || count == FULL && letter == 'Z';
  }

  /** Returns a UTC timestamp in a time zone as a pattern says. */
  public static UTF8String ksqldbFormatTimestamp(long utc, UTF8String pattern, UTF8String zone) {
    long micros = Math.floorMod(utc, SECOND);
    Instant instant = Instant.ofEpochSecond(Math.floorDiv(utc, SECOND), micros * 1000);
    ZoneId id = zone(zone);
    return UTF8String.fromString(FORMATTERS.get(pattern).format(instant.atZone(id.equals(ZoneOffset.UTC) ? UTC : id)));
  }

  /** Returns the date or the time (`kind`) of a UTC timestamp as a pattern says. Throws 22007 for another field. */
  public static UTF8String ksqldbFormatFields(long utc, UTF8String pattern, UTF8String kind) {
    LocalDateTime value = LocalDateTime.ofEpochSecond(Math.floorDiv(utc, SECOND), (int) Math.floorMod(utc, SECOND) * 1000, ZoneOffset.UTC);
    try {
      return UTF8String.fromString(FORMATTERS.get(pattern).format(kind.equals(TIME) ? value.toLocalTime() : value.toLocalDate()));
    } catch (DateTimeException e) {
      throw new SqlError("22007", "the value lacks a field of the pattern \"" + pattern + "\"");
    }
  }

  /**
   * Returns the timestamp of a text with all fields of a date, or of a time of day. `kind`: date (without a field of a time), time
   * (without one of a date), or day (a date, with or without a time). Throws 22007.
   */
  @Returns("timestamp_ntz")
  public static long ksqldbParseFields(UTF8String text, UTF8String pattern, UTF8String kind) {
    try {
      TemporalAccessor fields = PARSERS.get(pattern).parse(text.toString());
      boolean isTime = kind.equals(TIME);
      if (!kind.equals(DAY)) {
        for (ChronoField field : ChronoField.values()) {
          if ((isTime ? field.isDateBased() : field.isTimeBased()) && fields.isSupported(field)) {
            throw new DateTimeException(field.toString());
          }
        }
      }
      return isTime ? micros(EPOCH, LocalTime.from(fields)) : micros(LocalDate.from(fields), LocalTime.MIDNIGHT);
    } catch (DateTimeException e) {
      throw new SqlError("22007", "text \"" + text + "\" has not the fields of a " + kind + " in the pattern \"" + pattern + "\"");
    }
  }

  /** Returns the UTC timestamp of a text. It is in a time zone unless it contains an offset or a zone. Throws 22007. */
  @Returns("timestamp_ntz")
  public static long ksqldbParseTimestamp(UTF8String text, UTF8String pattern, UTF8String zone) {
    try {
      TemporalAccessor fields = PARSERS.get(pattern).parse(text.toString());
      long local = micros(date(fields), time(fields));
      ZoneId own = fields.query(TemporalQueries.zone());
      return TimeZones.toUtc(local, own == null ? zone(zone) : own);
    } catch (DateTimeException e) {
      throw new SqlError("22007", "text \"" + text + "\" could not be parsed with the pattern \"" + pattern + "\"");
    }
  }

  /** Returns the local time in another time zone of a local time in the first one. */
  @Returns("timestamp_ntz")
  public static long ksqldbConvertTz(long local, UTF8String zone, UTF8String target) {
    return TimeZones.toLocal(TimeZones.toUtc(local, zone(zone)), zone(target));
  }

  /** Returns the zone with a name. An offset is east of UTC, unlike in {@link TimeZones}. Throws 22023. */
  private static ZoneId zone(UTF8String name) {
    if (!OFFSET.matcher(name.toString()).matches()) return TimeZones.zone(name);
    try {
      return ZoneId.of(name.toString()).normalized();
    } catch (DateTimeException e) {
      throw SqlError.invalidParameter("time zone \"" + name + "\" not recognized");
    }
  }

  private static LocalDate date(TemporalAccessor fields) {
    LocalDate date = fields.query(TemporalQueries.localDate());
    if (date != null) return date;
    return LocalDate.of(
        field(fields, ChronoField.YEAR, 1970),
        field(fields, ChronoField.MONTH_OF_YEAR, 1),
        field(fields, ChronoField.DAY_OF_MONTH, 1));
  }

  private static LocalTime time(TemporalAccessor fields) {
    LocalTime time = fields.query(TemporalQueries.localTime());
    if (time != null) return time;
    return LocalTime.of(
        field(fields, ChronoField.HOUR_OF_AMPM, 0) + 12 * field(fields, ChronoField.AMPM_OF_DAY, 0),
        field(fields, ChronoField.MINUTE_OF_HOUR, 0),
        field(fields, ChronoField.SECOND_OF_MINUTE, 0),
        field(fields, ChronoField.NANO_OF_SECOND, 0));
  }

  private static int field(TemporalAccessor fields, ChronoField field, int otherwise) {
    return fields.isSupported(field) ? fields.get(field) : otherwise;
  }

  private static long micros(LocalDate date, LocalTime time) {
    return date.atTime(time).toEpochSecond(ZoneOffset.UTC) * SECOND + time.getNano() / 1000;
  }
}
