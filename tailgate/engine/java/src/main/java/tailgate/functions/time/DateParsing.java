package tailgate.functions.time;

import java.time.DateTimeException;
import java.time.DayOfWeek;
import java.time.LocalDate;
import java.time.temporal.JulianFields;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.numeric.Numerals;

/**
 * to_date(text, pattern) and to_timestamp(text, pattern), in English.
 *
 * <p>Generated code calls the functions ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/time/date_parsing.py} computes the same and names the sources.
 */
public final class DateParsing {
  private static final List<String> ROMAN_MONTHS = IntStream.rangeClosed(1, 12).mapToObj(Numerals::roman).toList();
  private static final List<String> SHORT_MONTHS = DatePattern.MONTHS.stream().map(n -> n.substring(0, 3)).toList();
  private static final List<String> SHORT_DAYS = DatePattern.DAYS.stream().map(n -> n.substring(0, 3)).toList();

  /** The number of digits of each numeric field. */
  private static final Map<String, Integer> WIDTHS = new HashMap<>();

  static {
    widths(1, "Q D ID W Y I FF1");
    widths(2, "HH24 HH12 HH MI SS TZH TZM CC MM DD WW IW YY IY FF2");
    widths(3, "DDD IDDD YYY IYY MS FF3");
    widths(4, "YYYY IYYY FF4");
    widths(5, "SSSS SSSSS FF5");
    widths(6, "US FF6");
    widths(7, "J");
  }

  private static void widths(int width, String fields) {
    for (String field : fields.split(" ")) WIDTHS.put(field, width);
  }

  private DateParsing() {}

  @Returns("date")
  public static int toDate(UTF8String text, UTF8String pattern) {
    return (int) date(new Reader(text, pattern).read(), text.toString()).toEpochDay();
  }

  @Returns("timestamp")
  public static long toTimestampText(UTF8String text, UTF8String pattern) {
    Map<String, Integer> fields = new Reader(text, pattern).read();
    int hour = fields.getOrDefault("hour", 0);
    int minute = fields.getOrDefault("MI", 0);
    int second = fields.getOrDefault("SS", 0);
    int micros = fields.getOrDefault("micros", 0);
    if (fields.containsKey("SSSS")) {
      int secondOfDay = fields.get("SSSS");
      hour = secondOfDay / 3600;
      minute = secondOfDay / 60 % 60;
      second = secondOfDay % 60;
    }
    if (fields.containsKey("hour12") || fields.containsKey("half")) {
      if (hour < 1 || hour > 12) throw invalid("hour \"" + hour + "\" is invalid for the 12-hour clock");
      hour = hour % 12 + 12 * fields.getOrDefault("half", 0);
    }
    boolean validTime = hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59 && second >= 0 && second <= 59;
    if (!validTime || micros < 0 || micros > 999_999) throw outOfRange(text.toString());
    int offsetSign = fields.getOrDefault("offset_sign", 1);
    long offset = (fields.getOrDefault("TZH", 0) * 60L + fields.getOrDefault("TZM", 0)) * offsetSign;  // minutes
    long time = ((hour * 60L + minute - offset) * 60 + second) * TimeUnits.SECOND + micros;
    try {
      long midnight = Math.multiplyExact(date(fields, text.toString()).toEpochDay(), TimeUnits.DAY);
      return Timestamps.rounded(Timestamps.inRange(Math.addExact(midnight, time)), fields.getOrDefault("FF", 6));
    } catch (ArithmeticException e) {
      throw Timestamps.outOfRange("timestamp out of range: \"" + text + "\"");
    }
  }

  // ---- errors -----------------------------------------------------------------------------------

  private static SqlError invalid(String message) { return new SqlError("22007", message); }

  private static SqlError outOfRange(String text) {
    return new SqlError("22008", "date/time field value out of range: \"" + text + "\"");
  }

  // ---- dates ------------------------------------------------------------------------------------

  /** Returns a date. Without a year it is in 1 BC. */
  private static LocalDate date(Map<String, Integer> fields, String text) {
    try {
      LocalDate date = fields.containsKey("J")
          ? LocalDate.EPOCH.with(JulianFields.JULIAN_DAY, fields.get("J"))
          : gregorian(fields, year(fields), text);
      Timestamps.dayInRange(date.toEpochDay());
      return date;
    } catch (DateTimeException e) {
      throw outOfRange(text);
    } catch (SqlError e) {
      throw e.getMessage().equals("date out of range") ? Timestamps.outOfRange("date out of range: \"" + text + "\"") : e;
    }
  }

  private static LocalDate gregorian(Map<String, Integer> fields, int year, String text) {
    if (fields.containsKey("IYYY") || fields.containsKey("IW")) return isoDate(fields, text);
    if (fields.containsKey("DDD") && !fields.containsKey("MM")) {
      if (year == 0 && !isBeforeChrist(fields)) throw invalid("cannot calculate day of year without year information");
      return LocalDate.ofYearDay(year, fields.get("DDD"));
    }
    // A month or day of 0 counts as missing.
    int month = fields.getOrDefault("MM", 0) == 0 ? 1 : fields.get("MM");
    int day = fields.getOrDefault("DD", 0) == 0 ? 1 : fields.get("DD");
    if (fields.containsKey("WW")) return LocalDate.of(year, 1, 1).plusDays((fields.get("WW") - 1) * 7L);
    if (fields.containsKey("W")) day = (fields.get("W") - 1) * 7 + 1;
    return LocalDate.of(year, month, day);
  }

