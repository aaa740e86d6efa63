package tailgate.functions;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Concat;
import org.apache.spark.sql.catalyst.expressions.CreateMap;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.RaiseError;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import tailgate.errors.SparkErrors;
import tailgate.functions.json.JsonPaths;
import tailgate.functions.json.JsonTexts;
import tailgate.functions.json.JsonbAccess;
import tailgate.functions.json.JsonbConstruction;
import tailgate.functions.json.JsonbEdits;
import tailgate.functions.json.JsonbOrder;
import tailgate.functions.json.JsonbSets;
import tailgate.functions.ksqldb.KsqldbCasts;
import tailgate.functions.ksqldb.KsqldbCollections;
import tailgate.functions.ksqldb.KsqldbConversion;
import tailgate.functions.ksqldb.KsqldbJson;
import tailgate.functions.ksqldb.KsqldbNumbers;
import tailgate.functions.ksqldb.KsqldbRegexps;
import tailgate.functions.ksqldb.KsqldbTexts;
import tailgate.functions.ksqldb.KsqldbTimes;
import tailgate.functions.ksqldb.KsqldbUrls;
import tailgate.functions.network.HardwareAddresses;
import tailgate.functions.network.NetworkFunctions;
import tailgate.functions.numeric.Amounts;
import tailgate.functions.numeric.FloatFunctions;
import tailgate.functions.numeric.General;
import tailgate.functions.numeric.GeneralNumerics;
import tailgate.functions.numeric.NumberFormats;
import tailgate.functions.numeric.NumberInput;
import tailgate.functions.numeric.NumberParsing;
import tailgate.functions.numeric.NumericFunctions;
import tailgate.functions.range.MultirangeFunctions;
import tailgate.functions.range.RangeFunctions;
import tailgate.functions.text.ArrayDimensions;
import tailgate.functions.text.BitStrings;
import tailgate.functions.text.ByteStrings;
import tailgate.functions.text.Formatting;
import tailgate.functions.text.LikePatterns;
import tailgate.functions.text.LogPositions;
import tailgate.functions.text.RegularExpressions;
import tailgate.functions.text.Strings;
import tailgate.functions.text.TextArrays;
import tailgate.functions.time.DateFormats;
import tailgate.functions.time.DateParsing;
import tailgate.functions.time.IntervalFunctions;
import tailgate.functions.time.Timestamps;
import tailgate.functions.time.TimeInput;
import tailgate.functions.time.TimeSeries;
import tailgate.functions.time.TimeZones;
import tailgate.functions.time.Times;
import tailgate.functions.time.ZonedTimes;

/**
 * Registers PostgreSQL's functions that Spark lacks, in a session's function registry.
 *
 * <p>A function is a static Java method that generated code calls; its SQL name begins with {@code
 * tg_}. It returns NULL if an argument is NULL. A jsonb is its canonical text ({@link
 * tailgate.functions.json.Jsonb}), an interval is a struct of months, days and microseconds, and a
 * numeric is decimal(38, 16), or decimal(p, s) if the last two arguments are p and s.
 */
public final class Functions {
  private static final DataType TEXT = DataTypes.StringType;
  private static final DataType INT = DataTypes.IntegerType;
  private static final DataType BINARY = DataTypes.BinaryType;
  private static final DataType BIGINT = DataTypes.LongType;
  private static final DataType BOOL = DataTypes.BooleanType;
  private static final DataType TEXT_ARRAY = DataTypes.createArrayType(DataTypes.StringType, true);
  private static final DataType INTERVAL = DataType.fromDDL("struct<months:int,days:int,micros:bigint>");
  private static final int PRECISION = 38;
  private static final int SCALE = 16;
  private static final DataType NUMERIC = DataTypes.createDecimalType(PRECISION, SCALE);

  /** Classes whose public static methods are functions: {@code toHexInt4} is tg_to_hex_int4. */
  private static final List<Class<?>> FAMILIES = List.of(
      Amounts.class,
      BitStrings.class,
      ByteStrings.class,
      Casts.class,
      DateFormats.class,
      DateParsing.class,
      FloatFunctions.class,
      Formatting.class,
      GeneralNumerics.class,
      HardwareAddresses.class,
      IntervalFunctions.class,
      JsonTexts.class,
      JsonbConstruction.class,
      JsonbEdits.class,
      JsonbOrder.class,
      JsonPaths.class,
      KsqldbCasts.class,
      KsqldbCollections.class,
      KsqldbConversion.class,
      KsqldbJson.class,
      KsqldbNumbers.class,
      KsqldbRegexps.class,
      KsqldbTexts.class,
      KsqldbTimes.class,
      KsqldbUrls.class,
      LikePatterns.class,
      MultirangeFunctions.class,
      NetworkFunctions.class,
      Timestamps.class,
      NumberFormats.class,
      NumberParsing.class,
      NumericFunctions.class,
      RangeFunctions.class,
      RegularExpressions.class,
      Strings.class,
      TextArrays.class,
      TimeZones.class,
      Times.class,
      ZonedTimes.class);

