package tailgate.functions.json;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.numeric.GeneralNumerics;
import tailgate.functions.numeric.NumberInput;
import tailgate.functions.numeric.Numbers;

/**
 * Functions that read a jsonb from its canonical text ({@link Jsonb}). The text is valid, so a
 * value is skipped by its brackets and quotes without building a tree, and its parts are
 * canonical texts, too.
 *
 * <p>Generated code calls the functions ({@code Functions}); arguments are not NULL, and a result
 * of null is NULL.
 */
public final class JsonbAccess {
  private JsonbAccess() {}

  public static UTF8String parse(UTF8String json) { return UTF8String.fromBytes(Jsonb.canonical(json.getBytes())); }

  // ---- parts ------------------------------------------------------------------------------------

  /** Computes {@code jsonb -> text}. */
  public static UTF8String get(UTF8String json, UTF8String key) {
    byte[] b = json.getBytes();
    return slice(b, memberValue(b, 0, Jsonb.quoted(key.toString())));
  }

  /** Computes {@code jsonb -> integer}. */
  public static UTF8String get(UTF8String json, int index) {
    byte[] b = json.getBytes();
    return slice(b, element(b, 0, index));
  }

  /** Computes {@code jsonb ->> text}. */
  public static UTF8String getText(UTF8String json, UTF8String key) {
    byte[] b = json.getBytes();
    return text(b, memberValue(b, 0, Jsonb.quoted(key.toString())));
  }

  /** Computes {@code jsonb ->> integer}. */
  public static UTF8String getText(UTF8String json, int index) {
    byte[] b = json.getBytes();
    return text(b, element(b, 0, index));
  }

  /** Computes {@code jsonb #> text[]}. */
  public static UTF8String path(UTF8String json, ArrayData path) {
    byte[] b = json.getBytes();
    return slice(b, valueAtPath(b, path));
  }

  /** Computes {@code jsonb #>> text[]}. */
  public static UTF8String pathText(UTF8String json, ArrayData path) {
    byte[] b = json.getBytes();
    return text(b, valueAtPath(b, path));
  }

  public static UTF8String typeOf(UTF8String json) {
    return UTF8String.fromString(typeName(json.getByte(0), "number"));
  }

  public static int arrayLength(UTF8String json) {
    byte[] b = json.getBytes();
    if (b[0] != '[') {
      throw SqlError.invalidParameter("cannot get array length of a " + (b[0] == '{' ? "non-array" : "scalar"));
    }
    return count(b, 0);
  }

  // ---- containment ------------------------------------------------------------------------------

  /**
   * Computes {@code @>}: an object contains another by its keys, an array by its elements in any
   * order.
   */
  public static boolean contains(UTF8String whole, UTF8String part) {
    byte[] a = whole.getBytes();
    byte[] b = part.getBytes();
    // Exception: an array contains a scalar that is one of its elements.
    if (a[0] == '[' && isScalar(b[0])) return hasElementContaining(a, 0, b, 0);
    return contains(a, 0, b, 0);
  }

  /**
   * Computes {@code ?}: whether a text is a key of an object, an element of an array, or the value
   * itself.
   */
  public static boolean exists(UTF8String json, UTF8String key) {
    byte[] b = json.getBytes();
    byte[] quoted = Jsonb.quoted(key.toString());
    return switch (b[0]) {
      case '{' -> memberValue(b, 0, quoted) >= 0;
      case '[' -> hasElementContaining(b, 0, quoted, 0);
      default -> Arrays.equals(b, quoted);
    };
  }

  private static boolean contains(byte[] a, int i, byte[] b, int j) {
    if (isScalar(a[i]) || isScalar(b[j])) return isScalar(a[i]) && isScalar(b[j]) && isEqual(a, i, b, j);
    if (a[i] != b[j]) return false;
    return b[j] == '[' ? containsElements(a, i, b, j) : containsMembers(a, i, b, j);
  }

  private static boolean containsElements(byte[] a, int i, byte[] b, int j) {
    for (int at = j + 1; b[at] != ']'; at = next(b, at)) {
      if (!hasElementContaining(a, i, b, at)) return false;
    }
    return true;
  }

  private static boolean containsMembers(byte[] a, int i, byte[] b, int j) {
    for (int at = j + 1; b[at] != '}'; ) {
      int keyEnd = stringEnd(b, at);
      int value = memberValue(a, i, Arrays.copyOfRange(b, at, keyEnd));
      int expected = keyEnd + 2;  // after ": "
      if (value < 0 || !contains(a, value, b, expected)) return false;
      at = next(b, expected);
    }
    return true;
  }

  /** Returns whether an element of the array at {@code i} contains the value at {@code j}. */
  private static boolean hasElementContaining(byte[] a, int i, byte[] b, int j) {
    for (int at = i + 1; a[at] != ']'; at = next(a, at)) if (contains(a, at, b, j)) return true;
    return false;
  }

  private static boolean isEqual(byte[] a, int i, byte[] b, int j) {
    int iEnd = end(a, i);
    int jEnd = end(b, j);
    if (Arrays.equals(a, i, iEnd, b, j, jEnd)) return true;
    if (!isNumber(a[i]) || !isNumber(b[j])) return false;
    return number(a, i, iEnd).compareTo(number(b, j, jEnd)) == 0;
  }

  private static BigDecimal number(byte[] b, int from, int to) {
    return new BigDecimal(new String(b, from, to - from, StandardCharsets.US_ASCII));
  }

  // ---- casts ------------------------------------------------------------------------------------

  public static boolean toBool(UTF8String json) {
    byte first = json.getByte(0);
    if (first != 't' && first != 'f') throw invalidCast(first, "boolean");
    return first == 't';
  }

