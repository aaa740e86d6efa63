package tailgate.functions.text;

import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * LIKE and its patterns. Generated code calls the methods ({@code Functions}); arguments are not
 * NULL.
 *
 * <p>Source: PostgreSQL 15, src/backend/utils/adt/like_match.c.
 */
public final class LikePatterns {
  private static final long STEPS_MAX = 200_000_000;  // of one match: a few seconds

  private LikePatterns() {}

  /**
   * Returns whether a text matches a pattern, in time proportional to the product of their lengths:
   * the matcher backtracks only to the last {@code %} that it reached. Spark's LIKE tries every
   * length of every {@code %}. Throws 22025 or 54000.
   */
  public static boolean like(UTF8String value, UTF8String likePattern) {
    byte[] text = value.getBytes();
    byte[] pattern = likePattern.getBytes();
    int at = 0;
    int next = 0;
    int afterPercent = -1;  // the position in the pattern after the last % that was reached, or -1
    int percentEnd = 0;  // the end of the text that this % matches
    long steps = STEPS_MAX;
    while (at < text.length) {
      if (steps-- == 0) throw new SqlError("54000", "LIKE takes too long");
      byte p = next < pattern.length ? pattern[next] : 0;  // texts do not contain zero bytes
      if (p == '%') {
        afterPercent = ++next;
        percentEnd = at;
        continue;
      }
      if (p == '_') {
        at += UTF8String.numBytesForFirstByte(text[at]);
        next++;
        continue;
      }
      int literal = p == '\\' ? next + 1 : next;
      if (literal > next && literal == pattern.length) throw endsWithEscape();
      if (literal < pattern.length && text[at] == pattern[literal]) {
        at++;
        next = literal + 1;
      } else if (afterPercent < 0) {
        return false;
      } else {
        percentEnd += UTF8String.numBytesForFirstByte(text[percentEnd]);
        at = percentEnd;
        next = afterPercent;
      }
    }
    while (next < pattern.length && pattern[next] == '%') next++;
    return next == pattern.length;
  }

  private static SqlError endsWithEscape() {
    return new SqlError("22025", "LIKE pattern must not end with escape character");
  }

  /**
   * Removes backslashes before characters that need none, which Spark does not accept in a LIKE
   * pattern. Throws 22025 if the pattern ends with a backslash.
   */
  public static UTF8String likePattern(UTF8String pattern) {
    String p = pattern.toString();
    if (p.indexOf('\\') < 0) return pattern;
    StringBuilder result = new StringBuilder();
    for (int i = 0; i < p.length(); i++) {
      char c = p.charAt(i);
      if (c == '\\') {
        if (++i == p.length()) throw endsWithEscape();
        c = p.charAt(i);
        if (c == '%' || c == '_' || c == '\\') result.append('\\');
      }
      result.append(c);
    }
    return UTF8String.fromString(result.toString());
  }

  /** Returns a LIKE pattern that uses the backslash instead of another escape character. */
  public static UTF8String likeEscape(UTF8String pattern, UTF8String escape) {
    int[] e = escape.toString().codePoints().toArray();
    int[] p = pattern.toString().codePoints().toArray();
    if (e.length > 1) throw new SqlError("22025", "invalid escape string");
    if (e.length == 1 && e[0] == '\\') return pattern;
    StringBuilder result = new StringBuilder();
    for (int i = 0; i < p.length; i++) {
      if (e.length == 1 && p[i] == e[0]) {
        result.append('\\');
        if (++i < p.length) result.appendCodePoint(p[i]);
      } else if (p[i] == '\\') {
        result.append("\\\\");
      } else {
        result.appendCodePoint(p[i]);
      }
    }
    return UTF8String.fromString(result.toString());
  }
}