  /** The SQL types of Java's parameter and result types. */
  private static final Map<Class<?>, DataType> TYPES = Map.of(
      UTF8String.class, TEXT,
      int.class, INT,
      short.class, DataTypes.ShortType,
      long.class, BIGINT,
      double.class, DataTypes.DoubleType,
      float.class, DataTypes.FloatType,
      boolean.class, BOOL,
      byte[].class, BINARY,
      ArrayData.class, TEXT_ARRAY,
      InternalRow.class, INTERVAL);

  private Functions() {}

  /** Registers all functions in a session. Repeated calls have no effect. */
  public static void register(SparkSession session) {
    FunctionRegistry registry =
        ((org.apache.spark.sql.classic.SparkSession) session).sessionState().functionRegistry();
    Map<String, Builder> functions = new TreeMap<>();
    addJsonbAccess(functions);
    addInput(functions);
    addDimensions(functions);
    for (Class<?> family : FAMILIES) addFamily(functions, family);
    addSetReturning(functions);
    functions.forEach((name, builder) -> registry.createOrReplaceTempFunction(name, scala(builder), "java_udf"));
  }

  /** Builds the expression of a call from its arguments. */
  private interface Builder {
    Expression build(List<Expression> arguments);
  }

  private static scala.Function1<Seq<Expression>, Expression> scala(Builder builder) {
    return new scala.runtime.AbstractFunction1<>() {
      @Override public Expression apply(Seq<Expression> arguments) {
        return builder.build(CollectionConverters.asJava(arguments));
      }
    };
  }

  // ---- functions --------------------------------------------------------------------------------

  private static void addJsonbAccess(Map<String, Builder> functions) {
    Class<?> c = JsonbAccess.class;
    functions.put("tg_jsonb_parse", call(c, "parse", TEXT, TEXT));
    functions.put("tg_jsonb_get", byIndexOrKey(call(c, "get", TEXT, TEXT, INT), call(c, "get", TEXT, TEXT, TEXT)));
    functions.put("tg_jsonb_get_text",
        byIndexOrKey(call(c, "getText", TEXT, TEXT, INT), call(c, "getText", TEXT, TEXT, TEXT)));
    functions.put("tg_jsonb_path", call(c, "path", TEXT, TEXT, TEXT_ARRAY));
    functions.put("tg_jsonb_path_text", call(c, "pathText", TEXT, TEXT, TEXT_ARRAY));
    functions.put("tg_jsonb_contains", call(c, "contains", BOOL, TEXT, TEXT));
    functions.put("tg_jsonb_exists", call(c, "exists", BOOL, TEXT, TEXT));
    functions.put("tg_jsonb_typeof", call(c, "typeOf", TEXT, TEXT));
    functions.put("tg_jsonb_array_length", call(c, "arrayLength", INT, TEXT));
    functions.put("tg_jsonb_int2", call(c, "toInt2", DataTypes.ShortType, TEXT));
    functions.put("tg_jsonb_int4", call(c, "toInt4", INT, TEXT));
    functions.put("tg_jsonb_int8", call(c, "toInt8", BIGINT, TEXT));
    functions.put("tg_jsonb_float4", call(c, "toFloat4", DataTypes.FloatType, TEXT));
    functions.put("tg_jsonb_float8", call(c, "toFloat8", DataTypes.DoubleType, TEXT));
    functions.put("tg_jsonb_numeric", toNumeric(c));
    functions.put("tg_jsonb_general", call(c, "toGeneral", General.TYPE, TEXT));
    functions.put("tg_jsonb_bool", call(c, "toBool", BOOL, TEXT));
    functions.put("tg_jsonb_text", call(c, "toText", TEXT, TEXT));
  }

