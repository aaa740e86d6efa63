package tailgate.functions.ksqldb;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.json.Jsonb;
import tailgate.functions.json.JsonbTree;
import tailgate.functions.json.JsonbTree.JsonNumber;

/**
 * ksqlDB's functions of arrays and maps, which are jsonb. Two elements are equal if their canonical
 * texts are, because all have the same type.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL, and a result of null is
 * NULL. {@code tailgate/sql/compute/ksqldb/collections.py} computes the same and names the source.
 */
public final class KsqldbCollections {
  private static final int HISTOGRAM_MAX = 1000;  // distinct values; others are ignored

  private static final int CUBE_MAX = 16;  // elements; there are up to 2 ** 16 combinations

  private KsqldbCollections() {}

  private static List<?> elements(UTF8String array) {
    if (JsonbTree.read(array) instanceof List<?> list) return list;
    throw Jsonb.invalid();
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> entries(UTF8String map) {
    if (JsonbTree.read(map) instanceof Map<?, ?> entries) return (Map<String, Object>) entries;
    throw Jsonb.invalid();
  }

  private static List<String> texts(UTF8String array) {
    List<String> texts = new ArrayList<>();
    for (Object element : elements(array)) texts.add(JsonbTree.text(element).toString());
    return texts;
  }

  /** Returns a string, or the canonical text of another value. */
  private static String string(Object value) {
    return value instanceof String s ? s : JsonbTree.text(value).toString();
  }

  private static UTF8String array(Collection<String> texts) {
    return UTF8String.fromString("[" + String.join(", ", texts) + "]");
  }

  /** Returns the elements of an array, each as jsonb. */
  @Returns("array<string>")
  public static ArrayData ksqldbElements(UTF8String array) {
    List<?> elements = elements(array);
    Object[] texts = new Object[elements.size()];
    for (int i = 0; i < texts.length; i++) texts[i] = JsonbTree.text(elements.get(i));
    return new GenericArrayData(texts);
  }

  /** Returns the array of elements that are jsonb; JSON's null for NULL. */
  public static UTF8String ksqldbArray(ArrayData elements) {
    List<Object> values = new ArrayList<>();
    for (int i = 0; i < elements.numElements(); i++) {
      values.add(elements.isNullAt(i) ? JsonbTree.NULL : JsonbTree.read(elements.getUTF8String(i)));
    }
    return JsonbTree.text(values);
  }

  // ---- sets -------------------------------------------------------------------------------------

  public static boolean ksqldbArrayContains(UTF8String array, UTF8String item) {
    return texts(array).contains(item.toString());
  }

  public static UTF8String ksqldbArrayDistinct(UTF8String array) { return array(new LinkedHashSet<>(texts(array))); }

  /** Returns the distinct elements of an array that an aggregate has made. */
  public static UTF8String ksqldbSet(UTF8String array) { return ksqldbArrayDistinct(array); }

  public static UTF8String ksqldbArrayUnion(UTF8String left, UTF8String right) {
    Set<String> union = new LinkedHashSet<>(texts(left));
    union.addAll(texts(right));
    return array(union);
  }

  public static UTF8String ksqldbArrayExcept(UTF8String left, UTF8String right) {
    Set<String> rest = new LinkedHashSet<>(texts(left));
    rest.removeAll(new HashSet<>(texts(right)));
    return array(rest);
  }

  public static UTF8String ksqldbArrayIntersect(UTF8String left, UTF8String right) {
    Set<String> common = new LinkedHashSet<>(texts(left));
    common.retainAll(new HashSet<>(texts(right)));
    return array(common);
  }

  public static UTF8String ksqldbArrayRemove(UTF8String array, UTF8String item) {
    List<String> texts = texts(array);
    texts.removeIf(item.toString()::equals);
    return array(texts);
  }

  // ---- order ------------------------------------------------------------------------------------

  private static final Comparator<Object> NATURAL = (a, b) -> {
    if (a instanceof JsonNumber x && b instanceof JsonNumber y) return x.value().compareTo(y.value());
    if (a instanceof String x && b instanceof String y) return x.compareTo(y);
    if (a instanceof Boolean x && b instanceof Boolean y) return x.compareTo(y);
    throw SqlError.invalidParameter("elements of this type have no order");
  };

  /** Returns the elements in their natural order, without NULL. Throws 22023 for elements that have none. */
  private static List<Object> sorted(UTF8String array, boolean descending) {
    List<Object> items = new ArrayList<>(elements(array));
    items.removeIf(item -> item == JsonbTree.NULL);
    for (Object item : items) NATURAL.compare(item, item);
    items.sort(descending ? NATURAL.reversed() : NATURAL);
    return items;
  }

  /** Returns the elements in their natural order, NULL last. */
  public static UTF8String ksqldbArraySort(UTF8String array, boolean descending) {
    List<Object> items = sorted(array, descending);
    int size = elements(array).size();
    while (items.size() < size) items.add(JsonbTree.NULL);
    return JsonbTree.text(items);
  }

  public static UTF8String ksqldbArrayMin(UTF8String array) {
    List<Object> items = sorted(array, false);
    return items.isEmpty() ? null : JsonbTree.text(items.get(0));
  }

  public static UTF8String ksqldbArrayMax(UTF8String array) {
    List<Object> items = sorted(array, false);
    return items.isEmpty() ? null : JsonbTree.text(items.get(items.size() - 1));
  }

  /** Returns the elements between two positions, both included. The first element has the position 1. */
  public static UTF8String ksqldbSlice(UTF8String array, int first, int last) {
    List<String> texts = texts(array);
    int from = Math.min(Math.max(first, 1) - 1, texts.size());
    return array(texts.subList(from, Math.max(Math.min(last, texts.size()), from)));
  }

  /** Returns the texts of the elements with a delimiter between them; NULL is the text null. */
  public static UTF8String ksqldbArrayJoin(UTF8String array, UTF8String delimiter) {
    List<String> texts = new ArrayList<>();
    for (Object item : elements(array)) {
      texts.add(item instanceof String s ? s : KsqldbJson.ksqldbJsonText(JsonbTree.text(item)).toString());
    }
    return UTF8String.fromString(String.join(delimiter.toString(), texts));
  }

  /** Returns all combinations of the elements and NULL in their places. Throws 54000. */
  public static UTF8String ksqldbCube(UTF8String array) {
    List<?> elements = elements(array);
    if (elements.size() > CUBE_MAX) throw new SqlError("54000", "CUBE_EXPLODE takes at most " + CUBE_MAX + " elements");
    List<Object> combinations = List.of(List.of());
    for (Object element : elements) {
      List<Object> longer = new ArrayList<>();
      for (Object combination : combinations) {
        for (Object last : element == JsonbTree.NULL ? List.of(element) : List.of(JsonbTree.NULL, element)) {
          List<Object> next = new ArrayList<>((List<?>) combination);
          next.add(last);
          longer.add(next);
        }
      }
      combinations = longer;
    }
    return JsonbTree.text(combinations);
  }

  // ---- maps -------------------------------------------------------------------------------------

  /** Returns the map of two arrays. Keys without a value are NULL. */
  public static UTF8String ksqldbAsMap(UTF8String keys, UTF8String values) {
    List<?> items = elements(values);
    Map<String, Object> map = new TreeMap<>(JsonbTree.KEY_ORDER);
    int n = 0;
    for (Object key : elements(keys)) {
      Object value = n < items.size() ? items.get(n) : JsonbTree.NULL;
      n++;
      if (key != JsonbTree.NULL) map.put(string(key), value);
    }
    return JsonbTree.text(map);
  }

  /** Returns the entries of a map in the order that a map of ksqlDB has: that of a HashMap, created for this number of entries. */
  private static Map<String, Object> hashed(UTF8String map) {
    Map<String, Object> entries = entries(map), hashed = new HashMap<>(entries.size());
    entries.forEach(hashed::put);  // putAll would make a larger table
    return hashed;
  }

  public static UTF8String ksqldbMapKeys(UTF8String map) { return JsonbTree.text(new ArrayList<>(hashed(map).keySet())); }

  public static UTF8String ksqldbMapValues(UTF8String map) { return JsonbTree.text(new ArrayList<>(hashed(map).values())); }

  /** Returns the entries of a map as structures with the fields K and V. */
  public static UTF8String ksqldbEntries(UTF8String map, boolean byKey) {
    Map<String, Object> entries = byKey ? new TreeMap<>(hashed(map)) : hashed(map);
    List<Object> out = new ArrayList<>();
    for (var entry : entries.entrySet()) {
      Map<String, Object> structure = new TreeMap<>(JsonbTree.KEY_ORDER);
      structure.put("K", entry.getKey());
      structure.put("V", entry.getValue());
      out.add(structure);
    }
    return JsonbTree.text(out);
  }

  /** Returns the map of structures with the fields K and V. The last of equal keys counts. Throws 22004 for a key that is NULL. */
  public static UTF8String ksqldbMapOf(UTF8String entries) {
    Map<String, Object> map = new TreeMap<>(JsonbTree.KEY_ORDER);
    for (Object element : elements(entries)) {
      if (!(element instanceof Map<?, ?> entry)) throw Jsonb.invalid();
      Object key = entry.get("K");
      if (key == null || key == JsonbTree.NULL) throw new SqlError("22004", "a key of a map is NULL");
      Object value = entry.get("V");
      map.put(string(key), value == null ? JsonbTree.NULL : value);
    }
    return JsonbTree.text(map);
  }

  /** Returns how often each text of an array occurs. */
  public static UTF8String ksqldbHistogram(UTF8String array) {
    Map<String, Integer> counts = new LinkedHashMap<>();
    for (Object value : elements(array)) {
      String key = string(value);
      if (counts.size() < HISTOGRAM_MAX || counts.containsKey(key)) counts.merge(key, 1, Integer::sum);
    }
    Map<String, Object> map = new TreeMap<>(JsonbTree.KEY_ORDER);
    counts.forEach((value, count) -> map.put(value, new JsonNumber(count.toString())));
    return JsonbTree.text(map);
  }
}
