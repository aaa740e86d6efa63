package tailgate;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What can be asked of the canonical text of a jsonb. The text is known to be right, so a value is skipped by its brackets and quotes and no tree is built; a part of it is
 * canonical text again.
 *
 * <p>Called by generated code ({@link Functions}). NULL in, NULL out; a Java null is NULL.
 */
public final class JsonbText {
  private JsonbText() {}

  public static UTF8String parse(UTF8String json) { return UTF8String.fromBytes(Jsonb.canonical(json.getBytes())); }

  /** jsonb -> text */
  public static UTF8String get(UTF8String json, UTF8String key) { return slice(json.getBytes(), member(json.getBytes(), 0, Jsonb.quoted(key.toString()))); }

  /** jsonb -> integer */
  public static UTF8String get(UTF8String json, int index) { return slice(json.getBytes(), element(json.getBytes(), 0, index)); }

  public static UTF8String getText(UTF8String json, UTF8String key) { return text(json.getBytes(), member(json.getBytes(), 0, Jsonb.quoted(key.toString()))); }

  public static UTF8String getText(UTF8String json, int index) { return text(json.getBytes(), element(json.getBytes(), 0, index)); }

  public static UTF8String path(UTF8String json, ArrayData path) { return slice(json.getBytes(), follow(json.getBytes(), path)); }

  public static UTF8String pathText(UTF8String json, ArrayData path) { return text(json.getBytes(), follow(json.getBytes(), path)); }

  public static boolean contains(UTF8String whole, UTF8String part) {
    byte[] a = whole.getBytes(), b = part.getBytes();
    if (a[0] == '[' && scalar(b[0])) return holds(a, 0, b, 0);  // the one exception: an array contains a primitive value
    return contains(a, 0, b, 0);
  }

  public static boolean exists(UTF8String json, UTF8String key) {
    byte[] bytes = json.getBytes(), quoted = Jsonb.quoted(key.toString());
    return switch (bytes[0]) {
      case '{' -> member(bytes, 0, quoted) >= 0;
      case '[' -> holds(bytes, 0, quoted, 0);
      default -> Arrays.equals(bytes, quoted);
    };
  }

  public static UTF8String typeOf(UTF8String json) { return UTF8String.fromString(name(json.getByte(0), "number")); }

  public static int arrayLength(UTF8String json) {
    byte[] bytes = json.getBytes();
    if (bytes[0] != '[') throw new SqlError("22023", "cannot get array length of a " + (bytes[0] == '{' ? "non-array" : "scalar"));
    return count(bytes, 0);
  }

  public static boolean toBool(UTF8String json) {
    byte first = json.getByte(0);
    if (first != 't' && first != 'f') throw cannot(first, "boolean");
    return first == 't';
  }

  public static short toInt2(UTF8String json) { return (Short) Numbers.of(number(json, "smallint"), DataTypes.ShortType); }

  public static int toInt4(UTF8String json) { return (Integer) Numbers.of(number(json, "integer"), DataTypes.IntegerType); }

  public static long toInt8(UTF8String json) { return (Long) Numbers.of(number(json, "bigint"), DataTypes.LongType); }

  public static float toFloat4(UTF8String json) {
    number(json, "real");
    return TextInput.toFloat4(json);
  }

  public static double toFloat8(UTF8String json) {
    number(json, "double precision");
    return TextInput.toFloat8(json);
  }

  public static Decimal toNumeric(UTF8String json, int precision, int scale) { return (Decimal) Numbers.of(number(json, "numeric"), DataTypes.createDecimalType(precision, scale)); }

  public static UTF8String toText(UTF8String json) { return json; }

  private static BigDecimal number(UTF8String json, String type) {
    byte first = json.getByte(0);
    if (first != '-' && (first < '0' || first > '9')) throw cannot(first, type);
    return new BigDecimal(json.toString());
  }

  private static SqlError cannot(byte first, String type) { return new SqlError("22023", "cannot cast jsonb " + name(first, "numeric") + " to type " + type); }

  private static String name(byte first, String number) {
    return switch (first) {
      case '{' -> "object";
      case '[' -> "array";
      case '"' -> "string";
      case 't', 'f' -> "boolean";
      case 'n' -> "null";
      default -> number;
    };
  }

  // ---- walking ------------------------------------------------------------------------------------------------------------------

  private static boolean scalar(byte first) { return first != '{' && first != '['; }

