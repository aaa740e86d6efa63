package tailgate.functions.numeric;

import tailgate.errors.SqlError;

/** Roman numerals and the endings of ordinal numbers. */
public final class Numerals {
  private static final int[] ROMAN_VALUES = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
  private static final String[] ROMAN_LETTERS = "M CM D CD C XC L XL X IX V IV I".split(" ");

  private Numerals() {}

  public static String roman(int number) {
    StringBuilder numeral = new StringBuilder();
    int rest = number;
    for (int i = 0; i < ROMAN_VALUES.length; i++) {
      for (; rest >= ROMAN_VALUES[i]; rest -= ROMAN_VALUES[i]) numeral.append(ROMAN_LETTERS[i]);
    }
    return numeral.toString();
  }

  /** Returns the ending of an ordinal number: st, nd, rd or th. Throws 22P02 for other text. */
  public static String ordinalEnding(String number) {
    char last = number.charAt(number.length() - 1);
    if (!Character.isDigit(last)) throw new SqlError("22P02", "\"" + number + "\" is not a number");
    if (number.length() > 1 && number.charAt(number.length() - 2) == '1') return "th";
    return last == '1' ? "st" : last == '2' ? "nd" : last == '3' ? "rd" : "th";
  }
}
