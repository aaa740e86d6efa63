package tailgate.formats.connect;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.DateTimeException;
import java.time.LocalTime;
import java.time.OffsetTime;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.formats.json.JsonTypes;
import tailgate.functions.TextInput;
import tailgate.functions.json.Jsonb;
import tailgate.functions.numeric.NumberInput;
import tailgate.functions.numeric.Numbers;
import tailgate.functions.text.Utf8;
import tailgate.functions.time.Interval;
import tailgate.functions.time.TimeInput;

/**
 * Decodes one column's values, as Kafka Connect's JSON converter writes them, to their stored form.
 *
 * <p>If the message has a schema, its logical names determine the units. Otherwise the declared
 * type does, by Debezium's default settings:
 *
 * <pre>
 *   numeric            a number; a string with the unscaled value in base64, with the declared
 *                      scale; {"scale", "value"}; a string of digits if decimals are text
 *   timestamp[tz](p)   milliseconds for p ≤ 3, else microseconds; without p, p is 0 for MySQL and
 *                      MariaDB, and 6 for PostgreSQL; or a string
 *   time(p)            the same since midnight, but always microseconds for MySQL and MariaDB
 *   date, interval     days; microseconds; or a string
 *   jsonb              a string with JSON; or any other value
 *   bytea              base64, or an array of numbers; a BIT is a bytea, its lowest byte first
 * </pre>
 *
 * <p>Source: Debezium 3, "Data type mappings"; Kafka Connect, JsonConverter.
 */
