package tailgate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/** The schema that Kafka Connect's JSON converter writes into a message: of each field of a row its type, the name of its meaning, and a decimal's scale. */
final class ConnectSchema {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** A field; `name` is "" where the type has no other meaning. */
  record Field(String type, String name, int scale) {}

  private ConnectSchema() {}

  /** Of an envelope's rows, or of a row. Throws SqlError if it is no schema. */
  static Map<String, Field> fields(byte[] bytes, int from, int length, boolean envelope) {
    try {
      JsonNode schema = JSON.readTree(bytes, from, length);
      if (envelope) {
        JsonNode row = null;
        for (JsonNode f : schema.path("fields")) if (f.path("field").asText().equals("after") || row == null && f.path("field").asText().equals("before")) row = f;
        schema = row == null ? schema : row;
      }
      Map<String, Field> fields = new HashMap<>();
      for (JsonNode f : schema.path("fields")) fields.put(f.path("field").asText(), field(f));
      return fields;
    } catch (IOException e) {
      throw Jsonb.invalid(e);
    }
  }

  private static Field field(JsonNode f) {
    JsonNode of = f.path("type").asText().equals("array") ? f.path("items") : f;
    return new Field(of.path("type").asText(), of.path("name").asText(""), of.path("parameters").path("scale").asInt(0));
  }
}
