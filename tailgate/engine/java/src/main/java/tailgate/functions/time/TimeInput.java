package tailgate.functions.time;

import java.time.LocalDate;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Set;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.time.DateTokens.BadFormat;
import tailgate.functions.time.DateTokens.FieldOverflow;
import tailgate.functions.time.DateTokens.Kind;
import tailgate.functions.time.DateTokens.Number;
import tailgate.functions.time.DateTokens.Token;

/**
 * The input functions of dates, timestamps and times, as PostgreSQL 15 reads them with DateStyle
 * "ISO, MDY". {@code tailgate/values/times/date_decoding.py} computes the same and names the source.
 *
 * <p>They throw 22007 for a syntax error, 22008 for a field out of range, 22009 for an offset out of
 * range and 22023 for an unknown zone. Words whose meaning depends on the current time (now, today)
 * are not supported (0A000).
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL.
 */
public final class TimeInput {
  private static final Set<String> WORDS = DateWords.names();
  private static final double EPOCH_2000_S = 946_684_800;  // PostgreSQL's epoch, in seconds since 1970

  private TimeInput() {}

  public static int toDate(UTF8String text) {
    long days = IsoTexts.date(text);
    if (days != IsoTexts.OTHER) return (int) days;
    Moment m = parse(text, "date");
    if (m.date == null) return m.micros > 0 ? Timestamps.INFINITE_DAY : -Timestamps.INFINITE_DAY;
    try {
      return Timestamps.dayInRange(m.date.toEpochDay());
    } catch (SqlError e) {
      throw Timestamps.outOfRange("date out of range: \"" + text + "\"");
    }
  }

  /** Returns microseconds without a zone; a zone in the text is ignored. */
  public static long toTimestamp(UTF8String text) {
    long iso = IsoTexts.timestamp(text);
    if (iso != IsoTexts.OTHER) return iso;
    Moment m = parse(text, "timestamp");
    return micros(m, text);
  }

  public static long toTimestamptz(UTF8String text) { return toTimestamptz(text, UTF8String.fromString("UTC")); }

  /** Returns microseconds in UTC. A text without a zone is read in {@code defaultZone}. */
  public static long toTimestamptz(UTF8String text, UTF8String defaultZone) {
    long iso = IsoTexts.timestamptz(text);
    if (iso != IsoTexts.OTHER) return iso;
    Moment m = parse(text, "timestamp with time zone");
    ZoneId zone = m.zone != null ? m.zone : TimeZones.zone(defaultZone);
    return TimeZones.toUtc(micros(m, text), zone);
  }

  /**
   * Returns microseconds since midnight; a date before the time and a zone after it are ignored.
   */
  public static long toTime(UTF8String text) { return timeOfDay(text, "time").micros; }

  /** Microseconds since midnight, a zone or null, and the date, which a zone with summer time has. */
  record TimeOfDay(long micros, ZoneId zone, LocalDate date) {}

  /** Decodes a time of day, perhaps after a date and before a zone. */
  static TimeOfDay timeOfDay(UTF8String text, String type) {
    String s = text.toString();
    DateFields fields = new DateFields();
    try {
      List<Token> tokens = DateTokens.tokens(s, WORDS);
      for (int at = 0; at < tokens.size(); at++) fields.add(fieldOfTime(fields, tokens, at, s));
      fields.check();
      fields.checkTime();
      if (!fields.word.isEmpty()) throw unsupported(fields.word, type);
      if ((fields.mask & DateFields.TIME) != DateFields.TIME) throw new BadFormat();
      // The offset of a zone with summer time depends on the date.
      boolean dated = (fields.mask & DateFields.DATE) == DateFields.DATE;
      if (!dated && fields.zone != null && !fields.zone.getRules().isFixedOffset()) throw new BadFormat();
      return new TimeOfDay(fields.timeOfDay(), zone(fields), dated ? fields.date() : null);
    } catch (BadFormat e) {
      throw invalid(text, type);
    } catch (FieldOverflow e) {
      throw outOfRange(text);
    }
  }

  /** Computes to_timestamp(double precision), from seconds since 1970. */
  public static long toTimestamp(double seconds) {
    if (Double.isNaN(seconds)) throw new SqlError("22008", "timestamp cannot be NaN");
    // PostgreSQL rounds the microseconds since its own epoch.
    double micros = Math.rint((seconds - EPOCH_2000_S) * 1e6) + EPOCH_2000_S * 1e6;
    if (Double.isInfinite(seconds)) return seconds > 0 ? Timestamps.INFINITE : -Timestamps.INFINITE;
    if (!(micros >= Timestamps.FIRST && micros < Timestamps.LAST)) {
      throw new SqlError("22008", "timestamp out of range: \"" + seconds + "\"");
    }
    return (long) micros;
  }

  private static long micros(Moment m, UTF8String text) {
    if (m.date == null) return m.micros;
    try {
      return Timestamps.inRange(Math.addExact(Math.multiplyExact(m.date.toEpochDay(), TimeUnits.DAY), m.micros));
    } catch (ArithmeticException | SqlError e) {
      throw Timestamps.outOfRange("timestamp out of range: \"" + text + "\"");
    }
  }

  /**
   * A date, the microseconds since its midnight (24:00 is allowed), and a zone or null. Infinity has
   * no date; its microseconds are those of the timestamp.
   */
  private record Moment(LocalDate date, long micros, ZoneId zone) {}

