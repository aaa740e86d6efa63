package tailgate.functions.ksqldb;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.json.JsonbTree;
import tailgate.functions.json.JsonbTree.JsonNumber;

/**
 * CAST of arrays, maps and structures of ksqlDB: each value inside is cast as it is alone.
 *
 * <p>{@code tailgate/sql/compute/ksqldb/casts.py} describes it, computes the same, and names the source.
 */
public final class KsqldbCasts {
  private static final long DAY_MS = 86_400_000;
  private static final String DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}";
  private static final String TIME = "[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,3})?)?";
  private static final Pattern DATE_PATTERN = Pattern.compile(DATE);
  private static final Pattern TIME_PATTERN = Pattern.compile(TIME);
  private static final Pattern TIMESTAMP_PATTERN = Pattern.compile("(" + DATE + ")(?:T(" + TIME + ")(Z|[+-][0-9]{2}:[0-9]{2})?)?");
  // the ends of the date and of the time may be missing
  private static final String DAY = "0000-01-01", MIDNIGHT = "00:00";
  private static final int UNSEPARATED = "+0530".length();  // a zone without the colon
  private static final Pattern PARTIAL_PATTERN =
      Pattern.compile(
          "([0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2})?)?)"
              + "(?:(?<=-[0-9]{2}-[0-9]{2})T([0-9]{2}(?::[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,3})?)?)?)(Z|[+-][0-9]{2}:?[0-9]{2})?)?");
  private static final DateTimeFormatter ISO = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS", Locale.ROOT);
  private static final long MIN_MS = LocalDate.of(1, 1, 1).toEpochDay() * DAY_MS;
  private static final long MAX_MS = LocalDate.of(10000, 1, 1).toEpochDay() * DAY_MS - 1;

  private KsqldbCasts() {}

  /** Returns an array, map or structure of a type as another type. Throws 22P02, 22003, 22007, 22008, or 22023 for an invalid type. */
  public static UTF8String ksqldbCast(UTF8String value, UTF8String source, UTF8String target) {
    Object result = cast(JsonbTree.read(value), KsqldbConversion.typeOf(source), KsqldbConversion.typeOf(target));
    return result == JsonbTree.NULL ? null : JsonbTree.text(result);
  }

  /** Returns the text of a TIMESTAMP with the end of its date and of its time, which it may lack; another text as it is. */
  public static UTF8String ksqldbWholeTimestamp(UTF8String value) {
    Matcher match = PARTIAL_PATTERN.matcher(value.toString());
    if (!match.matches()) return value;
    String zone = match.group(3) == null ? "" : match.group(3);
    if (zone.length() == UNSEPARATED) zone = zone.substring(0, 3) + ":" + zone.substring(3);
    String time = completed(match.group(2) == null ? MIDNIGHT : match.group(2), MIDNIGHT);
    return UTF8String.fromString(completed(match.group(1), DAY) + "T" + time + zone);
  }

  /** Returns an array, map or structure as text, as Java writes it: [a, b], {k=v}, Struct{F=v}. Fields that are NULL are left out. */
  public static UTF8String ksqldbNestedText(UTF8String value, UTF8String type) {
    return UTF8String.fromString(text(JsonbTree.read(value), KsqldbConversion.typeOf(type)));
  }

  /** Returns a value as JSON without blanks: the fields of structures are in the order of the type, and a DOUBLE is as in Java. */
  public static UTF8String ksqldbTypedJson(UTF8String value, UTF8String type) {
    Object parsed = JsonbTree.read(value);
    return UTF8String.fromString(parsed == JsonbTree.NULL ? "null" : json(parsed, KsqldbConversion.typeOf(type)));
  }

  private static String json(Object value, Object type) {
    if (value == null || value == JsonbTree.NULL) return "null";
    if (type instanceof List<?> parts && value instanceof List<?> list && parts.get(0).equals("array")) {
      return list.stream().map(item -> json(item, parts.get(1))).collect(Collectors.joining(",", "[", "]"));
    }
    if (type instanceof List<?> parts && value instanceof Map<?, ?> map) {
      List<String> members = new ArrayList<>();
      if (parts.get(0).equals("map")) map.forEach((key, item) -> members.add(JsonbTree.text(key) + ":" + json(item, parts.get(1))));
      else {
        for (Object part : parts.subList(1, parts.size())) {
          List<?> field = (List<?>) part;
          members.add(JsonbTree.text(field.get(0)) + ":" + json(map.get(field.get(0)), field.get(1)));
        }
      }
      return "{" + String.join(",", members) + "}";
    }
    if (type.equals("double") && value instanceof JsonNumber n) return Double.toString(n.value().doubleValue());
    return JsonbTree.text(value).toString();
  }

  private static Object cast(Object value, Object source, Object target) {
    if (value == JsonbTree.NULL || source.equals(target)) return value;
    String from = kind(source), to = kind(target);
    if (from.equals(to)) {
      switch (from) {
        case "array" -> {
          if (value instanceof List<?> list) return list.stream().map(item -> cast(item, inner(source), inner(target))).toList();
        }
        case "map" -> {
          if (value instanceof Map<?, ?> map) {
            Map<String, Object> out = new TreeMap<>(JsonbTree.KEY_ORDER);
            map.forEach((key, item) -> out.put((String) key, cast(item, inner(source), inner(target))));
            return out;
          }
        }
        case "struct" -> {
          if (value instanceof Map<?, ?> map) return struct(map, (List<?>) source, (List<?>) target);
        }
        default -> { }
      }
    }
    if (to.equals("varchar")) return text(value, source);
    if (from.equals("varchar") && isMoment(to) && value instanceof String s) return number(moment(s, to));
    if (from.equals("date") && to.equals("timestamp")) {
      return new JsonNumber(decimal(value).multiply(BigDecimal.valueOf(DAY_MS)).toPlainString());
    }
    if (from.equals("timestamp") && to.equals("date")) return number(Math.floorDiv(whole(value), DAY_MS));
    if (from.equals("timestamp") && to.equals("time")) return number(Math.floorMod(whole(value), DAY_MS));
    if (from.equals("double") && to.equals("int")) return number((int) KsqldbConversion.number(value, "double").doubleValue());
    if (from.equals("double") && to.equals("bigint")) return number((long) KsqldbConversion.number(value, "double").doubleValue());
    if ((from.equals("decimal") || from.equals("bigint")) && to.equals("int")) return number(decimal(value).intValue());
    if (from.equals("decimal") && to.equals("bigint")) return number(decimal(value).longValue());
    return KsqldbConversion.converted(value, target);
  }

  private static Object struct(Map<?, ?> value, List<?> source, List<?> target) {
    Map<String, List<?>> fields = new HashMap<>();
    for (Object part : source.subList(1, source.size())) fields.put((String) ((List<?>) part).get(0), (List<?>) part);
    Map<String, Object> out = new TreeMap<>(JsonbTree.KEY_ORDER);
    for (Object part : target.subList(1, target.size())) {
      String name = (String) ((List<?>) part).get(0);
      List<?> field = fields.get(name);
      Object item = field == null ? null : value.get(field.get(0));
      out.put(name, item == null ? JsonbTree.NULL : cast(item, field.get(1), ((List<?>) part).get(1)));
    }
    return out;
  }

  private static String kind(Object type) { return type instanceof List<?> parts ? (String) parts.get(0) : (String) type; }

  private static Object inner(Object type) { return ((List<?>) type).get(1); }

  private static boolean isMoment(String kind) { return kind.equals("date") || kind.equals("time") || kind.equals("timestamp"); }

  private static Object number(long value) { return new JsonNumber(Long.toString(value)); }

  private static BigDecimal decimal(Object value) { return KsqldbConversion.number(value, "double"); }

  private static long whole(Object value) {
    BigDecimal number = decimal(value).setScale(0, RoundingMode.DOWN);
    if (number.precision() > 18) throw new SqlError("22008", "timestamp out of range");
    return number.longValue();
  }

  private static String text(Object value, Object type) {
    if (value == JsonbTree.NULL) return "null";
    if (type instanceof List<?> parts && value instanceof List<?> list && parts.get(0).equals("array")) {
      return list.stream().map(item -> text(item, parts.get(1))).collect(Collectors.joining(", ", "[", "]"));
    }
    if (type instanceof List<?> parts && value instanceof Map<?, ?> map) {
      boolean isMap = parts.get(0).equals("map");
      List<String> entries = new ArrayList<>();
      if (isMap) map.forEach((key, item) -> entries.add(key + "=" + text(item, parts.get(1))));
      for (Object field : isMap ? List.of() : parts.subList(1, parts.size())) {
        String name = (String) ((List<?>) field).get(0);
        Object item = map.get(name);
        if (item != null && item != JsonbTree.NULL) entries.add(name + "=" + text(item, ((List<?>) field).get(1)));
      }
      return isMap ? "{" + String.join(", ", entries) + "}" : "Struct{" + String.join(",", entries) + "}";
    }
    if (type.equals("double")) return Double.toString(KsqldbConversion.number(value, "double").doubleValue());
    if (type instanceof String kind && isMoment(kind)) return momentText(whole(value), kind);
    return value instanceof String s ? s : JsonbTree.text(value).toString();
  }

  /** Returns days or milliseconds as the text of a DATE, TIME or TIMESTAMP. Throws 22008. */
  private static String momentText(long number, String kind) {
    long millis = kind.equals("date") ? Math.multiplyHigh(number, DAY_MS) == number >> 63 ? number * DAY_MS : Long.MAX_VALUE : number;
    if (millis < MIN_MS || millis > MAX_MS) throw new SqlError("22008", kind + " out of range");
    if (kind.equals("date")) return LocalDate.ofEpochDay(number).toString();
    if (kind.equals("timestamp")) return ISO.format(Instant.ofEpochMilli(millis).atOffset(ZoneOffset.UTC));
    return LocalTime.ofNanoOfDay(Math.floorMod(millis, DAY_MS) * 1_000_000).toString();
  }

  /** Returns the days or milliseconds of the text of a DATE, TIME or TIMESTAMP. Throws 22007. */
  private static long moment(String text, String kind) {
    try {
      if (kind.equals("date") && DATE_PATTERN.matcher(text).matches() && !text.startsWith("0000")) {
        return LocalDate.parse(text).toEpochDay();
      }
      if (kind.equals("time") && TIME_PATTERN.matcher(text).matches()) return LocalTime.parse(text).toNanoOfDay() / 1_000_000;
      Matcher match = TIMESTAMP_PATTERN.matcher(text);
      if (kind.equals("timestamp") && match.matches() && !text.startsWith("0000")) {
        LocalTime time = match.group(2) == null ? LocalTime.MIDNIGHT : LocalTime.parse(match.group(2));
        Duration zone = Duration.ofSeconds(match.group(3) == null ? 0 : ZoneOffset.of(match.group(3)).getTotalSeconds());
        return LocalDate.parse(match.group(1)).toEpochDay() * DAY_MS + time.toNanoOfDay() / 1_000_000 - zone.toMillis();
      }
    } catch (DateTimeException e) {
      // the same error as for another form
    }
    throw new SqlError("22007", "invalid input syntax for type " + kind.toUpperCase(Locale.ROOT) + ": \"" + text + "\"");
  }

  /** Returns a text with the end that it lacks. */
  private static String completed(String text, String whole) {
    return text.length() < whole.length() ? text + whole.substring(text.length()) : text;
  }
}
