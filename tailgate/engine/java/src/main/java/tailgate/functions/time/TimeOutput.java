package tailgate.functions.time;

import java.time.LocalDate;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * The output functions of times, timestamps and intervals, with DateStyle ISO and IntervalStyle
 * postgres.
 */
public final class TimeOutput {
  private TimeOutput() {}

  public static String time(long micros) {
    long seconds = micros / TimeUnits.SECOND;
    String time = String.format(Locale.ROOT, "%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
    return withFraction(time, micros % TimeUnits.SECOND);
  }

  /** Returns the text of a date, with BC after years before 1. */
  public static String date(int day) {
    if (Timestamps.isInfinite(day)) return infinity(day);
    LocalDate date = LocalDate.ofEpochDay(day);
    return date(date) + era(date);
  }

  private static String date(LocalDate date) {
    int year = date.getYear() > 0 ? date.getYear() : 1 - date.getYear();
    return String.format(Locale.ROOT, "%04d-%02d-%02d", year, date.getMonthValue(), date.getDayOfMonth());
  }

  private static String era(LocalDate date) { return date.getYear() > 0 ? "" : " BC"; }

  private static String infinity(long number) { return number > 0 ? "infinity" : "-infinity"; }

  /** Returns the text of a timestamp; {@code zone} is the text of its offset. */
  public static String timestamp(long micros, String separator, String zone) {
    if (Timestamps.isInfinite(micros)) return infinity(micros);
    LocalDate date = LocalDate.ofEpochDay(Math.floorDiv(micros, TimeUnits.DAY));
    return date(date) + separator + time(Math.floorMod(micros, TimeUnits.DAY)) + zone + era(date);
  }

  private static String withFraction(String time, long micros) {
    return micros == 0 ? time : (time + String.format(".%06d", micros)).replaceAll("0+$", "");
  }

  public static String interval(InternalRow row) {
    Interval i = Interval.of(row);
    StringBuilder text = new StringBuilder();
    boolean negativeBefore = false;  // a positive part after a negative one has a plus sign
    long[] amounts = {i.months() / 12, i.months() % 12, i.days()};
    String[] units = {"year", "mon", "day"};
    for (int n = 0; n < 3; n++) {
      if (amounts[n] == 0) continue;
      text.append(text.isEmpty() ? "" : " ").append(negativeBefore && amounts[n] > 0 ? "+" : "");
      text.append(amounts[n]).append(' ').append(units[n]).append(amounts[n] == 1 ? "" : "s");
      negativeBefore = amounts[n] < 0;
    }
    if (i.micros() != 0 || text.isEmpty()) {
      text.append(text.isEmpty() ? "" : " ").append(i.micros() < 0 ? "-" : negativeBefore ? "+" : "");
      text.append(time(Math.abs(i.micros())));
    }
    return text.toString();
  }
}
