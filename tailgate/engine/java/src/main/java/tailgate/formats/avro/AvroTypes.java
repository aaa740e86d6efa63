package tailgate.formats.avro;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;

/**
 * The Spark types of Avro schemas, and the units of numbers that denote times.
 *
 * <p>Debezium's timestamps without a zone are TIMESTAMP_NTZ. Its times of day are intervals,
 * because a TIME of MariaDB ranges from -838 to 838 hours. A union of several types is a struct
 * with a member for each type. Recursive schemas are not supported.
 *
 * <p>Source: Debezium 3, "Temporal values".
 */
final class AvroTypes {
  private AvroTypes() {}

  /**
   * A kind of number: its Spark type, and the factor or divisor that converts it to microseconds or
   * days.
   */
  record Unit(DataType type, long factor, long divisor) {
    long convert(long value) {
      return divisor == 1 ? Math.multiplyExact(value, factor) : Math.floorDiv(value, divisor);
    }
  }

  private static final DataType DATE = DataTypes.DateType;
  private static final DataType DURATION = DayTimeIntervalType.apply();
  private static final DataType TIMESTAMP = DataTypes.TimestampType;
  private static final DataType LOCAL_TIMESTAMP = DataTypes.TimestampNTZType;
  /**
   * The type of a decimal whose values have different scales: a numeric without a declared scale.
   */
  static final DecimalType VARIABLE_SCALE_DECIMAL = DataTypes.createDecimalType(38, 16);
  static final String ZONED_TIMESTAMP = "io.debezium.time.ZonedTimestamp";

  private static final Map<String, Unit> UNITS = Map.ofEntries(
      unit("date", DATE, 1, 1),
      unit("io.debezium.time.Date", DATE, 1, 1),
      unit("time-millis", DURATION, 1000, 1),
      unit("io.debezium.time.Time", DURATION, 1000, 1),
      unit("time-micros", DURATION, 1, 1),
      unit("io.debezium.time.MicroTime", DURATION, 1, 1),
      unit("io.debezium.time.MicroDuration", DURATION, 1, 1),
      unit("io.debezium.time.NanoTime", DURATION, 1, 1000),
      unit("timestamp-millis", TIMESTAMP, 1000, 1),
      unit("timestamp-micros", TIMESTAMP, 1, 1),
      unit("timestamp-nanos", TIMESTAMP, 1, 1000),
      unit("local-timestamp-millis", LOCAL_TIMESTAMP, 1000, 1),
      unit("io.debezium.time.Timestamp", LOCAL_TIMESTAMP, 1000, 1),
      unit("local-timestamp-micros", LOCAL_TIMESTAMP, 1, 1),
      unit("io.debezium.time.MicroTimestamp", LOCAL_TIMESTAMP, 1, 1),
      unit("local-timestamp-nanos", LOCAL_TIMESTAMP, 1, 1000),
      unit("io.debezium.time.NanoTimestamp", LOCAL_TIMESTAMP, 1, 1000));

  private static Map.Entry<String, Unit> unit(String name, DataType type, long factor, long divisor) {
    return Map.entry(name, new Unit(type, factor, divisor));
  }

  /** Returns the unit of a schema's numbers, or null. */
  static Unit unit(Schema s) {
    Unit unit = UNITS.get(s.getProp("connect.name") + "");
    return unit != null ? unit : UNITS.get(s.getProp("logicalType") + "");
  }

  static DataType type(Schema s) { return type(s, new ArrayDeque<>()); }

  private static DataType type(Schema s, Deque<Schema> enclosing) {
    return switch (s.getType()) {
      case BOOLEAN -> DataTypes.BooleanType;
      case INT -> unit(s) == null ? DataTypes.IntegerType : unit(s).type;
      case LONG -> unit(s) == null ? DataTypes.LongType : unit(s).type;
      case FLOAT -> DataTypes.FloatType;
      case DOUBLE -> DataTypes.DoubleType;
      case STRING -> isZonedTimestamp(s) ? TIMESTAMP : DataTypes.StringType;
      case ENUM -> DataTypes.StringType;
      case BYTES, FIXED -> s.getLogicalType() instanceof LogicalTypes.Decimal d
          ? DataTypes.createDecimalType(d.getPrecision(), d.getScale())
          : DataTypes.BinaryType;
      case NULL -> DataTypes.NullType;
      case UNION -> unionType(s, enclosing);
      case ARRAY -> DataTypes.createArrayType(type(s.getElementType(), enclosing), s.getElementType().isNullable());
      case MAP -> DataTypes.createMapType(
          DataTypes.StringType, type(s.getValueType(), enclosing), s.getValueType().isNullable());
      case RECORD -> recordType(s, enclosing);
    };
  }

  private static DataType unionType(Schema s, Deque<Schema> enclosing) {
    List<Schema> branches = nonNullBranches(s);
    if (branches.size() == 1) return type(branches.get(0), enclosing);
    StructType struct = new StructType();
    for (int i = 0; i < branches.size(); i++) struct = struct.add("member" + i, type(branches.get(i), enclosing), true);
    return struct;
  }

  private static DataType recordType(Schema s, Deque<Schema> enclosing) {
    if (isVariableScaleDecimal(s)) return VARIABLE_SCALE_DECIMAL;
    if (enclosing.stream().anyMatch(e -> e == s)) throw new AvroRuntimeException("recursive type " + s.getFullName());
    enclosing.push(s);
    StructType struct = new StructType();
    for (Schema.Field f : s.getFields()) {
      struct = struct.add(f.name(), type(f.schema(), enclosing), f.schema().isNullable());
    }
    enclosing.pop();
    return struct;
  }

  static boolean isZonedTimestamp(Schema s) { return ZONED_TIMESTAMP.equals(s.getProp("connect.name")); }

  static boolean isVariableScaleDecimal(Schema s) {
    String name = "io.debezium.data.VariableScaleDecimal";
    return s.getType() == Schema.Type.RECORD && name.equals(s.getProp("connect.name"));
  }

  /** Returns the types of a union except null. */
  static List<Schema> nonNullBranches(Schema union) {
    return union.getTypes().stream().filter(t -> t.getType() != Schema.Type.NULL).toList();
  }

  /** Returns the type of a schema's values that are not null. */
  static Schema nonNull(Schema s) {
    if (s.getType() != Schema.Type.UNION) return s;
    List<Schema> types = nonNullBranches(s);
    if (types.size() != 1) throw new AvroRuntimeException("a union has " + types.size() + " types besides null");
    return types.get(0);
  }

  /** Returns whether a schema is a union that becomes a struct with a member for each type. */
  static boolean isStructUnion(Schema s) { return s.getType() == Schema.Type.UNION && nonNullBranches(s).size() > 1; }

  static Schema parse(String json) { return parse(List.of(json)); }

  /** Returns the last of several schemas; later schemas may name types of earlier ones. */
  static Schema parse(List<String> schemas) {
    Schema.Parser parser = new Schema.Parser().setValidateDefaults(false);
    Schema last = null;
    for (String schema : schemas) last = parser.parse(schema);
    return last;
  }
}