  private static Moment parse(UTF8String text, String type) {
    String s = text.toString();
    DateFields fields = new DateFields();
    try {
      List<Token> tokens = DateTokens.tokens(s, WORDS);
      for (int at = 0; at < tokens.size(); at++) fields.add(field(fields, tokens, at, s));
      fields.check();
      if (fields.word.equals("epoch")) return new Moment(LocalDate.EPOCH, 0, ZoneOffset.UTC);
      if (fields.word.equals("infinity")) return new Moment(null, Timestamps.INFINITE, ZoneOffset.UTC);
      if (fields.word.equals("-infinity")) return new Moment(null, -Timestamps.INFINITE, ZoneOffset.UTC);
      if (!fields.word.isEmpty()) throw unsupported(fields.word, type);
      if ((fields.mask & DateFields.DATE) != DateFields.DATE) throw new BadFormat();
      return new Moment(fields.date(), fields.timeOfDay(), zone(fields));
    } catch (BadFormat e) {
      throw invalid(text, type);
    } catch (FieldOverflow e) {
      throw outOfRange(text);
    }
  }

  private static ZoneId zone(DateFields fields) throws BadFormat {
    if (!fields.summerTime) return fields.zone;
    if (!(fields.zone instanceof ZoneOffset offset)) throw new BadFormat();
    return ZoneOffset.ofTotalSeconds(offset.getTotalSeconds() + 3600);
  }

  /** Decodes a token. Returns the mask of its fields. */
  private static int field(DateFields fields, List<Token> tokens, int at, String all) throws BadFormat, FieldOverflow {
    Token token = tokens.get(at);
    String text = token.text();
    switch (token.kind()) {
      case DATE -> { return date(fields, text, all); }
      case TIME -> {
        if (!fields.unit.isEmpty() && !fields.unit.equals("time")) throw new BadFormat();
        fields.unit = "";
        int mask = fields.time(text);
        fields.checkTime();
        return mask;
      }
      case SIGNED -> { return fields.offset(text, all); }
      case NUMBER -> { return fields.unit.isEmpty() ? number(fields, text) : fields.labelled(text); }
      default -> { return fields.word(token, at + 1 < tokens.size() ? tokens.get(at + 1) : null, false); }
    }
  }

  /**
   * Decodes a date; after a date, a zone by name, or a run-together time with a zone.
   */
  private static int date(DateFields fields, String text, String all) throws BadFormat, FieldOverflow {
    String label = fields.unit;
    if (label.equals("julian")) {
      fields.unit = "";
      Number number = DateTokens.integer(text);
      fields.julianDay(number.value());
      if (number.rest().isEmpty()) throw new BadFormat();
      fields.offset(number.rest(), all);
      return DateFields.DATE | DateFields.TIME | DateFields.ZONE;
    }
    int monthAndDay = DateFields.MONTH | DateFields.DAY;
    if (label.isEmpty() && (fields.mask & monthAndDay) != monthAndDay) return fields.date(text);
    if (label.isEmpty() && !Character.isDigit(text.charAt(0))) return fields.namedZone(text);
    boolean timed = (fields.mask & DateFields.TIME) == DateFields.TIME;
    if (!label.isEmpty() && !label.equals("time") || timed) throw new BadFormat();
    fields.unit = "";
    return timeWithZone(fields, text, fields.mask, all);
  }

  /** Decodes a time such as {@code 101112-08}. */
  private static int timeWithZone(DateFields fields, String text, int earlier, String all)
      throws BadFormat, FieldOverflow {
    int hyphen = text.indexOf('-');
    if (hyphen < 0) throw new BadFormat();
    fields.offset(text.substring(hyphen), all);
    return fields.runTogether(text.substring(0, hyphen), earlier) | DateFields.ZONE;
  }

  private static int number(DateFields fields, String text) throws BadFormat, FieldOverflow {
    int point = text.indexOf('.');
    boolean dated = (fields.mask & DateFields.DATE) != 0;
    boolean timed = (fields.mask & DateFields.TIME) != 0;
    if (point >= 0 && !dated) return fields.date(text);
    if (point > 2 || text.length() >= 6 && (!dated || !timed)) return fields.runTogether(text, fields.mask);
    return fields.number(text, fields.monthName, fields.mask);
  }

  private static int fieldOfTime(DateFields fields, List<Token> tokens, int at, String all)
      throws BadFormat, FieldOverflow {
    Token token = tokens.get(at);
    String text = token.text();
    boolean first = at == 0 && tokens.size() >= 2;
    Kind last = tokens.get(tokens.size() - 1).kind();
    switch (token.kind()) {
      case DATE -> {
        if (first && (last == Kind.DATE || tokens.get(1).kind() == Kind.TIME)) return fields.date(text);
        if (!Character.isDigit(text.charAt(0))) return fields.namedZone(text);
        if ((fields.mask & DateFields.TIME) == DateFields.TIME) throw new BadFormat();
        return timeWithZone(fields, text, fields.mask | DateFields.DATE, all);
      }
      case TIME -> { return fields.time(text); }
      case SIGNED -> { return fields.offset(text, all); }
      case NUMBER -> {
        if (!fields.unit.isEmpty()) return fields.labelled(text);
        int point = text.indexOf('.');
        if (point >= 0 && first && last == Kind.DATE) return fields.date(text);
        if (point >= 0 && point <= 2) throw new BadFormat();
        if (point >= 0 || text.length() > 4) return fields.runTogether(text, fields.mask | DateFields.DATE);
        return fields.number(text, false, fields.mask | DateFields.DATE);
      }
      default -> { return fields.word(token, at + 1 < tokens.size() ? tokens.get(at + 1) : null, true); }
    }
  }

  private static SqlError unsupported(String word, String type) {
    return new SqlError("0A000", "\"" + word + "\" is not supported as a value of type " + type);
  }

  private static SqlError invalid(UTF8String text, String type) {
    return new SqlError("22007", "invalid input syntax for type " + type + ": \"" + text + "\"");
  }

  private static SqlError outOfRange(UTF8String text) {
    return new SqlError("22008", "date/time field value out of range: \"" + text + "\"");
  }
}
