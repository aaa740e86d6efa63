package tailgate;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.LocalTime;
import java.time.OffsetTime;
import java.util.*;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * One column's values as Kafka Connect's JSON converter writes them, to their stored form.
 *
 * <p>With a schema its names say the unit. Without one the declared type does, under Debezium's default settings:
 *
 * <pre>   numeric            a number; a string in base64 of the unscaled value, with the declared scale; {"scale", "value"}; a string of digits if `decimals` is string
 *   timestamp[tz](p)   a number of milliseconds for p ≤ 3, else of microseconds; without p, MySQL's and MariaDB's have p = 0, PostgreSQL's 6; or a string
 *   time(p)            the same of a day, but MySQL's and MariaDB's are always microseconds; or a string
 *   date, interval     days; microseconds; or a string
 *   jsonb              a string with JSON; or any other value
 *   bytea              base64, or an array of numbers; a BIT is one, its lowest byte first</pre>
 *
 * <p>Source: Debezium 3, "Data type mappings"; Kafka Connect, JsonConverter.
 */
final class ConnectValue {
  private static final String DECIMAL = "org.apache.kafka.connect.data.Decimal";
  private static final Map<String, Long> NANOS = Map.of("io.debezium.time.Timestamp", 1_000_000L, "io.debezium.time.MicroTimestamp", 1_000L, "io.debezium.time.NanoTimestamp", 1L,
      "org.apache.kafka.connect.data.Timestamp", 1_000_000L, "io.debezium.time.Time", 1_000_000L, "io.debezium.time.MicroTime", 1_000L, "io.debezium.time.NanoTime", 1L,
      "org.apache.kafka.connect.data.Time", 1_000_000L, "io.debezium.time.MicroDuration", 1_000L, "io.debezium.time.NanoDuration", 1L);
  private static final Pattern ISO = Pattern.compile("(-?)P(?:(-?\\d+)Y)?(?:(-?\\d+)M)?(?:(-?\\d+)W)?(?:(-?\\d+)D)?(?:T(?:(-?\\d+)H)?(?:(-?\\d+)M)?(?:(-?\\d+(?:\\.\\d+)?)S)?)?");
  private static final Pattern MILLIS = Pattern.compile("-?\\d+\\.\\d{3}");  // as a sink writes a time
  private static final Pattern UUID = Pattern.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}");
  private static final long DAY = 86_400_000_000L;
  final String name;
  final DataType type;
  private final String kind;
  private final boolean array, digits;
  private final int precision;  // -1: none was declared

  /** A number whose unit depends on the connector, which stands behind the row. */
  private record Undecided(long value) {}

  private ConnectValue(String name, String kind, DataType type, boolean array, int precision, boolean digits) {
    this.name = name;
    this.kind = kind;
    this.type = type;
    this.array = array;
    this.precision = precision;
    this.digits = digits;
  }

  static ConnectValue of(JsonNode c, String decimals) {
    return new ConnectValue(c.get("name").textValue(), c.get("type").textValue(), StructType.fromDDL("x " + c.get("spark").textValue()).apply(0).dataType(), c.path("array").asBoolean(),
        c.path("precision").asInt(-1), decimals.equals("string"));
  }

  /** A row whose units are known now. */
  static GenericInternalRow settled(List<ConnectValue> columns, Object[] values, String connector) {
    for (int i = 0; i < values.length; i++) if (values[i] instanceof Undecided u) values[i] = columns.get(i).time(u.value, columns.get(i).unit(connector));
    return new GenericInternalRow(values);
  }

  private long unit(String connector) {
    boolean mysql = connector.equals("mysql") || connector.equals("mariadb");
    if (!mysql && !connector.isEmpty() && !connector.equals("postgresql")) throw new SqlError("22P02", "column \"" + name + "\": the unit of its times is not known of connector " + connector + "; declare " + kind + "(p)");
    if (mysql) return kind.startsWith("timestamp") && precision <= 3 ? 1_000_000 : 1_000;
    return precision >= 0 && precision <= 3 ? 1_000_000 : 1_000;
  }

  /** The value at which the parser stands; `schema` may be null. */
  Object read(JsonParser p, ConnectSchema.Field schema) throws IOException {
    if (p.currentToken() == JsonToken.VALUE_NULL) return null;
    if (!array) return one(p, schema, type);
    if (p.currentToken() != JsonToken.START_ARRAY) throw mismatch(p);
    DataType element = ((ArrayType) type).elementType();
    List<Object> elements = new ArrayList<>();
    while (p.nextToken() != JsonToken.END_ARRAY) {
      Object value = p.currentToken() == JsonToken.VALUE_NULL ? null : one(p, schema, element);
      elements.add(value instanceof Undecided u ? time(u.value, unit("")) : value);
    }
    return new GenericArrayData(elements.toArray());
  }

  private Object one(JsonParser p, ConnectSchema.Field schema, DataType type) throws IOException {
    JsonToken token = p.currentToken();
    boolean whole = token == JsonToken.VALUE_NUMBER_INT, text = token == JsonToken.VALUE_STRING;
    switch (kind) {
      case "int2", "int4", "int8", "oid" -> {
        if (whole) return Numbers.of(new BigDecimal(p.getText()), type);
        if (text && schema != null && schema.name().equals(DECIMAL)) return Numbers.of(unscaled(p, schema.scale()), type);
      }
      case "numeric" -> {
        if (token.isNumeric()) return Numbers.of(new BigDecimal(p.getText()), type);
        if (token == JsonToken.START_OBJECT) return Numbers.of(variable(p), type);
        if (text) return decimal(p, schema, (DecimalType) type);
      }
      case "float4", "float8" -> {
        if (text || token.isNumeric()) {
          UTF8String number = text(p);
          if (type == DataTypes.FloatType) return TextInput.toFloat4(number);
          return TextInput.toFloat8(number);
        }
      }
      case "bool" -> {
        if (token.isBoolean()) return token == JsonToken.VALUE_TRUE;
        if (whole && (p.getText().equals("0") || p.getText().equals("1"))) return p.getText().equals("1");
      }
      case "bytea" -> {
        if (token == JsonToken.START_ARRAY) return bytes(p);
        if (text) return p.getText().equals(Captured.UNAVAILABLE.toString()) ? Captured.UNAVAILABLE.getBytes() : p.getBinaryValue();
      }
      case "date" -> {
        if (whole) return Math.toIntExact(p.getLongValue());
        if (text) return TimeInput.toDate(text(p));
      }
      case "timestamp", "timestamptz", "time", "interval" -> {
        if (whole && schema != null && NANOS.containsKey(schema.name())) return time(p.getLongValue(), NANOS.get(schema.name()));
        if (whole && kind.equals("interval")) return time(p.getLongValue(), 1_000);
        if (whole) return new Undecided(p.getLongValue());
        if (text) return spelled(p);
      }
      case "uuid" -> {
        if (text) {
          if (!UUID.matcher(p.getText()).matches()) throw TextInput.invalid("uuid", text(p));
          return UTF8String.fromString(p.getText().toLowerCase(Locale.ROOT));
        }
      }
      case "jsonb" -> {
        if (!text) return UTF8String.fromBytes(Jsonb.canonical(p, 64));
        UTF8String json = text(p);
        return json.equals(Captured.UNAVAILABLE) ? Captured.UNAVAILABLE_JSONB : UTF8String.fromBytes(Jsonb.canonical(json.getBytes()));
      }
      default -> {
        if (text) return text(p);
      }
    }
    throw mismatch(p);
  }

  /** As a sink writes bytes: an array of numbers. */
  private byte[] bytes(JsonParser p) throws IOException {
    var out = new java.io.ByteArrayOutputStream();
    while (p.nextToken() != JsonToken.END_ARRAY) {
      if (p.currentToken() != JsonToken.VALUE_NUMBER_INT || p.getIntValue() < 0 || p.getIntValue() > 255) throw mismatch(p);
      out.write(p.getIntValue());
    }
    return out.toByteArray();
  }

  private static UTF8String text(JsonParser p) throws IOException { return Utf8.text(p.getText()); }

  // ---- numbers --------------------------------------------------------------------------------------------------------------------

  private Object decimal(JsonParser p, ConnectSchema.Field schema, DecimalType type) throws IOException {
    if (schema == null ? digits : schema.name().isEmpty()) return TextInput.toNumeric(text(p), type.precision(), type.scale());
    if (schema != null) return Numbers.of(unscaled(p, schema.scale()), type);
    if (precision < 0) throw new SqlError("22P02", "column \"" + name + "\": a decimal in base64 needs its scale; declare numeric(p, s)");
    return Numbers.of(unscaled(p, precision), type);
  }

  private BigDecimal unscaled(JsonParser p, int scale) throws IOException {
    byte[] bytes;
    try {
      if (p.getText().length() % 4 != 0) throw new IllegalArgumentException();
      bytes = Base64.getDecoder().decode(p.getText());
    } catch (IllegalArgumentException e) {
      throw new SqlError("22P02", "column \"" + name + "\": \"" + text(p) + "\" is not the base64 of a decimal; if the connector writes decimals as strings, say WITH (decimal_handling_mode = 'string')");
    }
    return new BigDecimal(integer(bytes), scale);
  }

  private static BigInteger integer(byte[] bytes) { return bytes.length == 0 ? BigInteger.ZERO : new BigInteger(bytes); }

  /** {"scale": n, "value": base64} */
  private BigDecimal variable(JsonParser p) throws IOException {
    int scale = 0;
    BigInteger value = null;
    while (p.nextToken() != JsonToken.END_OBJECT) {
      String field = p.currentName();
      p.nextToken();
      if (field.equals("scale")) scale = p.getIntValue();
      else if (field.equals("value")) value = integer(p.getBinaryValue());
      else p.skipChildren();
    }
    if (value == null) throw new SqlError("22P02", "column \"" + name + "\": the object is no decimal");
    return new BigDecimal(value, scale);
  }

  // ---- times ----------------------------------------------------------------------------------------------------------------------

  /** A number of `nanos` each. */
  private Object time(long value, long nanos) {
    long micros;
    try {
      micros = nanos >= 1000 ? Math.multiplyExact(value, nanos / 1000) : Math.floorDiv(value, 1000 / nanos);
    } catch (ArithmeticException e) {
      throw new SqlError("22008", "column \"" + name + "\": " + value + " is out of range");
    }
    return switch (kind) {
      case "interval" -> interval(0, 0, micros);
      case "time" -> ofDay(micros);
      default -> micros;
    };
  }

  private long ofDay(long micros) {
    if (micros < 0 || micros > DAY) throw new SqlError("22008", "column \"" + name + "\": a time of " + micros + " microseconds is out of range; declare it as interval");
    return micros;
  }

  private static GenericInternalRow interval(int months, int days, long micros) { return new GenericInternalRow(new Object[] {months, days, micros}); }

  private Object spelled(JsonParser p) throws IOException {
    String text = text(p).toString();
    switch (kind) {
      case "timestamp", "timestamptz" -> {
        if (MILLIS.matcher(text).matches()) return new BigDecimal(text).movePointRight(3).longValueExact();
      }
      default -> {}
    }
    switch (kind) {
      case "timestamp" -> { return TimeInput.toTimestamp(UTF8String.fromString(text)); }
      case "timestamptz" -> { return TimeInput.toTimestamptz(UTF8String.fromString(text)); }
      case "time" -> {
        try {
          LocalTime time = text.matches(".*([Zz]|[+-]\\d\\d(:?\\d\\d)?)$") ? OffsetTime.parse(text).toLocalTime() : LocalTime.parse(text);
          return time.toNanoOfDay() / 1000;
        } catch (DateTimeException e) {
          throw new SqlError("22007", "invalid input syntax for type time: \"" + text + "\"");
        }
      }
      default -> { return duration(text); }
    }
  }

  private static GenericInternalRow duration(String text) {
    Matcher m = ISO.matcher(text);
    if (!m.matches()) throw new SqlError("22007", "invalid input syntax for type interval: \"" + text + "\"");
    int sign = m.group(1).isEmpty() ? 1 : -1;
    long months = 12 * number(m.group(2)) + number(m.group(3)), days = 7 * number(m.group(4)) + number(m.group(5));
    BigDecimal seconds = new BigDecimal(m.group(8) == null ? "0" : m.group(8)).add(BigDecimal.valueOf(3600 * number(m.group(6)) + 60 * number(m.group(7))));
    return interval(Math.toIntExact(sign * months), Math.toIntExact(sign * days), sign * seconds.movePointRight(6).longValue());
  }

  private static long number(String digits) { return digits == null ? 0 : Long.parseLong(digits); }

  private SqlError mismatch(JsonParser p) {
    String given = switch (p.currentToken()) {
      case START_OBJECT -> "object";
      case START_ARRAY -> "array";
      case VALUE_STRING -> "string";
      case VALUE_TRUE, VALUE_FALSE -> "boolean";
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> "number";
      default -> "value";
    };
    return new SqlError("22P02", "column \"" + name + "\" is of type " + type.catalogString() + " but the value is a JSON " + given);
  }
}