  private static void addInput(Map<String, Builder> functions) {
    Class<?> n = NumberInput.class;
    functions.put("tg_text_to_int2", call(n, "toInt2", DataTypes.ShortType, TEXT));
    functions.put("tg_text_to_int4", call(n, "toInt4", INT, TEXT));
    functions.put("tg_text_to_int8", call(n, "toInt8", BIGINT, TEXT));
    functions.put("tg_text_to_float4", call(n, "toFloat4", DataTypes.FloatType, TEXT));
    functions.put("tg_text_to_float8", call(n, "toFloat8", DataTypes.DoubleType, TEXT));
    functions.put("tg_text_to_numeric", toNumeric(n));
    functions.put("tg_text_to_bool", call(n, "toBool", BOOL, TEXT));
    Class<?> t = TimeInput.class;
    functions.put("tg_text_to_date", call(t, "toDate", DataTypes.DateType, TEXT));
    functions.put("tg_text_to_timestamp", call(t, "toTimestamp", DataTypes.TimestampNTZType, TEXT));
    Builder inUtc = call(t, "toTimestamptz", DataTypes.TimestampType, TEXT);
    Builder inZone = call(t, "toTimestamptz", DataTypes.TimestampType, TEXT, TEXT);
    functions.put("tg_text_to_timestamptz",
        arguments -> (arguments.size() == 1 ? inUtc : inZone).build(arguments));
    functions.put("tg_to_timestamp", call(t, "toTimestamp", DataTypes.TimestampType, DataTypes.DoubleType));
    functions.put("tg_position", call(LogPositions.class, "of", TEXT, BIGINT, INT));
    functions.put("tg_required", Functions::required);
    functions.put("tg_try", arguments -> new Try(arguments.get(0)));
  }

  private static void addDimensions(Map<String, Builder> functions) {
    Class<?> c = ArrayDimensions.class;
    DataType numbers = DataTypes.createArrayType(INT, true);
    functions.put("tg_dimensions_text", call(c, "shown", TEXT, numbers));
    functions.put("tg_dimensions_place", call(c, "place", INT, numbers, numbers));
    functions.put("tg_dimensions_sliced", call(c, "sliced", numbers, numbers, numbers, numbers));
    functions.put("tg_dimensions_selected", call(c, "selected", numbers, numbers, numbers, numbers));
    functions.put("tg_dimensions_concatenated", call(c, "concatenated", numbers, numbers, numbers));
    functions.put("tg_dimensions_filled", call(c, "filled", numbers, numbers));
    functions.put("tg_dimensions_filled_from", call(c, "filledFrom", numbers, numbers, numbers));
    functions.put("tg_dimensions_nested", call(c, "nested", numbers, DataTypes.createArrayType(numbers, true)));
    functions.put("tg_dimensions_to_text", call(c, "toText", TEXT, TEXT_ARRAY, numbers));
    functions.put("tg_dimensions_to_json", call(c, "toJson", TEXT, TEXT_ARRAY, numbers));
    functions.put("tg_array_text_elements", call(c, "textElements", TEXT_ARRAY, TEXT));
    functions.put("tg_array_text_dimensions", call(c, "textDimensions", numbers, TEXT));
  }

  private static void addSetReturning(Map<String, Builder> functions) {
    Class<?> c = JsonbSets.class;
    DataType members = DataTypes.createArrayType(new StructType().add("key", TEXT).add("value", TEXT));
    functions.put("tg_jsonb_elements", call(c, "elements", TEXT_ARRAY, TEXT));
    functions.put("tg_jsonb_elements_text", call(c, "elementsText", TEXT_ARRAY, TEXT));
    functions.put("tg_jsonb_keys", call(c, "keys", TEXT_ARRAY, TEXT));
    functions.put("tg_jsonb_each", call(c, "each", members, TEXT));
    functions.put("tg_jsonb_each_text", call(c, "eachText", members, TEXT));
    addTimeSeries(functions, "timestamp", DataTypes.TimestampNTZType);
    addTimeSeries(functions, "timestamptz", DataTypes.TimestampType);
  }

  private static void addTimeSeries(Map<String, Builder> functions, String name, DataType type) {
    DataType windows = DataTypes.createArrayType(new StructType().add("window_start", type).add("window_end", type));
    DataType series = DataTypes.createArrayType(type);
    Class<?> c = TimeSeries.class;
    functions.put("tg_windows_" + name, call(c, "windows", windows, type, BIGINT, BIGINT));
    functions.put("tg_series_" + name, call(c, "series", series, type, type, INT, INT, BIGINT));
  }

  private static void addFamily(Map<String, Builder> functions, Class<?> family) {
    for (Method m : family.getDeclaredMethods()) {
      if (!Modifier.isPublic(m.getModifiers())) continue;
      String name = m.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
      functions.put("tg_" + name, arguments -> call(m, arguments));
    }
  }

  // ---- calls ------------------------------------------------------------------------------------

  /**
   * Returns a call of a method of a family; its types follow from the Java types and {@link
   * Returns}.
   */
  private static Expression call(Method m, List<Expression> arguments) {
    Class<?>[] types = m.getParameterTypes();
    checkCount(m.getName(), types.length, arguments);
    List<Expression> converted = new ArrayList<>();
    for (int i = 0; i < types.length; i++) {
      Expression argument = arguments.get(i);
      DataType type = sqlType(types[i]);
      if (!accepts(types[i], argument.dataType())) argument = cast(argument, type == null ? NUMERIC : type);
      converted.add(types[i] == General.class ? GeneralCalls.object(argument) : argument);
    }
    if (m.getReturnType() == General.class) return GeneralCalls.stored(m, converted);
    return invoke(m.getDeclaringClass(), m.getName(), resultType(m, arguments), converted);
  }

