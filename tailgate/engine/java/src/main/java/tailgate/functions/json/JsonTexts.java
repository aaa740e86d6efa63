package tailgate.functions.json;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.text.Utf8;

/**
 * Functions of type json, which is its text as it was written. Parts of a value are slices of its
 * text. If an object has several members with one key, the last one counts.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL, and a result of null is
 * NULL. {@code tailgate/sql/compute/json_texts.py} computes the same and names the sources.
 */
public final class JsonTexts {
  private static final String ROWS = "array<struct<key:string,value:string>>";

  private JsonTexts() {}

  /** Returns the text. Throws 22P02 if it is not JSON. */
  public static UTF8String textToJson(UTF8String text) {
    Utf8.checked(text.getBytes());
    try (var parser = Jsonb.FACTORY.createParser(text.toString())) {
      if (parser.nextToken() == null) throw Jsonb.invalid();
      parser.skipChildren();
      if (parser.nextToken() != null) throw Jsonb.invalid();
      return text;
    } catch (IOException e) {
      throw Jsonb.invalid(e);
    }
  }

  // ---- parts ------------------------------------------------------------------------------------

  /** A part of the text: a member of an object, or an element of an array, which has no key. */
  private record Part(UTF8String key, int start) {}

  /** Computes {@code json -> text}. */
  public static UTF8String jsonGet(UTF8String json, UTF8String key) {
    byte[] b = checked(json);
    return JsonbAccess.slice(b, member(b, key));
  }

  /** Computes {@code json ->> text}. */
  public static UTF8String jsonGetText(UTF8String json, UTF8String key) {
    byte[] b = checked(json);
    return JsonbAccess.text(b, member(b, key));
  }

  /** Computes {@code json -> integer}. */
  public static UTF8String jsonElement(UTF8String json, int index) {
    byte[] b = checked(json);
    return JsonbAccess.slice(b, element(b, afterBlanks(b, 0), index));
  }

  /** Computes {@code json ->> integer}. */
  public static UTF8String jsonElementText(UTF8String json, int index) {
    byte[] b = checked(json);
    return JsonbAccess.text(b, element(b, afterBlanks(b, 0), index));
  }

  /** Computes {@code json #> text[]}. */
  public static UTF8String jsonPath(UTF8String json, ArrayData path) {
    if (hasNull(path)) return null;
    byte[] b = checked(json);
    return withBlanks(b, path, JsonbAccess.slice(b, valueAtPath(b, path)));
  }

  /** Computes {@code json #>> text[]}. */
  public static UTF8String jsonPathText(UTF8String json, ArrayData path) {
    if (hasNull(path)) return null;
    byte[] b = checked(json);
    int at = valueAtPath(b, path);
    UTF8String value = JsonbAccess.text(b, at);
    return value == null || b[at] == '"' ? value : withBlanks(b, path, value);
  }

  private static boolean hasNull(ArrayData path) {
    for (int i = 0; i < path.numElements(); i++) if (path.isNullAt(i)) return true;
    return false;
  }

  /** Adds the blanks before a scalar if the path is empty; PostgreSQL preserves them. */
  private static UTF8String withBlanks(byte[] b, ArrayData path, UTF8String value) {
    int start = afterBlanks(b, 0);
    if (path.numElements() > 0 || start == 0 || b[start] == '{' || b[start] == '[') return value;
    return UTF8String.concat(UTF8String.fromBytes(b, 0, start), value);
  }

