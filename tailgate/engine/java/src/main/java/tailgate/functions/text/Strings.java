package tailgate.functions.text;

import java.text.Normalizer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;

/**
 * Functions of text. Positions and lengths count characters.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/text/strings.py} computes the same and names the sources.
 */
public final class Strings {
  private static final int LENGTH_MAX = 1 << 28;  // characters of a result; PostgreSQL's limit is 1 GiB

  private static final Pattern IDENTIFIER = Pattern.compile(
      "\"((?:[^\"]++|\"\")*+)\"|[A-Za-z_\\x{80}-\\x{10ffff}][A-Za-z0-9_$\\x{80}-\\x{10ffff}]*");
  private static final Pattern CAPITALS = Pattern.compile("[A-Z]+");

  private Strings() {}

  /** Returns a result's length, at least 0. Throws 54000 above the limit. */
  static int checkedLength(long length) {
    if (length > LENGTH_MAX) throw new SqlError("54000", "requested length too large");
    return (int) Math.max(length, 0);
  }

  public static UTF8String initcap(UTF8String value) {
    StringBuilder result = new StringBuilder();
    boolean insideWord = false;
    for (int c : value.toString().codePoints().toArray()) {
      result.appendCodePoint(insideWord ? Character.toLowerCase(c) : Character.toUpperCase(c));
      insideWord = Character.isLetterOrDigit(c);
    }
    return UTF8String.fromString(result.toString());
  }

  public static UTF8String lpad(UTF8String value, int length, UTF8String fill) {
    return padded(value, length, fill, true);
  }

  public static UTF8String rpad(UTF8String value, int length, UTF8String fill) {
    return padded(value, length, fill, false);
  }

  private static UTF8String padded(UTF8String value, int length, UTF8String fill, boolean left) {
    int n = checkedLength(length);
    int missing = n - value.numChars();
    int unit = fill.numChars();
    if (missing <= 0 || unit == 0) return value.substring(0, n);
    UTF8String padding = UTF8String.concat(fill.repeat(missing / unit), fill.substring(0, missing % unit));
    return left ? UTF8String.concat(padding, value) : UTF8String.concat(value, padding);
  }

  public static UTF8String repeat(UTF8String value, int count) {
    checkedLength((long) value.numBytes() * Math.max(count, 0));
    return value.repeat(Math.max(count, 0));
  }

  public static UTF8String reverse(UTF8String value) { return value.reverse(); }

  public static UTF8String translate(UTF8String value, UTF8String from, UTF8String to) {
    int[] originals = from.toString().codePoints().toArray();
    int[] replacements = to.toString().codePoints().toArray();
    Map<Integer, Integer> table = new HashMap<>();
    for (int i = 0; i < originals.length; i++) {
      table.putIfAbsent(originals[i], i < replacements.length ? replacements[i] : -1);
    }
    StringBuilder result = new StringBuilder();
    value.toString().codePoints()
        .map(c -> table.getOrDefault(c, c))
        .filter(c -> c >= 0)
        .forEach(result::appendCodePoint);
    return UTF8String.fromString(result.toString());
  }

  public static int ascii(UTF8String value) { return value.numBytes() == 0 ? 0 : value.toString().codePointAt(0); }

  public static UTF8String chr(int number) {
    if (number < 0) throw SqlError.invalidParameter("character number must be positive");
    if (number == 0) throw new SqlError("54000", "null character not permitted");
    if (number > 0x10FFFF || number >= 0xD800 && number <= 0xDFFF) {
      throw new SqlError("54000", "requested character too large for encoding: " + number);
    }
    return UTF8String.fromString(Character.toString(number));
  }

  public static UTF8String overlay(UTF8String value, UTF8String replacement, int start, int count) {
    if (start <= 0) throw new SqlError("22011", "negative substring length not allowed");
    long end = (long) start + count;
    if (end > Integer.MAX_VALUE) throw new SqlError("22003", "integer out of range");
    UTF8String head = value.substring(0, start - 1);
    UTF8String tail = value.substring((int) Math.max(end, 1) - 1, Integer.MAX_VALUE);
    return UTF8String.concat(head, replacement, tail);
  }

  public static UTF8String toHexInt4(int number) { return UTF8String.fromString(Integer.toHexString(number)); }

  public static UTF8String toHexInt8(long number) { return UTF8String.fromString(Long.toHexString(number)); }

  // ---- quoting ----------------------------------------------------------------------------------

  private static final Set<String> RESERVED_WORDS = Set.of(Keywords.QUOTED.split(" "));
  private static final Pattern PLAIN_NAME = Pattern.compile("[a-z_][a-z0-9_]*");

  static String quotedIdent(String name) {
    if (PLAIN_NAME.matcher(name).matches() && !RESERVED_WORDS.contains(name)) return name;
    return '"' + name.replace("\"", "\"\"") + '"';
  }

