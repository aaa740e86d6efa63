package tailgate.functions.time;

import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.time.DateTokens.BadFormat;
import tailgate.functions.time.DateTokens.FieldOverflow;
import tailgate.functions.time.DateTokens.Kind;
import tailgate.functions.time.DateTokens.Number;
import tailgate.functions.time.DateTokens.Token;

/**
 * The input function of interval: {@code 1 year 2 mons -3 days 04:05:06.7}, {@code 1-2}, {@code
 * P1Y2M3DT4H}, {@code P0001-02-03T04:05:06}. {@code tailgate/values/times/intervals.py} computes the same
 * and names the source.
 */
public final class IntervalInput {
  private enum Unit {
    MICROSECOND(0, 0, 1),
    MILLISECOND(0, 0, 1_000),
    SECOND(0, 0, TimeUnits.SECOND),
    MINUTE(0, 0, TimeUnits.MINUTE),
    HOUR(0, 0, TimeUnits.HOUR),
    DAY(0, 1, 0),
    WEEK(0, 7, 0),
    MONTH(1, 0, 0),
    YEAR(12, 0, 0),
    DECADE(120, 0, 0),
    CENTURY(1200, 0, 0),
    MILLENNIUM(12_000, 0, 0);

    final int months;
    final int days;
    final long micros;

    Unit(int months, int days, long micros) {
      this.months = months;
      this.days = days;
      this.micros = micros;
    }
  }

  private static final Map<String, Unit> UNITS_BY_SPELLING = new HashMap<>();
  private static final Set<String> WORDS = DateWords.names();
  private static final int DAYS_PER_MONTH = 30;
  private static final Pattern ISO_NUMBER = Pattern.compile("-?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?");
  private static final double ISO_VALUE_MAX = 1e15;

  static {
    for (Unit unit : Unit.values()) {
      for (String spelling : TimeUnits.spellings(unit.name().toLowerCase(Locale.ROOT))) {
        UNITS_BY_SPELLING.put(DateTokens.firstCharacters(spelling), unit);
      }
    }
  }

  private final String text;
  private long months;
  private long years;  // of the months
  private long days;
  private long micros;
  private int at = 1;  // in ISO 8601's format

  private IntervalInput(String text) { this.text = text; }

  /** Returns the interval. Throws 22007, 22015 or 22008. */
  public static Interval parse(UTF8String text) {
    IntervalInput i = new IntervalInput(text.toString());
    try {
      try {
        i.readUnits(DateTokens.tokens(i.text, WORDS));
      } catch (BadFormat e) {
        i = new IntervalInput(i.text);
        i.readIso();
      }
    } catch (BadFormat e) {
      throw new SqlError("22007", "invalid input syntax for type interval: \"" + text + "\"");
    } catch (FieldOverflow | ArithmeticException e) {
      throw new SqlError("22015", "interval field value out of range: \"" + text + "\"");
    }
    return Interval.of(i.months, i.days, i.micros);
  }

  // ---- sums -------------------------------------------------------------------------------------

  /**
   * Adds an amount of a unit and a fraction of one. A fraction of a year becomes whole months, one of
   * a month days, and one of a day time.
   */
  private void add(long amount, double part, Unit unit) {
    if (unit == Unit.MONTH) {
      months += Math.toIntExact(amount);
      Math.toIntExact(months - 12 * years);
      addDays(part * DAYS_PER_MONTH);
    } else if (unit.months > 0) {
      int more = Math.multiplyExact(Math.toIntExact(amount), unit.months / 12);
      years = Math.toIntExact(years + more);
      months += 12L * more + (long) Math.rint(part * unit.months);
    } else if (unit.days > 0) {
      days = Math.toIntExact(days + Math.multiplyExact(Math.toIntExact(amount), unit.days));
      addDays(part * unit.days);
    } else {
      micros = Math.addExact(micros, Math.multiplyExact(amount, unit.micros));
      addMicros(part, unit.micros);
    }
  }

