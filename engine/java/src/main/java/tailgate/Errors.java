package tailgate;

import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.types.DataType;

/** What an expression threw, as PostgreSQL would have said it. */
final class Errors {
  private static final Pattern NUMBER = Pattern.compile("\\s*[+-]?\\d+\\s*");
  private static final Map<String, String> TYPES = Map.ofEntries(Map.entry("TINYINT", "smallint"), Map.entry("SMALLINT", "smallint"), Map.entry("INT", "integer"), Map.entry("BIGINT", "bigint"),
      Map.entry("FLOAT", "real"), Map.entry("DOUBLE", "double precision"), Map.entry("BOOLEAN", "boolean"), Map.entry("DATE", "date"), Map.entry("STRING", "text"),
      Map.entry("TIMESTAMP", "timestamp with time zone"), Map.entry("TIMESTAMP_NTZ", "timestamp"), Map.entry("BINARY", "bytea"));
  /** First character of the message of an error that {@link Functions} raises: SQLSTATE and message follow. */
  static final String RAISED = "\u0001";

  private Errors() {}

  static SqlError of(Throwable e) {
    if (e instanceof SqlError s) return s;
    if (e instanceof SparkThrowable s && s.getCondition() != null) return of(s, e);
    if (e instanceof ArithmeticException) return new SqlError("22003", "value out of range");
    return new SqlError("XX000", e.toString());
  }

  private static SqlError of(SparkThrowable s, Throwable e) {
    String condition = s.getCondition(), top = condition.split("\\.")[0];
    Map<String, String> of = s.getMessageParameters();
    return switch (top) {
      case "DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO", "INTERVAL_DIVIDED_BY_ZERO" -> new SqlError("22012", "division by zero");
      case "ARITHMETIC_OVERFLOW" -> overflow(null);
      case "BINARY_ARITHMETIC_OVERFLOW" -> new SqlError("22003", "smallint out of range");
      case "CAST_OVERFLOW", "CAST_OVERFLOW_IN_TABLE_INSERT" -> new SqlError("22003", type(of.get("targetType")) + " out of range");
      case "NUMERIC_VALUE_OUT_OF_RANGE", "NUMERIC_OUT_OF_SUPPORTED_RANGE", "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION" -> new SqlError("22003", "numeric field overflow");
      case "CAST_INVALID_INPUT" -> invalid(text(of.get("expression")), type(of.get("targetType")));
      case "DATETIME_OVERFLOW" -> new SqlError("22008", "timestamp out of range");
      case "DATETIME_FIELD_OUT_OF_BOUNDS" -> new SqlError("22008", "date/time field value out of range");
      case "INTERVAL_ARITHMETIC_OVERFLOW" -> new SqlError("22008", "interval out of range");
      case "INVALID_ARRAY_INDEX", "INVALID_ARRAY_INDEX_IN_ELEMENT_AT" -> new SqlError("2202E", "array subscript out of range");
      case "USER_RAISED_EXCEPTION" -> raised(of.getOrDefault("errorMessage", ""));
      default -> new SqlError(s.getSqlState() == null ? "XX000" : s.getSqlState(), first(e.getMessage()));
    };
  }

  /** Spark does not say of which type; whoever knows says it. */
  static boolean isOverflow(Throwable e) { return e instanceof SparkThrowable s && "ARITHMETIC_OVERFLOW".equals(s.getCondition()); }

  static SqlError overflow(DataType type) { return new SqlError("22003", (type == null ? "value" : type(type.sql())) + " out of range"); }

  private static SqlError raised(String message) {
    return message.startsWith(RAISED) ? new SqlError(message.substring(1, 6), message.substring(6)) : new SqlError("P0001", message);
  }

  private static SqlError invalid(String value, String type) {
    boolean whole = type.equals("smallint") || type.equals("integer") || type.equals("bigint");
    if (whole && NUMBER.matcher(value).matches()) return new SqlError("22003", "value \"" + value + "\" is out of range for type " + type);
    return new SqlError(type.startsWith("date") || type.startsWith("time") ? "22007" : "22P02", "invalid input syntax for type " + type + ": \"" + value + "\"");
  }

  /** PostgreSQL's name of a type that Spark writes as `"INT"`. */
  private static String type(String quoted) {
    String name = quoted == null ? "" : quoted.replace("\"", "");
    return name.startsWith("DECIMAL") ? "numeric" : TYPES.getOrDefault(name, name.toLowerCase(java.util.Locale.ROOT));
  }

  /** The text of a literal of Spark's. */
  private static String text(String literal) {
    if (literal == null || literal.length() < 2 || literal.charAt(0) != '\'') return String.valueOf(literal);
    return literal.substring(1, literal.length() - 1).replaceAll("\\\\(.)", "$1");
  }

  /** Without Spark's `[CONDITION]` before and `SQLSTATE: …` behind. */
  private static String first(String message) { return String.valueOf(message).lines().findFirst().orElse("").replaceFirst("^\\[[A-Z_.0-9]+] ", "").replaceFirst(" SQLSTATE: .*", ""); }
}
