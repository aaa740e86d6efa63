package tailgate.functions.ksqldb;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.json.Jsonb;
import tailgate.functions.json.JsonbTree;

/**
 * ksqlDB's functions of texts that contain JSON. Results have no blanks.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL, and a result of null is
 * NULL. {@code tailgate/sql/compute/ksqldb/json_texts.py} computes the same and names the source.
 */
public final class KsqldbJson {
  private static final ObjectMapper MAPPER =
      new ObjectMapper(Jsonb.FACTORY).enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
  private static final Pattern STEP =
      Pattern.compile("\\.(?<name>[^.\\[\\]*]+)|\\[(?<quoted>'[^']*'|\"[^\"]*\")\\]|\\[(?<index>[0-9]{1,9})\\]");
  private static final Pattern BLANK = Pattern.compile("(\"(?:[^\"\\\\]|\\\\.)*+\")|([:,]) ");

  private KsqldbJson() {}

  private static SqlError invalid() { return new SqlError("22P02", "invalid JSON format"); }

  private static JsonNode parsed(UTF8String text) {
    try {
      JsonNode node = MAPPER.readTree(text.toString());
      if (node == null || node.isMissingNode()) throw invalid();
      return node;
    } catch (JsonProcessingException e) {
      throw invalid();
    }
  }

  private static UTF8String utf8(String text) { return UTF8String.fromString(text); }

  /** Returns the value at a path such as {@code $.a[0]['b']}, or null. Throws 22023 for a path of another form. */
  public static UTF8String ksqldbJsonField(UTF8String text, UTF8String path) {
    JsonNode node = parsed(text);
    String steps = path.toString();
    Matcher m = STEP.matcher(steps);
    if (!steps.startsWith("$")) throw invalidPath(steps);
    for (int at = 1; at < steps.length(); at = m.end()) {
      if (!m.region(at, steps.length()).lookingAt()) throw invalidPath(steps);
      if (node == null) continue;
      if (m.group("index") != null) node = node.get(Integer.parseInt(m.group("index")));
      else node = node.get(m.group("name") != null ? m.group("name") : unquoted(m.group("quoted")));
    }
    return node == null || node.isNull() ? null : utf8(node.isTextual() ? node.textValue() : node.toString());
  }

  private static String unquoted(String text) { return text.substring(1, text.length() - 1); }

  private static SqlError invalidPath(String path) { return SqlError.invalidParameter("invalid JSON path: " + path); }

  public static boolean ksqldbIsJson(UTF8String text) {
    try {
      parsed(text);
      return true;
    } catch (SqlError e) {
      return false;
    }
  }

  /** Returns the number of elements of an array; null for another value. */
  @Returns("int")
  public static Integer ksqldbJsonArrayLength(UTF8String text) {
    JsonNode node = parsed(text);
    return node.isArray() ? (Integer) node.size() : null;
  }

  /** Returns the union of two objects, or the elements of both values. */
  public static UTF8String ksqldbJsonConcat(UTF8String left, UTF8String right) {
    JsonNode first = parsed(left);
    JsonNode second = parsed(right);
    if (first instanceof ObjectNode object && second instanceof ObjectNode others) {
      return utf8(object.setAll(others).toString());
    }
    ArrayNode array = MAPPER.createArrayNode();
    for (JsonNode node : List.of(first, second)) {
      if (node instanceof ArrayNode elements) array.addAll(elements);
      else array.add(node);
    }
    return utf8(array.toString());
  }

  public static UTF8String ksqldbJsonKeys(UTF8String text) {
    if (!(parsed(text) instanceof ObjectNode object)) return null;
    List<String> keys = new ArrayList<>();
    object.fieldNames().forEachRemaining(keys::add);
    return JsonbTree.text(keys);
  }

  /** Returns the elements of a JSON array as texts of JSON. */
  public static UTF8String ksqldbJsonItems(UTF8String text) {
    if (!(parsed(text) instanceof ArrayNode array)) return null;
    List<String> items = new ArrayList<>();
    array.forEach(node -> items.add(node.toString()));
    return JsonbTree.text(items);
  }

  /** Returns the members of a JSON object as a map of texts of JSON. */
  public static UTF8String ksqldbJsonRecords(UTF8String text) {
    if (!(parsed(text) instanceof ObjectNode object)) return null;
    Map<String, Object> map = new TreeMap<>(JsonbTree.KEY_ORDER);
    object.properties().forEach(member -> map.put(member.getKey(), member.getValue().toString()));
    return JsonbTree.text(map);
  }

  /** Returns the text of a jsonb without its blanks. */
  public static UTF8String ksqldbJsonText(UTF8String json) {
    return utf8(BLANK.matcher(json.toString()).replaceAll(m -> Matcher.quoteReplacement(m.group(1) != null ? m.group(1) : m.group(2))));
  }
}
