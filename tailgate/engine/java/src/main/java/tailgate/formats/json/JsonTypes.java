package tailgate.formats.json;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import org.apache.spark.sql.types.DataType;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.functions.json.Jsonb;

/** The error for a JSON value whose type is not that of its column. */
public final class JsonTypes {
  private JsonTypes() {}

  /**
   * Returns the error for the value at the parser's position. Throws the error of a document that is
   * not JSON if there is no value.
   */
  public static SqlError mismatch(JsonParser p, String column, DataType type) throws IOException {
    JsonToken token = p.currentToken();
    if (token == null) throw Jsonb.invalid();
    String jsonType = switch (token) {
      case START_OBJECT -> "object";
      case START_ARRAY -> "array";
      case VALUE_STRING -> "string";
      case VALUE_TRUE, VALUE_FALSE -> "boolean";
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> "number";
      case VALUE_NULL -> "null";
      default -> throw Jsonb.invalid();
    };
    return Format.malformed("column \"" + column + "\" is of type " + type.catalogString() + " but the value is a JSON " + jsonType);
  }
}
