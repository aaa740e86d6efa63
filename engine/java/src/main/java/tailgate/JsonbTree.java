package tailgate;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A jsonb as a tree, for what changes it or compares it by value: Map, List, String, Boolean, {@link Number_}, or NULL. Keys are in jsonb's order.
 */
final class JsonbTree {
  /** JSON's null, for Java's is absence. */
  static final Object NULL = new Object();

  /** A number by its text, which keeps its scale. */
  record Number_(String text) {
    BigDecimal value() { return new BigDecimal(text); }
  }

  static final Comparator<String> ORDER = (a, b) -> {
    byte[] x = a.getBytes(StandardCharsets.UTF_8), y = b.getBytes(StandardCharsets.UTF_8);
    return x.length != y.length ? Integer.compare(x.length, y.length) : Arrays.compareUnsigned(x, y);
  };

  private JsonbTree() {}

  static Object read(UTF8String json) {
    try (JsonParser p = Jsonb.FACTORY.createParser(json.getBytes())) {
      return value(p, p.nextToken());
    } catch (IOException e) {
      throw Jsonb.invalid(e);
    }
  }

  private static Object value(JsonParser p, JsonToken token) throws IOException {
    return switch (token) {
      case START_OBJECT -> {
        Map<String, Object> map = new TreeMap<>(ORDER);
        while (p.nextToken() != JsonToken.END_OBJECT) {
          String key = p.currentName();
          map.put(key, value(p, p.nextToken()));
        }
        yield map;
      }
      case START_ARRAY -> {
        List<Object> list = new ArrayList<>();
        for (JsonToken t; (t = p.nextToken()) != JsonToken.END_ARRAY; ) list.add(value(p, t));
        yield list;
      }
      case VALUE_STRING -> p.getText();
      case VALUE_TRUE -> true;
      case VALUE_FALSE -> false;
      case VALUE_NULL -> NULL;
      default -> new Number_(p.getText());
    };
  }

  static UTF8String text(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out, -1);
    return UTF8String.fromString(out.toString());
  }

  /** Canonical text; from a depth of 0 on it is indented, as jsonb_pretty does. */
  static void write(Object value, StringBuilder out, int depth) {
    boolean pretty = depth >= 0;
    int inner = pretty ? depth + 1 : -1;
    String comma = pretty ? "," : ", ";
    if (value instanceof Map<?, ?> map) {
      out.append('{');
      int n = 0;
      for (var e : map.entrySet()) {
        out.append(n++ > 0 ? comma : "").append(line(inner)).append(quoted((String) e.getKey())).append(": ");
        write(e.getValue(), out, inner);
      }
      out.append(line(depth)).append('}');
    } else if (value instanceof List<?> list) {
      out.append('[');
      for (int i = 0; i < list.size(); i++) {
        out.append(i > 0 ? comma : "").append(line(inner));
        write(list.get(i), out, inner);
      }
      out.append(line(depth)).append(']');
    } else out.append(value == NULL ? "null" : value instanceof String s ? quoted(s) : value instanceof Number_ n ? n.text : value.toString());
  }

  private static String line(int depth) { return depth < 0 ? "" : "\n" + "    ".repeat(depth); }

  static String quoted(String s) { return new String(Jsonb.quoted(s), StandardCharsets.UTF_8); }

  private static int rank(Object value) { return value == NULL ? 0 : value instanceof String ? 1 : value instanceof Number_ ? 2 : value instanceof Boolean ? 3 : value instanceof List ? 4 : 5; }

  /** Below, equal or above: first by kind, then arrays and objects by their number of elements. */
  static int compare(Object a, Object b, boolean top) {
    int x = rank(a), y = rank(b);
    if (x != y) {
      // at the top an empty array is below all, for scalars are stored as arrays of one
      if (top && (a instanceof List<?> l && l.isEmpty() || b instanceof List<?> m && m.isEmpty())) return a instanceof List<?> l && l.isEmpty() ? -1 : 1;
      return Integer.compare(x, y);
    }
    switch (x) {
      case 0: return 0;
      case 1: return Integer.signum(Arrays.compareUnsigned(((String) a).getBytes(StandardCharsets.UTF_8), ((String) b).getBytes(StandardCharsets.UTF_8)));
      case 2: return ((Number_) a).value().compareTo(((Number_) b).value());
      case 3: return Boolean.compare((Boolean) a, (Boolean) b);
      case 4:
        List<?> l = (List<?>) a, m = (List<?>) b;
        if (l.size() != m.size()) return Integer.compare(l.size(), m.size());
        for (int i = 0; i < l.size(); i++) {
          int found = compare(l.get(i), m.get(i), false);
          if (found != 0) return found;
        }
        return 0;
      default:
        Map<?, ?> p = (Map<?, ?>) a, q = (Map<?, ?>) b;
        if (p.size() != q.size()) return Integer.compare(p.size(), q.size());
        var i = p.entrySet().iterator();
        for (var e : q.entrySet()) {
          var f = i.next();
          int found = compare(f.getKey(), e.getKey(), false);
          if (found == 0) found = compare(f.getValue(), e.getValue(), false);
          if (found != 0) return found;
        }
        return 0;
    }
  }
}
