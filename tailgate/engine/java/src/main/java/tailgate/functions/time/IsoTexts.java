package tailgate.functions.time;

import java.time.LocalDate;
import java.time.Month;
import java.time.chrono.IsoChronology;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Dates and timestamps in the form that most messages have: {@code YYYY-MM-DD}, and {@code
 * YYYY-MM-DD HH:MM:SS} with T or a blank between, up to six digits of a fraction, and {@code Z},
 * {@code ±HH}, {@code ±HHMM} or {@code ±HH:MM}.
 *
 * <p>These are read from the bytes, without objects, in a fortieth of the time of {@link TimeInput}'s
 * general decoder. All other texts, and all that are errors, are {@link #OTHER}; the general decoder
 * reads them.
 */
final class IsoTexts {
  /** The result for a text that is not of these forms. No date or timestamp has this value. */
  static final long OTHER = Long.MIN_VALUE;

  private static final int DATE_LENGTH = "YYYY-MM-DD".length();
  private static final int TIMESTAMP_LENGTH = "YYYY-MM-DD HH:MM:SS".length();
  private static final int FRACTION_DIGITS = 6;
  private static final int OFFSET_HOURS_MAX = 15;

  private IsoTexts() {}

  /** Returns days since 1970-01-01. */
  static long date(UTF8String text) { return text.numBytes() == DATE_LENGTH ? days(text) : OTHER; }

  /** Returns microseconds since 1970; the zone of the text is ignored. */
  static long timestamp(UTF8String text) { return timestamp(text, false); }

  /** Returns microseconds since 1970 in UTC. A text without a zone is {@link #OTHER}. */
  static long timestamptz(UTF8String text) { return timestamp(text, true); }

  private static long timestamp(UTF8String text, boolean zoned) {
    int length = text.numBytes();
    if (length < TIMESTAMP_LENGTH) return OTHER;
    byte separator = text.getByte(DATE_LENGTH);
    if (separator != ' ' && separator != 'T' || text.getByte(13) != ':' || text.getByte(16) != ':') return OTHER;
    long days = days(text);
    int hour = digits(text, 11, 2);
    int minute = digits(text, 14, 2);
    int second = digits(text, 17, 2);
    if (days == OTHER || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return OTHER;
    int at = TIMESTAMP_LENGTH;
    long fraction = 0;
    if (at < length && text.getByte(at) == '.') {
      int end = endOfDigits(text, at + 1);
      int count = end - at - 1;
      if (count == 0 || count > FRACTION_DIGITS) return OTHER;
      fraction = digits(text, at + 1, count);
      for (int i = count; i < FRACTION_DIGITS; i++) fraction *= 10;
      at = end;
    }
    long local = days * TimeUnits.DAY + ((hour * 60 + minute) * 60 + second) * TimeUnits.SECOND + fraction;
    if (at == length) return zoned ? OTHER : local;
    long offset = offset(text, at);
    if (offset == OTHER) return OTHER;
    return zoned ? local - offset : local;
  }

  private static long days(UTF8String text) {
    if (text.getByte(4) != '-' || text.getByte(7) != '-') return OTHER;
    int year = digits(text, 0, 4);
    int month = digits(text, 5, 2);
    int day = digits(text, 8, 2);
    if (year < 1 || month < 1 || month > 12 || day < 1) return OTHER;
    if (day > Month.of(month).length(IsoChronology.INSTANCE.isLeapYear(year))) return OTHER;
    return LocalDate.of(year, month, day).toEpochDay();
  }

  /** Returns the offset from UTC at the end of a text, in microseconds. */
  private static long offset(UTF8String text, int at) {
    int length = text.numBytes() - at;
    byte sign = text.getByte(at);
    if (sign == 'Z' && length == 1) return 0;
    boolean colon = length == 6 && text.getByte(at + 3) == ':';
    if (sign != '+' && sign != '-' || length != 3 && length != 5 && !colon) return OTHER;
    int hours = digits(text, at + 1, 2);
    int minutes = length == 3 ? 0 : digits(text, at + length - 2, 2);
    if (hours < 0 || hours > OFFSET_HOURS_MAX || minutes < 0 || minutes > 59) return OTHER;
    long offset = (hours * 60 + minutes) * 60 * TimeUnits.SECOND;
    return sign == '-' ? -offset : offset;
  }

  /** Returns the number of some digits, or -1 if another character is among them. */
  private static int digits(UTF8String text, int from, int count) {
    int value = 0;
    for (int i = from; i < from + count; i++) {
      int digit = text.getByte(i) - '0';
      if (digit < 0 || digit > 9) return -1;
      value = value * 10 + digit;
    }
    return value;
  }

  private static int endOfDigits(UTF8String text, int from) {
    int at = from;
    while (at < text.numBytes() && text.getByte(at) >= '0' && text.getByte(at) <= '9') at++;
    return at;
  }
}
