package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.*;
import tailgate.functions.numeric.General;
import tailgate.functions.numeric.GeneralMoments;
import tailgate.functions.numeric.Numbers;

/**
 * Variances and regression functions, computed from the exact sums of the numbers, their squares
 * and their products.
 *
 * <p>S_xx below is n Σx² - (Σx)², n times the sum of squared distances from the mean. Since it is
 * exact, it is never negative, and it is zero if and only if all x are equal. A result is computed
 * with 50 digits and rounded once.
 *
 * <p>Source: PostgreSQL 15, src/backend/utils/adt/float.c (float8_regr_*), numeric.c
 * (numeric_stddev_internal).
 */
final class Moments {
  private static final MathContext DIGITS = new MathContext(50);

  private Moments() {}

  static Accumulator of(AggregateCall call, StructType row) {
    boolean floating = call.result == DataTypes.DoubleType;
    return switch (call.function) {
      case "var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev" ->
          floating ? new Pairs(call, row) : new Exact(call, row);
      case "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count",
          "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy",
          "regr_syy" -> new Pairs(call, row);
      default -> throw new IllegalArgumentException("no function " + call.function);
    };
  }

  private static boolean sample(String function) { return !function.endsWith("_pop"); }

  /** Returns the variance or standard deviation for n and S_xx. */
  private static BigDecimal variance(String function, long n, BigDecimal sxx) {
    BigDecimal value = sxx.divide(BigDecimal.valueOf(n).multiply(BigDecimal.valueOf(sample(function) ? n - 1 : n)), DIGITS);
    return function.startsWith("stddev") ? value.sqrt(DIGITS) : value;
  }

  /** Variances of integers and decimals. */
  private static final class Exact extends Counts {
    private final AggregateCall call;
    private final DataType type;
    private final int scale;
    private BigInteger sum = BigInteger.ZERO, squares = BigInteger.ZERO;

    Exact(AggregateCall call, StructType row) {
      super(call.columns[0]);
      this.call = call;
      this.type = call.type(row, 0);
      this.scale = type instanceof DecimalType d ? d.scale() : 0;
      if (!(type instanceof IntegralType || type instanceof DecimalType)) throw none(call);
      if (!isGeneral()) Numbers.of(BigDecimal.ZERO, call.result);
    }

    private boolean isGeneral() { return call.result.sameType(General.TYPE); }

    @Override public void add(InternalRow row, long weight) {
      if (row.isNullAt(column)) return;
      n += weight;
      BigInteger value;
      if (type instanceof DecimalType d)
        value = row.getDecimal(column, d.precision(), d.scale()).toJavaBigDecimal()
            .setScale(scale, RoundingMode.HALF_UP).unscaledValue();
      else
        value = BigInteger.valueOf(type == DataTypes.LongType ? row.getLong(column)
            : type == DataTypes.IntegerType ? row.getInt(column) : row.getShort(column));
      BigInteger times = value.multiply(BigInteger.valueOf(weight));
      sum = sum.add(times);
      squares = squares.add(times.multiply(value));
    }

    @Override public void merge(Accumulator change, GroupValues values) {
      super.merge(change, values);
      sum = sum.add(((Exact) change).sum);
      squares = squares.add(((Exact) change).squares);
    }

    @Override public boolean isZero() { return n == 0 && sum.signum() == 0 && squares.signum() == 0; }

    @Override public Object result(long rows, GroupValues values) {
      if (n < (sample(call.function) ? 2 : 1)) return null;
      BigInteger sxx = squares.multiply(BigInteger.valueOf(n)).subtract(sum.multiply(sum));
      if (sxx.signum() < 0) return null;  // only while the deletion of a value has arrived before its insertion
      if (isGeneral()) {
        return GeneralMoments.variance(call.function, n, new BigDecimal(sum, scale), new BigDecimal(squares, 2 * scale), true);
      }
      return Numbers.of(variance(call.function, n, new BigDecimal(sxx, 2 * scale)), call.result);
    }

    @Override public void write(DataOutput out) throws IOException {
      super.write(out);
      for (BigInteger value : new BigInteger[] {sum, squares}) {
        byte[] bytes = value.toByteArray();
        out.writeShort(bytes.length);
        out.write(bytes);
      }
    }

    @Override public void read(DataInput in) throws IOException {
      super.read(in);
      sum = number(in);
      squares = number(in);
    }

    private static BigInteger number(DataInput in) throws IOException {
      byte[] bytes = new byte[in.readUnsignedShort()];
      in.readFully(bytes);
      return new BigInteger(bytes);
    }
  }

  /**
   * Functions of floating-point pairs (y, x), or of single numbers x. Pairs with a NULL are
   * ignored.
   */
  private static final class Pairs extends Counts {
    private final AggregateCall call;
    private final boolean pairs;
    private final int x;
    private final boolean wide;
    private final ExactSum sx = new ExactSum(), sxx = new ExactSum(), sy, syy, sxy;

