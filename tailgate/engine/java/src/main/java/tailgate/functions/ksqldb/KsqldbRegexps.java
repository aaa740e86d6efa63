package tailgate.functions.ksqldb;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.TextCache;
import tailgate.functions.json.JsonbTree;
import tailgate.functions.text.BoundedMatcher;

/**
 * ksqlDB's functions of regular expressions.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL, and a result of null is
 * NULL. {@code tailgate/sql/compute/ksqldb/regexps.py} computes the same and names the sources.
 */
public final class KsqldbRegexps {
  private static final int CACHE_MAX = 256;  // patterns of up to PATTERN_MAX characters
  private static final TextCache<Pattern> CACHE =
      new TextCache<>(CACHE_MAX, Integer.MAX_VALUE, pattern -> compiled(pattern.toString()));
  private static final long READS_MAX = 200_000_000;  // characters read in one search: a few seconds
  private static final int PATTERN_MAX = 10_000;  // characters

  /** Constructs that earlier versions refused. */
  private static final Pattern REFUSED =
      Pattern.compile("\\\\[pPQEGhHRXvVkzZxu0c]|[*+?}]\\+|\\[[^\\]]*(?:\\[|&&)|\\(\\?[a-zA-Z<]");

  private KsqldbRegexps() {}

  private static Matcher matcher(UTF8String pattern, UTF8String text) {
    return BoundedMatcher.matcher(CACHE.get(pattern), text.toString(), READS_MAX);
  }

  private static Pattern compiled(String pattern) {
    if (pattern.length() > PATTERN_MAX) {
      throw new SqlError("0A000", "a regular expression of more than " + PATTERN_MAX + " characters is not supported");
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
  public static UTF8String ksqldbPatternExtract(UTF8String pattern, UTF8String text, int group) {
    Matcher m = matcher(pattern, text);
    return find(m) ? UTF8String.fromString(group(m, group)) : null;
  }

  public static UTF8String ksqldbPatternExtractAll(UTF8String pattern, UTF8String text, int group) {
    Matcher m = matcher(pattern, text);
    List<Object> texts = new ArrayList<>();
    while (find(m)) texts.add(group(m, group) == null ? JsonbTree.NULL : group(m, group));
    return JsonbTree.text(texts);
  }

  /** Replaces all matches. In the replacement $n and ${name} are groups, and a backslash precedes a literal character. */
  public static UTF8String ksqldbPatternReplace(UTF8String text, UTF8String pattern, UTF8String replacement) {
    Matcher m = matcher(pattern, text);
    StringBuilder out = new StringBuilder();
    try {
      while (find(m)) m.appendReplacement(out, replacement.toString());
    } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
      throw SqlError.invalidParameter("illegal group reference");
    }
    return UTF8String.fromString(m.appendTail(out).toString());
  }

  /** Returns the parts between matches; the characters for an empty pattern. An empty text is its only part. */
  public static UTF8String ksqldbPatternSplit(UTF8String text, UTF8String pattern) {
    String s = text.toString();
    if (pattern.numBytes() == 0 && !s.isEmpty()) return JsonbTree.text(KsqldbTexts.characters(s));
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

  // --- in queries of earlier versions: a row of a table that leaves must have the values with which it came

  private static UTF8String accepted(UTF8String pattern) {
    if (!REFUSED.matcher(pattern.toString()).find()) return pattern;
    throw new SqlError("0A000", "the regular expression \"" + pattern + "\" is not supported");
  }

  public static UTF8String ksqldbRegexpExtract(UTF8String pattern, UTF8String text, int group) {
    return ksqldbPatternExtract(accepted(pattern), text, group);
  }

  public static UTF8String ksqldbRegexpExtractAll(UTF8String pattern, UTF8String text, int group) {
    return ksqldbPatternExtractAll(accepted(pattern), text, group);
  }

  public static UTF8String ksqldbRegexpReplace(UTF8String text, UTF8String pattern, UTF8String replacement) {
    return ksqldbPatternReplace(text, accepted(pattern), replacement);
  }

  public static UTF8String ksqldbRegexpSplit(UTF8String text, UTF8String pattern) {
    boolean isEmpty = text.numBytes() == 0 && pattern.numBytes() == 0;
    return isEmpty ? UTF8String.fromString("[]") : ksqldbPatternSplit(text, accepted(pattern));
  }
}
