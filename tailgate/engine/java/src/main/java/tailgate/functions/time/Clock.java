package tailgate.functions.time;

import tailgate.functions.time.DateTokens.BadFormat;
import tailgate.functions.time.DateTokens.FieldOverflow;
import tailgate.functions.time.DateTokens.Number;

/** A time such as {@code 10:11} or {@code 10:11:12.5}. The hour has no limit. */
record Clock(long hour, int minute, int second, int micros) {
  static Clock parse(String text) throws BadFormat, FieldOverflow {
    Number hour = DateTokens.longInteger(text);
    if (!hour.rest().startsWith(":")) throw new BadFormat();
    Number minute = DateTokens.integer(hour.rest().substring(1));
    Clock clock;
    if (minute.rest().startsWith(":")) {
      Number second = DateTokens.integer(minute.rest().substring(1));
      int micros = second.rest().isEmpty() ? 0 : micros(second.rest());
      clock = new Clock(hour.value(), (int) minute.value(), (int) second.value(), micros);
    } else if (minute.rest().isEmpty()) {
      clock = new Clock(hour.value(), (int) minute.value(), 0, 0);
    } else {  // minutes and seconds
      if (hour.value() != (int) hour.value()) throw new FieldOverflow();
      clock = new Clock(0, (int) hour.value(), (int) minute.value(), micros(minute.rest()));
    }
    boolean valid = clock.hour >= 0 && clock.minute >= 0 && clock.minute <= 59 && clock.second >= 0 && clock.second <= 60;
    if (!valid) throw new FieldOverflow();
    return clock;
  }

  static int micros(String fraction) throws BadFormat {
    return (int) Math.rint(DateTokens.fraction(fraction) * TimeUnits.SECOND);
  }
}
