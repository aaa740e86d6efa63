package tailgate.functions.time;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The tokens of a date, time or interval. {@code tailgate/values/times/date_tokens.py} computes the same
 * and names the source.
 */
final class DateTokens {
  /** A date may also be the name of a zone; a sign with digits may be a zone, a number, or years and months. */
  enum Kind { DATE, TIME, NUMBER, STRING, SIGNED, SPECIAL }

  /** A token; its text is in lower case. */
  record Token(Kind kind, String text) {}

  /** The text is not a date, time or interval (22007). */
  static final class BadFormat extends Exception {
    private static final long serialVersionUID = 1;

    BadFormat() { super(null, null, false, false); }
  }

  /** A field is out of range (22008; 22015 for intervals). */
  static final class FieldOverflow extends Exception {
    private static final long serialVersionUID = 1;

    FieldOverflow() { super(null, null, false, false); }
  }

  /** A number at the beginning of a text, 0 if there is none, and the rest. */
  record Number(long value, String rest) {}

  private static final int TOKENS_MAX = 25;
  private static final int LENGTH_MAX = 128;
  private static final int WORD_LENGTH = 10;  // characters of a word that count
  private static final String SPACES = "[ \\t\\n\\r\\f\\x0B]";
  // A repeated group takes stack for each repetition, so its length is bounded; a longer token is refused in any case.
  private static final String REPEATED = "{0," + (LENGTH_MAX + TOKENS_MAX) + "}";
  private static final Pattern TOKEN = Pattern.compile(
      SPACES + "*(?:"
          + "(?<time>\\d+:[\\d:.]*)"
          + "|(?<numeric>\\d+(?<delimiter>[-/.])\\d+)(?<third>\\k<delimiter>(?:\\d|\\k<delimiter>)" + REPEATED + ")?"
          + "|(?<mixed>\\d+(?<between>[-/.])(?:[A-Za-z0-9]|\\k<between>)" + REPEATED + ")"
          + "|(?<number>\\d+|\\.\\d*)"
          + "|(?<word>[A-Za-z]+)"
          + "|(?<sign>[-+])" + SPACES + "*(?:(?<signed>\\d[\\d:.-]*)|(?<special>[A-Za-z]+))"
          + "|(?<ignored>[!-*,/:-@\\[-`{-~])"
          + ")|" + SPACES + "+$");
  private static final Pattern AFTER_WORD = Pattern.compile("[-+/_.:A-Za-z0-9]*");
  private static final Pattern INTEGER = Pattern.compile("[+-]?\\d+");
  private static final Pattern FRACTION = Pattern.compile("\\.\\d*");

  private DateTokens() {}

  /** Returns the characters of a word that count. */
  static String firstCharacters(String word) { return word.substring(0, Math.min(word.length(), WORD_LENGTH)); }

  /** Splits a text into tokens. `words` are those that a digit or plus sign may follow. */
  static List<Token> tokens(String text, Set<String> words) throws BadFormat {
    List<Token> result = new ArrayList<>();
    Matcher m = TOKEN.matcher(text);
    for (int at = 0; at < text.length(); ) {
      m.region(at, text.length());
      if (!m.lookingAt() || result.size() > TOKENS_MAX) throw new BadFormat();
      at = m.end();
      if (m.group("word") != null) {
        Token token = word(text, m.group("word").toLowerCase(Locale.ROOT), at, words);
        at = m.start("word") + token.text.length();
        result.add(token);
      } else if (m.group("numeric") != null) {
        boolean date = m.group("third") != null || !m.group("delimiter").equals(".");
        String third = m.group("third") == null ? "" : m.group("third");
        result.add(new Token(date ? Kind.DATE : Kind.NUMBER, m.group("numeric") + third));
      } else if (m.group("mixed") != null) {
        result.add(new Token(Kind.DATE, m.group("mixed").toLowerCase(Locale.ROOT)));
      } else if (m.group("signed") != null) {
        result.add(new Token(Kind.SIGNED, m.group("sign") + m.group("signed")));
      } else if (m.group("special") != null) {
        result.add(new Token(Kind.SPECIAL, m.group("sign") + m.group("special").toLowerCase(Locale.ROOT)));
      } else if (m.group("time") != null) {
        result.add(new Token(Kind.TIME, m.group("time")));
      } else if (m.group("number") != null) {
        result.add(new Token(Kind.NUMBER, m.group("number")));
      }
    }
    int length = result.stream().mapToInt(token -> token.text.length() + 1).sum();
    if (result.size() > TOKENS_MAX || length > LENGTH_MAX + TOKENS_MAX) throw new BadFormat();
    return result;
  }

  private static Token word(String text, String word, int at, Set<String> words) {
    char next = at < text.length() ? text.charAt(at) : ' ';
    boolean isWord = words.contains(firstCharacters(word));
    if ("-/.".indexOf(next) < 0 && (isWord || "+0123456789".indexOf(next) < 0)) return new Token(Kind.STRING, word);
    Matcher rest = AFTER_WORD.matcher(text).region(at, text.length());
    return new Token(Kind.DATE, word + (rest.lookingAt() ? rest.group().toLowerCase(Locale.ROOT) : ""));
  }

  /** Reads a number of 32 bits. */
  static Number integer(String text) throws FieldOverflow {
    Number number = longInteger(text);
    if (number.value != (int) number.value) throw new FieldOverflow();
    return number;
  }

  /** Reads a number of 64 bits. */
  static Number longInteger(String text) throws FieldOverflow {
    Matcher m = INTEGER.matcher(text);
    if (!m.lookingAt()) return new Number(0, text);
    try {
      return new Number(Long.parseLong(m.group()), text.substring(m.end()));
    } catch (NumberFormatException e) {
      throw new FieldOverflow();
    }
  }

  /** Returns the 32 bits that C's atoi makes of digits: 64 bits at most, of which the upper half is lost. */
  static int wrappedInteger(String digits) {
    return new BigInteger(digits).min(BigInteger.valueOf(Long.MAX_VALUE)).intValue();
  }

  /** Returns the value of a text such as {@code .25}. */
  static double fraction(String text) throws BadFormat {
    if (!FRACTION.matcher(text).matches()) throw new BadFormat();
    return text.length() > 1 ? Double.parseDouble(text) : 0;
  }
}
