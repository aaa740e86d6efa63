package tailgate.functions.json;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import tailgate.functions.json.JsonbTree.JsonNumber;

/**
 * The places of objects and arrays in PostgreSQL's binary jsonb, on which the ids of keyvalue() depend.
 * {@code tailgate/sql/compute/jsonb/layout.py} computes the same and names the source.
 */
final class JsonbLayout {
  private static final int WORD = 4;  // bytes of a header and of an entry
  private static final int GROUP = 4;  // decimal digits in two bytes
  private static final int SHORT_SCALE_MAX = 63;  // of numbers with a short header, as the weights
  private static final int SHORT_WEIGHT_MIN = -64;
  private static final int SHORT_WEIGHT_MAX = 63;

  private final Map<Object, Integer> offsets = new IdentityHashMap<>();

  private JsonbLayout() {}

  /** Returns the offset of an object or array in a value that contains it, otherwise 0. */
  static int offset(Object part, Object whole) {
    JsonbLayout layout = new JsonbLayout();
    layout.end(whole, 0);
    return layout.offsets.getOrDefault(part, 0);
  }

  /** Returns the offset behind a value, and records those of the objects and arrays in it. */
  private int end(Object value, int at) {
    if (value instanceof String text) return at + text.getBytes(StandardCharsets.UTF_8).length;
    if (value instanceof JsonNumber number) return aligned(at) + size(number.value());
    if (value instanceof Map<?, ?> map) {
      int next = begin(map, aligned(at), 2 * map.size());
      for (Object key : map.keySet()) next = end(key, next);
      for (Object member : map.values()) next = end(member, next);
      return next;
    }
    if (value instanceof List<?> list) {
      int next = begin(list, aligned(at), list.size());
      for (Object element : list) next = end(element, next);
      return next;
    }
    return at;
  }

  private int begin(Object container, int at, int entries) {
    offsets.put(container, at);
    return at + WORD * (1 + entries);
  }

  private static int aligned(int at) { return (at + WORD - 1) / WORD * WORD; }

  /** Returns the bytes of a number: two headers, and two bytes for each group of digits without zeros around them. */
  private static int size(BigDecimal number) {
    int groups = 0;
    int weight = 0;
    if (number.signum() != 0) {
      BigDecimal digits = number.stripTrailingZeros();
      BigInteger unscaled = digits.unscaledValue().abs();
      int last = -digits.scale();
      weight = Math.floorDiv(last + unscaled.toString().length() - 1, GROUP);
      groups = weight - Math.floorDiv(last, GROUP) + 1;
    }
    boolean isShort = number.scale() <= SHORT_SCALE_MAX && weight >= SHORT_WEIGHT_MIN && weight <= SHORT_WEIGHT_MAX;
    return WORD + (isShort ? 2 : 4) + 2 * groups;
  }
}