final class ConnectColumn {
  private static final String DECIMAL = "org.apache.kafka.connect.data.Decimal";
  private static final long MILLISECOND_NS = 1_000_000;
  private static final long MICROSECOND_NS = 1_000;
  private static final Map<String, Long> UNITS_NS = Map.of(
      "io.debezium.time.Timestamp", MILLISECOND_NS,
      "io.debezium.time.MicroTimestamp", MICROSECOND_NS,
      "io.debezium.time.NanoTimestamp", 1L,
      "org.apache.kafka.connect.data.Timestamp", MILLISECOND_NS,
      "io.debezium.time.Time", MILLISECOND_NS,
      "io.debezium.time.MicroTime", MICROSECOND_NS,
      "io.debezium.time.NanoTime", 1L,
      "org.apache.kafka.connect.data.Time", MILLISECOND_NS,
      "io.debezium.time.MicroDuration", MICROSECOND_NS,
      "io.debezium.time.NanoDuration", 1L);
  private static final Pattern ISO_DURATION = Pattern.compile(
      "(-?)P(?:(-?\\d+)Y)?(?:(-?\\d+)M)?(?:(-?\\d+)W)?(?:(-?\\d+)D)?"
          + "(?:T(?:(-?\\d+)H)?(?:(-?\\d+)M)?(?:(-?\\d+(?:\\.\\d+)?)S)?)?");
  private static final Pattern MILLISECONDS = Pattern.compile("-?\\d+\\.\\d{3}");  // a sink's timestamps
  private static final Pattern UUID = Pattern.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}");
  private static final Pattern ZONED_TIME = Pattern.compile(".*([Zz]|[+-]\\d\\d(:?\\d\\d)?)$");
  private static final long DAY_MICROS = 86_400_000_000L;
  final String name;
  final DataType type;
  private final String declaredType;  // of the elements if it is an array
  private final boolean isArray;
  private final boolean decimalsAreText;
  private final int precision;  // -1 if none is declared

  /** A number whose unit depends on the connector, which comes after the row in a message. */
  private record UnknownUnit(long value) {}

  private ConnectColumn(JsonNode column, boolean decimalsAreText) {
    String ddl = "x " + column.get("spark").textValue();
    this.name = column.get("name").textValue();
    this.declaredType = column.get("type").textValue();
    this.type = StructType.fromDDL(ddl).apply(0).dataType();
    this.isArray = column.path("array").asBoolean();
    this.precision = column.path("precision").asInt(-1);
    this.decimalsAreText = decimalsAreText;
  }

  static ConnectColumn of(JsonNode column, boolean decimalsAreText) {
    return new ConnectColumn(column, decimalsAreText);
  }

  /** Returns a row of values, after the connector has become known. */
  static GenericInternalRow row(List<ConnectColumn> columns, Object[] values, String connector) {
    for (int i = 0; i < values.length; i++) {
      ConnectColumn column = columns.get(i);
      if (values[i] instanceof UnknownUnit u) values[i] = column.time(u.value, column.unitNanos(connector));
    }
    return new GenericInternalRow(values);
  }

  /** Returns the value at the parser's position; {@code schema} may be null. */
  Object read(JsonParser p, ConnectSchema.Field schema) throws IOException {
    if (p.currentToken() == JsonToken.VALUE_NULL) return null;
    if (!isArray) return scalar(p, schema, type);
    if (p.currentToken() != JsonToken.START_ARRAY) throw mismatch(p);
    DataType elementType = ((ArrayType) type).elementType();
    List<Object> elements = new ArrayList<>();
    while (p.nextToken() != JsonToken.END_ARRAY) {
      Object value = p.currentToken() == JsonToken.VALUE_NULL ? null : scalar(p, schema, elementType);
      elements.add(value instanceof UnknownUnit u ? time(u.value, unitNanos("")) : value);
    }
    return new GenericArrayData(elements.toArray());
  }

  private Object scalar(JsonParser p, ConnectSchema.Field schema, DataType type) throws IOException {
    JsonToken token = p.currentToken();
    boolean isInteger = token == JsonToken.VALUE_NUMBER_INT;
    boolean isText = token == JsonToken.VALUE_STRING;
    switch (declaredType) {
      case "int2", "int4", "int8", "oid" -> {
        if (isInteger) return Numbers.of(new BigDecimal(p.getText()), type);
        if (isText && schema != null && schema.name().equals(DECIMAL)) {
          return Numbers.of(unscaled(p, schema.scale()), type);
        }
      }
      case "numeric" -> {
        if (token.isNumeric()) return Numbers.of(new BigDecimal(p.getText()), type);
        if (token == JsonToken.START_OBJECT) return Numbers.of(variableScaleDecimal(p), type);
        if (isText) return decimal(p, schema, (DecimalType) type);
      }
      case "float4", "float8" -> {
        if (isText || token.isNumeric()) {
          UTF8String number = text(p);
          if (type == DataTypes.FloatType) return NumberInput.toFloat4(number);
          return NumberInput.toFloat8(number);
        }
      }
      case "bool" -> {
        if (token.isBoolean()) return token == JsonToken.VALUE_TRUE;
        if (isInteger && (p.getText().equals("0") || p.getText().equals("1"))) return p.getText().equals("1");
      }
      case "bytea" -> {
        if (token == JsonToken.START_ARRAY) return byteArray(p);
        if (isText && text(p).equals(UnavailableValue.TEXT)) return UnavailableValue.TEXT.getBytes();
        if (isText) return p.getBinaryValue();
      }
      case "date" -> {
        if (isInteger) return Math.toIntExact(p.getLongValue());
        if (isText) return TimeInput.toDate(text(p));
      }
      case "timestamp", "timestamptz", "time", "interval" -> {
        if (isInteger) return timeNumber(p.getLongValue(), schema);
        if (isText) return timeText(p);
      }
      case "uuid" -> {
        if (isText) return uuid(p);
      }
      case "jsonb" -> {
        if (!isText) return UTF8String.fromBytes(Jsonb.canonical(p, 64));
        UTF8String json = text(p);
        if (json.equals(UnavailableValue.TEXT)) return UnavailableValue.JSONB;
        return UTF8String.fromBytes(Jsonb.canonical(json.getBytes()));
      }
      default -> {
        if (isText) return text(p);
      }
    }
    throw mismatch(p);
  }

  private static UTF8String text(JsonParser p) throws IOException { return Utf8.text(p.getText()); }

  private static UTF8String uuid(JsonParser p) throws IOException {
    if (!UUID.matcher(p.getText()).matches()) throw TextInput.invalid("uuid", text(p));
    return UTF8String.fromString(p.getText().toLowerCase(Locale.ROOT));
  }

  /** Reads bytes as an array of numbers, which is how a sink writes them. */
  private byte[] byteArray(JsonParser p) throws IOException {
    var bytes = new ByteArrayOutputStream();
    while (p.nextToken() != JsonToken.END_ARRAY) {
      boolean isByte = p.currentToken() == JsonToken.VALUE_NUMBER_INT && p.getIntValue() >= 0 && p.getIntValue() <= 255;
      if (!isByte) throw mismatch(p);
      bytes.write(p.getIntValue());
    }
    return bytes.toByteArray();
  }

  // ---- decimals ---------------------------------------------------------------------------------

  private Object decimal(JsonParser p, ConnectSchema.Field schema, DecimalType type) throws IOException {
    boolean isDigits = schema == null ? decimalsAreText : schema.name().isEmpty();
    if (isDigits) return NumberInput.toNumeric(text(p), type.precision(), type.scale());
    if (schema != null) return Numbers.of(unscaled(p, schema.scale()), type);
    if (precision < 0) throw malformed("a decimal in base64 needs its scale; declare numeric(p, s)");
    return Numbers.of(unscaled(p, precision), type);
  }

  private BigDecimal unscaled(JsonParser p, int scale) throws IOException {
    String text = p.getText();
    try {
      if (text.length() % 4 == 0) return new BigDecimal(integer(Base64.getDecoder().decode(text)), scale);
    } catch (IllegalArgumentException e) {
      // the error is raised below
    }
    throw malformed("\"" + text(p) + "\" is not the base64 of a decimal; if the connector writes decimals as strings, "
        + "say WITH (decimal_handling_mode = 'string')");
  }

  private static BigInteger integer(byte[] bytes) {
    return bytes.length == 0 ? BigInteger.ZERO : new BigInteger(bytes);
  }

  /** Reads {@code {"scale": n, "value": base64}}. */
  private BigDecimal variableScaleDecimal(JsonParser p) throws IOException {
    int scale = 0;
    BigInteger value = null;
    while (p.nextToken() != JsonToken.END_OBJECT) {
      String field = p.currentName();
      p.nextToken();
      if (field.equals("scale")) scale = p.getIntValue();
      else if (field.equals("value")) value = integer(p.getBinaryValue());
      else p.skipChildren();
    }
    if (value == null) throw malformed("the object is not a decimal");
    return new BigDecimal(value, scale);
  }

  // ---- times ------------------------------------------------------------------------------------

  private Object timeNumber(long value, ConnectSchema.Field schema) {
    if (schema != null && UNITS_NS.containsKey(schema.name())) return time(value, UNITS_NS.get(schema.name()));
    if (declaredType.equals("interval")) return time(value, MICROSECOND_NS);
    return new UnknownUnit(value);
  }

  /** Returns the nanoseconds of a unit, by a connector's name. */
  private long unitNanos(String connector) {
    boolean isMySql = connector.equals("mysql") || connector.equals("mariadb");
    if (!isMySql && !connector.isEmpty() && !connector.equals("postgresql")) {
      throw malformed("the unit of its times is not known for connector " + connector + "; declare "
          + declaredType + "(p)");
    }
    if (isMySql) return declaredType.startsWith("timestamp") && precision <= 3 ? MILLISECOND_NS : MICROSECOND_NS;
    return precision >= 0 && precision <= 3 ? MILLISECOND_NS : MICROSECOND_NS;
  }

  /** Returns the stored form of a time that is a number of units. */
  private Object time(long value, long unitNanos) {
    long micros;
    try {
      if (unitNanos >= 1000) micros = Math.multiplyExact(value, unitNanos / 1000);
      else micros = Math.floorDiv(value, 1000 / unitNanos);
    } catch (ArithmeticException e) {
      throw outOfRange(value + " is out of range");
    }
    return switch (declaredType) {
      case "interval" -> new Interval(0, 0, micros).row();
      case "time" -> timeOfDay(micros);
      default -> micros;
    };
  }

  private long timeOfDay(long micros) {
    if (micros >= 0 && micros <= DAY_MICROS) return micros;
    throw outOfRange("a time of " + micros + " microseconds is out of range; declare it as interval");
  }

  private Object timeText(JsonParser p) throws IOException {
    String text = text(p).toString();
    boolean isTimestamp = declaredType.equals("timestamp") || declaredType.equals("timestamptz");
    if (isTimestamp && MILLISECONDS.matcher(text).matches()) {
      return new BigDecimal(text).movePointRight(3).longValueExact();
    }
    return switch (declaredType) {
      case "timestamp" -> TimeInput.toTimestamp(text(p));
      case "timestamptz" -> TimeInput.toTimestamptz(text(p));
      case "time" -> isoTime(text);
      default -> isoDuration(text);
    };
  }

  private static long isoTime(String text) {
    try {
      boolean isZoned = ZONED_TIME.matcher(text).matches();
      LocalTime time = isZoned ? OffsetTime.parse(text).toLocalTime() : LocalTime.parse(text);
      return time.toNanoOfDay() / 1000;
    } catch (DateTimeException e) {
      throw new SqlError("22007", "invalid input syntax for type time: \"" + text + "\"");
    }
  }

  private static Object isoDuration(String text) {
    Matcher m = ISO_DURATION.matcher(text);
    if (!m.matches()) throw new SqlError("22007", "invalid input syntax for type interval: \"" + text + "\"");
    int sign = m.group(1).isEmpty() ? 1 : -1;
    long months = 12 * number(m.group(2)) + number(m.group(3));
    long days = 7 * number(m.group(4)) + number(m.group(5));
    BigDecimal seconds = new BigDecimal(m.group(8) == null ? "0" : m.group(8))
        .add(BigDecimal.valueOf(3600 * number(m.group(6)) + 60 * number(m.group(7))));
    long micros = seconds.movePointRight(6).longValue();
    return new Interval(Math.toIntExact(sign * months), Math.toIntExact(sign * days), sign * micros).row();
  }

  private static long number(String digits) { return digits == null ? 0 : Long.parseLong(digits); }

  // ---- errors -----------------------------------------------------------------------------------

  private SqlError malformed(String reason) { return Format.malformed("column \"" + name + "\": " + reason); }

  private SqlError outOfRange(String reason) { return new SqlError("22008", "column \"" + name + "\": " + reason); }

  private SqlError mismatch(JsonParser p) throws IOException { return JsonTypes.mismatch(p, name, type); }
}
