package tailgate.functions.ksqldb;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.json.JsonbTree;
import tailgate.functions.text.BoundedMatcher;

/**
 * ksqlDB's functions of regular expressions.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL, and a result of null is
 * NULL. {@code tailgate/sql/compute/ksqldb/regexps.py} computes the same and names the sources.
 */
public final class KsqldbRegexps {
  private static final ConcurrentHashMap<UTF8String, Pattern> CACHE = new ConcurrentHashMap<>();
  private static final int CACHE_MAX = 1000;  // patterns
  private static final long READS_MAX = 200_000_000;  // characters read in one search: a few seconds
  private static final int PATTERN_MAX = 10_000;  // characters

  /** Constructs that Python, which evaluates ad-hoc queries, reads differently. */
  private static final Pattern DIFFERENT =
      Pattern.compile("\\\\[pPQEGhHRXvVkzZxu0c]|[*+?}]\\+|\\[[^\\]]*(?:\\[|&&)|\\(\\?[a-zA-Z<]");

  private KsqldbRegexps() {}

  private static Matcher matcher(UTF8String pattern, UTF8String text) {
    Pattern compiled = CACHE.get(pattern);
    if (compiled == null) {
      compiled = compiled(pattern.toString());
      if (CACHE.size() >= CACHE_MAX) CACHE.clear();
      CACHE.put(pattern.clone(), compiled);
    }
    return BoundedMatcher.matcher(compiled, text.toString(), READS_MAX);
  }

  private static Pattern compiled(String pattern) {
    if (pattern.length() > PATTERN_MAX || DIFFERENT.matcher(pattern).find()) {
      throw new SqlError("0A000", "the regular expression \"" + pattern + "\" is not supported");
    }
    try {
      return Pattern.compile(pattern);
    } catch (PatternSyntaxException e) {
      throw new SqlError("2201B", "invalid regular expression pattern: " + pattern);
    }
  }

  private static boolean find(Matcher m) {
    try {
      return m.find();
    } catch (StackOverflowError e) {
      throw SqlError.tooDeep();
    }
  }

  private static String group(Matcher m, int group) {
    if (group < 0 || group > m.groupCount()) throw SqlError.invalidParameter("no group " + group);
    return m.group(group);
  }

  /** Returns the text of a group of the first match; group 0 is the whole match. */
  public static UTF8String ksqldbRegexpExtract(UTF8String pattern, UTF8String text, int group) {
    Matcher m = matcher(pattern, text);
    return find(m) ? UTF8String.fromString(group(m, group)) : null;
  }

  public static UTF8String ksqldbRegexpExtractAll(UTF8String pattern, UTF8String text, int group) {
    Matcher m = matcher(pattern, text);
    List<Object> texts = new ArrayList<>();
    while (find(m)) texts.add(group(m, group) == null ? JsonbTree.NULL : group(m, group));
    return JsonbTree.text(texts);
  }

  /** Replaces all matches. In the replacement $n is a group, and a backslash precedes a literal character. */
  public static UTF8String ksqldbRegexpReplace(UTF8String text, UTF8String pattern, UTF8String replacement) {
    Matcher m = matcher(pattern, text);
    StringBuilder out = new StringBuilder();
    try {
      while (find(m)) m.appendReplacement(out, replacement.toString());
    } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
      throw SqlError.invalidParameter("illegal group reference");
    }
    return UTF8String.fromString(m.appendTail(out).toString());
  }

  /** Returns the parts between matches; the characters for an empty pattern. */
  public static UTF8String ksqldbRegexpSplit(UTF8String text, UTF8String pattern) {
    String s = text.toString();
    if (pattern.numBytes() == 0) return JsonbTree.text(s.codePoints().mapToObj(Character::toString).toList());
    Matcher m = matcher(pattern, text);
    List<String> parts = new ArrayList<>();
    int at = 0;
    while (find(m)) {
      if (m.end() == m.start()) continue;
      parts.add(s.substring(at, m.start()));
      at = m.end();
    }
    parts.add(s.substring(at));
    return JsonbTree.text(parts);
  }
}
