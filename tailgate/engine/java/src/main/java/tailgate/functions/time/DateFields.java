package tailgate.functions.time;

import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.JulianFields;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import tailgate.errors.SqlError;
import tailgate.functions.time.DateTokens.BadFormat;
import tailgate.functions.time.DateTokens.FieldOverflow;
import tailgate.functions.time.DateTokens.Kind;
import tailgate.functions.time.DateTokens.Number;
import tailgate.functions.time.DateTokens.Token;

/**
 * The fields of a date and time, with DateStyle "ISO, MDY". A token adds fields; no field may be
 * given twice. {@code tailgate/values/times/date_fields.py} computes the same and names the source.
 */
final class DateFields {
  static final int YEAR = 1;
  static final int MONTH = 1 << 1;
  static final int DAY = 1 << 2;
  static final int HOUR = 1 << 3;
  static final int MINUTE = 1 << 4;
  static final int SECOND = 1 << 5;
  static final int ZONE = 1 << 6;
  static final int DAY_OF_YEAR = 1 << 7;
  static final int FRACTION = 1 << 8;
  static final int HALF = 1 << 9;
  static final int ERA = 1 << 10;
  static final int WEEKDAY = 1 << 11;
  static final int SUMMER_TIME = 1 << 12;
  static final int DATE = YEAR | MONTH | DAY;
  static final int TIME = HOUR | MINUTE | SECOND;

  private static final Pattern DATE_PART = Pattern.compile("[^0-9a-z]*(\\d+|[a-z]+).?", Pattern.DOTALL);
  private static final int OFFSET_HOURS_MAX = 15;

  int mask;
  ZoneId zone;
  boolean summerTime;
  String word = "";  // such as epoch or infinity
  String unit = "";  // the unit of the next number, if a word has named it
  private int year;
  private int month;
  private int day;
  private int dayOfYear;
  private int hour;
  private int minute;
  private int second;
  private int micros;
  private String half = "";
  private String era = "";
  private boolean julian;
  private boolean shortYear;
  boolean monthName;

  /** Notes fields. */
  void add(int fields) throws BadFormat {
    if ((fields & mask) != 0) throw new BadFormat();
    mask |= fields;
  }

  // ---- dates ------------------------------------------------------------------------------------

  /** Decodes a date such as {@code 2021-04-26} or {@code 26-apr-2021}. */
  int date(String text) throws BadFormat, FieldOverflow {
    List<String> parts = new ArrayList<>();
    Matcher m = DATE_PART.matcher(text);
    for (int at = 0; at < text.length(); at = m.end()) {
      if (!m.region(at, text.length()).lookingAt()) throw new BadFormat();
      parts.add(m.group(1));
    }
    int added = 0;
    for (String part : parts) {
      if (Character.isDigit(part.charAt(0))) continue;
      DateWords.Word word = DateWords.find(part);
      if (word != null && word.kind() == DateWords.Kind.IGNORED) continue;
      if (word == null || word.kind() != DateWords.Kind.MONTH || ((mask | added) & MONTH) != 0) throw new BadFormat();
      month = word.number();
      added |= MONTH;
    }
    boolean monthName = added != 0;
    for (String part : parts) {
      if (!Character.isDigit(part.charAt(0))) continue;
      int fields = number(part, monthName, mask | added);
      if ((fields & (mask | added)) != 0) throw new BadFormat();
      added |= fields;
    }
    if (((mask | added) & ~(DAY_OF_YEAR | ZONE)) != DATE) throw new BadFormat();
    return added;
  }

  /** Decodes a number by the {@code earlier} fields of the date. */
  int number(String text, boolean monthName, int earlier) throws BadFormat, FieldOverflow {
    Number number = DateTokens.integer(text);
    String rest = number.rest();
    if (rest.length() == text.length() || !rest.isEmpty() && !rest.startsWith(".")) throw new BadFormat();
    if (!rest.isEmpty()) {
      if (text.length() - rest.length() > 2) return runTogether(text, earlier | DATE);
      micros = Clock.micros(rest);
    }
    int value = (int) number.value();
    int date = earlier & DATE;
    if (text.length() == 3 && date == YEAR && value >= 1 && value <= 366) {
      dayOfYear = value;
      return DAY_OF_YEAR | MONTH | DAY;
    }
    if (date == (YEAR | MONTH) && monthName && text.length() >= 3 && shortYear) {
      day = year;  // the first number was the day
      year = value;
      shortYear = false;
      return DAY;
    }
    if (date == DATE) return runTogether(text, earlier);
    int field = next(date, monthName, text.length());
    if (field == YEAR) {
      year = value;
      shortYear = text.length() <= 2;
    } else if (field == MONTH) {
      month = value;
    } else {
      day = value;
    }
    return field;
  }

