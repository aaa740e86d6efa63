package tailgate.functions.json;

import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.numeric.FloatOutput;
import tailgate.functions.time.TimeOutput;

/**
 * Functions that construct a jsonb from values of other types.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/jsonb/construction.py} computes the same and names the sources.
 */
public final class JsonbConstruction {
  private JsonbConstruction() {}

  // ---- scalars ----------------------------------------------------------------------------------

  private static UTF8String quoted(String s) { return UTF8String.fromString(JsonbTree.quoted(s)); }

  public static UTF8String jsonbOfText(UTF8String text) { return quoted(text.toString()); }

  public static UTF8String jsonbOfFloat8(double value) { return number(FloatOutput.text(value)); }

  public static UTF8String jsonbOfFloat4(float value) { return number(FloatOutput.text(value)); }

  /** Returns a number without an exponent; NaN and infinity become strings. */
  private static UTF8String number(String text) {
    boolean finite = Character.isDigit(text.charAt(text.length() - 1));
    return finite ? UTF8String.fromString(Jsonb.number(text)) : quoted(text);
  }

  public static UTF8String jsonbOfTimestamp(long micros) { return quoted(TimeOutput.timestamp(micros, "T", "")); }

  public static UTF8String jsonbOfTimestamptz(long micros) {
    return quoted(TimeOutput.timestamp(micros, "T", "+00:00"));
  }

  public static UTF8String jsonbOfDate(int day) { return quoted(TimeOutput.date(day)); }

  // ---- arrays and objects -----------------------------------------------------------------------

  private static String item(ArrayData items, int i) {
    return items.isNullAt(i) ? null : items.getUTF8String(i).toString();
  }

  public static UTF8String jsonbBuildArray(ArrayData items) {
    StringBuilder json = new StringBuilder("[");
    for (int i = 0; i < items.numElements(); i++) {
      json.append(i > 0 ? ", " : "").append(items.isNullAt(i) ? "null" : item(items, i));
    }
    return UTF8String.fromString(json.append(']').toString());
  }

  /** Returns an object of keys with their values, which are jsonb. */
  public static UTF8String jsonbBuildObject(ArrayData keys, ArrayData values) {
    Map<String, Object> object = new TreeMap<>(JsonbTree.KEY_ORDER);
    for (int i = 0; i < keys.numElements(); i++) {
      if (keys.isNullAt(i)) {
        throw SqlError.invalidParameter("argument " + (2 * i + 1) + ": key must not be null");
      }
      Object value = values.isNullAt(i) ? JsonbTree.NULL : JsonbTree.read(values.getUTF8String(i));
      object.put(item(keys, i), value);
    }
    return JsonbTree.text(object);
  }

  /** Computes jsonb_object(text[]). */
  public static UTF8String jsonbFromPairs(ArrayData items) {
    Map<String, Object> object = new TreeMap<>(JsonbTree.KEY_ORDER);
    eachPair(items, (key, value) -> put(object, key, value));
    return JsonbTree.text(object);
  }

  /** Computes jsonb_object(text[], text[]). */
  public static UTF8String jsonbObjectOf(ArrayData keys, ArrayData values) {
    Map<String, Object> object = new TreeMap<>(JsonbTree.KEY_ORDER);
    eachMember(keys, values, (key, value) -> put(object, key, value));
    return JsonbTree.text(object);
  }

  private static void put(Map<String, Object> object, String key, String value) {
    object.put(key, value == null ? JsonbTree.NULL : value);
  }

  /** Visits the members of an object whose keys and values alternate. Throws 2202E, 22004. */
  static void eachPair(ArrayData items, BiConsumer<String, String> member) {
    if (items.numElements() % 2 == 1) throw new SqlError("2202E", "array must have even number of elements");
    for (int i = 0; i < items.numElements(); i += 2) member.accept(checkedKey(items, i), item(items, i + 1));
  }

  /** Visits the members of an object with these keys and values. Throws 2202E, 22004. */
  static void eachMember(ArrayData keys, ArrayData values, BiConsumer<String, String> member) {
    if (keys.numElements() != values.numElements()) throw new SqlError("2202E", "mismatched array dimensions");
    for (int i = 0; i < keys.numElements(); i++) member.accept(checkedKey(keys, i), item(values, i));
  }

  private static String checkedKey(ArrayData keys, int i) {
    if (keys.isNullAt(i)) throw new SqlError("22004", "null value not allowed for object key");
    return item(keys, i);
  }
}