  public static short toInt2(UTF8String json) {
    return (Short) Numbers.of(number(json, "smallint"), DataTypes.ShortType);
  }

  public static int toInt4(UTF8String json) {
    return (Integer) Numbers.of(number(json, "integer"), DataTypes.IntegerType);
  }

  public static long toInt8(UTF8String json) { return (Long) Numbers.of(number(json, "bigint"), DataTypes.LongType); }

  public static float toFloat4(UTF8String json) {
    number(json, "real");
    return NumberInput.toFloat4(json);
  }

  public static double toFloat8(UTF8String json) {
    number(json, "double precision");
    return NumberInput.toFloat8(json);
  }

  public static Decimal toNumeric(UTF8String json, int precision, int scale) {
    return (Decimal) Numbers.of(number(json, "numeric"), DataTypes.createDecimalType(precision, scale));
  }

  public static InternalRow toGeneral(UTF8String json) {
    number(json, "numeric");
    return GeneralNumerics.textToGeneral(json).row();
  }

  public static UTF8String toText(UTF8String json) { return json; }

  private static BigDecimal number(UTF8String json, String type) {
    byte first = json.getByte(0);
    if (!isNumber(first)) throw invalidCast(first, type);
    return new BigDecimal(json.toString());
  }

  private static SqlError invalidCast(byte first, String type) {
    return SqlError.invalidParameter("cannot cast jsonb " + typeName(first, "numeric") + " to type " + type);
  }

  static String typeName(byte first, String numberName) {
    return switch (first) {
      case '{' -> "object";
      case '[' -> "array";
      case '"' -> "string";
      case 't', 'f' -> "boolean";
      case 'n' -> "null";
      default -> numberName;
    };
  }

  // ---- positions in the text --------------------------------------------------------------------

  private static boolean isScalar(byte first) { return first != '{' && first != '['; }

  private static boolean isNumber(byte first) { return first == '-' || first >= '0' && first <= '9'; }

  /** Returns the end of the value that begins at {@code i}, in canonical text or in other JSON. */
  static int end(byte[] b, int i) {
    if (b[i] == '"') return stringEnd(b, i);
    int at = i;
    if (isScalar(b[i])) {
      while (at < b.length && b[at] > ' ' && b[at] != ',' && b[at] != '}' && b[at] != ']') at++;
      return at;
    }
    int depth = 0;
    while (true) {
      byte c = b[at];
      if (c == '"') {
        at = stringEnd(b, at);
        continue;
      }
      at++;
      if (c == '{' || c == '[') depth++;
      else if ((c == '}' || c == ']') && --depth == 0) return at;
    }
  }

  /**
   * Returns the start of the element or key after the value at {@code i}, or of the closing
   * bracket.
   */
  static int next(byte[] b, int i) {
    int end = end(b, i);
    return b[end] == ',' ? end + 2 : end;
  }

  private static int stringEnd(byte[] b, int i) {
    int at = i + 1;
    for (; b[at] != '"'; at++) if (b[at] == '\\') at++;
    return at + 1;
  }

  /** Returns the start of a key's value in the object at {@code i}, or -1. */
  private static int memberValue(byte[] b, int i, byte[] quotedKey) {
    if (b[i] != '{') return -1;
    for (int at = i + 1; b[at] != '}'; ) {
      int keyEnd = stringEnd(b, at);
      int value = keyEnd + 2;  // after ": "
      if (Arrays.equals(b, at, keyEnd, quotedKey, 0, quotedKey.length)) return value;
      at = next(b, value);
    }
    return -1;
  }

  /**
   * Returns the start of an element of the array at {@code i}, or -1. Negative indexes count from
   * the end.
   */
  private static int element(byte[] b, int i, int index) {
    if (b[i] != '[') return -1;
    int left = index < 0 ? index + count(b, i) : index;
    if (left < 0) return -1;
    for (int at = i + 1; b[at] != ']'; at = next(b, at)) if (left-- == 0) return at;
    return -1;
  }

  /** Returns the number of elements of the array at {@code i}. */
  private static int count(byte[] b, int i) {
    int n = 0;
    for (int at = i + 1; b[at] != ']'; at = next(b, at)) n++;
    return n;
  }

  private static int valueAtPath(byte[] b, ArrayData path) {
    int at = 0;
    for (int step = 0; step < path.numElements() && at >= 0; step++) {
      if (path.isNullAt(step)) return -1;
      String name = path.getUTF8String(step).toString();
      Integer index = b[at] == '[' ? Jsonb.index(name) : null;
      if (b[at] == '{') at = memberValue(b, at, Jsonb.quoted(name));
      else if (index != null) at = element(b, at, index);
      else return -1;
    }
    return at;
  }

  /** Returns the text of the value at an index, or null for -1. */
  static UTF8String slice(byte[] b, int at) { return at < 0 ? null : UTF8String.fromBytes(b, at, end(b, at) - at); }

  /**
   * Returns a string without its quotes, null for JSON's null or -1, and the text of other values.
   */
  static UTF8String text(byte[] b, int at) {
    if (at < 0 || b[at] == 'n') return null;
    int end = end(b, at);
    if (b[at] != '"') return UTF8String.fromBytes(b, at, end - at);
    for (int i = at; i < end; i++) if (b[i] == '\\') return unescaped(b, at, end);
    return UTF8String.fromBytes(b, at + 1, end - at - 2);
  }

  private static UTF8String unescaped(byte[] b, int at, int end) {
    try (var parser = Jsonb.FACTORY.createParser(b, at, end - at)) {
      parser.nextToken();
      return UTF8String.fromString(parser.getText());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