  private static DataType resultType(Method m, List<Expression> arguments) {
    Returns returns = m.getAnnotation(Returns.class);
    if (returns != null) return DataType.fromDDL(returns.value());
    if (m.getReturnType() != Decimal.class) return sqlType(m.getReturnType());
    int n = arguments.size();
    return DataTypes.createDecimalType(integer(arguments.get(n - 2)), integer(arguments.get(n - 1)));
  }

  /** Returns the SQL type of a Java type, or null. */
  private static DataType sqlType(Class<?> javaType) { return javaType == General.class ? General.TYPE : TYPES.get(javaType); }

  /** Returns whether generated code can pass a value of a SQL type as a Java type of a method. */
  private static boolean accepts(Class<?> javaType, DataType type) {
    if (javaType == int.class) return type == INT || type == DataTypes.DateType;
    if (javaType == long.class) {
      return type == BIGINT || type == DataTypes.TimestampType || type == DataTypes.TimestampNTZType;
    }
    if (javaType == Decimal.class) return type instanceof DecimalType;
    if (javaType == ArrayData.class) {
      return type instanceof ArrayType array && (array.elementType() instanceof StringType || array.elementType() == BINARY);
    }
    return DataType.equalsIgnoreNullability(type, sqlType(javaType));
  }

  /** Returns a builder of calls of a method with the given result type and parameter types. */
  private static Builder call(Class<?> owner, String method, DataType result, DataType... types) {
    return arguments -> {
      checkCount(method, types.length, arguments);
      List<Expression> converted = new ArrayList<>();
      for (int i = 0; i < types.length; i++) {
        Expression argument = arguments.get(i);
        boolean accepted = DataType.equalsIgnoreNullability(argument.dataType(), types[i]);
        converted.add(accepted ? argument : cast(argument, types[i]));
      }
      return invoke(owner, method, result, converted);
    };
  }

  private static void checkCount(String method, int expected, List<Expression> arguments) {
    if (arguments.size() == expected) return;
    throw new IllegalArgumentException(method + ": expected " + expected + " arguments, got " + arguments.size());
  }

  private static Expression cast(Expression argument, DataType type) {
    return new Cast(argument, type, Option.empty(), EvalMode.ANSI());
  }

  static Expression invoke(Class<?> owner, String method, DataType result, List<Expression> arguments) {
    return new StaticInvoke(
        owner, result, method, seq(arguments), seq(List.of()), true, true, true, Option.empty());
  }

  /** Returns a builder that chooses by the type of the second argument: an index or a key. */
  private static Builder byIndexOrKey(Builder byIndex, Builder byKey) {
    return arguments -> {
      boolean index = arguments.size() == 2 && arguments.get(1).dataType() instanceof IntegralType;
      return (index ? byIndex : byKey).build(arguments);
    };
  }

  /** Returns a builder of calls of a cast to numeric, with an optional precision and scale. */
  private static Builder toNumeric(Class<?> owner) {
    return arguments -> {
      int n = arguments.size();
      int precision = n > 1 ? integer(arguments.get(1)) : PRECISION;
      int scale = n > 2 ? integer(arguments.get(2)) : n > 1 ? 0 : SCALE;
      List<Expression> all = List.of(arguments.get(0), literal(precision), literal(scale));
      return call(owner, "toNumeric", DataTypes.createDecimalType(precision, scale), TEXT, INT, INT).build(all);
    };
  }

  /**
   * Returns an expression that is never NULL: the first argument, or error 22004 with the second as
   * message.
   */
  private static Expression required(List<Expression> arguments) {
    Expression value = arguments.get(0);
    Expression message = new Concat(seq(List.of(literal(SparkErrors.RAISED + "22004"), arguments.get(1))));
    Expression parameters = new CreateMap(seq(List.of(literal("errorMessage"), message)), false);
    Expression raise = new RaiseError(literal("USER_RAISED_EXCEPTION"), parameters, value.dataType());
    return new KnownNotNull(new Coalesce(seq(List.of(value, raise))));
  }

  private static Expression literal(Object value) { return Literal$.MODULE$.apply(value); }

  private static int integer(Expression literal) { return ((Number) literal.eval(null)).intValue(); }

  @SuppressWarnings("unchecked")
  private static <T> Seq<T> seq(List<? extends T> list) {
    return (Seq<T>) CollectionConverters.asScala(list).toSeq();
  }
}
