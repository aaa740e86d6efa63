package tailgate.functions.text;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import tailgate.errors.SqlError;

/**
 * Searches for regular expressions that fail instead of running for too long or overflowing the
 * stack.
 */
public final class BoundedMatcher {
  private BoundedMatcher() {}

  /**
   * A text whose characters can be read a limited number of times, which bounds a matcher's
   * backtracking.
   */
  private record BoundedText(String text, long[] readsLeft) implements CharSequence {
    BoundedText(String text, long reads) { this(text, new long[] {reads}); }

    @Override public int length() { return text.length(); }

    @Override public char charAt(int i) {
      if (readsLeft[0]-- == 0) throw new SqlError("54000", "regular expression takes too long");
      return text.charAt(i);
    }

    @Override public CharSequence subSequence(int from, int to) { return text.subSequence(from, to); }

    @Override public String toString() { return text; }
  }

  /** Returns a matcher that throws 54000 after it has read {@code reads} characters. */
  public static Matcher matcher(Pattern pattern, String text, long reads) {
    return pattern.matcher(new BoundedText(text, reads));
  }

  /**
   * Finds the next match at or after an index. Throws 54001 if repeated groups are nested too
   * deeply.
   */
  public static boolean find(Matcher m, int at) {
    try {
      return m.find(at);
    } catch (StackOverflowError e) {
      throw SqlError.tooDeep();
    }
  }
}
