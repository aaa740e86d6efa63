package tailgate.formats.connect;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import tailgate.functions.json.Jsonb;

/** The schemas that Kafka Connect's JSON converter writes into messages. */
final class ConnectSchema {
  private static final ObjectMapper JSON = new ObjectMapper();

  /**
   * A field of a row.
   *
   * @param name the logical name, such as io.debezium.time.Timestamp, or empty
   * @param scale of a decimal
   */
  record Field(String type, String name, int scale) {}

  private ConnectSchema() {}

  /**
   * Returns the fields of a schema's rows, by name. Throws SqlError if it is not JSON.
   *
   * @param envelope whether the schema is of an envelope that contains the rows
   */
  static Map<String, Field> fields(byte[] bytes, int from, int length, boolean envelope) {
    try {
      JsonNode schema = JSON.readTree(bytes, from, length);
      if (envelope) schema = rowSchema(schema);
      Map<String, Field> fields = new HashMap<>();
      for (JsonNode f : schema.path("fields")) fields.put(f.path("field").asText(), field(f));
      return fields;
    } catch (IOException e) {
      throw Jsonb.invalid(e);
    }
  }

  private static JsonNode rowSchema(JsonNode envelope) {
    JsonNode row = null;
    for (JsonNode f : envelope.path("fields")) {
      String name = f.path("field").asText();
      if (name.equals("after") || row == null && name.equals("before")) row = f;
    }
    return row == null ? envelope : row;
  }

  private static Field field(JsonNode f) {
    JsonNode value = f.path("type").asText().equals("array") ? f.path("items") : f;
    int scale = value.path("parameters").path("scale").asInt(0);
    return new Field(value.path("type").asText(), value.path("name").asText(""), scale);
  }
}
