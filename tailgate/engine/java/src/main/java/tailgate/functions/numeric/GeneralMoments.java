package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.RoundingMode;
import org.apache.spark.sql.catalyst.InternalRow;

/** Averages, variances and standard deviations of general numerics, as {@code tailgate/values/numeric/moments.py} computes them. */
public final class GeneralMoments {
  private GeneralMoments() {}

  /** Returns the average of n values with this sum, whose scale is the largest display scale of a value. */
  public static InternalRow average(long n, BigDecimal sum) {
    BigDecimal count = BigDecimal.valueOf(n);
    return General.of(sum.divide(count, GeneralNumerics.quotientScale(sum, count), RoundingMode.HALF_UP)).row();
  }

  /**
   * Returns the result of an aggregate for n values with these sums, or null if they are too few. The scale of the sum is the
   * largest display scale of a value, that of the sum of squares twice as much.
   *
   * @param finite whether all values are finite
   */
  public static InternalRow variance(String function, long n, BigDecimal sum, BigDecimal squares, boolean finite) {
    boolean sample = !function.endsWith("_pop");
    if (n < (sample ? 2 : 1)) return null;
    if (!finite) return General.NAN.row();
    BigDecimal count = BigDecimal.valueOf(n);
    BigDecimal spread = count.multiply(squares).subtract(sum.multiply(sum));
    if (spread.signum() <= 0) return General.ZERO.row();
    BigDecimal divisor = count.multiply(sample ? count.subtract(BigDecimal.ONE) : count);
    int scale = GeneralNumerics.quotientScale(spread, divisor);
    BigDecimal variance = spread.divide(divisor, scale, RoundingMode.HALF_UP);
    return General.of(function.startsWith("stddev") ? GeneralNumerics.root(variance, scale) : variance).row();
  }
}
