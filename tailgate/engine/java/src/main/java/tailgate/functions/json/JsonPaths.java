package tailgate.functions.json;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.json.JsonPathEvaluation.PathError;

/**
 * Functions and operators of jsonb and jsonpath. A path is that of {@link JsonPath}.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL, and a result of null is
 * NULL. {@code tailgate/sql/compute/jsonb/paths.py} computes the same and names the source.
 */
public final class JsonPaths {
  private JsonPaths() {}

  private static JsonPathEvaluation evaluation(JsonPath path, UTF8String json, UTF8String variables) {
    if (!(JsonbTree.read(variables) instanceof Map<?, ?> values)) {
      throw SqlError.invalidParameter("\"vars\" argument is not an object");
    }
    return new JsonPathEvaluation(path, JsonbTree.read(json), values);
  }

  @Returns("boolean")
  public static Boolean jsonbPathExists(UTF8String json, UTF8String text, UTF8String variables, boolean silent) {
    try {
      return evaluation(JsonPath.of(text), json, variables).exists();
    } catch (PathError e) {
      if (silent) return null;
      throw e.error;
    }
  }

  private static List<Object> all(UTF8String json, UTF8String text, UTF8String variables, boolean silent) {
    List<Object> results = new ArrayList<>();
    try {
      evaluation(JsonPath.of(text), json, variables).items(results::add);
    } catch (PathError e) {
      if (!silent) throw e.error;
    }
    return results;
  }

  @Returns("boolean")
  public static Boolean jsonbPathMatch(UTF8String json, UTF8String text, UTF8String variables, boolean silent) {
    List<Object> results = all(json, text, variables, silent);
    if (results.size() == 1 && results.get(0) instanceof Boolean holds) return holds;
    if (silent || results.size() == 1 && results.get(0) == JsonbTree.NULL) return null;
    throw new SqlError(JsonPathEvaluation.SINGLETON, "single boolean result is expected");
  }

  @Returns("array<string>")
  public static ArrayData jsonbPathQuery(UTF8String json, UTF8String text, UTF8String variables, boolean silent) {
    return new GenericArrayData(all(json, text, variables, silent).stream().map(JsonbTree::text).toArray());
  }

  public static UTF8String jsonbPathQueryArray(UTF8String json, UTF8String text, UTF8String variables, boolean silent) {
    return JsonbTree.text(all(json, text, variables, silent));
  }

  public static UTF8String jsonbPathQueryFirst(UTF8String json, UTF8String text, UTF8String variables, boolean silent) {
    List<Object> results = all(json, text, variables, silent);
    return results.isEmpty() ? null : JsonbTree.text(results.get(0));
  }
}
