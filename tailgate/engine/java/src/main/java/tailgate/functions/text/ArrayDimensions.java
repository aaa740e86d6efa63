package tailgate.functions.text;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * The dimensions of arrays: their number, then the length of each one, then the lower bound of each one.
 *
 * <p>{@code tailgate/values/composites/dimensions.py} computes the same. Arguments are not NULL.
 */
public final class ArrayDimensions {
  private static final int DIMENSIONS_MAX = 6;
  private static final int ELEMENTS_MAX = 134_217_727;
  private static final int[] EMPTY = {0};
  private static final String MISMATCH = "multidimensional arrays must have array expressions with matching dimensions";
  private static final String NOT_A_LIST =
      "arrays of more than one dimension or with another lower bound than 1 are not supported here";

  private ArrayDimensions() {}

  // ---- dimensions -------------------------------------------------------------------------------

  /** Returns the lower and upper bound of each dimension, or null for an array without elements. */
  public static UTF8String shown(ArrayData shape) {
    int[] d = shape.toIntArray();
    return d[0] == 0 ? null : UTF8String.fromString(boundsText(d));
  }

  /** Returns the number of an element, counted from 1, or null if there is no such element. */
  public static Integer place(ArrayData shape, ArrayData subscripts) {
    int[] d = shape.toIntArray();
    if (subscripts.numElements() != d[0]) return null;
    int number = 0;
    for (int i = 0; i < d[0]; i++) {
      if (subscripts.isNullAt(i)) return null;
      long offset = (long) subscripts.getInt(i) - low(d, i);
      if (offset < 0 || offset >= length(d, i)) return null;
      number = number * length(d, i) + (int) offset;
    }
    return number + 1;
  }

  public static ArrayData sliced(ArrayData shape, ArrayData lows, ArrayData highs) {
    int[] d = shape.toIntArray();
    int[][] part = part(d, lows.toIntArray(), highs.toIntArray());
    if (part == null) return array(EMPTY);
    int[] lengths = new int[d[0]];
    for (int i = 0; i < d[0]; i++) lengths[i] = part[i][1] - part[i][0] + 1;
    return array(dimensions(lengths, null));
  }

  /** Returns the numbers of the elements of a slice. */
  public static ArrayData selected(ArrayData shape, ArrayData lows, ArrayData highs) {
    int[] d = shape.toIntArray();
    int[][] part = part(d, lows.toIntArray(), highs.toIntArray());
    if (part == null) return array(new int[0]);
    int[] numbers = {0};
    for (int i = 0; i < d[0]; i++) {
      int first = part[i][0] - low(d, i);
      int count = part[i][1] - part[i][0] + 1;
      int[] next = new int[numbers.length * count];
      for (int n = 0; n < next.length; n++) next[n] = numbers[n / count] * length(d, i) + first + n % count;
      numbers = next;
    }
    for (int n = 0; n < numbers.length; n++) numbers[n]++;
    return array(numbers);
  }

  /** Returns the bounds of a slice, or null if it has no elements. Dimensions without bounds are complete. */
  private static int[][] part(int[] d, int[] lows, int[] highs) {
    if (lows.length == 0 || lows.length > d[0]) return null;
    int[][] part = new int[d[0]][];
    for (int i = 0; i < d[0]; i++) {
      int low = low(d, i);
      int high = low + length(d, i) - 1;
      part[i] = i < lows.length ? new int[] {Math.max(low, lows[i]), Math.min(high, highs[i])} : new int[] {low, high};
      if (part[i][0] > part[i][1]) return null;
    }
    return part;
  }

  public static ArrayData concatenated(ArrayData left, ArrayData right) {
    int[] a = left.toIntArray();
    int[] b = right.toIntArray();
    if (a[0] == 0 || b[0] == 0) return a[0] == 0 ? right : left;
    int[] outer = a[0] >= b[0] ? a : b;
    int[] inner = outer == a ? b : a;
    int skipped = a[0] == b[0] ? 1 : 0;
    boolean fits = outer[0] - inner[0] <= 1;
    for (int i = 1; fits && i < outer[0]; i++) {
      int other = i - 1 + skipped;
      fits = length(outer, i) == length(inner, other) && low(outer, i) == low(inner, other);
    }
    if (!fits) throw new SqlError("2202E", "cannot concatenate incompatible arrays");
    int[] result = outer.clone();
    result[1] += a[0] == b[0] ? inner[1] : 1;
    return array(checked(result));
  }

  /** Returns the dimensions of ARRAY[…] of arrays; NULL is like an empty array. */
  public static ArrayData nested(ArrayData arrays) {
    int[] first = null;
    boolean hasEmpty = false;
    for (int i = 0; i < arrays.numElements(); i++) {
      int[] d = arrays.isNullAt(i) ? EMPTY : arrays.getArray(i).toIntArray();
      if (d[0] == 0) hasEmpty = true;
      else if (first == null) first = d;
      else if (!Arrays.equals(first, d)) throw new SqlError("2202E", MISMATCH);
    }
    if (first == null) return array(EMPTY);
    if (hasEmpty) throw new SqlError("2202E", MISMATCH);
    int[] lengths = new int[first[0] + 1];
    int[] lows = new int[first[0] + 1];
    lengths[0] = arrays.numElements();
    lows[0] = 1;
    for (int i = 0; i < first[0]; i++) {
      lengths[i + 1] = length(first, i);
      lows[i + 1] = low(first, i);
    }
    return array(dimensions(lengths, lows));
  }

