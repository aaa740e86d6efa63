package tailgate.functions.json;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.functions.TextCache;

/**
 * A path of jsonpath, which the driver has parsed: {@code {"lax": true, "item": [kind, text, [argument,
 * …]]}}. {@code tailgate/values/jsonpath/nodes.py} describes the items. The text of a LIKE_REGEX is a
 * pattern of Java.
 */
record JsonPath(boolean lax, Node item) {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int CACHE_MAX = 1_000;
  private static final TextCache<JsonPath> CACHE = new TextCache<>(CACHE_MAX, JsonPath::parsed);

  /** An item of a path. {@code pattern} is that of a LIKE_REGEX, or null. */
  record Node(String kind, String text, List<Node> arguments, Pattern pattern) {
    Node argument(int n) { return arguments.get(n); }

    boolean isCondition() {
      return switch (kind) {
        case "or", "and", "not", "unknown", "exists", "compare", "starts", "regex" -> true;
        default -> false;
      };
    }
  }

  /** Returns the path of a text. */
  static JsonPath of(UTF8String text) {
    return CACHE.get(text);
  }

  private static JsonPath parsed(UTF8String text) {
    try {
      JsonNode tree = JSON.readTree(text.toString());
      return new JsonPath(tree.get("lax").asBoolean(), node(tree.get("item")));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Node node(JsonNode tree) {
    String kind = tree.get(0).asText();
    String text = tree.get(1).asText();
    List<Node> arguments = new ArrayList<>();
    tree.get(2).forEach(argument -> arguments.add(node(argument)));
    return new Node(kind, text, arguments, kind.equals("regex") ? Pattern.compile(text) : null);
  }
}
