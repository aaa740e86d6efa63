package tailgate;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Debezium's envelope, or a key of it, as Kafka Connect's JSON converter writes it, with or without a schema in front, to declared columns in their stored form.
 *
 * <pre>   {"before": …, "after": {…}, "source": {…}, "op": "u"}          or {"schema": {…}, "payload": the same}
 *      ──► struct&lt;op, after: struct&lt;columns&gt;, before, source: struct&lt;SOURCE&gt;&gt;</pre>
 *
 * <p>What a value means is told by the schema's logical names; without one, by the declared type ({@link ConnectValue}). Fields that are not declared are passed
 * over, declared ones that are not there are NULL. A schema in front is ten times as long as the row: it is read once, and passed over while it is the same.
 */
final class ConnectJson extends Format {
  private static final long serialVersionUID = 1;
  private static final byte[] PAYLOAD = ",\"payload\":".getBytes(java.nio.charset.StandardCharsets.US_ASCII);
  /** What is read of `source`. */
  static final StructType SOURCE = new StructType().add("connector", "string").add("name", "string").add("db", "string").add("schema", "string").add("table", "string")
      .add("snapshot", "string").add("ts_ms", "long").add("gtid", "string").add("file", "string").add("pos", "long").add("row", "int").add("lsn", "long").add("sequence", "string");
  private static final int OP = 0, AFTER = 1, BEFORE = 2, SOURCES = 3;
  private final String spec;
  private transient List<ConnectValue> columns;
  private transient Map<String, Integer> places, sources;
  private transient StructType row, type;
  private transient boolean envelope, before;
  private transient byte[] prefix;
  private transient Map<String, ConnectSchema.Field> known;

  /** `spec`: JSON, {"columns": [{"name", "type", "spark", "precision"}], "envelope": bool, "before": bool, "decimals": "precise" or "string"}. */
  ConnectJson(String spec) {
    this.spec = spec;
    start();
  }

  private void start() {
    try {
      JsonNode given = new ObjectMapper().readTree(spec);
      envelope = given.get("envelope").booleanValue();
      before = given.get("before").booleanValue();
      columns = new ArrayList<>();
      places = new HashMap<>();
      row = new StructType();
      for (JsonNode c : given.get("columns")) {
        ConnectValue value = ConnectValue.of(c, given.get("decimals").textValue());
        places.put(value.name, columns.size());
        columns.add(value);
        row = row.add(value.name, value.type);
      }
      sources = new HashMap<>();
      for (int i = 0; i < SOURCE.length(); i++) sources.put(SOURCE.apply(i).name(), i);
      type = !envelope ? row : new StructType().add("op", "string").add("after", row).add("before", row).add("source", SOURCE);
    } catch (IOException e) {
      throw new IllegalArgumentException(spec, e);
    }
  }

  @Override DataType type() {
    if (type == null) start();
    return type;
  }

  @Override Object decode(byte[] bytes) {
    type();
    Utf8.checked(bytes);
    try {
      if (prefix != null && begins(bytes, prefix, 0) && begins(bytes, PAYLOAD, prefix.length)) {
        int at = prefix.length + PAYLOAD.length;
        try (JsonParser p = Jsonb.FACTORY.createParser(bytes, at, bytes.length - at)) {
          p.nextToken();
          Object value = payload(p, known);
          at += (int) p.currentLocation().getByteOffset();
          closed(bytes, at);
          return value;
        }
      }
      return document(bytes);
    } catch (IOException e) {
      throw Jsonb.invalid(e);
    } catch (ArithmeticException | NumberFormatException e) {
      throw new SqlError("22003", "value out of range");
    }
  }


  private static boolean begins(byte[] bytes, byte[] with, int at) { return bytes.length >= at + with.length && Arrays.equals(bytes, at, at + with.length, with, 0, with.length); }

  private static void closed(byte[] bytes, int at) {
    boolean brace = false;
    for (; at < bytes.length; at++) {
      if (bytes[at] == '}' && !brace) brace = true;
      else if (bytes[at] != ' ' && bytes[at] != '\n' && bytes[at] != '\r' && bytes[at] != '\t') throw Jsonb.invalid();
    }
    if (!brace) throw Jsonb.invalid();
  }

  /** A message whose schema is not the one before, or that has none. */
  private Object document(byte[] bytes) throws IOException {
    try (JsonParser p = Jsonb.FACTORY.createParser(bytes)) {
      JsonToken first = p.nextToken();
      if (first == null) throw Jsonb.invalid();
      if (first == JsonToken.VALUE_NULL) return null;
      if (first != JsonToken.START_OBJECT) throw new SqlError("22P02", "a JSON object is expected");
      if (p.nextToken() == JsonToken.FIELD_NAME && p.currentName().equals("schema")) {
        p.nextToken();
        int from = (int) p.currentTokenLocation().getByteOffset();
        if (p.currentToken() == JsonToken.START_OBJECT) {
          p.skipChildren();
          int to = (int) p.currentLocation().getByteOffset();
          Map<String, ConnectSchema.Field> fields = ConnectSchema.fields(bytes, from, to - from, envelope);
          prefix = Arrays.copyOf(bytes, to);
          known = fields;
          return wrapped(p, fields);
        }
        p.skipChildren();
        return wrapped(p, null);  // "schema": null
      }
      if (p.currentToken() == JsonToken.FIELD_NAME && p.currentName().equals("payload")) return late(bytes);
      Object value = fields(p, null);
      if (p.nextToken() != null) throw Jsonb.invalid();
      return value;
    }
  }

