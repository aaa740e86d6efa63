package tailgate.functions.ksqldb;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.TextCache;
import tailgate.functions.json.Jsonb;
import tailgate.functions.json.JsonbConstruction;
import tailgate.functions.json.JsonbTree;
import tailgate.functions.json.JsonbTree.JsonNumber;

/**
 * Conversion of JSON to the form of one of ksqlDB's types: of messages, and of values that are cast
 * implicitly.
 *
 * <p>A type is JSON; {@code tailgate/sql/compute/ksqldb/conversion.py} describes it, computes the same,
 * and names the source.
 */
public final class KsqldbConversion {
  private static final Set<String> SCALARS =
      Set.of("boolean", "double", "varchar", "bytes", "int", "bigint", "date", "time", "timestamp");
  private static final int DIGITS_MAX = 19;  // of a whole number
  private static final int PRECISION_MAX = 1000;  // of a decimal
  private static final int CACHE_MAX = 1000;  // types
  private static final int TYPE_BYTES_MAX = 64 << 10;  // of a cached type: those of columns are constants of the query
  private static final TextCache<Object> CACHE = new TextCache<>(CACHE_MAX, TYPE_BYTES_MAX, KsqldbConversion::parsed);

  private KsqldbConversion() {}

  /** Returns a value in the form of a type; null for JSON's null. Throws 22P02, 22003, or 22023 for an invalid type. */
  public static UTF8String ksqldbConvert(UTF8String value, UTF8String type) {
    Object converted = converted(JsonbTree.read(value), typeOf(type));
    return converted == JsonbTree.NULL ? null : JsonbTree.text(converted);
  }

  /** Returns a type from its text. Throws 22023. */
  static Object typeOf(UTF8String type) {
    return CACHE.get(type);
  }

  private static Object parsed(UTF8String type) {
    Object parsed = JsonbTree.read(UTF8String.fromBytes(Jsonb.canonical(type.getBytes())));
    if (!isType(parsed)) throw SqlError.invalidParameter(JsonbTree.text(parsed) + " is not a type of ksqlDB");
    return parsed;
  }

  private static boolean isType(Object type) {
    if (type instanceof String name) return SCALARS.contains(name);
    if (!(type instanceof List<?> parts) || parts.isEmpty()) return false;
    List<?> arguments = parts.subList(1, parts.size());
    if (parts.get(0).equals("struct")) return arguments.stream().allMatch(KsqldbConversion::isField);
    if (parts.get(0).equals("decimal")) {
      return arguments.size() == 2 && arguments.stream().allMatch(KsqldbConversion::isCount)
          && digits(arguments.get(0)) >= Math.max(1, digits(arguments.get(1)));
    }
    return (parts.get(0).equals("array") || parts.get(0).equals("map")) && arguments.size() == 1 && isType(arguments.get(0));
  }

  private static boolean isField(Object field) {
    return field instanceof List<?> pair && pair.size() == 2 && pair.get(0) instanceof String && isType(pair.get(1));
  }

  private static boolean isCount(Object value) {
    if (!(value instanceof JsonNumber n)) return false;
    BigDecimal number = n.value();
    return number.signum() >= 0 && number.compareTo(BigDecimal.valueOf(PRECISION_MAX)) <= 0
        && number.stripTrailingZeros().scale() <= 0;
  }

  /** Returns a value in the form of a type. Throws 22P02 or 22003. */
  static Object converted(Object value, Object type) {
    if (value == JsonbTree.NULL) return value;
    if (type instanceof List<?> parts) {
      switch ((String) parts.get(0)) {
        case "array" -> {
          if (value instanceof List<?> list) return list.stream().map(item -> converted(item, parts.get(1))).toList();
        }
        case "map" -> {
          if (value instanceof Map<?, ?> map) return map(map, parts.get(1));
          if (value instanceof List<?> list && list.stream().allMatch(KsqldbConversion::isEntry)) return map(entries(list), parts.get(1));
        }
        case "struct" -> {
          if (value instanceof Map<?, ?> map) return struct(map, parts);
        }
        default -> {
          return decimal(number(value, "decimal"), digits(parts.get(1)), digits(parts.get(2)));
        }
      }
      throw mismatch(value, (String) parts.get(0));
    }
    return scalar(value, (String) type);
  }

  private static boolean isEntry(Object value) {
    return value instanceof Map<?, ?> entry && entry.get("key") instanceof String && entry.containsKey("value") && entry.size() == 2;
  }

