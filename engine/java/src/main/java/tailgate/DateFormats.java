package tailgate;

import java.time.*;
import java.time.format.TextStyle;
import java.time.temporal.IsoFields;
import java.time.temporal.JulianFields;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * to_char, to_timestamp and to_date: dates and times by a pattern, in English. The twin of sql/compute/formats.py, which names its sources.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class DateFormats {
  private static final Set<String> DIGITS = Set.of(("CC DDD DD D FF1 FF2 FF3 FF4 FF5 FF6 HH24 HH12 HH IDDD ID IW IYYY IYY IY I J MI MM MS Q SSSSS SSSS SS US WW W Y,YYY YYYY YYY YY Y").split(" "));
  private static final List<String> WORDS = new ArrayList<>();
  private static final int YEAR_MAX = 5_874_897;  // of PostgreSQL's dates
  private static final String SEPARATORS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  private static final List<String> MONTHS = Arrays.stream(Month.values()).map(m -> m.getDisplayName(TextStyle.FULL, Locale.ENGLISH)).toList();
  private static final List<String> DAYS = List.of("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday");
  private static final List<String> ROMANS = java.util.stream.IntStream.rangeClosed(1, 12).mapToObj(NumberFormats::roman).toList();
  private static final Map<String, Integer> LENGTHS = new HashMap<>();
  private static final ConcurrentHashMap<UTF8String, List<Piece>> PARSED = new ConcurrentHashMap<>();
  private static final int PARSED_MAX = 1000;

  static {
    for (String word : DIGITS) WORDS.addAll(List.of(word, word.toLowerCase(Locale.ROOT)));
    for (String word : "A.D. A.M. AD AM B.C. BC DAY DY FX MONTH MON OF P.M. PM RM TZH TZM TZ".split(" ")) WORDS.addAll(List.of(word, word.toLowerCase(Locale.ROOT)));
    WORDS.addAll(List.of("Day", "Dy", "Month", "Mon"));
    WORDS.sort(Comparator.comparing((String w) -> -w.length()).thenComparing(Comparator.naturalOrder()));
    for (String pair : ("HH24 2 HH12 2 HH 2 MI 2 SS 2 SSSS 5 SSSSS 5 TZH 2 TZM 2 Q 1 CC 2 MM 2 DDD 3 IDDD 3 DD 2 D 1 ID 1 WW 2 IW 2 W 1 J 7 YYYY 4 IYYY 4 YYY 3 IYY 3 YY 2 IY 2 Y 1 I 1 MS 3 US 6 FF1 1 FF2 2 "
        + "FF3 3 FF4 4 FF5 5 FF6 6").split("(?<=\\d) (?=[A-Z])")) LENGTHS.put(pair.split(" ")[0], Integer.parseInt(pair.split(" ")[1]));
  }

  private DateFormats() {}

  /** A field (`word` as in the pattern, `name` in upper case), or a text, space or separator. */
  private record Piece(String word, String name, boolean fill, String suffix, String kind) {
    static Piece text(char c, String kind) { return new Piece(String.valueOf(c), "", false, "", kind); }

    boolean field() { return kind.equals("field"); }
  }

  private static List<Piece> parsed(UTF8String pattern) {
    List<Piece> found = PARSED.get(pattern);
    if (found != null) return found;
    if (PARSED.size() >= PARSED_MAX) PARSED.clear();
    List<Piece> made = parsed(pattern.toString());
    PARSED.put(pattern.clone(), made);
    return made;
  }

  private static List<Piece> parsed(String text) {
    List<Piece> pieces = new ArrayList<>();
    for (int at = 0; at < text.length(); ) {
      if (text.charAt(at) == '"') {
        for (at++; at < text.length() && text.charAt(at) != '"'; at++) {
          if (text.charAt(at) == '\\' && at + 1 < text.length()) at++;
          pieces.add(Piece.text(text.charAt(at), "text"));
        }
        at++;
        continue;
      }
      boolean fill = false;
      for (; text.regionMatches(true, at, "FM", 0, 2) || text.regionMatches(true, at, "TM", 0, 2); at += 2) {
        String prefix = text.substring(at, at + 2);
        if (!prefix.equals(prefix.toUpperCase(Locale.ROOT)) && !prefix.equals(prefix.toLowerCase(Locale.ROOT))) break;
        fill |= Character.toUpperCase(prefix.charAt(0)) == 'F';
      }
      int here = at;
      String word = WORDS.stream().filter(w -> text.startsWith(w, here)).findFirst().orElse(null);
      if (word != null) {
        at += word.length();
        String suffix = text.length() >= at + 2 && Set.of("TH", "th", "SP", "sp").contains(text.substring(at, at + 2)) ? text.substring(at, at + 2) : "";
        at += suffix.length();
        pieces.add(new Piece(word, word.toUpperCase(Locale.ROOT), fill, suffix.equalsIgnoreCase("SP") ? "" : suffix, "field"));
        continue;
      }
      if (at >= text.length()) break;
      char c = text.charAt(at);
      if (c == '\\' && at + 1 < text.length()) pieces.add(Piece.text(text.charAt(++at), "text"));
      else pieces.add(Piece.text(c, Character.isWhitespace(c) ? "space" : SEPARATORS.indexOf(c) >= 0 ? "separator" : "text"));
      at++;
    }
    return pieces;
  }

  // ---- to text ------------------------------------------------------------------------------------------------------------------

  /** What a pattern may name; `day` is null for an interval. */
  private record Fields(int year, int month, int mday, long micros, LocalDate day, String zone) {}

  public static UTF8String toCharTimestamp(long micros, UTF8String pattern) { return shown(micros, pattern, ""); }

  public static UTF8String toCharTimestamptz(long micros, UTF8String pattern) { return shown(micros, pattern, "UTC"); }

  private static UTF8String shown(long micros, UTF8String pattern, String zone) {
    LocalDate day = LocalDate.ofEpochDay(Math.floorDiv(micros, Times.DAY));
    return written(new Fields(day.getYear(), day.getMonthValue(), day.getDayOfMonth(), Math.floorMod(micros, Times.DAY), day, zone), pattern);
  }

  public static UTF8String toCharInterval(InternalRow interval, UTF8String pattern) {
    Times.Interval i = Times.Interval.of(interval);
    return written(new Fields(i.months() / 12, i.months() % 12, i.days(), i.micros(), null, ""), pattern);
  }

  private static UTF8String written(Fields f, UTF8String pattern) {
    if (pattern.numBytes() == 0) return null;
    StringBuilder out = new StringBuilder();
    for (Piece p : parsed(pattern)) out.append(p.field() ? field(f, p) : p.word);
    return Strings.text(out.toString());
  }

  private static String number(Piece p, long value, int width) {
    String digits = String.valueOf(Math.abs(value));
    if (value < 0 && (p.name.equals("DD") || p.name.equals("DDD") || p.name.equals("WW"))) width--;  // in these a minus takes a digit's place
    String text = (value < 0 ? "-" : "") + (p.fill ? "" : "0".repeat(Math.max(width - digits.length(), 0))) + digits;
    return ordinal(p, text);
  }

  private static String ordinal(Piece p, String text) {
    if (p.suffix.isEmpty()) return text;
    return text + (p.suffix.equals("TH") ? NumberFormats.ordinal(text).toUpperCase(Locale.ROOT) : NumberFormats.ordinal(text));
  }

  private static String cased(Piece p, String text) {
    if (p.word.equals(p.word.toUpperCase(Locale.ROOT))) return text.toUpperCase(Locale.ROOT);
    return p.word.equals(p.word.toLowerCase(Locale.ROOT)) ? text.toLowerCase(Locale.ROOT) : text;
  }

  private static String part(Piece p, long value, int width) { return ordinal(p, (value < 0 ? "-" : "") + String.format("%0" + (value < 0 ? Math.max(width - 1, 1) : width) + "d", Math.abs(value))); }

  private static String padded(Piece p, String text, int width) { return p.fill ? text : text + " ".repeat(Math.max(width - text.length(), 0)); }

  private static String field(Fields f, Piece p) {
    long hours = f.micros / Times.HOUR, minutes = f.micros % Times.HOUR / Times.MINUTE, seconds = f.micros % Times.MINUTE / Times.SECOND, part = f.micros % Times.SECOND;
    LocalDate day = f.day;
    switch (p.name) {
      case "HH24": return number(p, hours, 2);
      case "HH", "HH12": return number(p, hours % 12 == 0 ? 12 : hours % 12, 2);
      case "MI": return number(p, minutes, 2);
      case "SS": return number(p, seconds, 2);
      case "MS", "FF3": return part(p, part / 1000, 3);
      case "US", "FF6": return part(p, part, 6);
      case "FF1": return part(p, part / 100_000, 1);
      case "FF2": return part(p, part / 10_000, 2);
      case "FF4": return part(p, part / 100, 4);
      case "FF5": return part(p, part / 10, 5);
      case "SSSS", "SSSSS": return number(p, hours * 3600 + minutes * 60 + seconds, 0);
      case "AM", "PM": return cased(p, Math.floorMod(hours, 24) >= 12 ? "pm" : "am");
      case "A.M.", "P.M.": return cased(p, Math.floorMod(hours, 24) >= 12 ? "p.m." : "a.m.");
      case "TZ": return dated(f, cased(p, f.zone));
      case "TZH", "OF": return dated(f, "+00");
      case "TZM": return dated(f, "00");
      case "Q": return f.month == 0 ? "" : number(p, (f.month - 1) / 3 + 1, 1);
      case "MM": return number(p, f.month, 2);
      case "DD": return number(p, f.mday, 2);
      case "DDD": return number(p, day == null ? (f.year * 12L + f.month) * 30 + f.mday : day.getDayOfYear(), 3);
      case "RM": return f.month == 0 ? "" : padded(p, cased(p, ROMANS.get(Math.floorMod(f.month - 1, 12))), 4);
      case "CC": {
        int century = day == null ? f.year / 100 : (f.year - 1) / 100 + 1;
        return number(p, century, Math.abs(century) < 100 ? 2 : 0);
      }
      case "Y,YYY": return ordinal(p, f.year / 1000 + "," + String.format("%03d", f.year % 1000));
      case "YYYY": return number(p, f.year, 4);
      case "YYY": return number(p, f.year % 1000, 3);
      case "YY": return number(p, f.year % 100, 2);
      case "Y": return number(p, f.year % 10, 1);
      default: break;
    }
    if (day == null && p.name.equals("WW")) return number(p, ((f.year * 12L + f.month) * 30 + f.mday - 1) / 7 + 1, 2);
    if (day == null && p.name.equals("W")) return number(p, (f.mday - 1) / 7 + 1, 1);
    if (day == null && p.name.equals("J")) return number(p, julian(f.year, f.month, f.mday), 0);
    dated(f, "");
    int week = day.get(IsoFields.WEEK_OF_WEEK_BASED_YEAR), year = day.get(IsoFields.WEEK_BASED_YEAR), weekday = day.getDayOfWeek().getValue();
    return switch (p.name) {
      case "AD", "BC" -> cased(p, "AD");
      case "A.D.", "B.C." -> cased(p, "A.D.");
      case "MONTH" -> padded(p, cased(p, MONTHS.get(f.month - 1)), 9);
      case "DAY" -> padded(p, cased(p, DAYS.get(weekday % 7)), 9);
      case "MON" -> cased(p, MONTHS.get(f.month - 1).substring(0, 3));
      case "DY" -> cased(p, DAYS.get(weekday % 7).substring(0, 3));
      case "D" -> number(p, weekday % 7 + 1, 1);
      case "ID" -> number(p, weekday, 1);
      case "IDDD" -> number(p, (week - 1) * 7L + weekday, 3);
      case "WW" -> number(p, (day.getDayOfYear() - 1) / 7 + 1, 2);
      case "W" -> number(p, (f.mday - 1) / 7 + 1, 1);
      case "IW" -> number(p, week, 2);
      case "IYYY" -> number(p, year, 4);
      case "IYY" -> number(p, year % 1000, 3);
      case "IY" -> number(p, year % 100, 2);
      case "I" -> number(p, year % 10, 1);
      case "J" -> number(p, day.getLong(JulianFields.JULIAN_DAY), 0);
      default -> "";  // FX
    };
  }

  /** date2j() */
  private static int julian(int year, int month, int day) {
    int y = month > 2 ? year + 4800 : year + 4799, m = month > 2 ? month + 1 : month + 13, century = y / 100;
    return y * 365 - 32167 + y / 4 - century + century / 4 + 7834 * m / 256 + day;
  }

  private static String dated(Fields f, String text) {
    if (f.day == null) throw new SqlError("22007", "invalid format specification for an interval value");
    return text;
  }

  // ---- from text ----------------------------------------------------------------------------------------------------------------

  private static SqlError invalid(String message) { return new SqlError("22007", message); }

  private static SqlError outOfRange(String text) { return new SqlError("22008", "date/time field value out of range: \"" + text + "\""); }

  /** DCH_from_char: `at` is the place in the text, `found` the fields by name. */
  private static final class Reader {
    private final String text;
    private final List<Piece> pieces;
    private final boolean exact;
    private final Map<String, Integer> found = new HashMap<>();
    private int at;

    Reader(UTF8String text, UTF8String pattern) {
      this.text = text.toString();
      pieces = parsed(pattern);
      exact = pattern.toString().toUpperCase(Locale.ROOT).startsWith("FX");
    }

    private char peek() { return at < text.length() ? text.charAt(at) : 0; }

    private int spaces() {
      int start = at;
      while (Character.isWhitespace(peek())) at++;
      return at - start;
    }

    Map<String, Integer> read() {
      int extra = 0;
      for (int i = 0; i < pieces.size() && at < text.length(); i++) {
        Piece p = pieces.get(i);
        if (!exact && (p.field() || i == 0)) extra += spaces();
        if (p.kind.equals("space") || p.kind.equals("separator")) {
          if (exact) at++;
          else if (peek() != 0 && (Character.isWhitespace(peek()) || SEPARATORS.indexOf(peek()) >= 0)) at++;
          else extra--;
        } else if (p.kind.equals("text")) {
          if (!exact && extra > 0) extra--;
          else at++;
        } else {
          field(i, p);
          if (!exact) extra = spaces();
        }
      }
      return found;
    }

    private void put(String name, int value) {
      Integer before = found.putIfAbsent(name, value);
      if (before != null && before != value) throw invalid("conflicting values for \"" + name + "\" field in formatting string");
    }

    private int word(Piece p, List<String> names) {
      int best = -1;
      for (int i = 0; i < names.size(); i++)
        if (text.regionMatches(true, at, names.get(i), 0, names.get(i).length()) && (best < 0 || names.get(i).length() > names.get(best).length())) best = i;
      if (best < 0) throw invalid("invalid value \"" + text.substring(at).strip().split("\\s")[0] + "\" for \"" + p.word + "\"");
      at += names.get(best).length();
      return best;
    }

    private static List<String> shortened(List<String> names) { return names.stream().map(n -> n.substring(0, 3)).toList(); }

    private void field(int i, Piece p) {
      switch (p.name) {
        case "FX": return;
        case "AM", "PM": put("half", word(p, List.of("am", "pm"))); return;
        case "A.M.", "P.M.": put("half", word(p, List.of("a.m.", "p.m."))); return;
        case "AD", "BC": put("era", word(p, List.of("ad", "bc"))); return;
        case "A.D.", "B.C.": put("era", word(p, List.of("a.d.", "b.c."))); return;
        case "MONTH": put("MM", word(p, MONTHS) + 1); return;
        case "MON": put("MM", word(p, shortened(MONTHS)) + 1); return;
        case "DAY": put("D", word(p, DAYS) + 1); return;
        case "DY": put("D", word(p, shortened(DAYS)) + 1); return;
        case "RM": put("MM", word(p, ROMANS) + 1); return;
        case "TZ", "OF": throw new SqlError("0A000", "formatting field \"" + p.name + "\" is only supported in to_char");
        case "TZH":
          if (peek() == '+' || peek() == '-' || peek() == ' ') found.put("zone_sign", text.charAt(at++) == '-' ? -1 : 1);
          break;
        case "Y,YYY": {
          int thousands = number(i, p, 99);
          if (peek() != ',') throw invalid("invalid input string for \"Y,YYY\"");
          at++;
          put("YYYY", thousands * 1000 + number(i, p, 3));
          return;
        }
        default: break;
      }
      int start = at, value = number(i, p, LENGTHS.get(p.name)), length = at - start, width = LENGTHS.get(p.name);
      switch (p.name) {
        case "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6" -> {
          int digits = text.substring(start, at).strip().length(), scale = (int) Math.pow(10, p.name.startsWith("FF") ? 6 - Math.min(digits, 6) : (p.name.equals("MS") ? 3 : 6) - Math.min(digits, width));
          put("micros", value * scale * (p.name.equals("MS") ? 1000 : 1));
        }
        case "HH12", "HH" -> {
          put("hour", value);
          found.put("twelve", 1);
        }
        case "YYY", "YY", "Y", "IYY", "IY", "I" -> {
          put(p.name.startsWith("I") ? "IYYY" : "YYYY", length < 4 ? century(value) : value);
          found.put("short", p.name.length());
        }
        case "HH24" -> put("hour", value);
        case "SSSSS" -> put("SSSS", value);
        default -> put(p.name, value);
      }
      if (!p.suffix.isEmpty()) at += 2;
    }

    private int number(int i, Piece p, int length) {
      spaces();
      int start = at;
      boolean open = p.fill || separated(i, p);
      int limit = open ? text.length() : at + length, end = at;
      if (!open && limit > text.length()) throw invalid("source string too short for \"" + p.word + "\" formatting field");
      if (end < text.length() && (text.charAt(end) == '+' || text.charAt(end) == '-')) end++;
      int digits = end;
      while (end < limit && text.charAt(end) >= '0' && text.charAt(end) <= '9') end++;
      if (end == digits || !open && end < limit) throw invalid("invalid value \"" + text.substring(start, Math.min(start + length, text.length())) + "\" for \"" + p.word + "\"");
      at = end;
      try {
        return Integer.parseInt(text.substring(start, end));
      } catch (NumberFormatException e) {
        throw new SqlError("22008", "value for \"" + p.word + "\" in source string is out of range");
      }
    }

    /** Whether what follows is no digit, so that a number may be as long as it is. */
    private boolean separated(int i, Piece p) {
      if (!p.suffix.isEmpty() || i + 1 == pieces.size()) return true;
      Piece following = pieces.get(i + 1);
      return following.field() ? !DIGITS.contains(following.name) : !Character.isDigit(following.word.charAt(0));
    }
  }

  /** The one nearest to 2020. */
  private static int century(int year) { return year < 70 ? year + 2000 : year < 100 ? year + 1900 : year < 520 ? year + 2000 : year < 1000 ? year + 1000 : year; }

  private static SqlError years(String which) { return new SqlError("0A000", "years " + which + " are not supported"); }

  private static LocalDate day(Map<String, Integer> found, String text) {
    if (found.containsKey("J")) return LocalDate.MIN.with(JulianFields.JULIAN_DAY, found.get("J"));
    int year = found.getOrDefault("YYYY", 0);
    if (found.containsKey("CC")) {
      int cc = found.get("CC"), part = Math.floorMod(found.getOrDefault("YYYY", 0), 100);
      if (found.containsKey("YYYY") && found.getOrDefault("short", 4) <= 2) year = part == 0 ? cc * 100 : (cc - 1) * 100 + part;
      else if (!found.containsKey("YYYY")) year = (cc - 1) * 100 + 1;
    }
    if (found.getOrDefault("era", 0) > 0) throw years("before 1");
    try {
      if (found.containsKey("IYYY") || found.containsKey("IW")) return iso(found, text);
      if (found.containsKey("DDD") && !found.containsKey("MM")) {
        int days = found.get("DDD");
        if (days < 1 || days > 366 || year == 0) throw outOfRange(text);
        return LocalDate.ofYearDay(year, days);
      }
      int month = found.getOrDefault("MM", 0) == 0 ? 1 : found.get("MM"), mday = found.getOrDefault("DD", 0) == 0 ? 1 : found.get("DD");  // what is 0 was not given
      if (found.containsKey("WW")) return LocalDate.of(year, 1, 1).plusDays((found.get("WW") - 1) * 7L);
      if (found.containsKey("W")) mday = (found.get("W") - 1) * 7 + 1;
      if (month < 1 || month > 12 || mday < 1 || mday > 31) throw outOfRange(text);
      if (year == 0) throw years("before 1");
      if (year > YEAR_MAX) throw outOfRange(text);
      if (year > 9999) throw years("beyond 9999");
      return LocalDate.of(year, month, mday);
    } catch (DateTimeException e) {
      throw outOfRange(text);
    }
  }

  private static LocalDate iso(Map<String, Integer> found, String text) {
    for (String other : List.of("YYYY", "MM", "DD", "DDD", "WW", "W", "CC")) if (found.containsKey(other)) throw invalid("invalid combination of date conventions");
    int year = found.getOrDefault("IYYY", 0), weekday = found.containsKey("ID") ? found.get("ID") : found.containsKey("D") ? Math.floorMod(found.get("D") - 2, 7) + 1 : 1;
    LocalDate first = LocalDate.of(year, 1, 4).with(DayOfWeek.MONDAY);
    if (found.containsKey("IDDD")) return first.plusDays(found.get("IDDD") - 1);
    if (!found.containsKey("IW")) return LocalDate.of(year, 1, 1);
    int week = found.get("IW");
    if (week < 1 || week > 53) throw outOfRange(text);
    return first.plusDays((week - 1) * 7L + weekday - 1);
  }

  @Functions.Returns("date")
  public static int toDate(UTF8String text, UTF8String pattern) { return (int) day(new Reader(text, pattern).read(), text.toString()).toEpochDay(); }

  @Functions.Returns("timestamp")
  public static long toTimestampText(UTF8String text, UTF8String pattern) {
    Map<String, Integer> found = new Reader(text, pattern).read();
    int hour = found.getOrDefault("hour", 0), minute = found.getOrDefault("MI", 0), second = found.getOrDefault("SS", 0), micros = found.getOrDefault("micros", 0);
    if (found.containsKey("SSSS")) {
      int all = found.get("SSSS");
      hour = all / 3600;
      minute = all / 60 % 60;
      second = all % 60;
    }
    if (found.containsKey("twelve") || found.containsKey("half")) {
      if (hour < 1 || hour > 12) throw invalid("hour \"" + hour + "\" is invalid for the 12-hour clock");
      hour = hour % 12 + 12 * found.getOrDefault("half", 0);
    }
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 || micros < 0 || micros > 999_999) throw outOfRange(text.toString());
    long offset = (found.getOrDefault("TZH", 0) * 60L + found.getOrDefault("TZM", 0)) * found.getOrDefault("zone_sign", 1);
    return day(found, text.toString()).toEpochDay() * Times.DAY + ((hour * 60L + minute - offset) * 60 + second) * Times.SECOND + micros;
  }
}