  /** Returns the field of a number, by the fields before it. */
  private static int next(int earlier, boolean monthName, int length) {
    return switch (earlier) {
      case 0 -> length >= 3 ? YEAR : MONTH;
      case MONTH -> monthName && length >= 3 ? YEAR : DAY;
      case YEAR, DAY -> MONTH;
      case YEAR | MONTH -> DAY;
      default -> YEAR;
    };
  }

  /** Decodes a date such as {@code 20210426}, or a time such as {@code 101112.5}. */
  int runTogether(String text, int earlier) throws BadFormat, FieldOverflow {
    int point = text.indexOf('.');
    int length = point < 0 ? text.length() : point;
    if (point >= 0) {
      micros = Clock.micros(text.substring(point));
    } else if ((earlier & DATE) != DATE && length >= 6) {
      year = DateTokens.wrappedInteger(text.substring(0, length - 4));
      month = Integer.parseInt(text.substring(length - 4, length - 2));
      day = Integer.parseInt(text.substring(length - 2));
      shortYear |= length == 6;
      return DATE;
    }
    if ((earlier & TIME) == TIME || length != 4 && length != 6) throw new BadFormat();
    hour = Integer.parseInt(text.substring(0, 2));
    minute = Integer.parseInt(text.substring(2, 4));
    second = length == 6 ? Integer.parseInt(text.substring(4, 6)) : 0;
    return TIME;
  }

  void julianDay(long value) throws FieldOverflow {
    if (value < 0) throw new FieldOverflow();
    LocalDate date = LocalDate.EPOCH.with(JulianFields.JULIAN_DAY, value);
    year = date.getYear();
    month = date.getMonthValue();
    day = date.getDayOfMonth();
    julian = true;
  }

  // ---- times, zones and words -------------------------------------------------------------------

  int time(String text) throws BadFormat, FieldOverflow {
    Clock clock = Clock.parse(text);
    if (clock.hour() != (int) clock.hour()) throw new FieldOverflow();
    hour = (int) clock.hour();
    minute = clock.minute();
    second = clock.second();
    micros = clock.micros();
    return TIME;
  }

  /** Decodes an offset such as {@code +02}, {@code -0830} or {@code +05:30:15}. Throws 22009. */
  int offset(String text, String all) throws BadFormat {
    long[] parts = new long[3];
    String rest;
    try {
      Number number = DateTokens.integer(text.substring(1));
      parts[0] = number.value();
      rest = number.rest();
      for (int i = 1; i < 3 && rest.startsWith(":"); i++) {
        number = DateTokens.integer(rest.substring(1));
        parts[i] = number.value();
        rest = number.rest();
      }
      if (rest.isEmpty() && text.length() > 3 && text.indexOf(':') < 0) {
        parts[1] = parts[0] % 100;
        parts[0] /= 100;
      }
    } catch (FieldOverflow e) {
      throw zoneOverflow(all);
    }
    boolean valid = parts[0] >= 0 && parts[0] <= OFFSET_HOURS_MAX;
    for (int i = 1; i < 3; i++) valid &= parts[i] >= 0 && parts[i] <= 59;
    if (!valid) throw zoneOverflow(all);
    if (!rest.isEmpty()) throw new BadFormat();
    int seconds = (int) ((parts[0] * 60 + parts[1]) * 60 + parts[2]);
    zone = ZoneOffset.ofTotalSeconds(text.startsWith("-") ? -seconds : seconds);
    return ZONE;
  }

  private static SqlError zoneOverflow(String text) {
    return new SqlError("22009", "time zone displacement out of range: \"" + text + "\"");
  }

  /** Looks up a zone by its full name. Throws 22023. */
  int namedZone(String name) {
    zone = TimeZones.zone(name);
    return ZONE;
  }

  /** Decodes a number whose field the word before it said, as in {@code y2021}. */
  int labelled(String text) throws BadFormat, FieldOverflow {
    String label = unit;
    unit = "";
    Number number = DateTokens.integer(text);
    if (label.equals("time")) {
      if (runTogether(text, mask | DATE) != TIME) throw new BadFormat();
      return TIME;
    }
    int value = (int) number.value();
    String rest = number.rest();
    boolean fractional = label.equals("julian") || label.equals("second");
    if (!rest.isEmpty() && !(rest.startsWith(".") && fractional)) throw new BadFormat();
    if (label.equals("julian")) {
      julianDay(value);
      if (rest.isEmpty()) return DATE;
      setTime((long) (DateTokens.fraction(rest) * TimeUnits.DAY));
      return DATE | TIME;
    }
    if (label.equals("month") && (mask & MONTH) != 0 && (mask & HOUR) != 0) label = "minute";
    switch (label) {
      case "year" -> { year = value; return YEAR; }
      case "month" -> { month = value; return MONTH; }
      case "day" -> { day = value; return DAY; }
      case "hour" -> { hour = value; return HOUR; }
      case "minute" -> { minute = value; return MINUTE; }
      case "second" -> {
        second = value;
        if (rest.isEmpty()) return SECOND;
        micros = Clock.micros(rest);
        return SECOND | FRACTION;
      }
      default -> throw new BadFormat();
    }
  }