  private Object wrapped(JsonParser p, Map<String, ConnectSchema.Field> fields) throws IOException {
    Object value = null;
    while (p.nextToken() != JsonToken.END_OBJECT) {
      boolean payload = p.currentName().equals("payload");
      p.nextToken();
      if (payload) value = payload(p, fields);
      else p.skipChildren();
    }
    if (p.nextToken() != null) throw Jsonb.invalid();
    return value;
  }

  /** The payload stands before its schema. */
  private Object late(byte[] bytes) throws IOException {
    Map<String, ConnectSchema.Field> fields = null;
    try (JsonParser p = Jsonb.FACTORY.createParser(bytes)) {
      p.nextToken();
      while (p.nextToken() != JsonToken.END_OBJECT) {
        boolean schema = p.currentName().equals("schema");
        p.nextToken();
        int from = (int) p.currentTokenLocation().getByteOffset();
        boolean object = p.currentToken() == JsonToken.START_OBJECT;
        p.skipChildren();
        if (schema && object) fields = ConnectSchema.fields(bytes, from, (int) p.currentLocation().getByteOffset() - from, envelope);
      }
    }
    try (JsonParser p = Jsonb.FACTORY.createParser(bytes)) {
      p.nextToken();
      return wrapped(p, fields);
    }
  }

  // ---- the envelope -------------------------------------------------------------------------------------------------------------

  private Object payload(JsonParser p, Map<String, ConnectSchema.Field> schema) throws IOException {
    if (p.currentToken() == JsonToken.VALUE_NULL) return null;
    if (p.currentToken() != JsonToken.START_OBJECT) throw new SqlError("22P02", "a JSON object is expected");
    p.nextToken();
    return fields(p, schema);
  }

  /** The parser stands at the first field's name, or at the end. */
  private Object fields(JsonParser p, Map<String, ConnectSchema.Field> schema) throws IOException {
    if (!envelope) {
      Object[] values = row(p, schema);
      return ConnectValue.settled(columns, values, "");
    }
    Object[] values = new Object[4];
    Object[] after = null, old = null, source = null;
    String connector = "";
    for (; p.currentToken() != JsonToken.END_OBJECT; p.nextToken()) {
      if (p.currentToken() != JsonToken.FIELD_NAME) throw Jsonb.invalid();
      String name = p.currentName();
      JsonToken token = p.nextToken();
      switch (name) {
        case "op" -> values[OP] = token == JsonToken.VALUE_STRING ? Utf8.text(p.getText()) : null;
        case "after" -> after = image(p, token, schema, name);
        case "before" -> {
          if (before) old = image(p, token, schema, name);
          else p.skipChildren();
        }
        case "source" -> {
          if (token != JsonToken.START_OBJECT) continue;
          source = source(p);
          connector = source[0] == null ? "" : source[0].toString();
        }
        default -> p.skipChildren();
      }
    }
    values[AFTER] = after == null ? null : ConnectValue.settled(columns, after, connector);
    values[BEFORE] = old == null ? null : ConnectValue.settled(columns, old, connector);
    values[SOURCES] = source == null ? null : new GenericInternalRow(source);
    return new GenericInternalRow(values);
  }

  private Object[] image(JsonParser p, JsonToken token, Map<String, ConnectSchema.Field> schema, String name) throws IOException {
    if (token == JsonToken.VALUE_NULL) return null;
    if (token != JsonToken.START_OBJECT) throw new SqlError("22P02", "\"" + name + "\" is no JSON object");
    p.nextToken();
    return row(p, schema);
  }

  private Object[] row(JsonParser p, Map<String, ConnectSchema.Field> schema) throws IOException {
    Object[] values = new Object[columns.size()];
    for (; p.currentToken() != JsonToken.END_OBJECT; p.nextToken()) {
      if (p.currentToken() != JsonToken.FIELD_NAME) throw Jsonb.invalid();
      Integer at = places.get(p.currentName());
      p.nextToken();
      if (at == null) p.skipChildren();
      else values[at] = columns.get(at).read(p, schema == null ? null : schema.get(columns.get(at).name));
    }
    return values;
  }

  private Object[] source(JsonParser p) throws IOException {
    Object[] values = new Object[SOURCE.length()];
    while (p.nextToken() != JsonToken.END_OBJECT) {
      Integer at = sources.get(p.currentName());
      JsonToken token = p.nextToken();
      if (at == null || token == JsonToken.VALUE_NULL || token.isStructStart()) p.skipChildren();
      else if (SOURCE.apply(at).dataType() == DataTypes.LongType) values[at] = p.getValueAsLong();
      else if (SOURCE.apply(at).dataType() == DataTypes.IntegerType) values[at] = p.getValueAsInt();
      else values[at] = Utf8.text(p.getText());
    }
    return values;
  }
}
