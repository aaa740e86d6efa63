package tailgate.functions.text;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.TextCache;

/**
 * Functions of regular expressions. {@code tailgate/sql/compute/regexp} translates the patterns from
 * PostgreSQL's syntax to Java's before they reach this class.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. In all of them {@code
 * start} counts characters from 1, {@code nth} counts matches from 1, and {@code group} is 0 for
 * the whole match.
 */
public final class RegularExpressions {
  private static final int CACHE_MAX = 256;  // patterns, which have up to 10,000 characters before they are translated
  private static final TextCache<Pattern> CACHE =
      new TextCache<>(CACHE_MAX, Integer.MAX_VALUE, pattern -> Pattern.compile(pattern.toString()));
  private static final long READS_MAX = 200_000_000;  // characters read in one search: a few seconds

  private RegularExpressions() {}

  private static Pattern compiled(UTF8String pattern) {
    return CACHE.get(pattern);
  }

  private static Matcher matcher(Pattern pattern, String text) {
    return BoundedMatcher.matcher(pattern, text, READS_MAX);
  }

  public static boolean reLike(UTF8String text, UTF8String pattern) {
    return BoundedMatcher.find(matcher(compiled(pattern), text.toString()), 0);
  }

  /** Returns the texts of a match's groups, or of the whole match if the pattern has no groups. */
  private static List<String> groups(MatchResult m) {
    List<String> groups = new ArrayList<>();
    if (m.groupCount() == 0) groups.add(m.group());
    for (int i = 1; i <= m.groupCount(); i++) groups.add(m.group(i));
    return groups;
  }

  @Returns("array<string>")
  public static ArrayData reMatch(UTF8String text, UTF8String pattern) {
    Matcher m = matcher(compiled(pattern), text.toString());
    return BoundedMatcher.find(m, 0) ? Strings.array(groups(m)) : null;
  }

  /** Returns the groups of all matches if {@code nth} is 0, else of the first match. */
  @Returns("array<array<string>>")
  public static ArrayData reMatches(UTF8String text, UTF8String pattern, int nth) {
    List<ArrayData> matches = new ArrayList<>();
    for (MatchResult m : matches(compiled(pattern), text.toString(), 0)) {
      matches.add(Strings.array(groups(m)));
      if (nth != 0) break;
    }
    return new GenericArrayData(matches.toArray());
  }

  /** Computes substring(text FROM pattern). */
  public static UTF8String rePart(UTF8String text, UTF8String pattern) {
    Matcher m = matcher(compiled(pattern), text.toString());
    if (!BoundedMatcher.find(m, 0)) return null;
    return UTF8String.fromString(m.groupCount() > 0 ? m.group(1) : m.group());
  }

  /**
   * Returns all matches from a character on. After an empty match the search continues one
   * character later.
   */
  private static List<MatchResult> matches(Pattern pattern, String text, int start) {
    List<MatchResult> matches = new ArrayList<>();
    Matcher m = matcher(pattern, text);
    int length = text.length();
    int at = start > text.codePointCount(0, length) ? length + 1 : text.offsetByCodePoints(0, start);
    while (at <= length && BoundedMatcher.find(m, at)) {
      matches.add(m.toMatchResult());
      if (m.end() > m.start()) at = m.end();
      else at = m.end() < length ? text.offsetByCodePoints(m.end(), 1) : length + 1;
    }
    return matches;
  }

  private static void checkMinimum(String name, int value, int minimum) {
    if (value < minimum) {
      throw SqlError.invalidParameter("invalid value for parameter \"" + name + "\": " + value);
    }
  }

  /** Replaces the nth match, or all matches if {@code nth} is 0. */
  public static UTF8String reReplace(UTF8String text, UTF8String pattern, UTF8String replacement, int start, int nth) {
    checkMinimum("start", start, 1);
    checkMinimum("n", nth, 0);
    String s = text.toString();
    StringBuilder result = new StringBuilder();
    int copied = 0;
    int n = 0;
    for (MatchResult m : matches(compiled(pattern), s, start - 1)) {
      if (++n != nth && nth != 0) continue;
      appendReplacement(result.append(s, copied, m.start()), replacement.toString(), m);
      copied = m.end();
      if (nth != 0) break;
    }
    return UTF8String.fromString(result.append(s, copied, s.length()).toString());
  }

  /**
   * Appends a replacement with {@code \1} to {@code \9} and {@code \&} replaced by the match's
   * groups.
   */
  private static void appendReplacement(StringBuilder result, String replacement, MatchResult m) {
    for (int i = 0; i < replacement.length(); i++) {
      char c = replacement.charAt(i);
      if (c != '\\' || i + 1 == replacement.length()) {
        result.append(c);
        continue;
      }
      char next = replacement.charAt(++i);
      if (next == '&' || next >= '1' && next <= '9') {
        int group = next == '&' ? 0 : next - '0';
        if (group <= m.groupCount() && m.group(group) != null) result.append(m.group(group));
      } else {
        result.append(next == '\\' ? "\\" : "\\" + next);
      }
    }
  }

  @Returns("array<string>")
  public static ArrayData reSplit(UTF8String text, UTF8String pattern) {
    String s = text.toString();
    List<String> parts = new ArrayList<>();
    int partStart = 0;
    int lastEnd = 0;
    for (MatchResult m : matches(compiled(pattern), s, 0)) {
      // an empty match at the end, or directly after another match, separates nothing
      if (m.start() < s.length() && m.end() > lastEnd) {
        parts.add(s.substring(partStart, m.start()));
        partStart = m.end();
      }
      lastEnd = m.end();
    }
    parts.add(s.substring(partStart));
    return Strings.array(parts);
  }

  public static int reCount(UTF8String text, UTF8String pattern, int start) {
    checkMinimum("start", start, 1);
    return matches(compiled(pattern), text.toString(), start - 1).size();
  }

  private static MatchResult nthMatch(UTF8String text, UTF8String pattern, int start, int nth) {
    checkMinimum("start", start, 1);
    checkMinimum("n", nth, 1);
    List<MatchResult> matches = matches(compiled(pattern), text.toString(), start - 1);
    return nth <= matches.size() ? matches.get(nth - 1) : null;
  }

  /**
   * Returns the number of the group that an argument means: without groups, group 1 is the whole
   * match.
   */
  private static int groupNumber(MatchResult m, int group) {
    return m != null && group == 1 && m.groupCount() == 0 ? 0 : group;
  }

  public static int reInstr(UTF8String text, UTF8String pattern, int start, int nth, int endOption, int group) {
    checkMinimum("start", start, 1);
    checkMinimum("n", nth, 1);
    if (endOption != 0 && endOption != 1) {
      throw SqlError.invalidParameter("invalid value for parameter \"endoption\": " + endOption);
    }
    checkMinimum("subexpr", group, 0);
    MatchResult m = nthMatch(text, pattern, start, nth);
    int number = groupNumber(m, group);
    if (m == null || number > m.groupCount() || m.start(number) < 0) return 0;
    return text.toString().codePointCount(0, endOption == 1 ? m.end(number) : m.start(number)) + 1;
  }

  public static UTF8String reSubstr(UTF8String text, UTF8String pattern, int start, int nth, int group) {
    checkMinimum("start", start, 1);
    checkMinimum("n", nth, 1);
    checkMinimum("subexpr", group, 0);
    MatchResult m = nthMatch(text, pattern, start, nth);
    int number = groupNumber(m, group);
    return m == null || number > m.groupCount() ? null : UTF8String.fromString(m.group(number));
  }
}