  private void setTime(long time) {
    micros = (int) (time % TimeUnits.SECOND);
    long seconds = time / TimeUnits.SECOND;
    second = (int) (seconds % 60);
    minute = (int) (seconds / 60 % 60);
    hour = (int) (seconds / 3600);
  }

  /** Decodes a word. Returns the mask of its fields. */
  int word(Token token, Token following, boolean timeOnly) throws BadFormat {
    ZoneId abbreviated = TimeZones.abbreviation(token.text());
    if (abbreviated != null) {
      zone = abbreviated;
      return ZONE;
    }
    DateWords.Word found = DateWords.find(token.text());
    if (found == null) {
      try {
        return namedZone(token.text());
      } catch (SqlError e) {
        throw new BadFormat();
      }
    }
    switch (found.kind()) {
      case IGNORED -> { return 0; }
      case RESERVED -> { return reserved(found.name(), timeOnly); }
      case SUMMER_TIME -> { summerTime = true; return SUMMER_TIME; }
      case HALF -> { half = found.name(); return HALF; }
      case ERA -> { era = found.name(); return ERA; }
      case UNIT -> { unit = found.name(); return 0; }
      case ISO_TIME -> {
        boolean dated = timeOnly || (mask & DATE) == DATE;
        boolean timed = following != null
            && (following.kind() == Kind.NUMBER || following.kind() == Kind.TIME || following.kind() == Kind.DATE);
        if (!dated || !timed) throw new BadFormat();
        unit = found.name();
        return 0;
      }
      default -> {
        if (timeOnly) throw new BadFormat();
        return found.kind() == DateWords.Kind.WEEKDAY ? WEEKDAY : month(found.number());
      }
    }
  }

  private int month(int number) {
    int added = MONTH;
    if ((mask & MONTH) != 0 && !monthName && (mask & DAY) == 0 && month >= 1 && month <= 31) {
      day = month;  // the number before the name was the day
      added = DAY;
    }
    monthName = true;
    month = number;
    return added;
  }

  private int reserved(String name, boolean timeOnly) throws BadFormat {
    if (name.equals("allballs")) {
      zone = ZoneOffset.UTC;
      return TIME | ZONE;
    }
    if (timeOnly && !name.equals("now")) throw new BadFormat();
    word = name;
    return name.equals("today") || name.equals("tomorrow") || name.equals("yesterday") ? DATE : DATE | TIME | ZONE;
  }

  // ---- checks -----------------------------------------------------------------------------------

  /** Completes the year by its era or length, applies AM and PM, and checks the fields. */
  void check() throws FieldOverflow {
    if (word.isEmpty()) checkDate();
    if (!half.isEmpty()) {
      if (hour > 12) throw new FieldOverflow();
      hour = hour % 12 + (half.equals("pm") ? 12 : 0);
    }
  }

  private void checkDate() throws FieldOverflow {
    if ((mask & YEAR) != 0 && !julian) {
      boolean beforeChrist = era.equals("bc");
      if (year <= 0 && (beforeChrist || !shortYear)) throw new FieldOverflow();
      if (beforeChrist) year = 1 - year;
      else if (shortYear) year += year < 70 ? 2000 : year < 100 ? 1900 : 0;
    }
    if ((mask & DAY_OF_YEAR) != 0) {
      LocalDate date = LocalDate.of(year, 1, 1).plusDays(dayOfYear - 1);
      year = date.getYear();
      month = date.getMonthValue();
      day = date.getDayOfMonth();
    }
    if ((mask & MONTH) != 0 && (month < 1 || month > 12)) throw new FieldOverflow();
    if ((mask & DAY) != 0 && (day < 1 || day > 31)) throw new FieldOverflow();
    if ((mask & DATE) == DATE) date();
  }

  LocalDate date() throws FieldOverflow {
    try {
      return LocalDate.of(year, month, day);
    } catch (DateTimeException e) {
      throw new FieldOverflow();
    }
  }

  void checkTime() throws FieldOverflow {
    boolean valid = hour >= 0 && hour <= 24 && minute >= 0 && minute <= 59 && second >= 0 && second <= 60;
    if (!valid || timeOfDay() > TimeUnits.DAY) throw new FieldOverflow();
  }

  /** Returns microseconds since midnight. */
  long timeOfDay() { return ((hour * 60L + minute) * 60 + second) * TimeUnits.SECOND + micros; }
}
