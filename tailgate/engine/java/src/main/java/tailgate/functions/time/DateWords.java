package tailgate.functions.time;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The words that stand for fields of a date. {@code tailgate/values/times/date_tokens.py} has the same. */
final class DateWords {
  enum Kind { MONTH, WEEKDAY, HALF, ERA, UNIT, RESERVED, IGNORED, SUMMER_TIME, ISO_TIME }

  /** A word's kind, and its number or name. */
  record Word(Kind kind, int number, String name) {}

  private static final List<String> MONTHS = List.of("january", "february", "march", "april", "may", "june", "july",
      "august", "september", "october", "november", "december");
  private static final List<String> WEEKDAYS =
      List.of("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday");
  private static final Map<String, Word> WORDS = new HashMap<>();

  static {
    for (int i = 0; i < MONTHS.size(); i++) {
      WORDS.put(MONTHS.get(i), new Word(Kind.MONTH, i + 1, MONTHS.get(i)));
      WORDS.put(MONTHS.get(i).substring(0, 3), new Word(Kind.MONTH, i + 1, MONTHS.get(i)));
    }
    WORDS.put("sept", WORDS.get("sep"));
    for (String day : WEEKDAYS) put(Kind.WEEKDAY, day, day + " " + day.substring(0, 3));
    put(Kind.WEEKDAY, "", "tues weds thur thurs");
    for (String name : "am pm".split(" ")) put(Kind.HALF, name, name);
    for (String name : "ad bc".split(" ")) put(Kind.ERA, name, name);
    put(Kind.UNIT, "julian", "j jd julian");
    put(Kind.UNIT, "year", "y");
    put(Kind.UNIT, "month", "m");
    put(Kind.UNIT, "day", "d");
    put(Kind.UNIT, "hour", "h");
    put(Kind.UNIT, "minute", "mm");
    put(Kind.UNIT, "second", "s");
    for (String name : "dow doy isodow isoyear".split(" ")) put(Kind.UNIT, name, name);
    put(Kind.ISO_TIME, "time", "t");
    for (String name : "epoch now today tomorrow yesterday allballs infinity -infinity".split(" ")) {
      put(Kind.RESERVED, name, name);
    }
    put(Kind.RESERVED, "infinity", "+infinity");
    put(Kind.IGNORED, "", "at on");
    put(Kind.SUMMER_TIME, "", "dst");
  }

  private DateWords() {}

  private static void put(Kind kind, String name, String spellings) {
    for (String spelling : spellings.split(" ")) WORDS.put(spelling, new Word(kind, 0, name));
  }

  static Set<String> names() { return WORDS.keySet(); }

  /** Returns the meaning of a word, or null. Only its first ten characters count. */
  static Word find(String word) {
    return WORDS.get(DateTokens.firstCharacters(word));
  }
}
