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
 * A jsonb as a tree, for what changes it or orders it by value: Map, List, String, Boolean, {@link Number_}, or NULL. Keys are in jsonb's order.
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
}
