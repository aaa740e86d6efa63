package tailgate.functions.time;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * Lengths of units of time in microseconds, and the spellings of units.
 *
 * <p>{@code tailgate/values/times/units.py} has the same spellings and names the source.
 */
final class TimeUnits {
  static final long DAY = 86_400_000_000L;
  static final long HOUR = 3_600_000_000L;
  static final long MINUTE = 60_000_000;
  static final long SECOND = 1_000_000;

  /** The units that a value can be truncated to. */
  private static final Set<String> TRUNCATABLE = Set.of("microsecond", "millisecond", "second", "minute", "hour",
      "day", "week", "month", "quarter", "year", "decade", "century", "millennium");

  private static final Map<String, String> UNITS_BY_SPELLING = new HashMap<>();

  static {
    String[] spellings = {  // the unit, then its other spellings
        "microsecond microseconds microsecon us usec usecond useconds usecs",
        "millisecond milliseconds millisecon ms msec msecond mseconds msecs",
        "second seconds s sec secs",
        "minute minutes m min mins",
        "hour hours h hr hrs",
        "day days d",
        "week weeks w",
        "month months mon mons",
        "quarter qtr",
        "year years y yr yrs",
        "decade decades dec decs",
        "century centuries c cent",
        "millennium millennia mil mils",
        "dow", "isodow", "doy", "epoch", "isoyear", "julian",
        "timezone", "timezone_hour timezone_h", "timezone_minute timezone_m",
    };
    for (String line : spellings) {
      String[] words = line.split(" ");
      for (String word : words) UNITS_BY_SPELLING.put(word, words[0]);
    }
  }

  private TimeUnits() {}

  /** Returns the unit that a word spells, or the word in lower case. */
  static String unit(UTF8String word) {
    String lower = word.toString().toLowerCase(Locale.ROOT);
    return UNITS_BY_SPELLING.getOrDefault(lower, lower);
  }

  /** Returns the words that spell a unit. */
  static List<String> spellings(String unit) {
    return UNITS_BY_SPELLING.entrySet().stream().filter(e -> e.getValue().equals(unit)).map(Map.Entry::getKey).toList();
  }

  /**
   * Returns 0A000 for a unit that a type does not support, or 22023 for a word that is not a unit.
   */
  static SqlError unsupported(UTF8String word, String type) {
    String lower = word.toString().toLowerCase(Locale.ROOT);
    if (TRUNCATABLE.contains(unit(word))) {
      return new SqlError("0A000", "unit \"" + lower + "\" not supported for type " + type);
    }
    return SqlError.invalidParameter("unit \"" + lower + "\" not recognized for type " + type);
  }
}
