package tailgate;

import java.lang.annotation.*;
import java.util.*;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.types.*;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The functions that Spark lacks, in a session's registry: static Java methods which generated code calls. Names begin with `tg_`; NULL in, NULL out unless said.
 *
 * <p>A jsonb is its canonical text ({@link Jsonb}). A numeric is decimal(38, 16), or decimal(p, s) where the last two arguments say so.
 */
public final class Functions {
  private static final DataType TEXT = DataTypes.StringType, INT = DataTypes.IntegerType, BOOL = DataTypes.BooleanType;
  private static final DataType PATH = DataTypes.createArrayType(DataTypes.StringType, true);
  private static final int PRECISION = 38, SCALE = 16;

  /** Every public static method is a function: `toHexInt4` is tg_to_hex_int4. */
  private static final List<Class<?>> FAMILIES = List.of(ArrayTexts.class, Bytestrings.class, Casts.class, DateFormats.class, JsonbEdits.class, JsonbOrder.class, Mathematics.class, NumberFormats.class, Patterns.class,
      Strings.class, Times.class, Zones.class);

  /** The SQL type of a function's result, where Java's type does not say it. */
  @Retention(RetentionPolicy.RUNTIME)
  @Target(ElementType.METHOD)
  @interface Returns { String value(); }

  private Functions() {}

  /** Puts all of them into the session; again changes nothing. */
  public static void register(SparkSession session) {
    FunctionRegistry registry = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().functionRegistry();
    Map<String, Builder> all = new TreeMap<>();
    jsonb(all);
    text(all);
    for (Class<?> family : FAMILIES) own(all, family);
    sets(all);
    all.forEach((name, builder) -> registry.createOrReplaceTempFunction(name, new scala.runtime.AbstractFunction1<Seq<Expression>, Expression>() {
      @Override public Expression apply(Seq<Expression> arguments) { return builder.build(CollectionConverters.asJava(arguments)); }
    }, "java_udf"));
  }

  private static void jsonb(Map<String, Builder> all) {
    Class<?> c = JsonbText.class;
    all.put("tg_jsonb_parse", call(c, "parse", TEXT, TEXT));
    all.put("tg_jsonb_get", either(call(c, "get", TEXT, TEXT, INT), call(c, "get", TEXT, TEXT, TEXT)));
    all.put("tg_jsonb_get_text", either(call(c, "getText", TEXT, TEXT, INT), call(c, "getText", TEXT, TEXT, TEXT)));
    all.put("tg_jsonb_path", call(c, "path", TEXT, TEXT, PATH));
    all.put("tg_jsonb_path_text", call(c, "pathText", TEXT, TEXT, PATH));
    all.put("tg_jsonb_contains", call(c, "contains", BOOL, TEXT, TEXT));
    all.put("tg_jsonb_exists", call(c, "exists", BOOL, TEXT, TEXT));
    all.put("tg_jsonb_typeof", call(c, "typeOf", TEXT, TEXT));
    all.put("tg_jsonb_array_length", call(c, "arrayLength", INT, TEXT));
    all.put("tg_jsonb_int2", call(c, "toInt2", DataTypes.ShortType, TEXT));
    all.put("tg_jsonb_int4", call(c, "toInt4", INT, TEXT));
    all.put("tg_jsonb_int8", call(c, "toInt8", DataTypes.LongType, TEXT));
    all.put("tg_jsonb_float4", call(c, "toFloat4", DataTypes.FloatType, TEXT));
    all.put("tg_jsonb_float8", call(c, "toFloat8", DataTypes.DoubleType, TEXT));
    all.put("tg_jsonb_numeric", numeric(c));
    all.put("tg_jsonb_bool", call(c, "toBool", BOOL, TEXT));
    all.put("tg_jsonb_text", call(c, "toText", TEXT, TEXT));
  }

