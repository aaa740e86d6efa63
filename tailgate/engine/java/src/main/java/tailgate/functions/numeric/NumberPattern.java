package tailgate.functions.numeric;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.TextCache;

/**
 * A parsed number pattern of to_char() and to_number(), such as {@code FM999.00}: PostgreSQL's
 * NUMDesc.
 *
 * <p>{@code tailgate/sql/compute/numeric/number_pattern.py} is the same in Python.
 */
final class NumberPattern {
  private static final String[] KEYWORDS =
      "EEEE FM MI PL PR RN SG SP TH fm mi pl pr rn sg sp th 0 9 . , B C D G L S V b c d g l s v eeee".split(" ");
  private static final int CACHE_MAX = 1000;  // patterns
  private static final TextCache<NumberPattern> CACHE = new TextCache<>(CACHE_MAX, text -> new NumberPattern(text.toString()));

  /**
   * A keyword or one character of text.
   *
   * @param keyword in upper case, except th and rn, whose case matters; empty for text
   */
  record Part(String keyword, String text) {}

  final List<Part> parts = new ArrayList<>();
  private final Set<String> flags = new HashSet<>();  // FM . S MI PL PR RN V EEEE 0
  int integerDigits;
  int fractionDigits;
  int shiftDigits;  // the number of 9s after V
  int zeroStart = -1;  // the integer digits before the first 0; -1 without one
  int zeroEnd;  // the digits up to the last 0
  boolean signFirst;  // S comes before the number
  int digitsBeforeSign;

  private NumberPattern(String text) {
    for (int at = 0; at < text.length(); ) {
      if (text.charAt(at) == '"') {
        for (at++; at < text.length() && text.charAt(at) != '"'; at++) {
          if (text.charAt(at) == '\\' && at + 1 < text.length()) at++;
          addText(text.charAt(at));
        }
        at++;
        continue;
      }
      int start = at;
      String word = Arrays.stream(KEYWORDS).filter(w -> text.startsWith(w, start)).findFirst().orElse(null);
      if (word == null) {
        if (text.charAt(at) == '\\' && at + 1 < text.length() && text.charAt(at + 1) == '"') at++;
        addText(text.charAt(at++));
        continue;
      }
      String keyword = word.equals("th") || word.equals("rn") ? word : word.toUpperCase(Locale.ROOT);
      apply(keyword);
      parts.add(new Part(keyword, word));
      at += word.length();
    }
  }

  static NumberPattern of(UTF8String text) {
    return CACHE.get(text);
  }

  /** Returns whether the pattern has one of some flags. */
  boolean has(String... names) { return Arrays.stream(names).anyMatch(flags::contains); }

  private void addText(char c) { parts.add(new Part("", String.valueOf(c))); }

  private static SqlError error(String message) { return new SqlError("42601", message); }

  private void apply(String keyword) {
    if (has("EEEE")) throw error("\"EEEE\" must be the last pattern used");
    switch (keyword) {
      case "9", "0" -> addDigit(keyword);
      case ".", "D" -> {
        if (has(".")) throw error("multiple decimal points");
        if (has("V")) throw error("cannot use \"V\" and decimal point together");
        flags.add(".");
      }
      case "FM", "RN", "rn" -> flags.add(keyword.toUpperCase(Locale.ROOT));
      case "S" -> {
        if (has("S")) throw error("cannot use \"S\" twice");
        if (has("PL", "MI", "PR")) throw error("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
        flags.add("S");
        signFirst = !has(".");
        digitsBeforeSign = integerDigits;
      }
      case "MI", "PL", "SG" -> {
        if (has("S")) throw error("cannot use \"S\" and \"" + keyword + "\" together");
        flags.addAll(keyword.equals("SG") ? List.of("MI", "PL") : List.of(keyword));
      }
      case "PR" -> {
        if (has("S", "PL", "MI")) throw error("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together");
        flags.add("PR");
      }
      case "V" -> {
        if (has(".")) throw error("cannot use \"V\" and decimal point together");
        flags.add("V");
      }
      case "EEEE" -> {
        if (has("FM", "S", "PR", "MI", "PL", "RN", "V")) throw error("\"EEEE\" is incompatible with other formats");
        flags.add("EEEE");
      }
      default -> {}
    }
  }

  private void addDigit(String keyword) {
    if (has("PR")) throw error("\"" + keyword + "\" must be ahead of \"PR\"");
    if (keyword.equals("9") && has("V")) {
      shiftDigits++;
      return;
    }
    if (keyword.equals("0") && !has("0", ".")) {
      flags.add("0");
      zeroStart = integerDigits;
    }
    if (has(".")) fractionDigits++;
    else integerDigits++;
    if (keyword.equals("0")) zeroEnd = integerDigits + fractionDigits;
  }
}