  public static ArrayData filled(ArrayData lengths) { return array(dimensions(numbers(lengths), null)); }

  public static ArrayData filledFrom(ArrayData lengths, ArrayData lows) {
    int[] sizes = numbers(lengths);
    int[] bounds = numbers(lows);
    if (sizes.length > DIMENSIONS_MAX) throw tooMany(sizes.length);
    if (bounds.length != sizes.length) throw new SqlError("2202E", "wrong number of array subscripts");
    return array(dimensions(sizes, bounds));
  }

  private static int[] numbers(ArrayData array) {
    for (int i = 0; i < array.numElements(); i++) if (array.isNullAt(i)) throw new SqlError("22004", "dimension values cannot be null");
    return array.toIntArray();
  }

  private static int[] dimensions(int[] lengths, int[] lows) {
    int n = lengths.length;
    if (n > DIMENSIONS_MAX) throw tooMany(n);
    int[] d = new int[1 + 2 * n];
    d[0] = n;
    for (int i = 0; i < n; i++) {
      d[1 + i] = lengths[i];
      d[1 + n + i] = lows == null ? 1 : lows[i];
    }
    return checked(d);
  }

  /** Returns the dimensions; those of an empty array if a length is 0. */
  private static int[] checked(int[] d) {
    long count = 1;
    for (int i = 0; i < d[0]; i++) {
      if (length(d, i) < 0) throw tooLarge();
      count *= length(d, i);
      if (count > ELEMENTS_MAX) throw tooLarge();
    }
    for (int i = 0; i < d[0]; i++)
      if ((long) low(d, i) + length(d, i) > Integer.MAX_VALUE) throw new SqlError("54000", "array lower bound is too large: " + low(d, i));
    return d[0] == 0 || count == 0 ? EMPTY : d;
  }

  private static int length(int[] d, int i) { return d[1 + i]; }

  private static int low(int[] d, int i) { return d[1 + d[0] + i]; }

  private static ArrayData array(int[] numbers) { return UnsafeArrayData.fromPrimitiveArray(numbers); }

  private static SqlError tooMany(int n) {
    return new SqlError("54000", "number of array dimensions (" + n + ") exceeds the maximum allowed (" + DIMENSIONS_MAX + ")");
  }

  private static SqlError tooLarge() {
    return new SqlError("54000", "array size exceeds the maximum allowed (" + ELEMENTS_MAX + ")");
  }

  // ---- texts ------------------------------------------------------------------------------------

  /** Returns the text of an array, from the texts of its elements. */
  public static UTF8String toText(ArrayData items, ArrayData shape) {
    int[] d = shape.toIntArray();
    List<String> texts = new ArrayList<>();
    for (int i = 0; i < items.numElements(); i++)
      texts.add(items.isNullAt(i) ? "NULL" : TextArrays.element(items.getUTF8String(i).toString()));
    boolean fromOne = true;
    for (int i = 0; i < d[0]; i++) fromOne &= low(d, i) == 1;
    return UTF8String.fromString((fromOne ? "" : boundsText(d) + "=") + nestedText(texts, d, "{", "}"));
  }

  /** Returns an array as JSON, from its elements as JSON. */
  public static UTF8String toJson(ArrayData items, ArrayData shape) {
    List<String> texts = new ArrayList<>();
    for (int i = 0; i < items.numElements(); i++) texts.add(items.isNullAt(i) ? "null" : items.getUTF8String(i).toString());
    return UTF8String.fromString(nestedText(texts, shape.toIntArray(), "[", "]"));
  }

