package tailgate.functions.json;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * Set-returning functions of jsonb, whose result is an array of the rows.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL.
 */
public final class JsonbSets {
  private JsonbSets() {}

  /** Computes jsonb_array_elements(). */
  public static ArrayData elements(UTF8String json) { return elements(json.getBytes(), false); }

  /** Computes jsonb_array_elements_text(). */
  public static ArrayData elementsText(UTF8String json) { return elements(json.getBytes(), true); }

  /** Computes jsonb_object_keys(). */
  public static ArrayData keys(UTF8String json) {
    byte[] b = json.getBytes();
    if (b[0] != '{') {
      throw SqlError.invalidParameter("cannot call jsonb_object_keys on " + (b[0] == '[' ? "an array" : "a scalar"));
    }
    List<Object> keys = new ArrayList<>();
    for (int[] member : members(b)) keys.add(JsonbAccess.text(b, member[0]));
    return new GenericArrayData(keys.toArray());
  }

  /** Computes jsonb_each(). */
  public static ArrayData each(UTF8String json) { return each(json.getBytes(), "jsonb_each", false); }

  /** Computes jsonb_each_text(). */
  public static ArrayData eachText(UTF8String json) { return each(json.getBytes(), "jsonb_each_text", true); }

  private static ArrayData elements(byte[] b, boolean asText) {
    if (b[0] != '[') {
      throw SqlError.invalidParameter("cannot extract elements from " + (b[0] == '{' ? "an object" : "a scalar"));
    }
    List<Object> elements = new ArrayList<>();
    for (int i = 1; b[i] != ']'; i = JsonbAccess.next(b, i)) elements.add(value(b, i, asText));
    return new GenericArrayData(elements.toArray());
  }

  private static ArrayData each(byte[] b, String function, boolean asText) {
    if (b[0] != '{') throw SqlError.invalidParameter("cannot call " + function + " on a non-object");
    List<Object> rows = new ArrayList<>();
    for (int[] member : members(b)) {
      Object[] row = {JsonbAccess.text(b, member[0]), value(b, member[1], asText)};
      rows.add(new GenericInternalRow(row));
    }
    return new GenericArrayData(rows.toArray());
  }

  private static UTF8String value(byte[] b, int at, boolean asText) {
    return asText ? JsonbAccess.text(b, at) : JsonbAccess.slice(b, at);
  }

  /** Returns the starts of each key and its value. */
  private static List<int[]> members(byte[] b) {
    List<int[]> members = new ArrayList<>();
    for (int i = 1; b[i] != '}'; ) {
      int value = JsonbAccess.end(b, i) + 2;  // after ": "
      members.add(new int[] {i, value});
      i = JsonbAccess.next(b, value);
    }
    return members;
  }
}