  private void addDays(double part) {
    int whole = (int) part;
    days = Math.toIntExact(days + whole);
    addMicros(part - whole, TimeUnits.DAY);
  }

  /** Adds a fraction of a unit, rounded to microseconds; half a microsecond is dropped. */
  private void addMicros(double part, long scale) {
    double exact = part * scale;
    long whole = (long) exact;
    double rest = exact - whole;
    micros = Math.addExact(micros, whole + (rest > 0.5 ? 1 : rest < -0.5 ? -1 : 0));
  }

  // ---- PostgreSQL's and the SQL standard's format -----------------------------------------------

  /** Reads tokens backwards: a unit follows its number. */
  private void readUnits(List<Token> tokens) throws BadFormat, FieldOverflow {
    Set<Unit> known = EnumSet.noneOf(Unit.class);
    Unit unit = Unit.SECOND;
    boolean ago = false;
    boolean afterAgo = false;  // no unit follows the number
    for (int n = tokens.size() - 1; n >= 0; n--) {
      Token token = tokens.get(n);
      if (token.kind() == Kind.STRING || token.kind() == Kind.SPECIAL) {
        afterAgo = token.text().equals("ago");
        ago |= afterAgo;
        if (!afterAgo) unit = UNITS_BY_SPELLING.get(DateTokens.firstCharacters(token.text()));
        if (unit == null) throw new BadFormat();
        continue;
      }
      Set<Unit> added;
      if (token.kind() == Kind.TIME || token.kind() == Kind.SIGNED && isClock(token.text())) {
        micros = clock(token.text());
        added = EnumSet.of(Unit.HOUR, Unit.MINUTE, Unit.SECOND);
        unit = Unit.DAY;
        afterAgo = false;
      } else {
        if (afterAgo) throw new BadFormat();
        Number amount = DateTokens.longInteger(token.text());
        boolean yearsMonths = amount.rest().startsWith("-");
        double part = yearsMonths ? 0 : fraction(token.text(), amount.rest());
        if (yearsMonths) {
          amount = yearsMonths(token.text(), amount);
          unit = Unit.MONTH;
        }
        add(amount.value(), part, unit);
        boolean subseconds = unit == Unit.SECOND && part != 0;
        added = subseconds ? EnumSet.of(Unit.SECOND, Unit.MILLISECOND, Unit.MICROSECOND) : EnumSet.of(unit);
        if (unit == Unit.HOUR) unit = Unit.DAY;
      }
      for (Unit field : added) if (!known.add(field)) throw new BadFormat();
    }
    if (known.isEmpty()) throw new BadFormat();
    if (ago) {
      months = -months;
      days = Math.toIntExact(-days);
      micros = Math.negateExact(micros);
    }
  }

  private static double fraction(String token, String rest) throws BadFormat {
    if (rest.isEmpty()) return 0;
    double part = DateTokens.fraction(rest);
    return token.startsWith("-") ? -part : part;
  }

  /** Reads years and months such as {@code 1-2}, as months. */
  private static Number yearsMonths(String token, Number years) throws BadFormat, FieldOverflow {
    Number months = DateTokens.integer(years.rest().substring(1));
    if (months.value() < 0 || months.value() >= 12) throw new FieldOverflow();
    if (!months.rest().isEmpty()) throw new BadFormat();
    long sign = token.startsWith("-") ? -1 : 1;
    return new Number(Math.addExact(Math.multiplyExact(years.value(), 12), sign * months.value()), "");
  }

  private static boolean isClock(String token) {
    try {
      if (token.indexOf(':') < 0) return false;
      clock(token);
      return true;
    } catch (BadFormat | FieldOverflow | ArithmeticException e) {
      return false;
    }
  }

  /** Returns the microseconds of a time, perhaps with a sign. Its hour has no limit. */
  private static long clock(String token) throws BadFormat, FieldOverflow {
    boolean negative = token.startsWith("-");
    Clock clock = Clock.parse(negative || token.startsWith("+") ? token.substring(1) : token);
    long seconds = Math.addExact(Math.multiplyExact(clock.hour(), 3600), clock.minute() * 60 + clock.second());
    long micros = Math.addExact(Math.multiplyExact(seconds, TimeUnits.SECOND), clock.micros());
    return negative ? -micros : micros;
  }