    Pairs(AggregateCall call, StructType row) {
      super(call.columns[0]);
      this.call = call;
      this.pairs = call.columns.length == 2;
      this.x = call.columns[call.columns.length - 1];
      this.wide = call.type(row, 0) == DataTypes.DoubleType;
      if (call.type(row, 0) != DataTypes.DoubleType && (pairs || call.type(row, 0) != DataTypes.FloatType)) throw none(call);
      if (pairs && call.type(row, 1) != DataTypes.DoubleType) throw none(call);
      if (call.result != (call.is("regr_count") ? DataTypes.LongType : DataTypes.DoubleType)) throw none(call);
      sy = pairs ? new ExactSum() : null;
      syy = pairs ? new ExactSum() : null;
      sxy = pairs ? new ExactSum() : null;
    }

    private ExactSum[] sums() { return pairs ? new ExactSum[] {sx, sxx, sy, syy, sxy} : new ExactSum[] {sx, sxx}; }

    @Override public void add(InternalRow row, long weight) {
      if (row.isNullAt(column) || row.isNullAt(x)) return;
      n += weight;
      double a = wide ? row.getDouble(x) : row.getFloat(x);
      sx.add(a, weight);
      sxx.addProduct(a, a, weight);
      if (!pairs) return;
      double b = row.getDouble(column);
      sy.add(b, weight);
      syy.addProduct(b, b, weight);
      sxy.addProduct(a, b, weight);
    }

    @Override public void merge(Accumulator change, GroupValues values) {
      super.merge(change, values);
      ExactSum[] mine = sums(), theirs = ((Pairs) change).sums();
      for (int i = 0; i < mine.length; i++) mine[i].add(theirs[i]);
    }

    @Override public boolean isZero() {
      for (ExactSum sum : sums()) if (!sum.isZero()) return false;
      return n == 0;
    }

    @Override public Object result(long rows, GroupValues values) {
      if (call.is("regr_count")) return n;
      if (n < (call.is("var_samp", "variance", "stddev", "stddev_samp", "covar_samp") ? 2 : 1)) return null;
      if (call.is("regr_avgx", "regr_avgy")) {
        ExactSum sum = call.is("regr_avgx") ? sx : sy;
        return sum.isFinite() ? finite(sum.exact().divide(BigDecimal.valueOf(n), DIGITS)) : sum.value();
      }
      if (!sxx.isFinite() || pairs && (!syy.isFinite() || !sxy.isFinite())) return unknown();
      BigDecimal count = BigDecimal.valueOf(n), xx = spread(sxx, sx, sx);
      if (!pairs) return xx.signum() < 0 ? null : finite(variance(call.function, n, xx));
      BigDecimal yy = spread(syy, sy, sy), xy = spread(sxy, sx, sy);
      if (xx.signum() < 0 || yy.signum() < 0) return null;
      return switch (call.function) {
        case "covar_pop" -> finite(xy.divide(count.multiply(count), DIGITS));
        case "covar_samp" -> finite(xy.divide(count.multiply(BigDecimal.valueOf(n - 1)), DIGITS));
        case "regr_sxx" -> finite(xx.divide(count, DIGITS));
        case "regr_syy" -> finite(yy.divide(count, DIGITS));
        case "regr_sxy" -> finite(xy.divide(count, DIGITS));
        case "corr" -> xx.signum() == 0 || yy.signum() == 0 ? null : finite(xy.divide(xx.multiply(yy).sqrt(DIGITS), DIGITS));
        case "regr_r2" ->
            xx.signum() == 0 ? null : yy.signum() == 0 ? (Object) 1.0
                : finite(xy.multiply(xy).divide(xx.multiply(yy), DIGITS));
        case "regr_slope" -> xx.signum() == 0 ? null : finite(xy.divide(xx, DIGITS));
        default -> xx.signum() == 0 ? null : finite(sy.exact().subtract(sx.exact().multiply(xy).divide(xx, DIGITS)).divide(count, DIGITS));
      };
    }

    /**
     * Returns the result if a number is infinite or NaN: NaN, except for regr_sxx and regr_syy of
     * finite numbers.
     */
    private Object unknown() {
      if (call.is("regr_sxx") && sxx.isFinite()) return finite(spread(sxx, sx, sx).divide(BigDecimal.valueOf(n), DIGITS));
      if (call.is("regr_syy") && syy.isFinite()) return finite(spread(syy, sy, sy).divide(BigDecimal.valueOf(n), DIGITS));
      return Double.NaN;
    }

    /** Returns n Σab - Σa Σb. */
    private BigDecimal spread(ExactSum products, ExactSum a, ExactSum b) {
      return products.exact().multiply(BigDecimal.valueOf(n))
          .subtract(a.exact().multiply(b.exact()));
    }

    private static Double finite(BigDecimal value) {
      double found = value.doubleValue();
      if (Double.isInfinite(found)) throw Numbers.overflow();
      return found;
    }

    @Override public void write(DataOutput out) throws IOException {
      super.write(out);
      for (ExactSum sum : sums()) sum.write(out);
    }

    @Override public void read(DataInput in) throws IOException {
      super.read(in);
      for (ExactSum sum : sums()) sum.read(in);
    }
  }
}
