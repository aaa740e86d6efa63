package tailgate.formats.connect;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.functions.json.Jsonb;
import tailgate.functions.text.Utf8;

/**
 * Debezium's envelope or key, as Kafka Connect's JSON converter writes it, with or without a
 * schema; decoded to declared columns in their stored form.
 *
 * <pre>
 *   {"before": …, "after": {…}, "source": {…}, "op": "u"}
 *   or {"schema": {…}, "payload": the same}
 *      ──► struct&lt;op, after: struct&lt;columns&gt;, before, source: struct&lt;SOURCE&gt;&gt;
 * </pre>
 *
 * <p>The schema's logical names determine what a value means; without a schema, the declared type
 * does ({@link ConnectColumn}). Undeclared fields are skipped, and missing ones are NULL. A schema
 * is about ten times as long as the row, so it is parsed once and skipped while it does not change.
 */
public final class ConnectFormat extends Format {
  private static final long serialVersionUID = 1;
  private static final byte[] PAYLOAD = ",\"payload\":".getBytes(StandardCharsets.US_ASCII);
  /** The fields of {@code source} that are decoded. */
  static final StructType SOURCE = new StructType()
      .add("connector", "string")
      .add("name", "string")
      .add("db", "string")
      .add("schema", "string")
      .add("table", "string")
      .add("snapshot", "string")
      .add("ts_ms", "long")
      .add("gtid", "string")
      .add("file", "string")
      .add("pos", "long")
      .add("row", "int")
      .add("lsn", "long")
      .add("sequence", "string");
  private final String spec;
  private transient List<ConnectColumn> columns;
  private transient Map<String, Integer> columnIndexes;
  private transient Map<String, Integer> sourceIndexes;
  private transient StructType type;
  private transient boolean isEnvelope;
  private transient boolean readsBefore;
  private transient byte[] schemaPrefix;  // of the last message with a schema: all up to the schema's end
  private transient Map<String, ConnectSchema.Field> schema;  // of the same message

  /**
   * @param spec JSON: {"columns": [{"name", "type", "spark", "precision", "array"}], "envelope":
   *     bool, "before": bool, "decimals": "precise" or "string"}
   */
  public ConnectFormat(String spec) {
    this.spec = spec;
    start();
  }

  private void start() {
    try {
      JsonNode settings = new ObjectMapper().readTree(spec);
      isEnvelope = settings.get("envelope").booleanValue();
      readsBefore = settings.get("before").booleanValue();
      boolean decimalsAreText = settings.get("decimals").textValue().equals("string");
      columns = new ArrayList<>();
      columnIndexes = new HashMap<>();
      StructType row = new StructType();
      for (JsonNode c : settings.get("columns")) {
        ConnectColumn column = ConnectColumn.of(c, decimalsAreText);
        columnIndexes.put(column.name, columns.size());
        columns.add(column);
        row = row.add(column.name, column.type);
      }
      sourceIndexes = new HashMap<>();
      for (int i = 0; i < SOURCE.length(); i++) sourceIndexes.put(SOURCE.apply(i).name(), i);
      type = isEnvelope
          ? new StructType().add("op", "string").add("after", row).add("before", row).add("source", SOURCE)
          : row;
    } catch (IOException e) {
      throw new IllegalArgumentException(spec, e);
    }
  }

  @Override public DataType type() {
    if (type == null) start();
    return type;
  }

  @Override public Object decode(byte[] bytes) {
    type();
    Utf8.checked(bytes);
    try {
      return hasLastSchema(bytes) ? payloadAfterSchema(bytes) : document(bytes);
    } catch (IOException e) {
      throw Jsonb.invalid(e);
    } catch (ArithmeticException | NumberFormatException e) {
      throw new SqlError("22003", "value out of range");
    }
  }

  // ---- the document -----------------------------------------------------------------------------

