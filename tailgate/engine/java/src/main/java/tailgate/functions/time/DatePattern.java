package tailgate.functions.time;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.functions.TextCache;

/**
 * The parsed patterns of to_char(), to_date() and to_timestamp(), such as {@code YYYY-MM-DD}, and
 * the English names that they print and read.
 *
 * <p>{@code tailgate/sql/compute/time/date_pattern.py} is the same in Python.
 */
final class DatePattern {
  static final List<String> MONTHS = List.of("January", "February", "March", "April", "May", "June", "July",
      "August", "September", "October", "November", "December");
  static final List<String> DAYS =
      List.of("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday");

  private static final String[] NUMERIC_FIELDS = ("CC DDD DD D FF1 FF2 FF3 FF4 FF5 FF6 HH24 HH12 HH IDDD ID IW IYYY "
      + "IYY IY I J MI MM MS Q SSSSS SSSS SS US WW W Y,YYY YYYY YYY YY Y").split(" ");
  private static final String[] OTHER_FIELDS =
      "A.D. A.M. AD AM B.C. BC DAY DY FX MONTH MON OF P.M. PM RM TZH TZM TZ".split(" ");
  private static final String[] MIXED_CASE_FIELDS = "Day Dy Month Mon".split(" ");
  private static final Set<String> NUMERIC = Set.of(NUMERIC_FIELDS);
  private static final Set<String> SUFFIXES = Set.of("TH", "th", "SP", "sp");
  static final String SEPARATORS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  private static final List<String> SPELLINGS = spellings();  // longest first
  private static final int CACHE_MAX = 1000;  // patterns
  private static final TextCache<List<Part>> CACHE = new TextCache<>(CACHE_MAX, pattern -> parse(pattern.toString()));

  enum Kind { FIELD, TEXT, SPACE, SEPARATOR }

  /**
   * A field or one character of text.
   *
   * @param spelling the field as in the pattern, or the character
   * @param field the field in upper case; empty for a character
   * @param fillMode whether FM precedes the field
   * @param suffix TH, th, or empty
   */
  record Part(Kind kind, String spelling, String field, boolean fillMode, String suffix) {
    static Part character(Kind kind, char c) { return new Part(kind, String.valueOf(c), "", false, ""); }

    boolean isField() { return kind == Kind.FIELD; }

    boolean isNumeric() { return NUMERIC.contains(field); }
  }

  private DatePattern() {}

  private static List<String> spellings() {
    List<String> spellings = new ArrayList<>(List.of(MIXED_CASE_FIELDS));
    for (String[] fields : new String[][] {NUMERIC_FIELDS, OTHER_FIELDS}) {
      for (String field : fields) spellings.addAll(List.of(field, field.toLowerCase(Locale.ROOT)));
    }
    spellings.sort(Comparator.comparing((String s) -> -s.length()).thenComparing(Comparator.naturalOrder()));
    return spellings;
  }

  static List<Part> parts(UTF8String pattern) {
    return CACHE.get(pattern);
  }

  private static List<Part> parse(String text) {
    List<Part> parts = new ArrayList<>();
    for (int at = 0; at < text.length(); ) {
      if (text.charAt(at) == '"') {
        for (at++; at < text.length() && text.charAt(at) != '"'; at++) {
          if (text.charAt(at) == '\\' && at + 1 < text.length()) at++;
          parts.add(Part.character(Kind.TEXT, text.charAt(at)));
        }
        at++;
        continue;
      }
      boolean fillMode = false;
      for (; isPrefix(text, at); at += 2) fillMode |= Character.toUpperCase(text.charAt(at)) == 'F';
      int start = at;
      String spelling = SPELLINGS.stream().filter(s -> text.startsWith(s, start)).findFirst().orElse(null);
      if (spelling != null) {
        at += spelling.length();
        String suffix = text.length() >= at + 2 ? text.substring(at, at + 2) : "";
        if (!SUFFIXES.contains(suffix)) suffix = "";
        at += suffix.length();
        String ending = suffix.equalsIgnoreCase("SP") ? "" : suffix;
        parts.add(new Part(Kind.FIELD, spelling, spelling.toUpperCase(Locale.ROOT), fillMode, ending));
        continue;
      }
      if (at >= text.length()) break;
      char c = text.charAt(at);
      if (c == '\\' && at + 1 < text.length()) parts.add(Part.character(Kind.TEXT, text.charAt(++at)));
      else parts.add(Part.character(kind(c), c));
      at++;
    }
    return parts;
  }

  /** Returns whether FM, fm, TM or tm follows. */
  private static boolean isPrefix(String text, int at) {
    return text.startsWith("FM", at) || text.startsWith("fm", at) || text.startsWith("TM", at)
        || text.startsWith("tm", at);
  }

  private static Kind kind(char c) {
    if (Character.isWhitespace(c)) return Kind.SPACE;
    return SEPARATORS.indexOf(c) >= 0 ? Kind.SEPARATOR : Kind.TEXT;
  }
}