  static String quotedLiteral(String value) {
    String open = value.indexOf('\\') >= 0 ? "E'" : "'";
    return open + value.replace("\\", "\\\\").replace("'", "''") + "'";
  }

  public static UTF8String quoteIdent(UTF8String name) {
    return UTF8String.fromString(quotedIdent(name.toString()));
  }

  public static UTF8String quoteLiteral(UTF8String value) {
    return UTF8String.fromString(quotedLiteral(value.toString()));
  }

  // ---- Unicode ----------------------------------------------------------------------------------

  private static final Pattern UNICODE_ESCAPE = Pattern.compile(
      "\\\\(?:\\\\|([0-9a-fA-F]{4})|\\+([0-9a-fA-F]{6})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))?");

  public static UTF8String unistr(UTF8String value) {
    String s = value.toString();
    Matcher m = UNICODE_ESCAPE.matcher(s);
    StringBuilder result = new StringBuilder();
    int at = 0;
    while (m.find()) {
      result.append(s, at, m.start());
      at = m.end();
      if (m.group().equals("\\\\")) {
        result.append('\\');
        continue;
      }
      String digits = null;
      for (int i = 1; i <= 4; i++) if (m.group(i) != null) digits = m.group(i);
      if (digits == null) throw new SqlError("42601", "invalid Unicode escape");
      long codePoint = Long.parseLong(digits, 16);
      if (codePoint == 0 || codePoint > 0x10FFFF) {
        throw SqlError.invalidParameter(String.format("invalid Unicode code point: %04X", codePoint));
      }
      result.appendCodePoint((int) codePoint);
    }
    result.append(s, at, s.length());
    checkSurrogates(result);
    return UTF8String.fromString(result.toString());
  }

  private static void checkSurrogates(CharSequence text) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (!Character.isSurrogate(c)) continue;
      i++;
      if (Character.isLowSurrogate(c) || i == text.length() || !Character.isLowSurrogate(text.charAt(i))) {
        throw new SqlError("42601", "invalid Unicode surrogate pair");
      }
    }
  }

  private static Normalizer.Form normalizationForm(UTF8String name) {
    try {
      return Normalizer.Form.valueOf(name.toString().toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException e) {
      throw SqlError.invalidParameter("invalid normalization form: " + name);
    }
  }

  public static UTF8String normalize(UTF8String value, UTF8String form) {
    return UTF8String.fromString(Normalizer.normalize(value.toString(), normalizationForm(form)));
  }

  public static boolean isNormalized(UTF8String value, UTF8String form) {
    return Normalizer.isNormalized(value.toString(), normalizationForm(form));
  }

  // ---- arrays -----------------------------------------------------------------------------------

  static ArrayData array(List<String> items) {
    return new GenericArrayData(items.stream().map(UTF8String::fromString).toArray());
  }

  @Returns("array<string>")
  public static ArrayData stringToArray(UTF8String value, UTF8String separator) {
    if (value.numBytes() == 0) return array(List.of());
    if (separator.numBytes() == 0) return array(List.of(value.toString()));
    return array(Arrays.asList(value.toString().split(Pattern.quote(separator.toString()), -1)));
  }

  @Returns("array<string>")
  public static ArrayData stringToCharacters(UTF8String value) {
    return array(value.toString().codePoints().mapToObj(Character::toString).toList());
  }

  // ---- identifiers ------------------------------------------------------------------------------

  /** Returns the parts of a qualified name. */
  @Returns("array<string>")
  public static ArrayData parseIdent(UTF8String text, boolean strict) {
    String s = text.toString();
    List<String> parts = new ArrayList<>();
    Matcher matcher = IDENTIFIER.matcher(s);
    int at = afterSpaces(s, 0);
    while (true) {
      if (!matcher.region(at, s.length()).lookingAt()) throw invalidIdentifier(s);
      String quoted = matcher.group(1);
      if (quoted != null && quoted.isEmpty()) throw invalidIdentifier(s);
      String folded = CAPITALS.matcher(matcher.group()).replaceAll(m -> m.group().toLowerCase(Locale.ROOT));
      parts.add(quoted == null ? folded : quoted.replace("\"\"", "\""));
      at = afterSpaces(s, matcher.end());
      if (!s.startsWith(".", at)) {
        if (strict && at < s.length()) throw invalidIdentifier(s);
        return array(parts);
      }
      at = afterSpaces(s, at + 1);
    }
  }

  private static int afterSpaces(String s, int start) {
    int at = start;
    while (at < s.length() && " \t\n\r\f".indexOf(s.charAt(at)) >= 0) at++;
    return at;
  }

  private static SqlError invalidIdentifier(String text) {
    return new SqlError("22023", "string is not a valid identifier: \"" + text + "\"");
  }
}
