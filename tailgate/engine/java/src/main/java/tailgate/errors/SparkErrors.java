package tailgate.errors;

import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.types.DataType;

/** Translates exceptions that Spark's expressions throw into PostgreSQL's errors. */
public final class SparkErrors {
  private static final Pattern INTEGER = Pattern.compile("\\s*[+-]?\\d+\\s*");
  private static final Map<String, String> TYPE_NAMES = Map.ofEntries(
      Map.entry("TINYINT", "smallint"),
      Map.entry("SMALLINT", "smallint"),
      Map.entry("INT", "integer"),
      Map.entry("BIGINT", "bigint"),
      Map.entry("FLOAT", "real"),
      Map.entry("DOUBLE", "double precision"),
      Map.entry("BOOLEAN", "boolean"),
      Map.entry("DATE", "date"),
      Map.entry("STRING", "text"),
      Map.entry("TIMESTAMP", "timestamp with time zone"),
      Map.entry("TIMESTAMP_NTZ", "timestamp"),
      Map.entry("BINARY", "bytea"));

  /**
   * The first character of a message of raise_error() that continues with a SQLSTATE and a message.
   */
  public static final String RAISED = "\u0001";

  private SparkErrors() {}

  public static SqlError of(Throwable e) {
    if (e instanceof SqlError s) return s;
    if (e instanceof SparkThrowable s && s.getCondition() != null) return of(s, e);
    if (e instanceof ArithmeticException) return new SqlError("22003", "value out of range");
    return new SqlError("XX000", e.toString());
  }

  private static SqlError of(SparkThrowable s, Throwable e) {
    String condition = s.getCondition().split("\\.")[0];
    Map<String, String> parameters = s.getMessageParameters();
    return switch (condition) {
      case "DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO", "INTERVAL_DIVIDED_BY_ZERO" ->
          new SqlError("22012", "division by zero");
      case "ARITHMETIC_OVERFLOW" -> overflow(null);
      case "BINARY_ARITHMETIC_OVERFLOW" -> new SqlError("22003", "smallint out of range");
      case "CAST_OVERFLOW", "CAST_OVERFLOW_IN_TABLE_INSERT" ->
          new SqlError("22003", typeName(parameters.get("targetType")) + " out of range");
      case "NUMERIC_VALUE_OUT_OF_RANGE", "NUMERIC_OUT_OF_SUPPORTED_RANGE", "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION" ->
          new SqlError("22003", "numeric field overflow");
      case "CAST_INVALID_INPUT" ->
          invalidInput(literalText(parameters.get("expression")), typeName(parameters.get("targetType")));
      case "DATETIME_OVERFLOW" -> new SqlError("22008", "timestamp out of range");
      case "DATETIME_FIELD_OUT_OF_BOUNDS" -> new SqlError("22008", "date/time field value out of range");
      case "INTERVAL_ARITHMETIC_OVERFLOW" -> new SqlError("22008", "interval out of range");
      case "INVALID_ARRAY_INDEX", "INVALID_ARRAY_INDEX_IN_ELEMENT_AT" ->
          new SqlError("2202E", "array subscript out of range");
      case "USER_RAISED_EXCEPTION" -> raised(parameters.getOrDefault("errorMessage", ""));
      default -> new SqlError(s.getSqlState() == null ? "XX000" : s.getSqlState(), summary(e.getMessage()));
    };
  }

  /** Returns whether an exception is an arithmetic overflow; Spark does not report the type. */
  public static boolean isOverflow(Throwable e) {
    return e instanceof SparkThrowable s && "ARITHMETIC_OVERFLOW".equals(s.getCondition());
  }

  /** Returns 22003 for a type, or for an unknown type (null). */
  public static SqlError overflow(DataType type) {
    return new SqlError("22003", (type == null ? "value" : typeName(type.sql())) + " out of range");
  }

  private static SqlError raised(String message) {
    if (!message.startsWith(RAISED)) return new SqlError("P0001", message);
    return new SqlError(message.substring(1, 6), message.substring(6));
  }

  private static SqlError invalidInput(String value, String type) {
    boolean integral = type.equals("smallint") || type.equals("integer") || type.equals("bigint");
    if (integral && INTEGER.matcher(value).matches()) {
      return new SqlError("22003", "value \"" + value + "\" is out of range for type " + type);
    }
    String sqlstate = type.startsWith("date") || type.startsWith("time") ? "22007" : "22P02";
    return new SqlError(sqlstate, "invalid input syntax for type " + type + ": \"" + value + "\"");
  }

  /** Returns PostgreSQL's name of a type that Spark writes as {@code "INT"}. */
  private static String typeName(String quoted) {
    String name = quoted == null ? "" : quoted.replace("\"", "");
    if (name.startsWith("DECIMAL")) return "numeric";
    return TYPE_NAMES.getOrDefault(name, name.toLowerCase(Locale.ROOT));
  }

  /** Returns the text of a string literal as Spark writes it. */
  private static String literalText(String literal) {
    if (literal == null || literal.length() < 2 || literal.charAt(0) != '\'') return String.valueOf(literal);
    return literal.substring(1, literal.length() - 1).replaceAll("\\\\(.)", "$1");
  }

  /**
   * Returns a message's first line without Spark's {@code [CONDITION]} prefix and SQLSTATE suffix.
   */
  private static String summary(String message) {
    String line = String.valueOf(message).lines().findFirst().orElse("");
    return line.replaceFirst("^\\[[A-Z_.0-9]+] ", "").replaceFirst(" SQLSTATE: .*", "");
  }
}