  private boolean hasLastSchema(byte[] bytes) {
    return schemaPrefix != null
        && regionEquals(bytes, 0, schemaPrefix)
        && regionEquals(bytes, schemaPrefix.length, PAYLOAD);
  }

  private static boolean regionEquals(byte[] bytes, int at, byte[] region) {
    int end = at + region.length;
    return bytes.length >= end && Arrays.equals(bytes, at, end, region, 0, region.length);
  }

  /** Decodes a message whose schema is that of the last message, without parsing the schema. */
  private Object payloadAfterSchema(byte[] bytes) throws IOException {
    int start = schemaPrefix.length + PAYLOAD.length;
    try (JsonParser p = Jsonb.FACTORY.createParser(bytes, start, bytes.length - start)) {
      p.nextToken();
      Object value = payload(p, schema);
      checkClosed(bytes, start + (int) p.currentLocation().getByteOffset());
      return value;
    }
  }

  /** Checks that only the closing brace and white space follow. */
  private static void checkClosed(byte[] bytes, int from) {
    boolean closed = false;
    for (int i = from; i < bytes.length; i++) {
      byte b = bytes[i];
      if (b == '}' && !closed) closed = true;
      else if (b != ' ' && b != '\n' && b != '\r' && b != '\t') throw Jsonb.invalid();
    }
    if (!closed) throw Jsonb.invalid();
  }

  /** Decodes a message that has no schema, or another one than the last message. */
  private Object document(byte[] bytes) throws IOException {
    try (JsonParser p = Jsonb.FACTORY.createParser(bytes)) {
      JsonToken first = p.nextToken();
      if (first == null) throw Jsonb.invalid();
      if (first == JsonToken.VALUE_NULL) return null;
      if (first != JsonToken.START_OBJECT) throw notAnObject();
      boolean hasField = p.nextToken() == JsonToken.FIELD_NAME;
      if (hasField && p.currentName().equals("schema")) return documentWithSchema(p, bytes);
      if (hasField && p.currentName().equals("payload")) return documentWithSchemaLast(bytes);
      Object value = fields(p, null);
      if (p.nextToken() != null) throw Jsonb.invalid();
      return value;
    }
  }

  private Object documentWithSchema(JsonParser p, byte[] bytes) throws IOException {
    p.nextToken();
    int from = (int) p.currentTokenLocation().getByteOffset();
    boolean hasSchema = p.currentToken() == JsonToken.START_OBJECT;
    p.skipChildren();
    if (!hasSchema) return payloadOf(p, null);
    int to = (int) p.currentLocation().getByteOffset();
    Map<String, ConnectSchema.Field> fields = ConnectSchema.fields(bytes, from, to - from, isEnvelope);
    schemaPrefix = Arrays.copyOf(bytes, to);
    schema = fields;
    return payloadOf(p, fields);
  }

  /**
   * Decodes a message whose payload comes before its schema: first the schema, then the payload.
   */
  private Object documentWithSchemaLast(byte[] bytes) throws IOException {
    Map<String, ConnectSchema.Field> fields = null;
    try (JsonParser p = Jsonb.FACTORY.createParser(bytes)) {
      p.nextToken();
      while (p.nextToken() != JsonToken.END_OBJECT) {
        boolean isSchema = p.currentName().equals("schema");
        p.nextToken();
        int from = (int) p.currentTokenLocation().getByteOffset();
        isSchema &= p.currentToken() == JsonToken.START_OBJECT;
        p.skipChildren();
        int to = (int) p.currentLocation().getByteOffset();
        if (isSchema) fields = ConnectSchema.fields(bytes, from, to - from, isEnvelope);
      }
    }
    try (JsonParser p = Jsonb.FACTORY.createParser(bytes)) {
      p.nextToken();
      return payloadOf(p, fields);
    }
  }

