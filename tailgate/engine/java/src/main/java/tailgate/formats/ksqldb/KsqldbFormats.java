package tailgate.formats.ksqldb;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.types.DataTypes;
import tailgate.formats.Format;
import tailgate.formats.avro.SchemaRegistry;
import tailgate.formats.protobuf.ProtobufFormat;

/** The formats of ksqlDB. */
public final class KsqldbFormats {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private KsqldbFormats() {}

  /**
   * Returns a format as a struct of columns c0, c1, and so on. A windowed key has two more columns, its bounds.
   *
   * @param spec JSON with format, delimiter, wrapped (whether a value is an object or a record), columns
   *     (name, type, spark), schema (of PROTOBUF), window (empty, time or session) and window_size
   * @param registry the URL of the registry of AVRO, or empty
   * @param access the number of its credentials, or empty
   */
  public static Format of(String spec, String registry, String access) {
    try {
      JsonNode node = MAPPER.readTree(spec);
      KsqldbColumns columns = KsqldbColumns.of(node.get("columns"));
      Format format = of(node, columns, registry, access);
      String window = node.path("window").asText();
      if (window.isEmpty()) return format;
      var type = columns.struct();
      for (int i = 0; i < 2; i++) type = type.add("c" + (columns.size() + i), DataTypes.LongType);
      return new KsqldbWindowedKey(format, type, window.equals("time") ? node.get("window_size").asLong() : 0);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(e);
    }
  }

  private static Format of(JsonNode node, KsqldbColumns columns, String registry, String access) {
    boolean wrapped = node.get("wrapped").asBoolean();
    return switch (node.get("format").asText()) {
      case "KAFKA" -> new KsqldbKafkaFormat(columns);
      case "DELIMITED" -> new KsqldbDelimitedFormat(columns, node.get("delimiter").asText());
      case "AVRO" -> new KsqldbAvroFormat(columns, wrapped, SchemaRegistry.of(registry, access));
      case "PROTOBUF", "PROTOBUF_NOSR" -> new KsqldbProtobufFormat(columns, new ProtobufFormat(node.get("schema").asText()));
      case "JSON_SR" -> new KsqldbSchemaJsonFormat(new KsqldbJsonFormat(columns, wrapped), true);
      default -> new KsqldbSchemaJsonFormat(new KsqldbJsonFormat(columns, wrapped), false);
    };
  }
}