  private static String boundsText(int[] d) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < d[0]; i++) text.append('[').append(low(d, i)).append(':').append(low(d, i) + length(d, i) - 1).append(']');
    return text.toString();
  }

  private static String nestedText(List<String> items, int[] d, String opening, String closing) {
    List<String> texts = items;
    for (int i = d[0] - 1; i >= 0; i--) {
      List<String> outer = new ArrayList<>();
      for (int start = 0; start < texts.size(); start += length(d, i))
        outer.add(opening + String.join(",", texts.subList(start, start + length(d, i))) + closing);
      texts = outer;
    }
    return d[0] == 0 ? opening + closing : texts.get(0);
  }

  /** Returns the texts of the elements of an array of one dimension from 1. Raises 0A000 for other arrays. */
  static ArrayData textList(UTF8String text) {
    Parser parser = new Parser(text).parsed();
    int[] d = parser.shape;
    if (d[0] > 1 || d[0] == 1 && low(d, 0) != 1) throw new SqlError("0A000", NOT_A_LIST);
    return parser.elements();
  }

  public static ArrayData textElements(UTF8String text) { return new Parser(text).parsed().elements(); }

  public static ArrayData textDimensions(UTF8String text) { return array(new Parser(text).parsed().shape); }

  /** Reads the text of an array. */
  private static final class Parser {
    private final UTF8String whole;
    private final String s;
    private int at;
    private final List<String> items = new ArrayList<>();
    private int[] shape;

    Parser(UTF8String text) {
      whole = text;
      s = text.toString();
    }

    Parser parsed() {
      List<int[]> bounds = declared();
      if (!atChar('{')) throw malformed();
      int[] lengths = contents();
      skipBlanks();
      if (at < s.length()) throw malformed();
      int[] lows = null;
      if (!bounds.isEmpty()) {
        if (lengths.length != bounds.size()) throw malformed();
        lows = new int[lengths.length];
        for (int i = 0; i < lengths.length; i++) {
          lows[i] = bounds.get(i)[0];
          if (lengths[i] != bounds.get(i)[1] - lows[i] + 1) throw malformed();
        }
      }
      shape = dimensions(lengths, lows);
      return this;
    }

    ArrayData elements() {
      return new GenericArrayData(items.stream().map(s -> s == null ? null : UTF8String.fromString(s)).toArray());
    }

    private List<int[]> declared() {
      List<int[]> bounds = new ArrayList<>();
      skipBlanks();
      while (atChar('[')) {
        if (bounds.size() == DIMENSIONS_MAX) throw tooMany(bounds.size() + 1);
        int end = s.indexOf(']', at);
        if (end < 0) throw malformed();
        String[] parts = s.substring(at + 1, end).split(":", -1);
        if (parts.length > 2) throw malformed();
        int low = parts.length == 1 ? 1 : number(parts[0]);
        int high = number(parts[parts.length - 1]);
        if (high < low) throw new SqlError("2202E", "upper bound cannot be less than lower bound");
        bounds.add(new int[] {low, high});
        at = end + 1;
        skipBlanks();
      }
      if (!bounds.isEmpty()) {
        if (!atChar('=')) throw malformed();
        at++;
        skipBlanks();
      }
      return bounds;
    }

    private int number(String digits) {
      if (!digits.matches("[+-]?[0-9]+")) throw malformed();
      try {
        return Integer.parseInt(digits);
      } catch (NumberFormatException e) {
        throw new SqlError("22003", "array bound is out of integer range");
      }
    }

    /** Reads the contents of the braces, and returns the length of each dimension. */
    private int[] contents() {
      int[] counts = new int[DIMENSIONS_MAX + 1];
      int[] lengths = new int[DIMENSIONS_MAX + 1];
      int depth = 0;
      int elements = 0;  // the depth of the elements, once there is one
      char before = ' ';  // what precedes: an open brace, an element, or a closed brace
      while (true) {
        skipBlanks();
        if (atChar('{')) {
          if (before == 'e') throw malformed();
          if (depth == DIMENSIONS_MAX) throw tooMany(depth + 1);
          counts[++depth] = 0;
          before = '{';
          at++;
          continue;
        }
        if (atChar('}') && before == '{' && depth == 1) {
          at++;
          return new int[0];
        }
        if (before == '}') throw malformed();
        items.add(element());
        if (elements == 0) elements = depth;
        if (elements != depth) throw malformed();
        counts[depth]++;
        before = 'e';
        skipBlanks();
        while (atChar('}')) {
          if (lengths[depth] == 0) lengths[depth] = counts[depth];
          if (lengths[depth] != counts[depth]) throw malformed();
          at++;
          before = '}';
          if (--depth == 0) return Arrays.copyOfRange(lengths, 1, elements + 1);
          counts[depth]++;
          skipBlanks();
        }
        if (!atChar(',')) throw malformed();
        at++;
      }
    }

    /** Reads an element; null for NULL. */
    private String element() {
      StringBuilder item = new StringBuilder();
      if (atChar('"')) {
        for (at++; !atChar('"'); at++) {
          if (atChar('\\')) at++;
          if (at >= s.length()) throw malformed();
          item.append(s.charAt(at));
        }
        at++;
        return item.toString();
      }
      int escapedLength = 0;  // trailing blanks up to this length were escaped and are not stripped
      for (; at < s.length() && ",{}\"".indexOf(s.charAt(at)) < 0; at++) {
        boolean escaped = atChar('\\');
        if (escaped && ++at >= s.length()) throw malformed();
        item.append(s.charAt(at));
        if (escaped) escapedLength = item.length();
      }
      if (atChar('{') || atChar('"')) throw malformed();
      int end = item.length();
      while (end > escapedLength && tailgate.functions.TextInput.isSpace(item.charAt(end - 1))) end--;
      String value = item.substring(0, end);
      if (value.isEmpty()) throw malformed();
      return value.toUpperCase(Locale.ROOT).equals("NULL") && escapedLength == 0 ? null : value;
    }

    private boolean atChar(char c) { return at < s.length() && s.charAt(at) == c; }

    private void skipBlanks() {
      while (at < s.length() && tailgate.functions.TextInput.isSpace(s.charAt(at))) at++;
    }

    private SqlError malformed() { return new SqlError("22P02", "malformed array literal: \"" + whole + "\""); }
  }
}
