package tailgate.sources;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.formats.Formats;
import tailgate.functions.json.Jsonb;

/**
 * Parses Debezium's transaction metadata: the block of a change event, and the messages of the
 * transaction topic, in Avro or JSON (with or without an embedded schema).
 *
 * <pre>   {…, "transaction": {"id": "571:5319", "total_order": 3, "data_collection_order": 2}}
 *   {"status": "END", "id": "571:5322", "event_count": 3, "data_collections": [{"data_collection": "public.users", "event_count": 2}, …]}</pre>
 *
 * <p>PostgreSQL's ids contain the position of each message after the transaction's number (seen
 * with Debezium 3), so the part from the colon on is removed. Used by one thread.
 *
 * <p>Source: Debezium 3, "Transaction metadata".
 */
final class TransactionBlock {
  private static final Pattern POSTGRES = Pattern.compile("\\d+:\\d+");
  private static final ObjectMapper MAPPER = new ObjectMapper();

  /** The block of a change event. */
  public record Change(String id, long order) {}

  /**
   * A message of the transaction topic. `counts`: number of events by collection in an END message,
   * null for other messages.
   */
  record Mark(String id, Map<String, Long> counts) {}

  private final Format avro;

  /**
   * `format`: {"type": "json"}, or {"type": "avro", "schema", "registry", "wire", "access"} as for
   * {@link Format}.
   */
  TransactionBlock(JsonNode format) {
    if (format.get("type").textValue().equals("json")) avro = null;
    else if (format.path("registry").asText().isEmpty())
      avro = Formats.avroInline(format.get("schema").textValue(), format.path("wire").asBoolean(true));
    else avro = Formats.avro(format.get("schema").textValue(), format.get("registry").textValue(), format.path("access").asText());
  }

  private static String id(String text) { return POSTGRES.matcher(text).matches() ? text.substring(0, text.indexOf(':')) : text; }

  /**
   * Returns the block of a change event, or null if there is none or it is invalid. Throws
   * UncheckedIOException if the registry does not answer.
   */
  Change change(byte[] value) {
    if (value == null) return null;
    try {
      if (avro == null) return json(value);
      InternalRow block = struct((InternalRow) avro.decode(value), (StructType) avro.type(), "transaction");
      if (block == null) return null;
      StructType type = (StructType) ((StructType) avro.type()).apply("transaction").dataType();
      String id = text(block, type, "id");
      return id == null ? null : new Change(id(id), number(block, type, "data_collection_order"));
    } catch (SqlError | IOException e) {
      return null;  // becomes a dead letter when a tick reads it
    }
  }

  /** Returns a message of the transaction topic, or null if it is invalid. */
  Mark mark(byte[] value) {
    if (value == null) return null;
    try {
      if (avro == null) return mark(MAPPER.readTree(value));
      InternalRow row = (InternalRow) avro.decode(value);
      StructType type = (StructType) avro.type();
      String id = text(row, type, "id"), status = text(row, type, "status");
      if (id == null) return null;
      if (!"END".equals(status)) return new Mark(id(id), null);
      Map<String, Long> counts = new HashMap<>();
      int at = type.fieldIndex("data_collections");
      if (!row.isNullAt(at)) {
        StructType of = (StructType) ((ArrayType) type.apply(at).dataType()).elementType();
        ArrayData all = row.getArray(at);
        for (int i = 0; i < all.numElements(); i++) {
          if (all.isNullAt(i)) continue;  // Debezium's schema allows nulls
          InternalRow one = all.getStruct(i, of.length());
          counts.put(text(one, of, "data_collection"), number(one, of, "event_count"));
        }
      }
      return new Mark(id(id), counts);
    } catch (SqlError | IOException e) {
      return null;
    }
  }

  private static Mark mark(JsonNode value) {
    if (value.has("payload")) value = value.get("payload");
    if (!value.path("id").isTextual()) return null;
    String id = id(value.get("id").textValue());
    if (!value.path("status").asText().equals("END")) return new Mark(id, null);
    Map<String, Long> counts = new HashMap<>();
    for (JsonNode c : value.path("data_collections")) counts.put(c.path("data_collection").asText(), c.path("event_count").asLong());
    return new Mark(id, counts);
  }

  private static InternalRow struct(InternalRow row, StructType type, String name) {
    int at = type.fieldIndex(name);
    return row == null || row.isNullAt(at) ? null : row.getStruct(at, ((StructType) type.apply(at).dataType()).length());
  }

  private static String text(InternalRow row, StructType type, String name) {
    int at = type.fieldIndex(name);
    if (row.isNullAt(at)) return null;
    UTF8String text = row.getUTF8String(at);
    return text.toString();
  }

  private static long number(InternalRow row, StructType type, String name) {
    int at = type.fieldIndex(name);
    return row.isNullAt(at) ? 0 : row.getLong(at);
  }

  // ---- JSON -------------------------------------------------------------------------------------

  private static Change json(byte[] value) throws IOException {
    try (JsonParser p = Jsonb.FACTORY.createParser(value)) {
      return p.nextToken() == JsonToken.START_OBJECT ? envelope(p, true) : null;
    }
  }

  private static Change envelope(JsonParser p, boolean outer) throws IOException {
    while (p.nextToken() == JsonToken.FIELD_NAME) {
      String name = p.currentName();
      JsonToken token = p.nextToken();
      if (token == JsonToken.START_OBJECT && name.equals("transaction")) return block(p);
      if (token == JsonToken.START_OBJECT && name.equals("payload") && outer) return envelope(p, false);
      p.skipChildren();
    }
    return null;
  }

  private static Change block(JsonParser p) throws IOException {
    String id = null;
    long order = 0;
    while (p.nextToken() == JsonToken.FIELD_NAME) {
      String name = p.currentName();
      JsonToken token = p.nextToken();
      if (name.equals("id") && token == JsonToken.VALUE_STRING) id = p.getText();
      else if (name.equals("data_collection_order") && token.isNumeric()) order = p.getLongValue();
      else p.skipChildren();
    }
    return id == null ? null : new Change(id(id), order);
  }
}
