package tailgate.formats.ksqldb;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import tailgate.formats.Format;

/** The formats of ksqlDB that need no schema registry. */
public final class KsqldbFormats {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private KsqldbFormats() {}

  /**
   * Returns a format as a struct of columns c0, c1, and so on.
   *
   * @param spec JSON with format (KAFKA, JSON or DELIMITED), delimiter, wrapped (whether JSON is an
   *     object) and columns (name, type, spark)
   */
  public static Format of(String spec) {
    try {
      JsonNode node = MAPPER.readTree(spec);
      KsqldbColumns columns = KsqldbColumns.of(node.get("columns"));
      return switch (node.get("format").asText()) {
        case "KAFKA" -> new KsqldbKafkaFormat(columns);
        case "DELIMITED" -> new KsqldbDelimitedFormat(columns, node.get("delimiter").asText());
        default -> new KsqldbJsonFormat(columns, node.get("wrapped").asBoolean());
      };
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(e);
    }
  }
}
