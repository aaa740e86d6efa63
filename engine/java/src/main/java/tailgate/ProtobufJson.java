package tailgate;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import tailgate.ProtobufTypes.*;

/**
 * A message as JSON: an object of its fields by the names of the schema, NULL where one was not sent and that can be told, else what stands for it; whole numbers of every size as
 * numbers, bytes in base64, NaN and infinities as strings; Google's Timestamp and Duration as text, wrappers as their value, Struct, Value and ListValue as the JSON that they are.
 */
final class ProtobufJson {
  private static final int BYTES = 32 << 20;  // of one column: a few bytes may stand for a message of many fields

  byte[] of(Field f, Object value) {
    var out = new ByteArrayOutputStream() {
      @Override public synchronized void write(byte[] b, int from, int length) {
        if (count + length > BYTES) throw new SqlError("54000", "JSON exceeds a limit");
        super.write(b, from, length);
      }
    };
    try (JsonGenerator g = Jsonb.FACTORY.createGenerator(out)) {
      field(g, f, value);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toByteArray();
  }

  private void field(JsonGenerator g, Field f, Object value) throws IOException {
    if (f.isMap()) {
      Field of = f.of.fields[1];
      g.writeStartObject();
      if (value != null) for (var e : ((Map<?, ?>) value).entrySet()) {
        g.writeFieldName(f.of.fields[0].isUnsigned64() ? Long.toUnsignedString((Long) e.getKey()) : e.getKey().toString());
        one(g, of, e.getValue());
      }
      g.writeEndObject();
    } else if (f.repeated) {
      g.writeStartArray();
      if (value != null) for (Object each : (List<?>) value) one(g, f, each);
      g.writeEndArray();
    } else if (value == null && f.required) throw ProtobufFormat.required(f);
    else one(g, f, value == null ? f.absent() : value);
  }

  private void one(JsonGenerator g, Field f, Object value) throws IOException {
    if (value == null) g.writeNull();
    else if (f.isMessage) message(g, f.of, (Object[]) value);
    else switch (f.type) {
      case "double", "float" -> {
        double number = ((Number) value).doubleValue();
        if (Double.isFinite(number)) g.writeNumber(value.toString());
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

  private void message(JsonGenerator g, Message m, Object[] values) throws IOException {
    switch (m.known) {
      case TIMESTAMP -> {
        ProtobufTypes.timestamp(values);
        g.writeString(Instant.ofEpochSecond((Long) ProtobufTypes.or(values[0], 0L), (Integer) ProtobufTypes.or(values[1], 0)).toString());
      }
      case DURATION -> {
        ProtobufTypes.duration(values);
        long nanos = (Integer) ProtobufTypes.or(values[1], 0);
        g.writeString(java.math.BigDecimal.valueOf((Long) ProtobufTypes.or(values[0], 0L)).add(java.math.BigDecimal.valueOf(nanos, 9)).stripTrailingZeros().toPlainString() + "s");
      }
      case WRAPPER -> one(g, m.fields[0], ProtobufTypes.or(values[0], m.fields[0].absent()));
      case STRUCT, LIST -> field(g, m.fields[0], values[0]);
      case VALUE -> {
        Field set = null;
        for (Field f : m.fields) if (values[f.place] != null) set = f;
        if (set == null || set.type.equals("enum")) g.writeNull();
        else one(g, set, values[set.place]);
      }
      case NONE -> {
        g.writeStartObject();
        for (Field f : m.fields) {
          g.writeFieldName(f.name);
          field(g, f, values[f.place]);
        }
        g.writeEndObject();
      }
    }
  }
}