  private static Map<Object, Object> entries(List<?> list) {
    Map<Object, Object> map = new LinkedHashMap<>();
    for (Object entry : list) map.put(((Map<?, ?>) entry).get("key"), ((Map<?, ?>) entry).get("value"));
    return map;
  }

  private static Object map(Map<?, ?> map, Object type) {
    Map<String, Object> out = new TreeMap<>(JsonbTree.KEY_ORDER);
    map.forEach((key, item) -> out.put((String) key, converted(item, type)));
    return out;
  }

  /** Returns a structure; names match regardless of case, and one that is equal comes first. */
  private static Object struct(Map<?, ?> map, List<?> fields) {
    Map<String, Object> folded = new TreeMap<>();
    map.forEach((key, item) -> folded.put(((String) key).toLowerCase(Locale.ROOT), item));
    Map<String, Object> out = new TreeMap<>(JsonbTree.KEY_ORDER);
    for (Object field : fields.subList(1, fields.size())) {
      String name = (String) ((List<?>) field).get(0);
      Object item = map.containsKey(name) ? map.get(name) : folded.get(name.toLowerCase(Locale.ROOT));
      out.put(name, item == null ? JsonbTree.NULL : converted(item, ((List<?>) field).get(1)));
    }
    return out;
  }

  private static Object scalar(Object value, String type) {
    switch (type) {
      case "varchar" -> {
        return text(value);
      }
      case "bytes" -> {
        if (value instanceof String) return value;
      }
      case "boolean" -> {
        if (value instanceof Boolean) return value;
        if (value instanceof String s) return s.equalsIgnoreCase("true");
      }
      case "double" -> {
        double number = number(value, type).doubleValue();
        return JsonbTree.read(JsonbConstruction.jsonbOfFloat8(number));
      }
      default -> {
        BigDecimal number = number(value, type);
        if (number.precision() - number.scale() > DIGITS_MAX) throw new SqlError("22003", type + " out of range");
        BigDecimal whole = number.setScale(0, RoundingMode.DOWN);
        boolean isInt = type.equals("int") || type.equals("date");
        try {
          return new JsonNumber(isInt ? Integer.toString(whole.intValueExact()) : Long.toString(whole.longValueExact()));
        } catch (ArithmeticException e) {
          throw new SqlError("22003", type + " out of range");
        }
      }
    }
    throw mismatch(value, type);
  }

  /** Returns a string, or the text of another value: {@code [a, 1]} of an array, JSON of an object, whose members are sorted by name. */
  public static String text(Object value) {
    if (value instanceof List<?> list) return list.stream().map(KsqldbConversion::text).collect(Collectors.joining(", ", "[", "]"));
    return value instanceof String s ? s : json(value);
  }

  private static String json(Object value) {
    if (value instanceof List<?> list) return list.stream().map(KsqldbConversion::json).collect(Collectors.joining(",", "[", "]"));
    if (!(value instanceof Map<?, ?> map)) return KsqldbJson.ksqldbJsonText(JsonbTree.text(value)).toString();
    Map<String, String> members = new TreeMap<>();
    map.forEach((name, item) -> members.put((String) name, JsonbTree.text(name) + ":" + json(item)));
    return "{" + String.join(",", members.values()) + "}";
  }

  /** Returns the error of a value that is not one of a type. */
  static SqlError mismatch(Object value, String type) {
    return new SqlError("22P02", JsonbTree.text(value) + " is not a value of type " + type);
  }

  /** Returns a number or the number in a string. Throws 22P02. */
  static BigDecimal number(Object value, String type) {
    try {
      if (value instanceof JsonNumber n) return n.value();
      if (value instanceof String s) return new BigDecimal(s.strip());
    } catch (NumberFormatException e) {
      throw mismatch(value, type);
    }
    throw mismatch(value, type);
  }

  private static int digits(Object number) { return ((JsonNumber) number).value().intValueExact(); }

  private static Object decimal(BigDecimal number, int precision, int scale) {
    if (number.precision() - number.scale() > precision - scale && number.signum() != 0) {
      throw new SqlError("22003", "numeric field overflow");
    }
    BigDecimal rounded = number.setScale(scale, RoundingMode.HALF_UP);
    if (rounded.precision() - scale > precision - scale) throw new SqlError("22003", "numeric field overflow");
    return new JsonNumber(rounded.toPlainString());
  }
}