  /** Where the value that begins at `i` ends. */
  static int end(byte[] b, int i) {
    if (b[i] == '"') return string(b, i);
    if (scalar(b[i])) {
      while (i < b.length && b[i] != ',' && b[i] != '}' && b[i] != ']') i++;
      return i;
    }
    int depth = 0;
    while (true) {
      byte c = b[i];
      if (c == '"') {
        i = string(b, i);
        continue;
      }
      i++;
      if (c == '{' || c == '[') depth++;
      else if ((c == '}' || c == ']') && --depth == 0) return i;
    }
  }

  /** Where the next value or key begins after the value at `i`, or the bracket that ends them. */
  static int next(byte[] b, int i) {
    int end = end(b, i);
    return b[end] == ',' ? end + 2 : end;
  }

  private static int string(byte[] b, int i) {
    for (i++; b[i] != '"'; i++) if (b[i] == '\\') i++;
    return i + 1;
  }

  /** Where the value of a key of the object at `i` begins, or -1. */
  private static int member(byte[] b, int i, byte[] quoted) {
    if (b[i] != '{' || b[i + 1] == '}') return -1;
    for (i++; ; i += 2) {
      int key = i;
      i = string(b, i);
      boolean found = Arrays.equals(b, key, i, quoted, 0, quoted.length);
      i += 2;
      if (found) return i;
      i = end(b, i);
      if (b[i] == '}') return -1;
    }
  }

  private static int element(byte[] b, int i, int index) {
    if (b[i] != '[' || b[i + 1] == ']') return -1;
    if (index < 0 && (index += count(b, i)) < 0) return -1;
    for (i++; index > 0; index--) {
      i = end(b, i);
      if (b[i] == ']') return -1;
      i += 2;
    }
    return i;
  }

  private static int count(byte[] b, int i) {
    if (b[i + 1] == ']') return 0;
    int n = 1;
    for (i = end(b, i + 1); b[i] != ']'; i = end(b, i + 2)) n++;
    return n;
  }

  private static int follow(byte[] b, ArrayData path) {
    int i = 0;
    for (int step = 0; step < path.numElements() && i >= 0; step++) {
      if (path.isNullAt(step)) return -1;
      String name = path.getUTF8String(step).toString();
      i = b[i] == '{' ? member(b, i, Jsonb.quoted(name)) : b[i] == '[' && name.matches("\\s*[+-]?\\d{1,9}") ? element(b, i, Integer.parseInt(name.strip())) : -1;
    }
    return i;
  }

  static UTF8String slice(byte[] b, int at) {
    if (at < 0) return null;
    return UTF8String.fromBytes(b, at, end(b, at) - at);
  }

  /** A string without its quotes, JSON's null as NULL, all else as it is. */
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

  // ---- containment: an object by its keys, an array by its elements in any order --------------------------------------------------

  private static boolean contains(byte[] a, int i, byte[] b, int j) {
    if (scalar(a[i]) || scalar(b[j])) return scalar(a[i]) && scalar(b[j]) && equal(a, i, b, j);
    if (a[i] != b[j]) return false;
    if (b[j] == '[') {
      if (b[j + 1] == ']') return true;
      for (j++; ; j += 2) {
        if (!holds(a, i, b, j)) return false;
        j = end(b, j);
        if (b[j] == ']') return true;
      }
    }
    if (b[j + 1] == '}') return true;
    for (j++; ; j += 2) {
      int key = j;
      j = string(b, j);
      int value = member(a, i, Arrays.copyOfRange(b, key, j));
      j += 2;
      if (value < 0 || !contains(a, value, b, j)) return false;
      j = end(b, j);
      if (b[j] == '}') return true;
    }
  }

  /** Whether an element of the array at `i` contains the value at `j`. */
  private static boolean holds(byte[] a, int i, byte[] b, int j) {
    if (a[i + 1] == ']') return false;
    for (i++; ; i += 2) {
      if (contains(a, i, b, j)) return true;
      i = end(a, i);
      if (a[i] == ']') return false;
    }
  }

  private static boolean equal(byte[] a, int i, byte[] b, int j) {
    int iEnd = end(a, i), jEnd = end(b, j);
    if (Arrays.equals(a, i, iEnd, b, j, jEnd)) return true;
    if (!name(a[i], "number").equals("number") || !name(b[j], "number").equals("number")) return false;
    return new BigDecimal(new String(a, i, iEnd - i, java.nio.charset.StandardCharsets.US_ASCII)).compareTo(new BigDecimal(new String(b, j, jEnd - j, java.nio.charset.StandardCharsets.US_ASCII))) == 0;
  }
}