  // ---- ISO 8601 ---------------------------------------------------------------------------------

  private void readIso() throws BadFormat, FieldOverflow {
    if (text.length() < 2 || text.charAt(0) != 'P') throw new BadFormat();
    boolean dated = true;
    boolean first = true;
    while (at < text.length()) {
      if (text.charAt(at) == 'T') {
        at++;
        dated = false;
        first = true;
        continue;
      }
      int start = at;
      double value = isoNumber();
      long width = text.substring(start, at).split("\\.", 2)[0].chars().filter(Character::isDigit).count();
      String designator = next();
      Unit unit = isoUnit(designator, dated);
      if (unit != null) {
        add((long) value, value - (long) value, unit);
        first = false;
        continue;
      }
      if (!first || !(designator.isEmpty() || (dated ? "T-" : ":").contains(designator))) throw new BadFormat();
      if (dated) {
        alternativeDate(value, width, designator);
        dated = false;
      } else {
        alternativeTime(value, width, designator);
        return;
      }
    }
  }

  private static Unit isoUnit(String designator, boolean dated) {
    return switch (designator) {
      case "Y" -> dated ? Unit.YEAR : null;
      case "W" -> dated ? Unit.WEEK : null;
      case "D" -> dated ? Unit.DAY : null;
      case "M" -> dated ? Unit.MONTH : Unit.MINUTE;
      case "H" -> dated ? null : Unit.HOUR;
      case "S" -> dated ? null : Unit.SECOND;
      default -> null;
    };
  }

  private double isoNumber() throws BadFormat, FieldOverflow {
    Matcher m = ISO_NUMBER.matcher(text).region(at, text.length());
    if (!m.lookingAt()) throw new BadFormat();
    at = m.end();
    double value = Double.parseDouble(m.group());
    if (Math.abs(value) > ISO_VALUE_MAX) throw new FieldOverflow();
    return value;
  }

  /** Returns the next character, and nothing at the end. */
  private String next() {
    at++;
    return at <= text.length() ? text.substring(at - 1, at) : "";
  }

  /** Adds a date such as {@code 00010203} or {@code 0001-02-03}, up to the T. */
  private void alternativeDate(double value, long width, String designator) throws BadFormat, FieldOverflow {
    long amount = (long) value;
    double part = value - amount;
    if (width == 8 && !designator.equals("-")) {
      add(amount / 10_000, 0, Unit.YEAR);
      add(amount / 100 % 100, 0, Unit.MONTH);
      add(amount % 100, part, Unit.DAY);
      return;
    }
    add(amount, part, Unit.YEAR);
    String end = rest(designator, "-", Unit.MONTH, Unit.DAY);
    if (!end.isEmpty() && !end.equals("T")) throw new BadFormat();
  }

  /** Adds a time such as {@code 040506} or {@code 04:05:06}, to the end. */
  private void alternativeTime(double value, long width, String designator) throws BadFormat, FieldOverflow {
    long amount = (long) value;
    double part = value - amount;
    if (width == 6 && designator.isEmpty()) {
      add(amount / 10_000, 0, Unit.HOUR);
      add(amount / 100 % 100, 0, Unit.MINUTE);
      add(amount % 100, 0, Unit.SECOND);
      add(0, part, Unit.MICROSECOND);
      return;
    }
    add(amount, part, Unit.HOUR);
    if (!rest(designator, ":", Unit.MINUTE, Unit.SECOND).isEmpty()) throw new BadFormat();
  }

  /** Adds the numbers that follow a delimiter. Returns what follows the last one. */
  private String rest(String designator, String delimiter, Unit... units) throws BadFormat, FieldOverflow {
    String next = designator;
    for (Unit unit : units) {
      if (!next.equals(delimiter)) break;
      double value = isoNumber();
      add((long) value, value - (long) value, unit);
      next = next();
    }
    return next;
  }
}