  private static void text(Map<String, Builder> all) {
    Class<?> c = TextInput.class, t = TimeInput.class;
    all.put("tg_convert_from", call(c, "convertFrom", TEXT, DataTypes.BinaryType, TEXT));
    all.put("tg_required", Functions::required);
    all.put("tg_position", call(Positions.class, "of", TEXT, DataTypes.LongType, INT));
    all.put("tg_text_to_int2", call(c, "toInt2", DataTypes.ShortType, TEXT));
    all.put("tg_text_to_int4", call(c, "toInt4", INT, TEXT));
    all.put("tg_text_to_int8", call(c, "toInt8", DataTypes.LongType, TEXT));
    all.put("tg_text_to_float4", call(c, "toFloat4", DataTypes.FloatType, TEXT));
    all.put("tg_text_to_float8", call(c, "toFloat8", DataTypes.DoubleType, TEXT));
    all.put("tg_text_to_numeric", numeric(c));
    all.put("tg_text_to_bool", call(c, "toBool", BOOL, TEXT));
    all.put("tg_text_to_date", call(t, "toDate", DataTypes.DateType, TEXT));
    all.put("tg_text_to_timestamp", call(t, "toTimestamp", DataTypes.TimestampNTZType, TEXT));
    all.put("tg_text_to_timestamptz", arguments -> (arguments.size() == 1 ? call(t, "toTimestamptz", DataTypes.TimestampType, TEXT) : call(t, "toTimestamptz", DataTypes.TimestampType, TEXT, TEXT)).build(arguments));
    all.put("tg_to_timestamp", call(t, "toTimestamp", DataTypes.TimestampType, DataTypes.DoubleType));
  }

  private static void sets(Map<String, Builder> all) {
    Class<?> c = Sets.class;
    DataType pairs = DataTypes.createArrayType(new StructType().add("key", TEXT).add("value", TEXT));
    all.put("tg_jsonb_elements", call(c, "elements", PATH, TEXT));
    all.put("tg_jsonb_elements_text", call(c, "elementsText", PATH, TEXT));
    all.put("tg_jsonb_keys", call(c, "keys", PATH, TEXT));
    all.put("tg_jsonb_each", call(c, "each", pairs, TEXT));
    all.put("tg_jsonb_each_text", call(c, "eachText", pairs, TEXT));
    for (DataType t : List.of(DataTypes.TimestampType, DataTypes.TimestampNTZType)) {
      DataType windows = DataTypes.createArrayType(new StructType().add("window_start", t).add("window_end", t));
      all.put(t == DataTypes.TimestampType ? "tg_windows_timestamptz" : "tg_windows_timestamp", call(c, "windows", windows, t, DataTypes.LongType, DataTypes.LongType));
      all.put(t == DataTypes.TimestampType ? "tg_series_timestamptz" : "tg_series_timestamp", call(c, "times", DataTypes.createArrayType(t), t, t, INT, INT, DataTypes.LongType));
    }
  }

