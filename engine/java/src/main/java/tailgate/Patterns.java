package tailgate;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Regular expressions that sql/compute/patterns.py has translated from PostgreSQL's.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class Patterns {
  private static final ConcurrentHashMap<UTF8String, Pattern> COMPILED = new ConcurrentHashMap<>();
  private static final int COMPILED_MAX = 1000;
  private static final long STEPS_MAX = 200_000_000;  // characters looked at in one search: seconds

  private Patterns() {}

  private static Pattern compiled(UTF8String pattern) {
    Pattern found = COMPILED.get(pattern);
    if (found != null) return found;
    if (COMPILED.size() >= COMPILED_MAX) COMPILED.clear();
    Pattern made = Pattern.compile(pattern.toString());
    COMPILED.put(pattern.clone(), made);
    return made;
  }

  /** A text that may be looked at so often: what a pattern with many ways to fail costs is bounded. */
  private record Bounded(String text, long[] left) implements CharSequence {
    Bounded(String text, long steps) { this(text, new long[] {steps}); }

    @Override public int length() { return text.length(); }

    @Override public char charAt(int i) {
      if (left[0]-- == 0) throw new SqlError("54000", "regular expression takes too long");
      return text.charAt(i);
    }

    @Override public CharSequence subSequence(int from, int to) { return text.subSequence(from, to); }

    @Override public String toString() { return text; }
  }

  /** LIKE in a time in proportion to the text and the pattern: of all `%` only the last one that was reached is tried again. */
  public static boolean like(UTF8String value, UTF8String pattern) {
    byte[] text = value.getBytes(), like = pattern.getBytes();
    int at = 0, next = 0, behind = -1, tried = 0;
    long steps = STEPS_MAX;
    while (at < text.length) {
      if (steps-- == 0) throw new SqlError("54000", "LIKE takes too long");
      if (next < like.length && like[next] == '%') {
        behind = ++next;
        tried = at;
        continue;
      }
      if (next < like.length && like[next] == '_') {
        at += UTF8String.numBytesForFirstByte(text[at]);
        next++;
        continue;
      }
      int plain = next < like.length && like[next] == '\\' ? next + 1 : next;
      if (plain > next && plain == like.length) throw new SqlError("22025", "LIKE pattern must not end with escape character");
      if (plain < like.length && text[at] == like[plain]) {
        at++;
        next = plain + 1;
      } else if (behind < 0) {
        return false;
      } else {
        tried += UTF8String.numBytesForFirstByte(text[tried]);
        at = tried;
        next = behind;
      }
    }
    while (next < like.length && like[next] == '%') next++;
    return next == like.length;
  }

  private static Matcher matcher(Pattern pattern, String text) { return matcher(pattern, text, STEPS_MAX); }

  static Matcher matcher(Pattern pattern, String text, long steps) { return pattern.matcher(new Bounded(text, steps)); }

  /** find(), from `at` on; Java's engine calls itself for repeated groups. */
  static boolean find(Matcher m, int at) {
    try {
      return m.find(at);
    } catch (StackOverflowError e) {
      throw SqlError.tooDeep();
    }
  }

  public static boolean reLike(UTF8String text, UTF8String pattern) { return find(matcher(compiled(pattern), text.toString()), 0); }

  @Functions.Returns("array<string>")
  public static ArrayData reMatch(UTF8String text, UTF8String pattern) {
    Matcher m = matcher(compiled(pattern), text.toString());
    if (!find(m, 0)) return null;
    List<String> groups = new ArrayList<>();
    if (m.groupCount() == 0) groups.add(m.group());
    for (int i = 1; i <= m.groupCount(); i++) groups.add(m.group(i));
    return Strings.list(groups);
  }

  /** The groups of each match; `nth` 1: of the first one, 0: of all. */
  @Functions.Returns("array<array<string>>")
  public static ArrayData reMatches(UTF8String text, UTF8String pattern, int nth) {
    List<ArrayData> found = new ArrayList<>();
    for (MatchResult m : matches(compiled(pattern), text.toString(), 0)) {
      List<String> groups = new ArrayList<>();
      if (m.groupCount() == 0) groups.add(m.group());
      for (int i = 1; i <= m.groupCount(); i++) groups.add(m.group(i));
      found.add(Strings.list(groups));
      if (nth != 0) break;
    }
    return new org.apache.spark.sql.catalyst.util.GenericArrayData(found.toArray());
  }

  /** substring(text FROM pattern) */
  public static UTF8String rePart(UTF8String text, UTF8String pattern) {
    Matcher m = matcher(compiled(pattern), text.toString());
    return find(m, 0) ? UTF8String.fromString(m.groupCount() > 0 ? m.group(1) : m.group()) : null;
  }

  /** All matches from a character on, as PostgreSQL finds them: after an empty one it goes on one character later. */
  private static List<MatchResult> matches(Pattern pattern, String text, int start) {
    List<MatchResult> found = new ArrayList<>();
    Matcher m = matcher(pattern, text);
    int at = start > text.codePointCount(0, text.length()) ? text.length() + 1 : text.offsetByCodePoints(0, start);
    while (at <= text.length() && find(m, at)) {
      found.add(m.toMatchResult());
      at = m.end() > m.start() ? m.end() : m.end() < text.length() ? text.offsetByCodePoints(m.end(), 1) : text.length() + 1;
    }
    return found;
  }

  private static void positive(String name, int value, int least) { if (value < least) throw Strings.parameter("invalid value for parameter \"" + name + "\": " + value); }

  /** `nth`: which match, 0 for all. */
  public static UTF8String reReplace(UTF8String text, UTF8String pattern, UTF8String replacement, int start, int nth) {
    positive("start", start, 1);
    positive("n", nth, 0);
    String s = text.toString(), with = replacement.toString();
    StringBuilder out = new StringBuilder();
    int last = 0, n = 0;
    for (MatchResult m : matches(compiled(pattern), s, start - 1)) {
      if (++n != nth && nth != 0) continue;
      out.append(s, last, m.start());
      for (int i = 0; i < with.length(); i++) {
        char c = with.charAt(i);
        if (c != '\\' || i + 1 == with.length()) {
          out.append(c);
          continue;
        }
        char following = with.charAt(++i);
        if (following == '&' || following >= '1' && following <= '9') {
          int group = following == '&' ? 0 : following - '0';
          if (group <= m.groupCount() && m.group(group) != null) out.append(m.group(group));
        } else out.append(following == '\\' ? "\\" : "\\" + following);
      }
      last = m.end();
      if (nth != 0) break;
    }
    return UTF8String.fromString(out.append(s, last, s.length()).toString());
  }

  @Functions.Returns("array<string>")
  public static ArrayData reSplit(UTF8String text, UTF8String pattern) {
    String s = text.toString();
    List<String> out = new ArrayList<>();
    int last = 0, before = 0;
    for (MatchResult m : matches(compiled(pattern), s, 0)) {
      // what is empty at an end, or right behind another match, splits nothing
      if (m.start() < s.length() && m.end() > before) {
        out.add(s.substring(last, m.start()));
        last = m.end();
      }
      before = m.end();
    }
    out.add(s.substring(last));
    return Strings.list(out);
  }

  public static int reCount(UTF8String text, UTF8String pattern, int start) {
    positive("start", start, 1);
    return matches(compiled(pattern), text.toString(), start - 1).size();
  }

  private static MatchResult nth(UTF8String text, UTF8String pattern, int start, int nth) {
    positive("start", start, 1);
    positive("n", nth, 1);
    List<MatchResult> found = matches(compiled(pattern), text.toString(), start - 1);
    return nth <= found.size() ? found.get(nth - 1) : null;
  }

  /** Without groups the whole is the first. */
  private static int group(MatchResult m, int group) { return m != null && group == 1 && m.groupCount() == 0 ? 0 : group; }

  public static int reInstr(UTF8String text, UTF8String pattern, int start, int nth, int end, int group) {
    positive("start", start, 1);
    positive("n", nth, 1);
    if (end != 0 && end != 1) throw Strings.parameter("invalid value for parameter \"endoption\": " + end);
    positive("subexpr", group, 0);
    MatchResult m = nth(text, pattern, start, nth);
    group = group(m, group);
    if (m == null || group > m.groupCount() || m.start(group) < 0) return 0;
    return text.toString().codePointCount(0, end == 1 ? m.end(group) : m.start(group)) + 1;
  }

  public static UTF8String reSubstr(UTF8String text, UTF8String pattern, int start, int nth, int group) {
    positive("start", start, 1);
    positive("n", nth, 1);
    positive("subexpr", group, 0);
    MatchResult m = nth(text, pattern, start, nth);
    group = group(m, group);
    return m == null || group > m.groupCount() ? null : UTF8String.fromString(m.group(group));
  }
}
