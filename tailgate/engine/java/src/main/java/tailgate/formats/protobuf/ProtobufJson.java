package tailgate.formats.protobuf;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import tailgate.errors.SqlError;
import tailgate.formats.protobuf.ProtobufSchema.Field;
import tailgate.formats.protobuf.ProtobufSchema.Message;
import tailgate.functions.json.Jsonb;

/**
 * Writes Protobuf values as JSON.
 *
 * <p>A message is an object with all its fields, by the names of the schema. Integers of all sizes
 * are numbers; bytes are base64; NaN and infinity are strings. Google's Timestamp and Duration are
 * strings; a wrapper is its value; a Struct, Value or ListValue is the JSON that it represents.
 */
final class ProtobufJson {
  private static final int BYTES_MAX = 32 << 20;  // of one column; a few bytes can denote many fields

  private ProtobufJson() {}

  /** Returns the JSON of a field's value. Throws 54000 if it is too long. */
  static byte[] of(Field f, Object value) {
    var out = new ByteArrayOutputStream() {
      @Override public synchronized void write(byte[] b, int from, int length) {
        if (count + length > BYTES_MAX) throw new SqlError("54000", "JSON exceeds a limit");
        super.write(b, from, length);
      }
    };
    try (JsonGenerator g = Jsonb.FACTORY.createGenerator(out)) {
      writeField(g, f, value);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toByteArray();
  }

  private static void writeField(JsonGenerator g, Field f, Object value) throws IOException {
    if (f.isMap()) {
      writeMap(g, f.message, value == null ? Map.of() : (Map<?, ?>) value);
    } else if (f.isRepeated) {
      g.writeStartArray();
      if (value != null) for (Object element : (List<?>) value) writeValue(g, f, element);
      g.writeEndArray();
    } else {
      if (value == null && f.isRequired) throw f.missingRequired();
      writeValue(g, f, value == null ? f.missingValue() : value);
    }
  }

  private static void writeMap(JsonGenerator g, Message entry, Map<?, ?> map) throws IOException {
    boolean isUnsignedKey = entry.fields[0].isUnsigned64();
    g.writeStartObject();
    for (var e : map.entrySet()) {
      g.writeFieldName(isUnsignedKey ? Long.toUnsignedString((Long) e.getKey()) : e.getKey().toString());
      writeValue(g, entry.fields[1], e.getValue());
    }
    g.writeEndObject();
  }

  private static void writeValue(JsonGenerator g, Field f, Object value) throws IOException {
    if (value == null) g.writeNull();
    else if (f.isMessage) writeMessage(g, f.message, (Object[]) value);
    else writeScalar(g, f, value);
  }

  private static void writeScalar(JsonGenerator g, Field f, Object value) throws IOException {
    switch (f.type) {
      case "double", "float" -> {
        if (Double.isFinite(((Number) value).doubleValue())) g.writeNumber(value.toString());
        else g.writeString(value.toString());
      }
      case "bool" -> g.writeBoolean((Boolean) value);
      case "string" -> g.writeString(value.toString());
      case "bytes" -> g.writeBinary((byte[]) value);
      case "enum" -> g.writeString(f.symbol(value).toString());
      case "uint64", "fixed64" -> g.writeNumber(Long.toUnsignedString((Long) value));
      default -> g.writeNumber(value.toString());
    }
  }

  private static void writeMessage(JsonGenerator g, Message m, Object[] values) throws IOException {
    switch (m.wellKnown) {
      case TIMESTAMP -> g.writeString(WellKnownValues.timestampText(values));
      case DURATION -> g.writeString(WellKnownValues.durationText(values));
      case WRAPPER -> writeValue(g, m.fields[0], values[0] == null ? m.fields[0].missingValue() : values[0]);
      case STRUCT, LIST -> writeField(g, m.fields[0], values[0]);
      case VALUE -> {
        Field set = null;
        for (Field f : m.fields) if (values[f.index] != null) set = f;
        // The only enum of Value is its null.
        if (set == null || set.type.equals("enum")) g.writeNull();
        else writeValue(g, set, values[set.index]);
      }
      case NONE -> {
        g.writeStartObject();
        for (Field f : m.fields) {
          g.writeFieldName(f.name);
          writeField(g, f, values[f.index]);
        }
        g.writeEndObject();
      }
    }
  }
}