  private static void own(Map<String, Builder> all, Class<?> in) {
    for (java.lang.reflect.Method m : in.getDeclaredMethods())
      if (java.lang.reflect.Modifier.isPublic(m.getModifiers())) all.put("tg_" + m.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT), arguments -> invocation(m, arguments));
  }

  private static final DataType INTERVAL = DataType.fromDDL("struct<months:int,days:int,micros:bigint>");
  private static final Map<Class<?>, DataType> TYPES = Map.of(org.apache.spark.unsafe.types.UTF8String.class, TEXT, int.class, INT, short.class, DataTypes.ShortType, long.class, DataTypes.LongType, double.class,
      DataTypes.DoubleType, float.class, DataTypes.FloatType, boolean.class, BOOL, byte[].class, DataTypes.BinaryType, org.apache.spark.sql.catalyst.util.ArrayData.class, PATH, org.apache.spark.sql.catalyst.InternalRow.class, INTERVAL);

  /** A Decimal is of any precision and scale; a result is of those that the last two arguments say. */
  private static Expression invocation(java.lang.reflect.Method m, List<Expression> arguments) {
    Class<?>[] types = m.getParameterTypes();
    if (arguments.size() != types.length) throw new IllegalArgumentException(m.getName() + ": " + types.length + " arguments expected, not " + arguments.size());
    List<Expression> cast = new ArrayList<>();
    for (int i = 0; i < types.length; i++) cast.add(fits(arguments.get(i).dataType(), types[i]) ? arguments.get(i) : new Cast(arguments.get(i), TYPES.getOrDefault(types[i], EXACT), Option.empty(), EvalMode.ANSI()));
    Returns returns = m.getAnnotation(Returns.class);
    int n = arguments.size();
    DataType result = returns != null ? DataType.fromDDL(returns.value()) : m.getReturnType() == Decimal.class ? DataTypes.createDecimalType(number(arguments.get(n - 2)), number(arguments.get(n - 1)))
        : TYPES.get(m.getReturnType());
    return new StaticInvoke(m.getDeclaringClass(), result, m.getName(), seq(cast), seq(List.of()), true, true, true, Option.empty());
  }

  private static final DataType EXACT = DataTypes.createDecimalType(PRECISION, SCALE);

  /** Whether generated code passes a value of the type as the class. */
  private static boolean fits(DataType type, Class<?> in) {
    if (in == int.class) return type == INT || type == DataTypes.DateType;
    if (in == long.class) return type == DataTypes.LongType || type == DataTypes.TimestampType || type == DataTypes.TimestampNTZType;
    if (in == Decimal.class) return type instanceof DecimalType;
    if (in == org.apache.spark.sql.catalyst.util.ArrayData.class) return type instanceof ArrayType a && a.elementType() instanceof StringType;
    return DataType.equalsIgnoreNullability(type, TYPES.get(in));
  }

  private interface Builder { Expression build(List<Expression> arguments); }

  /** Arguments of other types are cast, by the rules of ANSI. */
  private static Builder call(Class<?> in, String method, DataType result, DataType... types) {
    return arguments -> {
      if (arguments.size() != types.length) throw new IllegalArgumentException(method + ": " + types.length + " arguments expected, not " + arguments.size());
      List<Expression> cast = new ArrayList<>();
      for (int i = 0; i < types.length; i++) {
        boolean same = DataType.equalsIgnoreNullability(arguments.get(i).dataType(), types[i]);
        cast.add(same ? arguments.get(i) : new Cast(arguments.get(i), types[i], Option.empty(), EvalMode.ANSI()));
      }
      return new StaticInvoke(in, result, method, seq(cast), seq(List.of()), true, true, true, Option.empty());
    };
  }

  /** By the type of the second argument: a position, or a key. */
  private static Builder either(Builder whole, Builder text) { return arguments -> (arguments.size() == 2 && arguments.get(1).dataType() instanceof IntegralType ? whole : text).build(arguments); }

  private static Builder numeric(Class<?> in) {
    return arguments -> {
      int precision = arguments.size() > 1 ? number(arguments.get(1)) : PRECISION, scale = arguments.size() > 2 ? number(arguments.get(2)) : arguments.size() > 1 ? 0 : SCALE;
      return call(in, "toNumeric", DataTypes.createDecimalType(precision, scale), TEXT, INT, INT).build(List.of(arguments.get(0), literal(precision), literal(scale)));
    };
  }

  private static Expression literal(Object value) { return Literal$.MODULE$.apply(value); }

  private static int number(Expression literal) { return ((Number) literal.eval(null)).intValue(); }

  /** x, or 22004 with the message where x is NULL; so the result never is. */
  private static Expression required(List<Expression> arguments) {
    Expression x = arguments.get(0), message = new Concat(seq(List.of(literal(Errors.RAISED + "22004"), arguments.get(1))));
    Expression raise = new RaiseError(literal("USER_RAISED_EXCEPTION"), new CreateMap(seq(List.of(literal("errorMessage"), message)), false), x.dataType());
    return new KnownNotNull(new Coalesce(seq(List.of(x, raise))));
  }

  @SuppressWarnings("unchecked")
  private static <T> Seq<T> seq(List<? extends T> list) { return (Seq<T>) CollectionConverters.asScala(list).toSeq(); }
}
