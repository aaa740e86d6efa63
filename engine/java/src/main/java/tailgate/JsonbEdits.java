package tailgate;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiPredicate;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * jsonb made, changed and compared. The twin of sql/compute/jsonbs.py, which names its sources; {@link JsonbText} has what only looks.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class JsonbEdits {
  private JsonbEdits() {}

  public static UTF8String jsonbElement(UTF8String json, int index) { return JsonbText.get(listed(json), index); }

  public static UTF8String jsonbElementText(UTF8String json, int index) { return JsonbText.getText(listed(json), index); }

  /** A scalar is stored as an array of one element, and -> with a number reads it as one. */
  private static UTF8String listed(UTF8String json) {
    byte first = json.getByte(0);
    return first == '{' || first == '[' ? json : UTF8String.concat(UTF8String.fromString("["), json, UTF8String.fromString("]"));
  }

  public static boolean jsonbExistsAny(UTF8String json, ArrayData keys) {
    for (int i = 0; i < keys.numElements(); i++) if (!keys.isNullAt(i) && JsonbText.exists(json, keys.getUTF8String(i))) return true;
    return false;
  }

  public static boolean jsonbExistsAll(UTF8String json, ArrayData keys) {
    for (int i = 0; i < keys.numElements(); i++) if (!keys.isNullAt(i) && !JsonbText.exists(json, keys.getUTF8String(i))) return false;
    return true;
  }

  // ---- making -------------------------------------------------------------------------------------------------------------------

  private static UTF8String quoted(String s) { return Strings.text(JsonbTree.quoted(s)); }

  public static UTF8String jsonbOfText(UTF8String text) { return quoted(text.toString()); }

  public static UTF8String jsonbOfFloat8(double value) { return number(Casts.shown(value)); }

  public static UTF8String jsonbOfFloat4(float value) { return number(Casts.shown(value)); }

  /** NaN and infinity are strings; others have no exponent. */
  private static UTF8String number(String shown) { return Character.isDigit(shown.charAt(shown.length() - 1)) ? Strings.text(Jsonb.number(shown)) : quoted(shown); }

  public static UTF8String jsonbOfTimestamp(long micros) { return quoted(Casts.timestamp(micros, "T")); }

  public static UTF8String jsonbOfTimestamptz(long micros) { return quoted(Casts.timestamp(micros, "T") + "+00:00"); }

  public static UTF8String jsonbOfDate(int day) { return quoted(java.time.LocalDate.ofEpochDay(day).toString()); }

  private static String item(ArrayData items, int i) { return items.isNullAt(i) ? null : items.getUTF8String(i).toString(); }

  public static UTF8String jsonbBuildArray(ArrayData items) {
    StringBuilder out = new StringBuilder("[");
    for (int i = 0; i < items.numElements(); i++) out.append(i > 0 ? ", " : "").append(items.isNullAt(i) ? "null" : item(items, i));
    return Strings.text(out.append(']').toString());
  }

  public static UTF8String jsonbBuildObject(ArrayData keys, ArrayData values) {
    Map<String, Object> map = new TreeMap<>(JsonbTree.ORDER);
    for (int i = 0; i < keys.numElements(); i++) {
      if (keys.isNullAt(i)) throw Strings.parameter("argument " + (2 * i + 1) + ": key must not be null");
      map.put(item(keys, i), values.isNullAt(i) ? JsonbTree.NULL : JsonbTree.read(values.getUTF8String(i)));
    }
    return JsonbTree.text(map);
  }

  public static UTF8String jsonbFromPairs(ArrayData items) {
    if (items.numElements() % 2 == 1) throw new SqlError("2202E", "array must have even number of elements");
    Map<String, Object> map = new TreeMap<>(JsonbTree.ORDER);
    for (int i = 0; i < items.numElements(); i += 2) put(map, item(items, i), item(items, i + 1));
    return JsonbTree.text(map);
  }

  public static UTF8String jsonbObjectOf(ArrayData keys, ArrayData values) {
    if (keys.numElements() != values.numElements()) throw new SqlError("2202E", "mismatched array dimensions");
    Map<String, Object> map = new TreeMap<>(JsonbTree.ORDER);
    for (int i = 0; i < keys.numElements(); i++) put(map, item(keys, i), item(values, i));
    return JsonbTree.text(map);
  }

  private static void put(Map<String, Object> map, String key, String value) {
    if (key == null) throw new SqlError("22004", "null value not allowed for object key");
    map.put(key, value == null ? JsonbTree.NULL : value);
  }

  // ---- changing -----------------------------------------------------------------------------------------------------------------

  @SuppressWarnings("unchecked")
  private static Map<String, Object> map(Object value) { return (Map<String, Object>) value; }

  @SuppressWarnings("unchecked")
  private static List<Object> list(Object value) { return (List<Object>) value; }

  public static UTF8String jsonbConcat(UTF8String a, UTF8String b) {
    Object x = JsonbTree.read(a), y = JsonbTree.read(b);
    if (x instanceof Map && y instanceof Map) {
      map(x).putAll(map(y));
      return JsonbTree.text(x);
    }
    List<Object> out = new ArrayList<>();
    for (Object side : new Object[] {x, y}) {
      if (side instanceof List) out.addAll(list(side));
      else out.add(side);
    }
    return JsonbTree.text(out);
  }

  private static Object container(UTF8String json, String message) {
    Object value = JsonbTree.read(json);
    if (!(value instanceof Map) && !(value instanceof List)) throw Strings.parameter(message);
    return value;
  }

  public static UTF8String jsonbDelete(UTF8String json, ArrayData keys) {
    Object value = container(json, "cannot delete from scalar");
    for (int i = 0; i < keys.numElements(); i++) {
      String key = item(keys, i);
      if (key == null) continue;
      if (value instanceof Map) map(value).remove(key);
      else list(value).removeIf(key::equals);
    }
    return JsonbTree.text(value);
  }

  public static UTF8String jsonbDeleteAt(UTF8String json, int index) {
    Object value = container(json, "cannot delete from scalar");
    if (value instanceof Map) throw Strings.parameter("cannot delete from object using integer index");
    int at = place(list(value), index);
    if (at >= 0) list(value).remove(at);
    return JsonbTree.text(value);
  }

  /** Where an index counted from either end is, or -1. */
  private static int place(List<Object> list, int index) { return index >= -list.size() && index < list.size() ? Math.floorMod(index, list.size()) : -1; }

  private static int index(String step, int level) {
    try {
      if (step.strip().matches("[+-]?[0-9]+")) return Integer.parseInt(step.strip());
    } catch (NumberFormatException e) {
      // below
    }
    throw new SqlError("22P02", "path element at position " + (level + 1) + " is not an integer: \"" + step + "\"");
  }

  /** Walks a path to its last step, and hands the container there and the step to `change`. */
  private static UTF8String at(UTF8String json, ArrayData path, String scalar, boolean creates, BiPredicate<Object, Integer> change) {
    Object value = container(json, scalar), at = value;
    boolean empty = value instanceof Map ? map(value).isEmpty() : list(value).isEmpty();
    int n = empty && !creates ? 0 : path.numElements();
    for (int level = 0; level < n && at != null; level++) {
      if (path.isNullAt(level)) throw new SqlError("22004", "path element at position " + (level + 1) + " is null");
      if (!(at instanceof Map) && !(at instanceof List)) break;
      if (level == n - 1) {
        change.test(at, level);
        break;
      }
      if (at instanceof Map) at = map(at).get(item(path, level));
      else {
        int place = place(list(at), index(item(path, level), level));
        at = place < 0 ? null : list(at).get(place);
      }
    }
    return JsonbTree.text(value);
  }

  public static UTF8String jsonbDeletePath(UTF8String json, ArrayData path) {
    return at(json, path, "cannot delete path in scalar", false, (in, level) -> {
      String step = item(path, level);
      if (in instanceof Map) return map(in).remove(step) != null;
      int place = place(list(in), index(step, level));
      return place >= 0 && list(in).remove(place) != null;
    });
  }

  public static UTF8String jsonbSet(UTF8String json, ArrayData path, UTF8String value, boolean create) {
    return at(json, path, "cannot set path in scalar", create, (in, level) -> {
      String step = item(path, level);
      Object with = JsonbTree.read(value);
      if (in instanceof Map) {
        if (create || map(in).containsKey(step)) map(in).put(step, with);
        return true;
      }
      int index = index(step, level), place = place(list(in), index);
      if (place >= 0) list(in).set(place, with);
      else if (create) list(in).add(index < 0 ? 0 : list(in).size(), with);
      return true;
    });
  }

  public static UTF8String jsonbInsert(UTF8String json, ArrayData path, UTF8String value, boolean after) {
    return at(json, path, "cannot set path in scalar", true, (in, level) -> {
      String step = item(path, level);
      Object with = JsonbTree.read(value);
      if (in instanceof Map) {
        if (map(in).containsKey(step)) throw Strings.parameter("cannot replace existing key");
        map(in).put(step, with);
        return true;
      }
      int index = index(step, level), place = place(list(in), index);
      if (place >= 0) list(in).add(place + (after ? 1 : 0), with);
      else list(in).add(index < 0 ? 0 : list(in).size(), with);
      return true;
    });
  }

  public static UTF8String jsonbStripNulls(UTF8String json) {
    Object value = JsonbTree.read(json);
    strip(value);
    return JsonbTree.text(value);
  }

  private static void strip(Object value) {
    if (value instanceof Map) {
      map(value).values().removeIf(v -> v == JsonbTree.NULL);
      map(value).values().forEach(JsonbEdits::strip);
    } else if (value instanceof List) list(value).forEach(JsonbEdits::strip);
  }

  public static UTF8String jsonbPretty(UTF8String json) {
    StringBuilder out = new StringBuilder();
    JsonbTree.write(JsonbTree.read(json), out, 0);
    return Strings.text(out.toString());
  }
}