  private static boolean isBeforeChrist(Map<String, Integer> fields) { return fields.getOrDefault("era", 0) > 0; }

  /** Returns the astronomical year: 0 is 1 BC. */
  private static int year(Map<String, Integer> fields) {
    int sign = isBeforeChrist(fields) ? -1 : 1;
    int year = fields.getOrDefault("YYYY", 0);
    int century = fields.getOrDefault("CC", 0) * sign;
    if (year != 0 && century != 0 && fields.getOrDefault("year_digits", 4) <= 2) {
      int yearOfCentury = year % 100;
      if (yearOfCentury == 0) return century * 100 + (century < 0 ? 1 : 0);
      return (century < 0 ? century + 1 : century - 1) * 100 + yearOfCentury;
    }
    if (year != 0) return year * sign < 0 ? year * sign + 1 : year * sign;
    if (century == 0) return 0;
    return century > 0 ? (century - 1) * 100 + 1 : century * 100 + 1;
  }

  /** Returns a date by its ISO 8601 year, week and day. */
  private static LocalDate isoDate(Map<String, Integer> fields, String text) {
    for (String gregorian : List.of("YYYY", "MM", "DD", "DDD", "WW", "W", "CC")) {
      if (fields.containsKey(gregorian)) throw invalid("invalid combination of date conventions");
    }
    int year = fields.getOrDefault("IYYY", 0) * (isBeforeChrist(fields) ? -1 : 1);
    if (year < 0) year++;
    LocalDate firstMonday = LocalDate.of(year, 1, 4).with(DayOfWeek.MONDAY);
    if (fields.containsKey("IDDD")) return firstMonday.plusDays(fields.get("IDDD") - 1);
    if (!fields.containsKey("IW")) return LocalDate.of(year, 1, 1);
    int week = fields.get("IW");
    if (week < 1 || week > 53) throw outOfRange(text);
    int weekday = 1;
    if (fields.containsKey("ID")) weekday = fields.get("ID");
    else if (fields.containsKey("D")) weekday = Math.floorMod(fields.get("D") - 2, 7) + 1;
    return firstMonday.plusDays((week - 1) * 7L + weekday - 1);
  }

  /** Completes a year of fewer than four digits to the year nearest to 2020. */
  private static int completedYear(int year) {
    if (year < 70) return year + 2000;
    if (year < 100) return year + 1900;
    if (year < 520) return year + 2000;
    return year < 1000 ? year + 1000 : year;
  }

  /**
   * Reads the fields of a text by a pattern: PostgreSQL's DCH_from_char().
   *
   * <p>Besides the pattern's names, fields are: hour; hour12 (the hour is of the 12-hour clock);
   * half (1 for pm); era (1 for BC); micros; FF (digits of a second); year_digits; offset_sign.
   */
  private static final class Reader {
    private final String text;
    private final List<DatePattern.Part> parts;
    private final boolean exact;  // FX
    private final Map<String, Integer> fields = new HashMap<>();
    private int at;

    Reader(UTF8String text, UTF8String pattern) {
      this.text = text.toString();
      parts = DatePattern.parts(pattern);
      exact = pattern.toString().toUpperCase(Locale.ROOT).startsWith("FX");
    }

    Map<String, Integer> read() {
      int extraBlanks = 0;
      for (int i = 0; i < parts.size() && at < text.length(); i++) {
        DatePattern.Part p = parts.get(i);
        if (!exact && (p.isField() || i == 0)) extraBlanks += skipBlanks();
        switch (p.kind()) {
          case SPACE, SEPARATOR -> {
            if (exact || isSeparator(peek())) at++;
            else extraBlanks--;
          }
          case TEXT -> {
            if (!exact && extraBlanks > 0) extraBlanks--;
            else at++;
          }
          case FIELD -> {
            readField(i, p, extraBlanks);
            if (!exact) extraBlanks = skipBlanks();
          }
        }
      }
      return fields;
    }

    private char peek() { return at < text.length() ? text.charAt(at) : 0; }

    private static boolean isSeparator(char c) {
      return c != 0 && (Character.isWhitespace(c) || DatePattern.SEPARATORS.indexOf(c) >= 0);
    }

    private int skipBlanks() {
      int start = at;
      while (Character.isWhitespace(peek())) at++;
      return at - start;
    }

    private void put(String field, int value) {
      Integer previous = fields.putIfAbsent(field, value);
      if (previous != null && previous != value) {
        throw invalid("conflicting values for \"" + field + "\" field in formatting string");
      }
    }

