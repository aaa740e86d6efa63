package tailgate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.*;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The messages of a Protobuf schema, as engine/plan/sources/protobuf.py writes them:
 *
 * <pre>   {"message": name, "index": [n, …] or null, "columns": [{"name", "spark"}],
 *    "messages": {name: {"entry": bool, "fields": [{"number", "name", "type", "of", "repeated", "required", "presence", "oneof", "default"}]}}, "enums": {name: {"number": symbol}}}</pre>
 */
final class ProtobufTypes {
  private static final String GOOGLE = "google.protobuf.";
  final JsonNode spec;
  private final Map<String, Message> messages = new HashMap<>();
  private final Map<String, Map<Integer, UTF8String>> enums = new HashMap<>();

  ProtobufTypes(String json) {
    try {
      spec = new ObjectMapper().readTree(json);
    } catch (IOException e) {
      throw new IllegalArgumentException(json, e);
    }
    spec.get("enums").properties().forEach(e -> {
      Map<Integer, UTF8String> symbols = new HashMap<>();
      e.getValue().properties().forEach(v -> symbols.put(Integer.valueOf(v.getKey()), UTF8String.fromString(v.getValue().textValue())));
      enums.put(e.getKey(), symbols);
    });
    spec.get("messages").properties().forEach(m -> messages.put(m.getKey(), new Message(m.getKey(), m.getValue())));
    for (Message m : messages.values()) for (Field f : m.fields) f.of = messages.get(f.name(m));
  }

  Message root() { return messages.get(spec.get("message").textValue()); }

  /** What is special about a message's meaning. */
  enum Known { NONE, TIMESTAMP, DURATION, WRAPPER, STRUCT, VALUE, LIST }

  final class Message {
    final String name;
    final boolean entry;
    final Field[] fields;
    final Known known;
    private final Map<Integer, Field> numbered = new HashMap<>();

    Message(String name, JsonNode of) {
      this.name = name;
      entry = of.path("entry").asBoolean();
      List<Field> all = new ArrayList<>();
      for (JsonNode f : of.get("fields")) all.add(new Field(all.size(), f));
      fields = all.toArray(Field[]::new);
      for (Field f : fields) numbered.put(f.number, f);
      known = !name.startsWith(GOOGLE) ? Known.NONE : switch (name.substring(GOOGLE.length())) {
        case "Timestamp" -> Known.TIMESTAMP;
        case "Duration" -> Known.DURATION;
        case "Struct" -> Known.STRUCT;
        case "Value" -> Known.VALUE;
        case "ListValue" -> Known.LIST;
        case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue" -> Known.WRAPPER;
        default -> Known.NONE;
      };
    }

    /** Null if there is none of this number. */
    Field field(int number) { return numbered.get(number); }
  }

  final class Field {
    final int place, number;
    final String name, type, oneof;
    final boolean repeated, required, presence, packable, isMessage;
    final Map<Integer, UTF8String> symbols;
    private final String named, given;
    Message of;  // of a message or a group
    private Object absent;

    Field(int place, JsonNode f) {
      this.place = place;
      number = f.get("number").intValue();
      name = f.get("name").textValue();
      type = f.get("type").textValue();
      named = f.path("of").asText("");
      oneof = f.path("oneof").asText("");
      repeated = f.path("repeated").asBoolean();
      required = f.path("required").asBoolean();
      presence = f.path("presence").asBoolean();
      given = f.hasNonNull("default") ? f.get("default").textValue() : null;
      isMessage = type.equals("message") || type.equals("group");
      packable = !isMessage && !type.equals("string") && !type.equals("bytes");
      symbols = enums.get(named);
    }

    private String name(Message around) { return isMessage ? named : ""; }

    boolean isMap() { return repeated && isMessage && of.entry; }

    /** What a field that was not sent holds: null if that can be told. */
    Object absent() {
      if (absent == null && (given != null || !presence)) absent = value(given);
      return absent;
    }

    /** A default as the schema writes it, or the type's own. */
    private Object value(String text) {
      return switch (type) {
        case "int32", "sint32", "sfixed32" -> text == null ? 0 : Integer.decode(text);
        case "int64", "sint64", "sfixed64", "uint32", "fixed32" -> text == null ? 0L : Long.decode(text);
        case "uint64", "fixed64" -> text == null ? 0L : new BigInteger(text).longValue();
        case "float" -> text == null ? 0f : Float.valueOf(floating(text));
        case "double" -> text == null ? 0d : Double.valueOf(floating(text));
        case "bool" -> "true".equals(text);
        case "string" -> UTF8String.fromString(text == null ? "" : text);
        case "bytes" -> text == null ? new byte[0] : text.getBytes(java.nio.charset.StandardCharsets.ISO_8859_1);
        case "enum" -> text == null ? symbols.keySet().stream().filter(n -> n == 0).findFirst().orElse(first()) : number(text);
        default -> null;
      };
    }

    private Integer first() { return Integer.valueOf(spec.get("enums").get(named).fieldNames().next()); }

    private Integer number(String symbol) {
      for (var e : symbols.entrySet()) if (e.getValue().toString().equals(symbol)) return e.getKey();
      throw new IllegalArgumentException(symbol);
    }

    private static String floating(String text) { return text.replace("inf", "Infinity").replace("nan", "NaN"); }

    /** An enum's symbol; digits where the schema has none. */
    UTF8String symbol(Object value) {
      UTF8String symbol = symbols.get(value);
      return symbol != null ? symbol : UTF8String.fromString(value.toString());
    }

    boolean isUnsigned64() { return type.equals("uint64") || type.equals("fixed64"); }
  }

  /** Of a Timestamp, in microseconds since the epoch. */
  static long timestamp(Object[] message) {
    long seconds = (Long) or(message[0], 0L);
    int nanos = (Integer) or(message[1], 0);
    if (seconds < -62_135_596_800L || seconds > 253_402_300_799L || nanos < 0 || nanos > 999_999_999) throw new SqlError("22008", "timestamp out of range: " + seconds + " s and " + nanos + " ns");
    return seconds * 1_000_000 + nanos / 1000;
  }

  /** Of a Duration, in microseconds. */
  static long duration(Object[] message) {
    long seconds = (Long) or(message[0], 0L);
    int nanos = (Integer) or(message[1], 0);
    if (Math.abs(seconds) > 315_576_000_000L || Math.abs((long) nanos) > 999_999_999 || seconds > 0 && nanos < 0 || seconds < 0 && nanos > 0)
      throw new SqlError("22008", "interval out of range: " + seconds + " s and " + nanos + " ns");
    return seconds * 1_000_000 + nanos / 1000;
  }

  static Decimal unsigned(long value) { return Decimal.apply(new BigDecimal(new BigInteger(Long.toUnsignedString(value))), 20, 0); }

  static Object or(Object value, Object otherwise) { return value == null ? otherwise : value; }
}
