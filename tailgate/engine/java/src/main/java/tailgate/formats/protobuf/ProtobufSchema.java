package tailgate.formats.protobuf;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.formats.Format;

/**
 * The messages and enums of a Protobuf schema, from the JSON that {@code
 * tailgate/engine/plan/sources/protobuf.py} writes:
 *
 * <pre>
 *   {"message": name, "index": [n, …] or null, "columns": [{"name", "spark"}],
 *    "messages": {name: {"entry": bool, "fields": [{"number", "name", "type", "of", "repeated",
 *                                                   "required", "presence", "oneof", "default"}]}},
 *    "enums": {name: {"number": symbol}}}
 * </pre>
 */
final class ProtobufSchema {
  private static final String GOOGLE = "google.protobuf.";
  final JsonNode spec;
  private final Map<String, Message> messages = new HashMap<>();
  private final Map<String, Map<Integer, UTF8String>> enums = new HashMap<>();

  ProtobufSchema(String json) {
    try {
      spec = new ObjectMapper().readTree(json);
    } catch (IOException e) {
      throw new IllegalArgumentException(json, e);
    }
    spec.get("enums").properties().forEach(e -> enums.put(e.getKey(), symbols(e.getValue())));
    spec.get("messages").properties().forEach(m -> messages.put(m.getKey(), new Message(m.getKey(), m.getValue())));
    for (Message m : messages.values()) {
      for (Field f : m.fields) if (f.isMessage) f.message = messages.get(f.typeName);
    }
  }

  private static Map<Integer, UTF8String> symbols(JsonNode spec) {
    Map<Integer, UTF8String> symbols = new HashMap<>();
    spec.properties().forEach(s ->
        symbols.put(Integer.valueOf(s.getKey()), UTF8String.fromString(s.getValue().textValue())));
    return symbols;
  }

  /** Returns the message that the source reads. */
  Message root() { return messages.get(spec.get("message").textValue()); }

  /** Messages of google.protobuf with a special meaning. */
  enum WellKnown { NONE, TIMESTAMP, DURATION, WRAPPER, STRUCT, VALUE, LIST }

  private static WellKnown wellKnown(String name) {
    if (!name.startsWith(GOOGLE)) return WellKnown.NONE;
    return switch (name.substring(GOOGLE.length())) {
      case "Timestamp" -> WellKnown.TIMESTAMP;
      case "Duration" -> WellKnown.DURATION;
      case "Struct" -> WellKnown.STRUCT;
      case "Value" -> WellKnown.VALUE;
      case "ListValue" -> WellKnown.LIST;
      case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue",
          "StringValue", "BytesValue" -> WellKnown.WRAPPER;
      default -> WellKnown.NONE;
    };
  }

  final class Message {
    final String name;
    final Field[] fields;
    final List<String> oneofs;
    final boolean isMapEntry;
    final WellKnown wellKnown;
    private final Map<Integer, Field> fieldsByNumber = new HashMap<>();

    Message(String name, JsonNode spec) {
      this.name = name;
      isMapEntry = spec.path("entry").asBoolean();
      wellKnown = wellKnown(name);
      List<Field> all = new ArrayList<>();
      for (JsonNode f : spec.get("fields")) all.add(new Field(all.size(), f));
      fields = all.toArray(Field[]::new);
      oneofs = all.stream().map(f -> f.oneof).filter(o -> !o.isEmpty()).distinct().toList();
      for (Field f : fields) fieldsByNumber.put(f.number, f);
    }

    /** Returns the field with a number, or null. */
    Field field(int number) { return fieldsByNumber.get(number); }
  }

  final class Field {
    final int index;  // in the message's fields
    final int number;
    final String name;
    final String type;
    final String oneof;  // empty if it is in none
    final boolean isRepeated;
    final boolean isRequired;
    final boolean isMessage;
    final boolean isPackable;
    Message message;  // the type of a message or group
    private final boolean hasPresence;
    private final String typeName;  // of a message or enum
    private final String declaredDefault;  // null if none is declared
    private final Map<Integer, UTF8String> symbols;  // of an enum
    private Object defaultValue;

    Field(int index, JsonNode spec) {
      this.index = index;
      number = spec.get("number").intValue();
      name = spec.get("name").textValue();
      type = spec.get("type").textValue();
      typeName = spec.path("of").asText("");
      oneof = spec.path("oneof").asText("");
      isRepeated = spec.path("repeated").asBoolean();
      isRequired = spec.path("required").asBoolean();
      hasPresence = spec.path("presence").asBoolean();
      declaredDefault = spec.hasNonNull("default") ? spec.get("default").textValue() : null;
      isMessage = type.equals("message") || type.equals("group");
      isPackable = !isMessage && !type.equals("string") && !type.equals("bytes");
      symbols = enums.get(typeName);
    }

    boolean isMap() { return isRepeated && isMessage && message.isMapEntry; }

    boolean isUnsigned64() { return type.equals("uint64") || type.equals("fixed64"); }

    /**
     * Returns the value of a missing field: its default, or null if the schema tells absence from
     * the default.
     */
    Object missingValue() {
      if (defaultValue == null && (declaredDefault != null || !hasPresence)) defaultValue = parse(declaredDefault);
      return defaultValue;
    }

    /** Returns a default as the schema writes it, or the type's default for null. */
    private Object parse(String text) {
      return switch (type) {
        case "int32", "sint32", "sfixed32" -> text == null ? 0 : Integer.decode(text);
        case "int64", "sint64", "sfixed64", "uint32", "fixed32" -> text == null ? 0L : Long.decode(text);
        case "uint64", "fixed64" -> text == null ? 0L : new BigInteger(text).longValue();
        case "float" -> text == null ? 0f : Float.valueOf(javaFloat(text));
        case "double" -> text == null ? 0d : Double.valueOf(javaFloat(text));
        case "bool" -> "true".equals(text);
        case "string" -> UTF8String.fromString(text == null ? "" : text);
        case "bytes" -> text == null ? new byte[0] : text.getBytes(StandardCharsets.ISO_8859_1);
        case "enum" -> text == null ? defaultNumber() : symbolNumber(text);
        default -> null;
      };
    }

    private static String javaFloat(String text) { return text.replace("inf", "Infinity").replace("nan", "NaN"); }

    /** Returns an enum's default: 0 if it has that number, else the first number. */
    private Integer defaultNumber() {
      if (symbols.containsKey(0)) return 0;
      return Integer.valueOf(spec.get("enums").get(typeName).fieldNames().next());
    }

    private Integer symbolNumber(String symbol) {
      for (var s : symbols.entrySet()) if (s.getValue().toString().equals(symbol)) return s.getKey();
      throw new IllegalArgumentException(symbol);
    }

    /**
     * Returns the symbol of an enum's number, or the number's digits if the schema does not have
     * it.
     */
    UTF8String symbol(Object number) {
      UTF8String symbol = symbols.get(number);
      return symbol != null ? symbol : UTF8String.fromString(number.toString());
    }

    SqlError missingRequired() { return Format.malformed("required field " + name + " is missing"); }
  }
}
