package tailgate.functions.json;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * Functions that change a jsonb, and operators on several keys.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/jsonb/edits.py} and {@code access.py} compute the same and name the sources.
 */
public final class JsonbEdits {
  private JsonbEdits() {}

  public static UTF8String jsonbElement(UTF8String json, int index) { return JsonbAccess.get(asArray(json), index); }

  public static UTF8String jsonbElementText(UTF8String json, int index) {
    return JsonbAccess.getText(asArray(json), index);
  }

  /**
   * Returns a scalar as an array with one element, which is how {@code jsonb -> integer} reads it.
   */
  private static UTF8String asArray(UTF8String json) {
    byte first = json.getByte(0);
    if (first == '{' || first == '[') return json;
    return UTF8String.concat(UTF8String.fromString("["), json, UTF8String.fromString("]"));
  }

  public static boolean jsonbExistsAny(UTF8String json, ArrayData keys) {
    for (int i = 0; i < keys.numElements(); i++) {
      if (!keys.isNullAt(i) && JsonbAccess.exists(json, keys.getUTF8String(i))) return true;
    }
    return false;
  }

  public static boolean jsonbExistsAll(UTF8String json, ArrayData keys) {
    for (int i = 0; i < keys.numElements(); i++) {
      if (!keys.isNullAt(i) && !JsonbAccess.exists(json, keys.getUTF8String(i))) return false;
    }
    return true;
  }

  // ---- whole values -----------------------------------------------------------------------------

  @SuppressWarnings("unchecked")
  private static Map<String, Object> map(Object value) { return (Map<String, Object>) value; }

  @SuppressWarnings("unchecked")
  private static List<Object> list(Object value) { return (List<Object>) value; }

  public static UTF8String jsonbConcat(UTF8String a, UTF8String b) {
    Object x = JsonbTree.read(a);
    Object y = JsonbTree.read(b);
    if (x instanceof Map && y instanceof Map) {
      map(x).putAll(map(y));
      return JsonbTree.text(x);
    }
    List<Object> elements = new ArrayList<>();
    for (Object side : new Object[] {x, y}) {
      if (side instanceof List) elements.addAll(list(side));
      else elements.add(side);
    }
    return JsonbTree.text(elements);
  }

  public static UTF8String jsonbStripNulls(UTF8String json) {
    Object value = JsonbTree.read(json);
    stripNulls(value);
    return JsonbTree.text(value);
  }

  private static void stripNulls(Object value) {
    if (value instanceof Map) {
      map(value).values().removeIf(v -> v == JsonbTree.NULL);
      map(value).values().forEach(JsonbEdits::stripNulls);
    } else if (value instanceof List) {
      list(value).forEach(JsonbEdits::stripNulls);
    }
  }

  public static UTF8String jsonbPretty(UTF8String json) { return JsonbTree.prettyText(JsonbTree.read(json)); }

  // ---- one key or index -------------------------------------------------------------------------

  /** Returns an object or array. Throws 22023 with the message for a scalar. */
  private static Object container(UTF8String json, String message) {
    Object value = JsonbTree.read(json);
    if (!(value instanceof Map) && !(value instanceof List)) throw SqlError.invalidParameter(message);
    return value;
  }

  private static String key(ArrayData keys, int i) {
    return keys.isNullAt(i) ? null : keys.getUTF8String(i).toString();
  }

  public static UTF8String jsonbDelete(UTF8String json, ArrayData keys) {
    Object value = container(json, "cannot delete from scalar");
    for (int i = 0; i < keys.numElements(); i++) {
      String key = key(keys, i);
      if (key == null) continue;
      if (value instanceof Map) map(value).remove(key);
      else list(value).removeIf(key::equals);
    }
    return JsonbTree.text(value);
  }

  public static UTF8String jsonbDeleteAt(UTF8String json, int index) {
    Object value = container(json, "cannot delete from scalar");
    if (value instanceof Map) throw SqlError.invalidParameter("cannot delete from object using integer index");
    int position = position(list(value), index);
    if (position >= 0) list(value).remove(position);
    return JsonbTree.text(value);
  }

  /** Returns the position of an index, which counts from the end if it is negative, or -1. */
  private static int position(List<Object> list, int index) {
    boolean inside = index >= -list.size() && index < list.size();
    return inside ? Math.floorMod(index, list.size()) : -1;
  }

  // ---- paths ------------------------------------------------------------------------------------

  /** A change of the object or array that contains the last step of a path. */
  private interface Change {
    void apply(Object container, String step, int level);
  }

  /**
   * Applies a change where a path leads to, if it exists.
   *
   * @param changesEmpty whether the change applies to an empty object or array
   */
  private static UTF8String edit(
      UTF8String json, ArrayData path, String scalarMessage, boolean changesEmpty, Change change) {
    Object value = container(json, scalarMessage);
    boolean empty = value instanceof Map ? map(value).isEmpty() : list(value).isEmpty();
    int levels = empty && !changesEmpty ? 0 : path.numElements();
    Object current = value;
    for (int level = 0; level < levels && current != null; level++) {
      if (path.isNullAt(level)) {
        throw new SqlError("22004", "path element at position " + (level + 1) + " is null");
      }
      if (!(current instanceof Map) && !(current instanceof List)) break;
      String step = key(path, level);
      if (level == levels - 1) change.apply(current, step, level);
      else current = child(current, step, level);
    }
    return JsonbTree.text(value);
  }

  private static Object child(Object container, String step, int level) {
    if (container instanceof Map) return map(container).get(step);
    int position = position(list(container), index(step, level));
    return position < 0 ? null : list(container).get(position);
  }

  private static int index(String step, int level) {
    Integer index = Jsonb.index(step);
    if (index != null) return index;
    String message = "path element at position " + (level + 1) + " is not an integer: \"" + step + "\"";
    throw new SqlError("22P02", message);
  }

  public static UTF8String jsonbDeletePath(UTF8String json, ArrayData path) {
    return edit(json, path, "cannot delete path in scalar", false, (container, step, level) -> {
      if (container instanceof Map) {
        map(container).remove(step);
        return;
      }
      int position = position(list(container), index(step, level));
      if (position >= 0) list(container).remove(position);
    });
  }

  public static UTF8String jsonbSet(UTF8String json, ArrayData path, UTF8String value, boolean create) {
    return edit(json, path, "cannot set path in scalar", create, (container, step, level) -> {
      Object replacement = JsonbTree.read(value);
      if (container instanceof Map) {
        if (create || map(container).containsKey(step)) map(container).put(step, replacement);
        return;
      }
      List<Object> list = list(container);
      int index = index(step, level);
      int position = position(list, index);
      if (position >= 0) list.set(position, replacement);
      else if (create) list.add(index < 0 ? 0 : list.size(), replacement);
    });
  }

  public static UTF8String jsonbInsert(UTF8String json, ArrayData path, UTF8String value, boolean after) {
    return edit(json, path, "cannot set path in scalar", true, (container, step, level) -> {
      Object inserted = JsonbTree.read(value);
      if (container instanceof Map) {
        if (map(container).containsKey(step)) throw SqlError.invalidParameter("cannot replace existing key");
        map(container).put(step, inserted);
        return;
      }
      List<Object> list = list(container);
      int index = index(step, level);
      int position = position(list, index);
      if (position >= 0) list.add(position + (after ? 1 : 0), inserted);
      else list.add(index < 0 ? 0 : list.size(), inserted);
    });
  }
}
