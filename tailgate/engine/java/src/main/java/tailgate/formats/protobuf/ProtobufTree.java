package tailgate.formats.protobuf;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import tailgate.errors.SqlError;
import tailgate.formats.protobuf.ProtobufSchema.Field;
import tailgate.formats.protobuf.ProtobufSchema.Message;

/**
 * Protobuf values as trees: messages and maps are Map, repeated fields List, texts and symbols
 * UTF8String, bytes byte[], numbers Integer, Long, Float, Double, BigInteger or BigDecimal.
 *
 * <p>A date is the number of its day, a time of day and a timestamp their milliseconds, a
 * {@code confluent.type.Decimal} its number, and a wrapper its value.
 */
final class ProtobufTree {
  private ProtobufTree() {}

  /** Returns the tree of a message's fields, by name. A oneof is a Map with the name of the oneof and its number, too. */
  static Map<String, Object> of(Message m, Object[] values) {
    Map<String, Object> tree = new LinkedHashMap<>();
    for (Field f : m.fields) tree.put(f.name, field(f, values[f.index]));
    for (int i = 0; i < m.oneofs.size(); i++) tree.put(m.oneofs.get(i) + "_" + i, oneof(m, m.oneofs.get(i), values));
    return tree;
  }

  /** Returns the field of a oneof that is set, or null. */
  private static Object oneof(Message m, String name, Object[] values) {
    for (Field f : m.fields) {
      if (f.oneof.equals(name) && values[f.index] != null) return Map.of(f.name, value(f, values[f.index]));
    }
    return null;
  }

  private static Object field(Field f, Object value) {
    if (f.isMap()) {
      Map<String, Object> map = new LinkedHashMap<>();
      if (value != null) ((Map<?, ?>) value).forEach((k, v) -> map.put(k.toString(), value(f.message.fields[1], v)));
      return map;
    }
    if (f.isRepeated) {
      List<Object> list = new ArrayList<>();
      if (value != null) for (Object element : (List<?>) value) list.add(value(f, element));
      return list;
    }
    if (value == null && f.isRequired) throw f.missingRequired();
    return value(f, value == null ? f.missingValue() : value);
  }

  private static Object value(Field f, Object value) {
    if (value == null) return null;
    if (f.isMessage) return message(f.message, (Object[]) value);
    if (f.type.equals("enum")) return f.symbol(value);
    return f.isUnsigned64() ? new BigInteger(Long.toUnsignedString((Long) value)) : value;
  }

  private static Object message(Message m, Object[] values) {
    return switch (m.wellKnown) {
      case TIMESTAMP -> Math.floorDiv(WellKnownValues.timestampMicros(values), 1000L);
      case WRAPPER -> value(m.fields[0], values[0] == null ? m.fields[0].missingValue() : values[0]);
      default -> switch (m.name) {
        case "google.type.Date" -> day(number(values[0]), number(values[1]), number(values[2]));
        case "google.type.TimeOfDay" ->
            ((number(values[0]) * 60L + number(values[1])) * 60 + number(values[2])) * 1000 + number(values[3]) / 1_000_000;
        case "confluent.type.Decimal" -> decimal((byte[]) values[0], number(values[2]));
        default -> of(m, values);
      };
    };
  }

  private static int number(Object value) { return value == null ? 0 : ((Number) value).intValue(); }

  private static int day(int year, int month, int day) {
    try {
      return (int) LocalDate.of(year, month, day).toEpochDay();
    } catch (DateTimeException e) {
      throw new SqlError("22008", "date out of range: " + year + "-" + month + "-" + day);
    }
  }

  private static BigDecimal decimal(byte[] unscaled, int scale) {
    return unscaled == null || unscaled.length == 0 ? BigDecimal.ZERO : new BigDecimal(new BigInteger(unscaled), scale);
  }
}
