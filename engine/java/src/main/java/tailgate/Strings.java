package tailgate;

import java.text.Normalizer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Text. Positions and lengths count characters. The twin of sql/compute/strings.py, which names its sources.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class Strings {
  private static final int LENGTH_MAX = 1 << 28;  // characters of a result: PostgreSQL's limit is a GiB

  private Strings() {}

  static UTF8String text(String s) { return UTF8String.fromString(s); }

  static SqlError parameter(String message) { return new SqlError("22023", message); }

  private static int checked(long length) {
    if (length > LENGTH_MAX) throw new SqlError("54000", "requested length too large");
    return (int) Math.max(length, 0);
  }

  public static UTF8String initcap(UTF8String value) {
    StringBuilder out = new StringBuilder();
    boolean inside = false;
    for (int c : value.toString().codePoints().toArray()) {
      out.appendCodePoint(inside ? Character.toLowerCase(c) : Character.toUpperCase(c));
      inside = Character.isLetterOrDigit(c);
    }
    return text(out.toString());
  }

  public static UTF8String lpad(UTF8String value, int length, UTF8String fill) { return padded(value, length, fill, true); }

  public static UTF8String rpad(UTF8String value, int length, UTF8String fill) { return padded(value, length, fill, false); }

  private static UTF8String padded(UTF8String value, int length, UTF8String fill, boolean left) {
    int n = checked(length), missing = n - value.numChars(), unit = fill.numChars();
    if (missing <= 0 || unit == 0) return value.substring(0, n);
    UTF8String pad = UTF8String.concat(fill.repeat(missing / unit), fill.substring(0, missing % unit));
    return left ? UTF8String.concat(pad, value) : UTF8String.concat(value, pad);
  }

  public static UTF8String repeat(UTF8String value, int count) {
    checked((long) value.numBytes() * Math.max(count, 0));
    return value.repeat(Math.max(count, 0));
  }

  public static UTF8String reverse(UTF8String value) { return value.reverse(); }

  public static UTF8String translate(UTF8String value, UTF8String from, UTF8String to) {
    int[] before = from.toString().codePoints().toArray(), after = to.toString().codePoints().toArray();
    Map<Integer, Integer> table = new HashMap<>();
    for (int i = 0; i < before.length; i++) table.putIfAbsent(before[i], i < after.length ? after[i] : -1);
    StringBuilder out = new StringBuilder();
    value.toString().codePoints().map(c -> table.getOrDefault(c, c)).filter(c -> c >= 0).forEach(out::appendCodePoint);
    return text(out.toString());
  }

  public static int ascii(UTF8String value) { return value.numBytes() == 0 ? 0 : value.toString().codePointAt(0); }

  public static UTF8String chr(int number) {
    if (number < 0) throw parameter("character number must be positive");
    if (number == 0) throw new SqlError("54000", "null character not permitted");
    if (number > 0x10FFFF || number >= 0xD800 && number <= 0xDFFF) throw new SqlError("54000", "requested character too large for encoding: " + number);
    return text(Character.toString(number));
  }

  public static UTF8String overlay(UTF8String value, UTF8String part, int start, int count) {
    if (start <= 0) throw new SqlError("22011", "negative substring length not allowed");
    long after = (long) start + count;
    if (after > Integer.MAX_VALUE) throw new SqlError("22003", "integer out of range");
    return UTF8String.concat(value.substring(0, start - 1), part, value.substring((int) Math.max(after, 1) - 1, Integer.MAX_VALUE));
  }

  public static UTF8String toHexInt4(int number) { return text(Integer.toHexString(number)); }

  public static UTF8String toHexInt8(long number) { return text(Long.toHexString(number)); }

  // ---- quoting ------------------------------------------------------------------------------------------------------------------

  /** Words that are no plain names. Source: PostgreSQL 15, appendix "SQL Key Words"; sql/words.py. */
  private static final Set<String> WORDS = Set.of(Keywords.QUOTED.split(" "));
  private static final Pattern PLAIN = Pattern.compile("[a-z_][a-z0-9_]*");

  static String quotedIdent(String name) { return PLAIN.matcher(name).matches() && !WORDS.contains(name) ? name : '"' + name.replace("\"", "\"\"") + '"'; }

  static String quotedLiteral(String value) { return (value.indexOf('\\') >= 0 ? "E'" : "'") + value.replace("\\", "\\\\").replace("'", "''") + "'"; }

  public static UTF8String quoteIdent(UTF8String name) { return text(quotedIdent(name.toString())); }

  public static UTF8String quoteLiteral(UTF8String value) { return text(quotedLiteral(value.toString())); }

  private static final Pattern CONVERSION = Pattern.compile("%(?:(?<position>\\d+)\\$)?(?<left>-+)?(?:(?<width>\\d+)|(?<star>\\*)(?:(?<at>\\d+)\\$)?)?(?<type>.?)", Pattern.DOTALL);

  /** format(): %s, %I and %L with a position, a width, and - for the left. */
  public static UTF8String format(UTF8String pattern, ArrayData arguments) {
    String p = pattern.toString();
    StringBuilder out = new StringBuilder();
    int at = 0, following = 0, start;
    while ((start = p.indexOf('%', at)) >= 0) {
      out.append(p, at, start);
      if (p.startsWith("%%", start)) {
        out.append('%');
        at = start + 2;
        continue;
      }
      Matcher m = CONVERSION.matcher(p).region(start, p.length());
      if (!m.lookingAt()) throw new IllegalStateException(p);
      at = m.end();
      boolean left = m.group("left") != null;
      int width = m.group("width") == null ? 0 : Integer.parseInt(m.group("width"));
      if ("0".equals(m.group("position")) || "0".equals(m.group("at"))) throw parameter("format specifies argument 0, but arguments are numbered from 1");
      if (m.group("star") != null) {
        int index = m.group("at") != null ? Integer.parseInt(m.group("at")) - 1 : following;
        String given = argument(arguments, index);
        following = index + 1;
        width = given == null ? 0 : Integer.parseInt(given);
        left |= width < 0;
        width = Math.abs(width);
      }
      String type = m.group("type");
      if (type.isEmpty()) throw parameter("unterminated format() type specifier");
      if ("sIL".indexOf(type.charAt(0)) < 0) throw parameter("unrecognized format() type specifier \"" + type + "\"");
      int index = m.group("position") != null ? Integer.parseInt(m.group("position")) - 1 : following;
      String value = argument(arguments, index);
      following = index + 1;
      if (value == null && type.equals("I")) throw new SqlError("22004", "null values cannot be formatted as an SQL identifier");
      String shown = value == null ? (type.equals("L") ? "NULL" : "") : type.equals("I") ? quotedIdent(value) : type.equals("L") ? quotedLiteral(value) : value;
      String blanks = " ".repeat(Math.max(checked(width) - shown.codePointCount(0, shown.length()), 0));
      out.append(left ? shown + blanks : blanks + shown);
    }
    return text(out.append(p, at, p.length()).toString());
  }

  private static String argument(ArrayData arguments, int index) {
    if (index >= arguments.numElements()) throw parameter("too few arguments for format()");
    return arguments.isNullAt(index) ? null : arguments.getUTF8String(index).toString();
  }

  // ---- Unicode ------------------------------------------------------------------------------------------------------------------

  private static final Pattern ESCAPED = Pattern.compile("\\\\(?:\\\\|([0-9a-fA-F]{4})|\\+([0-9a-fA-F]{6})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))?");

  public static UTF8String unistr(UTF8String value) {
    Matcher m = ESCAPED.matcher(value.toString());
    StringBuilder out = new StringBuilder();
    int at = 0;
    while (m.find()) {
      out.append(value.toString(), at, m.start());
      at = m.end();
      if (m.group().equals("\\\\")) {
        out.append('\\');
        continue;
      }
      String digits = null;
      for (int i = 1; i <= 4; i++) if (m.group(i) != null) digits = m.group(i);
      if (digits == null) throw new SqlError("42601", "invalid Unicode escape");
      long number = Long.parseLong(digits, 16);
      if (number == 0 || number > 0x10FFFF) throw parameter(String.format("invalid Unicode code point: %04X", number));
      out.appendCodePoint((int) number);
    }
    out.append(value.toString(), at, value.toString().length());
    for (int i = 0; i < out.length(); i++) {
      char c = out.charAt(i);
      if (!Character.isSurrogate(c)) continue;
      if (Character.isLowSurrogate(c) || i + 1 == out.length() || !Character.isLowSurrogate(out.charAt(i + 1))) throw new SqlError("42601", "invalid Unicode surrogate pair");
      i++;
    }
    return text(out.toString());
  }

  private static Normalizer.Form form(UTF8String form) {
    try {
      return Normalizer.Form.valueOf(form.toString().toUpperCase(java.util.Locale.ROOT));
    } catch (IllegalArgumentException e) {
      throw parameter("invalid normalization form: " + form);
    }
  }

  public static UTF8String normalize(UTF8String value, UTF8String form) { return text(Normalizer.normalize(value.toString(), form(form))); }

  public static boolean isNormalized(UTF8String value, UTF8String form) { return Normalizer.isNormalized(value.toString(), form(form)); }

  // ---- lists --------------------------------------------------------------------------------------------------------------------

  static ArrayData list(List<String> items) { return new GenericArrayData(items.stream().map(i -> i == null ? null : text(i)).toArray()); }

  @Functions.Returns("array<string>")
  public static ArrayData stringToArray(UTF8String value, UTF8String separator) {
    if (value.numBytes() == 0) return list(List.of());
    return separator.numBytes() == 0 ? list(List.of(value.toString())) : list(Arrays.asList(value.toString().split(Pattern.quote(separator.toString()), -1)));
  }

  @Functions.Returns("array<string>")
  public static ArrayData stringToCharacters(UTF8String value) { return list(value.toString().codePoints().mapToObj(Character::toString).toList()); }

  // ---- LIKE ---------------------------------------------------------------------------------------------------------------------

  /** The pattern with backslashes only before what needs one, as Spark demands; 22025 for one at its end. */
  public static UTF8String likePattern(UTF8String pattern) {
    String p = pattern.toString();
    if (p.indexOf('\\') < 0) return pattern;
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < p.length(); i++) {
      char c = p.charAt(i);
      if (c == '\\') {
        if (++i == p.length()) throw new SqlError("22025", "LIKE pattern must not end with escape character");
        c = p.charAt(i);
        if (c == '%' || c == '_' || c == '\\') out.append('\\');
      }
      out.append(c);
    }
    return text(out.toString());
  }

  public static UTF8String likeEscape(UTF8String pattern, UTF8String escape) {
    int[] e = escape.toString().codePoints().toArray(), p = pattern.toString().codePoints().toArray();
    if (e.length > 1) throw new SqlError("22025", "invalid escape string");
    if (e.length == 1 && e[0] == '\\') return pattern;
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < p.length; i++) {
      if (e.length == 1 && p[i] == e[0]) {
        out.append('\\');
        if (++i < p.length) out.appendCodePoint(p[i]);
      } else if (p[i] == '\\') out.append("\\\\");
      else out.appendCodePoint(p[i]);
    }
    return text(out.toString());
  }
}
