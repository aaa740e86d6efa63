package tailgate.functions.json;

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
 * A jsonb as a tree of Map, List, String, Boolean, {@link JsonNumber} and {@link #NULL}, for
 * functions that change or compare it. Keys are in jsonb's order.
 */
public final class JsonbTree {
  /** JSON's null; Java's null means that a value is missing. */
  public static final Object NULL = new Object();

  /** A number as its text, which preserves the scale. */
  public record JsonNumber(String text) {
    public BigDecimal value() { return new BigDecimal(text); }
  }

  /** The order of keys: by length in bytes, then by bytes. */
  public static final Comparator<String> KEY_ORDER = (a, b) -> {
    byte[] x = a.getBytes(StandardCharsets.UTF_8);
    byte[] y = b.getBytes(StandardCharsets.UTF_8);
    return x.length != y.length ? Integer.compare(x.length, y.length) : Arrays.compareUnsigned(x, y);
  };

  private JsonbTree() {}

  public static Object read(UTF8String json) {
    try (JsonParser p = Jsonb.FACTORY.createParser(json.getBytes())) {
      return value(p, p.nextToken());
    } catch (IOException e) {
      throw Jsonb.invalid(e);
    }
  }

  private static Object value(JsonParser p, JsonToken token) throws IOException {
    return switch (token) {
      case START_OBJECT -> {
        Map<String, Object> map = new TreeMap<>(KEY_ORDER);
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
      default -> new JsonNumber(p.getText());
    };
  }

  /** Returns the canonical text of a tree. */
  public static UTF8String text(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out, -1);
    return UTF8String.fromString(out.toString());
  }

  /** Returns the indented text of a tree, as jsonb_pretty() does. */
  static UTF8String prettyText(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out, 0);
    return UTF8String.fromString(out.toString());
  }

  /** Writes a value with an indentation by its depth, or on one line if the depth is -1. */
  private static void write(Object value, StringBuilder out, int depth) {
    int innerDepth = depth < 0 ? -1 : depth + 1;
    String comma = depth < 0 ? ", " : ",";
    if (value instanceof Map<?, ?> map) {
      out.append('{');
      int n = 0;
      for (var member : map.entrySet()) {
        out.append(n++ > 0 ? comma : "").append(lineBreak(innerDepth));
        out.append(quoted((String) member.getKey())).append(": ");
        write(member.getValue(), out, innerDepth);
      }
      out.append(lineBreak(depth)).append('}');
    } else if (value instanceof List<?> list) {
      out.append('[');
      for (int i = 0; i < list.size(); i++) {
        out.append(i > 0 ? comma : "").append(lineBreak(innerDepth));
        write(list.get(i), out, innerDepth);
      }
      out.append(lineBreak(depth)).append(']');
    } else {
      out.append(scalar(value));
    }
  }

  private static String scalar(Object value) {
    if (value == NULL) return "null";
    if (value instanceof String s) return quoted(s);
    return value instanceof JsonNumber n ? n.text : value.toString();
  }

  private static String lineBreak(int depth) { return depth < 0 ? "" : "\n" + "    ".repeat(depth); }

  static String quoted(String s) { return new String(Jsonb.quoted(s), StandardCharsets.UTF_8); }
}
