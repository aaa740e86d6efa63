package tailgate.functions.time;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static tailgate.Expressions.assertResults;

import java.util.Random;
import java.util.function.Function;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import tailgate.errors.SqlError;

/** Casts of text to dates, timestamps and intervals. */
class TimeInputTest {
  @Test
  void castsText() {
    assertResults("tg_text_to_date(x)",
        "2020-02-29", "2020-02-29",
        "20200229", "2020-02-29",
        "1/2/2020", "2020-01-02",
        "Jan 2, 2020", "2020-01-02",
        "2 January 2020", "2020-01-02",
        "2020-01-02 10:00", "2020-01-02",
        "epoch", "1970-01-01",
        "2019-02-29", "22008 date/time field value out of range: \"2019-02-29\"",
        "2020-13-01", "22008 date/time field value out of range: \"2020-13-01\"",
        "x", "22007 invalid input syntax for type date: \"x\"",
        "", "22007 invalid input syntax for type date: \"\"");
    assertResults("tg_text_to_timestamp(x)",
        "2020-01-02 03:04:05.1234567", "2020-01-02 03:04:05.123457",
        "2020-01-02T03:04", "2020-01-02 03:04:00",
        "2020-01-02 24:00:00", "2020-01-03 00:00:00",
        "2020-01-02", "2020-01-02 00:00:00",
        "2020-01-02 03:04:05+02", "2020-01-02 03:04:05",
        "2020-01-02 11:04 PM", "2020-01-02 23:04:00",
        "2020-01-02 25:00", "22008 date/time field value out of range: \"2020-01-02 25:00\"",
        "2020-01-02 03:04:05 x!", "22007 invalid input syntax for type timestamp: \"2020-01-02 03:04:05 x!\"");
    assertResults("tg_text_to_timestamptz(x)",
        "2020-01-02 03:04:05+02", "2020-01-02 01:04:05",
        "2020-01-02T03:04:05.5Z", "2020-01-02 03:04:05.5",
        "2020-01-02 03:04:05 -03:30", "2020-01-02 06:34:05",
        "2020-07-02 03:04:05 Europe/Berlin", "2020-07-02 01:04:05",
        "2020-01-02 03:04:05 Mars/Olympus", "22023 time zone \"mars/olympus\" not recognized",
        "2020-01-02 03:04:05 x18:30", "22023 time zone \"x18:30\" not recognized",
        "2020-01-02", "2020-01-02 00:00:00");
    assertResults("tg_text_to_timestamptz(x, 'America/New_York')",
        "2020-01-02 03:04:05", "2020-01-02 08:04:05");
    assertResults("tg_to_timestamp(cast(x as double))",
        "1.5", "1970-01-01 00:00:01.5",
        "1577934245.123456", "2020-01-02 03:04:05.123456",
        "NaN", "22008 timestamp cannot be NaN",
        "1e30", "22008 timestamp out of range: \"1.0E30\"");
    assertResults("tg_timestamptz_to_text(tg_to_timestamp(cast(x as double)))",
        "Infinity", "infinity",
        "-Infinity", "-infinity");
  }

  /** Texts that start with a blank are not read by {@link IsoTexts}. */
  @Test
  void isoTextsAreReadAsByTheGeneralDecoder() {
    Random random = new Random(7);
    for (int i = 0; i < 25_000; i++) {
      String text = isoText(random);
      assertEquals(result(TimeInput::toDate, " " + text), result(TimeInput::toDate, text), text);
      assertEquals(result(TimeInput::toTimestamp, " " + text), result(TimeInput::toTimestamp, text), text);
      assertEquals(result(TimeInput::toTimestamptz, " " + text), result(TimeInput::toTimestamptz, text), text);
    }
  }

  private static String isoText(Random random) {
    String text = String.format("%04d-%02d-%02d", random.nextInt(2100), random.nextInt(14), random.nextInt(33));
    if (random.nextInt(4) > 0) {
      text += (random.nextBoolean() ? " " : "T")
          + String.format("%02d:%02d:%02d", random.nextInt(26), random.nextInt(62), random.nextInt(62));
      int digits = random.nextInt(9);
      if (digits > 0) text += "." + String.format("%08d", random.nextInt(100_000_000)).substring(0, digits);
      String hours = String.format("%s%02d", random.nextBoolean() ? "+" : "-", random.nextInt(18));
      String[] zones = {"", "Z", "z", hours, hours + ":30", hours + "45", hours + ":61", hours + ":3", " UTC"};
      text += zones[random.nextInt(zones.length)];
    }
    if (random.nextInt(5) > 0) return text;
    int at = random.nextInt(text.length());
    return text.substring(0, at) + "0-:.+ TZ/x".charAt(random.nextInt(10)) + text.substring(at + 1);
  }

  /** Returns the result, or the SQLSTATE of the error. */
  private static Object result(Function<UTF8String, Object> input, String text) {
    try {
      return input.apply(UTF8String.fromString(text));
    } catch (SqlError e) {
      return e.sqlstate();
    }
  }

  @Test
  void longTextsAreRefused() {
    for (String repeated : new String[] {"-1", "-a"}) {
      String text = "1" + repeated.repeat(20_000);
      assertResults("tg_text_to_timestamp(x)", text, "22007 invalid input syntax for type timestamp: \"" + text + "\"");
    }
  }

  @Test
  void castsTextToIntervals() {
    assertResults("tg_interval_to_text(tg_text_to_interval(x))",
        "1-2", "1 year 2 mons",
        "3 4:05:06", "3 days 04:05:06",
        "P1Y2M3DT4H", "1 year 2 mons 3 days 04:00:00",
        "1 day 2 days", "22007 invalid input syntax for type interval: \"1 day 2 days\"");
  }
}
