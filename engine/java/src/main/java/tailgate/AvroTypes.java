package tailgate;

import java.util.*;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.*;

/**
 * The Spark type of an Avro schema, and the unit of a number that means a time.
 *
 * <p>Debezium's times without a zone are TIMESTAMP_NTZ; those of day are intervals, because a TIME of MariaDB goes from -838 to 838 hours. A union of several types is a struct
 * with a member for each. Left out: recursive schemas. Source: Debezium 3, "Temporal values".
 */
final class AvroTypes {
  private AvroTypes() {}

  /** A number with a meaning: its Spark type, and what turns the number into Spark's. */
  record Unit(DataType type, long times, long per) {
    long of(long value) { return per == 1 ? Math.multiplyExact(value, times) : Math.floorDiv(value, per); }
  }

  private static final DataType DURATION = DayTimeIntervalType.apply();
  static final DecimalType VARIABLE = DataTypes.createDecimalType(38, 16);
  static final String ZONED = "io.debezium.time.ZonedTimestamp";
  private static final Map<String, Unit> UNITS = Map.ofEntries(
      unit("date", DataTypes.DateType, 1, 1), unit("io.debezium.time.Date", DataTypes.DateType, 1, 1),
      unit("time-millis", DURATION, 1000, 1), unit("io.debezium.time.Time", DURATION, 1000, 1),
      unit("time-micros", DURATION, 1, 1), unit("io.debezium.time.MicroTime", DURATION, 1, 1), unit("io.debezium.time.MicroDuration", DURATION, 1, 1),
      unit("io.debezium.time.NanoTime", DURATION, 1, 1000),
      unit("timestamp-millis", DataTypes.TimestampType, 1000, 1), unit("timestamp-micros", DataTypes.TimestampType, 1, 1), unit("timestamp-nanos", DataTypes.TimestampType, 1, 1000),
      unit("local-timestamp-millis", DataTypes.TimestampNTZType, 1000, 1), unit("io.debezium.time.Timestamp", DataTypes.TimestampNTZType, 1000, 1),
      unit("local-timestamp-micros", DataTypes.TimestampNTZType, 1, 1), unit("io.debezium.time.MicroTimestamp", DataTypes.TimestampNTZType, 1, 1),
      unit("local-timestamp-nanos", DataTypes.TimestampNTZType, 1, 1000), unit("io.debezium.time.NanoTimestamp", DataTypes.TimestampNTZType, 1, 1000));

  private static Map.Entry<String, Unit> unit(String name, DataType type, long times, long per) { return Map.entry(name, new Unit(type, times, per)); }

  static Unit unit(Schema s) {
    Unit unit = UNITS.get(s.getProp("connect.name") + "");
    return unit != null ? unit : UNITS.get(s.getProp("logicalType") + "");
  }

  private static DataType type(Schema s, Deque<Schema> inside) {
    return switch (s.getType()) {
      case BOOLEAN -> DataTypes.BooleanType;
      case INT -> unit(s) == null ? DataTypes.IntegerType : unit(s).type;
      case LONG -> unit(s) == null ? DataTypes.LongType : unit(s).type;
      case FLOAT -> DataTypes.FloatType;
      case DOUBLE -> DataTypes.DoubleType;
      case STRING -> ZONED.equals(s.getProp("connect.name")) ? DataTypes.TimestampType : DataTypes.StringType;
      case ENUM -> DataTypes.StringType;
      case BYTES, FIXED -> s.getLogicalType() instanceof LogicalTypes.Decimal d ? DataTypes.createDecimalType(d.getPrecision(), d.getScale()) : DataTypes.BinaryType;
      case NULL -> DataTypes.NullType;
      case UNION -> {
        List<Schema> branches = branches(s);
        if (branches.size() == 1) yield type(branches.get(0), inside);
        StructType struct = new StructType();
        for (int i = 0; i < branches.size(); i++) struct = struct.add("member" + i, type(branches.get(i), inside), true);
        yield struct;
      }
      case ARRAY -> DataTypes.createArrayType(type(s.getElementType(), inside), s.getElementType().isNullable());
      case MAP -> DataTypes.createMapType(DataTypes.StringType, type(s.getValueType(), inside), s.getValueType().isNullable());
      case RECORD -> {
        if (variable(s)) yield VARIABLE;
        if (inside.stream().anyMatch(i -> i == s)) throw new AvroRuntimeException("recursive type " + s.getFullName());
        inside.push(s);
        StructType struct = new StructType();
        for (Schema.Field f : s.getFields()) struct = struct.add(f.name(), type(f.schema(), inside), f.schema().isNullable());
        inside.pop();
        yield struct;
      }
    };
  }

  /** A decimal with a scale of its own: stored with the digits of a numeric that has none declared. */
  static boolean variable(Schema s) { return s.getType() == Schema.Type.RECORD && "io.debezium.data.VariableScaleDecimal".equals(s.getProp("connect.name")); }

  static DataType type(Schema s) { return type(s, new ArrayDeque<>()); }

  /** The types of a union beside null. */
  static List<Schema> branches(Schema union) { return union.getTypes().stream().filter(t -> t.getType() != Schema.Type.NULL).toList(); }

  /** The one type of a union beside null. */
  static Schema present(Schema union) {
    if (union.getType() != Schema.Type.UNION) return union;
    List<Schema> types = branches(union);
    if (types.size() != 1) throw new AvroRuntimeException("union of " + types.size() + " types beside null");
    return types.get(0);
  }

  /** Whether it is a struct with a member for each type, of which one is not NULL. */
  static boolean several(Schema s) { return s.getType() == Schema.Type.UNION && branches(s).size() > 1; }

  static Schema parse(String json) { return parse(List.of(json)); }

  /** The last of some schemas; later ones may name types of earlier ones. */
  static Schema parse(List<String> schemas) {
    Schema.Parser parser = new Schema.Parser().setValidateDefaults(false);
    Schema last = null;
    for (String schema : schemas) last = parser.parse(schema);
    return last;
  }
}
