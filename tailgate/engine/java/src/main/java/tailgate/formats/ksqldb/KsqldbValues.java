package tailgate.formats.ksqldb;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Base64;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.functions.numeric.NumberInput;
import tailgate.functions.text.Utf8;

/**
 * Conversion of texts and numbers to the stored forms of columns. Numbers are days for a date, and
 * milliseconds for a time and a timestamp.
 */
final class KsqldbValues {
  private static final int LONG_DIGITS = 19;
  private static final long MICROS_PER_MILLISECOND = 1000;

  private KsqldbValues() {}

  /** Returns the value of a text that is not empty, or of a JSON string. */
  static Object ofText(String text, String type, DataType spark) {
    try {
      return switch (type) {
        case "text" -> Utf8.text(text);
        case "bytea" -> Base64.getDecoder().decode(text);
        case "bool" -> Boolean.parseBoolean(text.strip());
        case "float8" -> Double.parseDouble(text.strip());
        case "jsonb" -> throw Format.malformed("a text is not a value of type " + type);
        default -> ofNumber(new BigDecimal(text.strip()), type, spark);
      };
    } catch (IllegalArgumentException e) {
      throw Format.malformed("invalid input syntax for type " + spark.catalogString() + ": \"" + text + "\"");
    }
  }

  /** Returns the value of a number. Digits after the point of an integer are cut off, those of a numeric are not rounded: throws 22P02. */
  static Object ofNumber(BigDecimal number, String type, DataType spark) {
    if (type.equals("float8")) return number.doubleValue();
    if (type.equals("numeric")) {
      DecimalType decimal = (DecimalType) spark;
      if (number.scale() > decimal.scale() && number.stripTrailingZeros().scale() > decimal.scale()) {
        throw Format.malformed("Cannot fit decimal '" + number + "' into " + spark.sql() + " without rounding.");
      }
      return NumberInput.toNumeric(UTF8String.fromString(number.toString()), decimal.precision(), decimal.scale());
    }
    long digits = (long) number.precision() - number.scale();  // before the point
    if (digits > LONG_DIGITS) throw outOfRange(spark);
    BigInteger integer = digits <= 0 ? BigInteger.ZERO : number.toBigInteger();
    if (integer.bitLength() > 63) throw outOfRange(spark);
    return ofLong(integer.longValue(), type, spark);
  }

  /** Returns the value of an integer. */
  static Object ofLong(long number, String type, DataType spark) {
    return switch (type) {
      case "int8" -> number;
      case "int4", "date" -> {
        if (number != (int) number) throw outOfRange(spark);
        yield (int) number;
      }
      case "float8" -> (double) number;
      case "time", "timestamp" -> {
        if (Math.abs(number) > Long.MAX_VALUE / MICROS_PER_MILLISECOND) throw outOfRange(spark);
        yield number * MICROS_PER_MILLISECOND;
      }
      case "numeric" -> ofNumber(BigDecimal.valueOf(number), type, spark);
      default -> throw Format.malformed("a number is not a value of type " + spark.catalogString());
    };
  }

  private static SqlError outOfRange(DataType type) { return new SqlError("22003", type.catalogString() + " out of range"); }
}