  /** Decodes the payload among the fields that follow, up to the document's end. */
  private Object payloadOf(JsonParser p, Map<String, ConnectSchema.Field> schema) throws IOException {
    Object value = null;
    while (p.nextToken() != JsonToken.END_OBJECT) {
      boolean isPayload = p.currentName().equals("payload");
      p.nextToken();
      if (isPayload) value = payload(p, schema);
      else p.skipChildren();
    }
    if (p.nextToken() != null) throw Jsonb.invalid();
    return value;
  }

  private static SqlError notAnObject() { return malformed("a JSON object is expected"); }

  // ---- the payload ------------------------------------------------------------------------------

  private Object payload(JsonParser p, Map<String, ConnectSchema.Field> schema) throws IOException {
    if (p.currentToken() == JsonToken.VALUE_NULL) return null;
    if (p.currentToken() != JsonToken.START_OBJECT) throw notAnObject();
    p.nextToken();
    return fields(p, schema);
  }

  /** Decodes an envelope or row from its first field's name on. */
  private Object fields(JsonParser p, Map<String, ConnectSchema.Field> schema) throws IOException {
    if (!isEnvelope) return ConnectColumn.row(columns, row(p, schema), "");
    UTF8String op = null;
    Object[] after = null;
    Object[] before = null;
    Object[] source = null;
    for (; p.currentToken() != JsonToken.END_OBJECT; p.nextToken()) {
      if (p.currentToken() != JsonToken.FIELD_NAME) throw Jsonb.invalid();
      String name = p.currentName();
      JsonToken token = p.nextToken();
      switch (name) {
        case "op" -> op = token == JsonToken.VALUE_STRING ? Utf8.text(p.getText()) : null;
        case "after" -> after = image(p, token, schema, name);
        case "before" -> {
          if (readsBefore) before = image(p, token, schema, name);
          else p.skipChildren();
        }
        case "source" -> {
          if (token == JsonToken.START_OBJECT) source = source(p);
        }
        default -> p.skipChildren();
      }
    }
    String connector = source == null || source[0] == null ? "" : source[0].toString();
    return new GenericInternalRow(new Object[] {
        op,
        after == null ? null : ConnectColumn.row(columns, after, connector),
        before == null ? null : ConnectColumn.row(columns, before, connector),
        source == null ? null : new GenericInternalRow(source)});
  }

  private Object[] image(JsonParser p, JsonToken token, Map<String, ConnectSchema.Field> schema, String name)
      throws IOException {
    if (token == JsonToken.VALUE_NULL) return null;
    if (token != JsonToken.START_OBJECT) throw malformed("\"" + name + "\" is not a JSON object");
    p.nextToken();
    return row(p, schema);
  }

  private Object[] row(JsonParser p, Map<String, ConnectSchema.Field> schema) throws IOException {
    Object[] values = new Object[columns.size()];
    for (; p.currentToken() != JsonToken.END_OBJECT; p.nextToken()) {
      if (p.currentToken() != JsonToken.FIELD_NAME) throw Jsonb.invalid();
      Integer i = columnIndexes.get(p.currentName());
      p.nextToken();
      if (i == null) {
        p.skipChildren();
        continue;
      }
      ConnectColumn column = columns.get(i);
      values[i] = column.read(p, schema == null ? null : schema.get(column.name));
    }
    return values;
  }

  private Object[] source(JsonParser p) throws IOException {
    Object[] values = new Object[SOURCE.length()];
    while (p.nextToken() != JsonToken.END_OBJECT) {
      Integer i = sourceIndexes.get(p.currentName());
      JsonToken token = p.nextToken();
      if (i == null || token == JsonToken.VALUE_NULL || token.isStructStart()) p.skipChildren();
      else if (SOURCE.apply(i).dataType() == DataTypes.LongType) values[i] = p.getValueAsLong();
      else if (SOURCE.apply(i).dataType() == DataTypes.IntegerType) values[i] = p.getValueAsInt();
      else values[i] = Utf8.text(p.getText());
    }
    return values;
  }
}
