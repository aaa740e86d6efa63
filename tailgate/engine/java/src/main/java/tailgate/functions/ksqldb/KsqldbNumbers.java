package tailgate.functions.ksqldb;

import java.math.BigDecimal;
import java.math.RoundingMode;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * ksqlDB's functions of numbers.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL, and a result of null is
 * NULL. {@code tailgate/sql/compute/ksqldb/numbers.py} computes the same and names the source.
 */
public final class KsqldbNumbers {
  private static final int SERIES_MAX = 1_000_000;  // elements of an array that a function generates
  private static final int PLACES_MAX = 400;  // a DOUBLE has no digits beyond

  private KsqldbNumbers() {}

  public static double ksqldbPower(double base, double exponent) { return Math.pow(base, exponent); }

  /** Returns a value that is rounded to decimal places, half up: in the direction of positive infinity. */
  public static double ksqldbRound(double value, int places) {
    boolean finite = Double.isFinite(value);
    if (!finite || Math.abs((long) places) > PLACES_MAX) return places > 0 || !finite ? value : 0;
    BigDecimal shifted = BigDecimal.valueOf(value).movePointRight(places).add(new BigDecimal("0.5"));
    return shifted.setScale(0, RoundingMode.FLOOR).movePointLeft(places).doubleValue();
  }

  /** Returns the numbers from start to end as an array; null if the step has the wrong direction or is 0. */
  public static UTF8String ksqldbGenerateSeries(long start, long end, long step) {
    if (step == 0 || (step > 0 ? start > end : start < end)) return null;
    StringBuilder out = new StringBuilder("[");
    int size = 0;
    for (long n = start; step > 0 ? n <= end : n >= end; n += step) {
      if (++size > SERIES_MAX) throw new SqlError("54000", "an array may have at most " + SERIES_MAX + " elements");
      out.append(size > 1 ? ", " : "").append(n);
      if (step > 0 ? n > Long.MAX_VALUE - step : n < Long.MIN_VALUE - step) break;
    }
    return UTF8String.fromString(out.append(']').toString());
  }

  /** Returns the number in a text. Throws 22P02. */
  public static double ksqldbDouble(UTF8String text) {
    try {
      return Double.parseDouble(text.toString());
    } catch (NumberFormatException e) {
      throw new SqlError("22P02", "invalid input syntax for type DOUBLE: \"" + text + "\"");
    }
  }

  // ---- arithmetic, which wraps around -----------------------------------------------------------

  public static long ksqldbPlus(long left, long right) { return left + right; }

  public static long ksqldbMinus(long left, long right) { return left - right; }

  public static long ksqldbTimes(long left, long right) { return left * right; }

  /** Returns the BIGINT of the lowest 64 bits of a number's whole part. */
  public static long ksqldbBigintOfNumeric(Decimal value) { return value.toJavaBigDecimal().longValue(); }

  /** Returns the whole part of a number; the nearest BIGINT if it is out of range, and 0 for NaN. */
  public static long ksqldbBigintOfDouble(double value) { return (long) value; }

  /** Returns the whole part of a number; the nearest INT if it is out of range, and 0 for NaN. */
  public static int ksqldbIntOfDouble(double value) { return (int) value; }

  public static double ksqldbQuotient(double left, double right) { return left / right; }

  public static double ksqldbRemainder(double left, double right) { return left % right; }
}