  private static int afterBlanks(byte[] b, int at) {
    int i = at;
    while (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') i++;
    return i;
  }

  /** Returns the parts of the object or array at {@code start}. */
  private static List<Part> parts(byte[] b, int start) {
    List<Part> parts = new ArrayList<>();
    boolean hasKeys = b[start] == '{';
    int at = afterBlanks(b, start + 1);
    while (b[at] != ']' && b[at] != '}') {
      UTF8String key = null;
      if (hasKeys) {
        key = JsonbAccess.text(b, at);
        at = afterBlanks(b, afterBlanks(b, JsonbAccess.end(b, at)) + 1);  // after the colon
      }
      parts.add(new Part(key, at));
      at = afterBlanks(b, JsonbAccess.end(b, at));
      if (b[at] == ',') at = afterBlanks(b, at + 1);
    }
    return parts;
  }

  private static int member(byte[] b, UTF8String key) {
    int start = afterBlanks(b, 0);
    int last = -1;
    if (b[start] == '{') for (Part part : parts(b, start)) if (part.key.equals(key)) last = part.start;
    return last;
  }

  private static int element(byte[] b, int start, int index) {
    if (b[start] != '[') return -1;
    List<Part> parts = parts(b, start);
    int i = index < 0 ? index + parts.size() : index;
    return i >= 0 && i < parts.size() ? parts.get(i).start : -1;
  }

  private static int valueAtPath(byte[] b, ArrayData path) {
    return valueAtPath(b, afterBlanks(b, 0), path, 0);
  }

  private static int valueAtPath(byte[] b, int start, ArrayData path, int step) {
    if (step == path.numElements()) return start;
    UTF8String name = path.getUTF8String(step);
    Integer index = b[start] == '[' ? Jsonb.index(name.toString()) : null;
    if (index != null) {
      int element = element(b, start, index);
      return element < 0 ? -1 : valueAtPath(b, element, path, step + 1);
    }
    int last = -1;
    if (b[start] != '{') return last;
    for (Part part : parts(b, start)) {
      int value = part.key.equals(name) ? valueAtPath(b, part.start, path, step + 1) : -1;
      if (value >= 0) last = value;
    }
    return last;
  }

  /**
   * Returns the bytes of a value. Throws 22P05 or 22P02 if an escape sequence of its strings cannot
   * be text: a zero character or a single surrogate.
   */
  private static byte[] checked(UTF8String json) {
    byte[] b = json.getBytes();
    int high = -1;  // the end of the escape sequence of a high surrogate
    for (int i = 0; i < b.length; i++) {
      if (b[i] != '\\') continue;
      i++;
      if (b[i] != 'u') continue;
      char c = (char) Integer.parseInt(new String(b, i + 1, 4, StandardCharsets.US_ASCII), 16);
      if (c == 0) throw new SqlError("22P05", "unsupported Unicode escape sequence");
      boolean second = high == i - 1;
      if (high >= 0 && !second || Character.isLowSurrogate(c) != second) throw Jsonb.invalid();
      i += 4;
      high = Character.isHighSurrogate(c) ? i + 1 : -1;
    }
    if (high >= 0) throw Jsonb.invalid();
    return b;
  }

  // ---- properties -------------------------------------------------------------------------------

  public static UTF8String jsonTypeof(UTF8String json) {
    byte[] b = json.getBytes();
    return UTF8String.fromString(JsonbAccess.typeName(b[afterBlanks(b, 0)], "number"));
  }

  public static int jsonArrayLength(UTF8String json) {
    byte[] b = json.getBytes();
    int start = afterBlanks(b, 0);
    if (b[start] == '[') return parts(b, start).size();
    throw SqlError.invalidParameter("cannot get array length of a " + (b[start] == '{' ? "non-array" : "scalar"));
  }

  public static UTF8String jsonStripNulls(UTF8String json) {
    byte[] b = checked(json);
    ByteArrayOutputStream out = new ByteArrayOutputStream(b.length);
    writeWithoutNulls(b, afterBlanks(b, 0), out);
    return UTF8String.fromBytes(out.toByteArray());
  }

  private static void writeWithoutNulls(byte[] b, int at, ByteArrayOutputStream out) {
    if (b[at] != '{' && b[at] != '[') {
      boolean string = b[at] == '"';
      out.writeBytes(string ? quoted(JsonbAccess.text(b, at)) : JsonbAccess.slice(b, at).getBytes());
      return;
    }
    out.write(b[at]);
    boolean first = true;
    for (Part part : parts(b, at)) {
      if (part.key != null && b[part.start] == 'n') continue;
      if (!first) out.write(',');
      first = false;
      if (part.key != null) {
        out.writeBytes(quoted(part.key));
        out.write(':');
      }
      writeWithoutNulls(b, part.start, out);
    }
    out.write(b[at] == '{' ? '}' : ']');
  }

  // ---- sets of rows -----------------------------------------------------------------------------

  /** Computes json_array_elements(). */
  public static ArrayData jsonElements(UTF8String json) {
    return elements(json, "json_array_elements", false);
  }

  /** Computes json_array_elements_text(). */
  public static ArrayData jsonElementsText(UTF8String json) {
    return elements(json, "json_array_elements_text", true);
  }

  /** Computes json_object_keys(). */
  public static ArrayData jsonKeys(UTF8String json) {
    byte[] b = json.getBytes();
    int start = afterBlanks(b, 0);
    if (b[start] != '{') {
      throw SqlError.invalidParameter("cannot call json_object_keys on " + (b[start] == '[' ? "an array" : "a scalar"));
    }
    return new GenericArrayData(parts(checked(json), start).stream().map(Part::key).toArray());
  }

  /** Computes json_each(). */
  @Returns(ROWS)
  public static ArrayData jsonEach(UTF8String json) { return members(json, false); }

  /** Computes json_each_text(). */
  @Returns(ROWS)
  public static ArrayData jsonEachText(UTF8String json) { return members(json, true); }

  private static ArrayData elements(UTF8String json, String function, boolean asText) {
    byte[] b = json.getBytes();
    int start = afterBlanks(b, 0);
    if (b[start] != '[') {
      throw SqlError.invalidParameter("cannot call " + function + " on a " + (b[start] == '{' ? "non-array" : "scalar"));
    }
    if (asText) checked(json);
    return new GenericArrayData(parts(b, start).stream().map(part -> value(b, part, asText)).toArray());
  }

  private static ArrayData members(UTF8String json, boolean asText) {
    byte[] b = json.getBytes();
    int start = afterBlanks(b, 0);
    if (b[start] != '{') {
      throw SqlError.invalidParameter("cannot deconstruct " + (b[start] == '[' ? "an array as an object" : "a scalar"));
    }
    checked(json);
    List<Object> rows = new ArrayList<>();
    for (Part part : parts(b, start)) rows.add(new GenericInternalRow(new Object[] {part.key, value(b, part, asText)}));
    return new GenericArrayData(rows.toArray());
  }

  private static UTF8String value(byte[] b, Part part, boolean asText) {
    return asText ? JsonbAccess.text(b, part.start) : JsonbAccess.slice(b, part.start);
  }

  // ---- construction -----------------------------------------------------------------------------

  private static byte[] quoted(UTF8String text) { return Jsonb.quoted(text.toString()); }

  private static UTF8String item(ArrayData items, int i) { return items.isNullAt(i) ? null : items.getUTF8String(i); }

  public static UTF8String jsonBuildArray(ArrayData items) { return list(items, ", "); }

  public static UTF8String arrayToJson(ArrayData items) { return list(items, ","); }

  /** Returns an array with each element but the first on its own line, for array_to_json(array, true). */
  public static UTF8String arrayLines(UTF8String json) {
    byte[] b = json.getBytes();
    ByteArrayOutputStream lines = new ByteArrayOutputStream(b.length + 16);
    int depth = 0;
    boolean quoted = false;
    for (int i = 0; i < b.length; i++) {
      lines.write(b[i]);
      if (quoted && b[i] == '\\') lines.write(b[++i]);
      else if (b[i] == '"') quoted = !quoted;
      else if (quoted) continue;
      else if (b[i] == '[' || b[i] == '{') depth++;
      else if (b[i] == ']' || b[i] == '}') depth--;
      else if (b[i] == ',' && depth == 1) lines.writeBytes(new byte[] {'\n', ' '});
    }
    return UTF8String.fromBytes(lines.toByteArray());
  }

  private static UTF8String list(ArrayData items, String comma) {
    StringBuilder json = new StringBuilder("[");
    for (int i = 0; i < items.numElements(); i++) {
      json.append(i > 0 ? comma : "").append(items.isNullAt(i) ? "null" : item(items, i));
    }
    return UTF8String.fromString(json.append(']').toString());
  }

  /** Appends a member; {@code value} is JSON or null. */
  private static void append(StringBuilder json, String key, String value) {
    json.append(json.length() > 1 ? ", " : "").append(JsonbTree.quoted(key)).append(" : ");
    json.append(value == null ? "null" : value);
  }

  /** Returns an object of keys with their values, which are json. */
  public static UTF8String jsonBuildObject(ArrayData keys, ArrayData values) {
    StringBuilder json = new StringBuilder("{");
    for (int i = 0; i < keys.numElements(); i++) {
      if (keys.isNullAt(i)) throw SqlError.invalidParameter("argument " + (2 * i + 1) + " cannot be null");
      append(json, item(keys, i).toString(), values.isNullAt(i) ? null : item(values, i).toString());
    }
    return UTF8String.fromString(json.append('}').toString());
  }

  /** Returns a row as an object. With {@code pretty}, each member but the first begins a line. */
  public static UTF8String rowToJson(ArrayData keys, ArrayData values, boolean pretty) {
    StringBuilder json = new StringBuilder("{");
    for (int i = 0; i < keys.numElements(); i++) {
      json.append(i == 0 ? "" : pretty ? ",\n " : ",").append(JsonbTree.quoted(item(keys, i).toString())).append(':');
      json.append(values.isNullAt(i) ? "null" : item(values, i).toString());
    }
    return UTF8String.fromString(json.append('}').toString());
  }

  /** Computes json_object(text[]). */
  public static UTF8String jsonFromPairs(ArrayData items) {
    StringBuilder json = new StringBuilder("{");
    JsonbConstruction.eachPair(items, (key, value) -> appendText(json, key, value));
    return UTF8String.fromString(json.append('}').toString());
  }

  /** Computes json_object(text[], text[]). */
  public static UTF8String jsonObjectOf(ArrayData keys, ArrayData values) {
    StringBuilder json = new StringBuilder("{");
    JsonbConstruction.eachMember(keys, values, (key, value) -> appendText(json, key, value));
    return UTF8String.fromString(json.append('}').toString());
  }

  private static void appendText(StringBuilder json, String key, String value) {
    append(json, key, value == null ? null : JsonbTree.quoted(value));
  }
}