    /**
     * Reads a field.
     *
     * @param extraBlanks how many more blanks and separators precede it than in the pattern
     */
    private void readField(int i, DatePattern.Part p, int extraBlanks) {
      switch (p.field()) {
        case "FX" -> {}
        case "AM", "PM" -> put("half", readName(p, List.of("am", "pm")));
        case "A.M.", "P.M." -> put("half", readName(p, List.of("a.m.", "p.m.")));
        case "AD", "BC" -> put("era", readName(p, List.of("ad", "bc")));
        case "A.D.", "B.C." -> put("era", readName(p, List.of("a.d.", "b.c.")));
        case "MONTH" -> put("MM", readName(p, DatePattern.MONTHS) + 1);
        case "MON" -> put("MM", readName(p, SHORT_MONTHS) + 1);
        case "DAY" -> put("D", readName(p, DatePattern.DAYS) + 1);
        case "DY" -> put("D", readName(p, SHORT_DAYS) + 1);
        case "RM" -> put("MM", readName(p, ROMAN_MONTHS) + 1);
        case "TZ", "OF" ->
            throw new SqlError("0A000", "formatting field \"" + p.field() + "\" is only supported in to_char");
        case "TZH" -> {
          char sign = peek();
          if (sign == '+' || sign == '-' || sign == ' ') at++;
          else if (extraBlanks > 0) sign = text.charAt(at - 1);  // which was read as a separator
          fields.put("offset_sign", sign == '-' ? -1 : 1);
          readNumericField(i, p);
        }
        case "Y,YYY" -> {
          int thousands = readNumber(i, p, 99);
          if (peek() != ',') throw invalid("invalid input string for \"Y,YYY\"");
          at++;
          put("YYYY", thousands * 1000 + readNumber(i, p, 3));
        }
        default -> readNumericField(i, p);
      }
    }

    /** Reads the longest name that matches, in any case, and returns its index. */
    private int readName(DatePattern.Part p, List<String> names) {
      int longest = -1;
      for (int i = 0; i < names.size(); i++) {
        String name = names.get(i);
        boolean longer = longest < 0 || name.length() > names.get(longest).length();
        if (longer && text.regionMatches(true, at, name, 0, name.length())) longest = i;
      }
      if (longest < 0) {
        String word = text.substring(at).strip().split("\\s")[0];
        throw invalid("invalid value \"" + word + "\" for \"" + p.spelling() + "\"");
      }
      at += names.get(longest).length();
      return longest;
    }

    private void readNumericField(int i, DatePattern.Part p) {
      int width = WIDTHS.get(p.field());
      int start = at;
      int value = readNumber(i, p, width);
      int length = at - start;
      switch (p.field()) {
        case "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6" -> {
          put("micros", micros(p.field(), value, text.substring(start, at).strip().length()));
          if (p.field().startsWith("FF")) fields.put("FF", width);
        }
        case "HH12", "HH" -> {
          put("hour", value);
          fields.put("hour12", 1);
        }
        case "YYY", "YY", "Y", "IYY", "IY", "I" -> {
          put(p.field().startsWith("I") ? "IYYY" : "YYYY", length < 4 ? completedYear(value) : value);
          fields.put("year_digits", width);
        }
        case "HH24" -> put("hour", value);
        case "SSSSS" -> put("SSSS", value);
        default -> put(p.field(), value);
      }
      if (!p.suffix().isEmpty()) at += 2;
    }

    /** Returns a fraction of a second in microseconds, from its digits. */
    private static int micros(String field, int value, int digits) {
      int width = field.equals("MS") ? 3 : 6;
      int scale = (int) Math.pow(10, width - Math.min(digits, field.startsWith("FF") ? 6 : WIDTHS.get(field)));
      return value * scale * (field.equals("MS") ? 1000 : 1);
    }

    private int readNumber(int i, DatePattern.Part p, int width) {
      skipBlanks();
      int start = at;
      boolean anyLength = p.fillMode() || isFollowedByNonDigit(i, p);
      int limit = anyLength ? text.length() : at + width;
      if (limit > text.length()) {
        throw invalid("source string too short for \"" + p.spelling() + "\" formatting field");
      }
      int end = at;
      if (end < text.length() && (text.charAt(end) == '+' || text.charAt(end) == '-')) end++;
      int digitsStart = end;
      while (end < limit && text.charAt(end) >= '0' && text.charAt(end) <= '9') end++;
      if (end == digitsStart || !anyLength && end < limit) {
        String value = text.substring(start, Math.min(start + width, text.length()));
        throw invalid("invalid value \"" + value + "\" for \"" + p.spelling() + "\"");
      }
      at = end;
      try {
        return Integer.parseInt(text.substring(start, end));
      } catch (NumberFormatException e) {
        throw new SqlError("22008", "value for \"" + p.spelling() + "\" in source string is out of range");
      }
    }

    /**
     * Returns whether a part that is not a digit follows, so that the number may have any length.
     */
    private boolean isFollowedByNonDigit(int i, DatePattern.Part p) {
      if (!p.suffix().isEmpty() || i + 1 == parts.size()) return true;
      DatePattern.Part next = parts.get(i + 1);
      return next.isField() ? !next.isNumeric() : !Character.isDigit(next.spelling().charAt(0));
    }
  }
}
