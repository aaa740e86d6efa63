package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.*;
import tailgate.functions.numeric.General;
import tailgate.functions.numeric.GeneralMoments;
import tailgate.functions.numeric.Numbers;
import tailgate.functions.time.Interval;
import tailgate.functions.time.IntervalFunctions;
import tailgate.state.State;

/** Sums and averages. */
final class Sums {
  private Sums() {}

  static Supplier<Accumulator> factory(AggregateCall call, StructType row) {
    DataType type = call.type(row, 0);
    int column = call.columns[0];
    boolean average = call.is("avg");
    if (type.equals(Intervals.TYPE) && call.result.equals(type)) return () -> new Intervals(column, average);
    if (type == DataTypes.DoubleType || type == DataTypes.FloatType) return () -> new Floating(column, type, call.result, average);
    if (!average || !call.result.sameType(General.TYPE)) Numbers.of(BigDecimal.ZERO, call.result);
    Exact exact = Exact.of(type, call.result, average);
    return () -> new Whole(column, exact);
  }

  /** The types of a sum or average of integers or decimals. A column whose value fits a long is `small`. */
  private record Exact(DataType type, DataType result, boolean average, int precision, int scale, boolean isDecimal, boolean small) {
    static Exact of(DataType type, DataType result, boolean average) {
      if (type instanceof DecimalType d)
        return new Exact(type, result, average, d.precision(), d.scale(), true, d.precision() <= Decimal.MAX_LONG_DIGITS());
      if (type instanceof IntegralType || type instanceof DayTimeIntervalType || type instanceof YearMonthIntervalType)
        return new Exact(type, result, average, 0, 0, false, true);
      throw new IllegalArgumentException("no sum of " + type.catalogString());
    }

    /** Returns the value of a column as an integer at the column's scale. */
    long small(InternalRow row, int column) {
      if (isDecimal && row instanceof UnsafeRow) return row.getLong(column);
      if (isDecimal) return row.getDecimal(column, precision, scale).toUnscaledLong();
      if (type == DataTypes.LongType || type instanceof DayTimeIntervalType) return row.getLong(column);
      if (type == DataTypes.IntegerType || type instanceof YearMonthIntervalType) return row.getInt(column);
      return type == DataTypes.ShortType ? row.getShort(column) : row.getByte(column);
    }

    BigInteger large(InternalRow row, int column) {
      return row.getDecimal(column, precision, scale).toJavaBigDecimal().setScale(scale, RoundingMode.HALF_UP).unscaledValue();
    }
  }

  /**
   * Sums and averages of integers and decimals: a count, and the sum as an integer at the column's
   * scale.
   */
  private static final class Whole extends Counts {
    private final Exact of;
    private long small;        // the sum is small + large
    private BigInteger large;  // null is zero

    Whole(int column, Exact of) {
      super(column);
      this.of = of;
    }

    @Override public void add(InternalRow row, long weight) {
      if (row.isNullAt(column)) return;
      n += weight;
      if (of.small) plus(of.small(row, column), weight);
      else plus(of.large(row, column).multiply(BigInteger.valueOf(weight)));
    }

    private void plus(long value, long weight) {
      long high = Math.multiplyHigh(value, weight), low = value * weight, sum = small + low;
      if (high == low >> 63 && ((small ^ sum) & (low ^ sum)) >= 0) small = sum;
      else plus(BigInteger.valueOf(value).multiply(BigInteger.valueOf(weight)));
    }

    private void plus(BigInteger value) { large = large == null ? value : large.add(value); }

    private boolean isSmall() { return large == null || large.signum() == 0; }

    private BigInteger sum() { return large.add(BigInteger.valueOf(small)); }

    @Override public void merge(Accumulator change, GroupValues values) {
      super.merge(change, values);
      Whole other = (Whole) change;
      plus(other.small, 1);
      if (other.large != null) plus(other.large);
    }

    @Override public boolean isZero() { return n == 0 && (isSmall() ? small == 0 : sum().signum() == 0); }

    @Override public Object result(long rows, GroupValues values) {
      if (n == 0) return null;
      if (isSmall() && !of.average) return Numbers.of(small, of.scale, of.result);
      BigDecimal sum = isSmall() ? BigDecimal.valueOf(small, of.scale) : new BigDecimal(sum(), of.scale);
      if (!of.average) return Numbers.of(sum, of.result);
      return of.result instanceof StructType ? GeneralMoments.average(n, sum) : Numbers.quotient(sum, n, of.result);
    }

    @Override public void write(DataOutput out) throws IOException {
      super.write(out);
      byte[] bytes = isSmall() ? State.weight(small) : sum().toByteArray();
      out.writeShort(bytes.length);
      out.write(bytes);
    }

    @Override public void read(DataInput in) throws IOException {
      super.read(in);
      byte[] bytes = new byte[in.readUnsignedShort()];
      in.readFully(bytes);
      if (bytes.length <= 8) small = State.weight(bytes);
      else large = new BigInteger(bytes);
    }
  }

  /** Sums and averages of intervals: months, days and microseconds separately, as in PostgreSQL. */
  private static final class Intervals extends Counts {
    static final DataType TYPE = DataType.fromDDL("struct<months:int,days:int,micros:bigint>");
    private final boolean average;
    private final BigInteger[] sums = {BigInteger.ZERO, BigInteger.ZERO, BigInteger.ZERO};

    Intervals(int column, boolean average) {
      super(column);
      this.average = average;
    }

    @Override public void add(InternalRow row, long weight) {
      if (row.isNullAt(column)) return;
      n += weight;
      InternalRow interval = row.getStruct(column, 3);
      for (int i = 0; i < 3; i++)
        sums[i] = sums[i].add(BigInteger.valueOf(i < 2 ? interval.getInt(i) : interval.getLong(i))
            .multiply(BigInteger.valueOf(weight)));
    }

    @Override public void merge(Accumulator change, GroupValues values) {
      super.merge(change, values);
      for (int i = 0; i < 3; i++) sums[i] = sums[i].add(((Intervals) change).sums[i]);
    }

    @Override public boolean isZero() { return n == 0 && java.util.Arrays.stream(sums).allMatch(s -> s.signum() == 0); }

    @Override public Object result(long rows, GroupValues values) {
      if (n == 0) return null;
      for (int i = 0; i < 3; i++) if (sums[i].bitLength() > (i < 2 ? 31 : 63)) throw Interval.outOfRange();
      InternalRow sum = new GenericInternalRow(new Object[] {sums[0].intValue(), sums[1].intValue(), sums[2].longValue()});
      return average ? IntervalFunctions.intervalDivide(sum, n) : sum;
    }

    @Override public void write(DataOutput out) throws IOException {
      super.write(out);
      for (BigInteger sum : sums) {
        byte[] bytes = sum.toByteArray();
        out.writeByte(bytes.length);
        out.write(bytes);
      }
    }

    @Override public void read(DataInput in) throws IOException {
      super.read(in);
      for (int i = 0; i < 3; i++) {
        byte[] bytes = new byte[in.readUnsignedByte()];
        in.readFully(bytes);
        sums[i] = new BigInteger(bytes);
      }
    }
  }

  /** Sums and averages of floating point. */
  private static final class Floating extends Counts {
    private final boolean wide, average;
    private final DataType result;
    private final ExactSum sum = new ExactSum();

    Floating(int column, DataType type, DataType result, boolean average) {
      super(column);
      this.wide = type == DataTypes.DoubleType;
      this.result = result;
      this.average = average;
      if (result != DataTypes.DoubleType && result != DataTypes.FloatType)
        throw new IllegalArgumentException("a floating-point sum is no " + result.catalogString());
    }

    @Override public void add(InternalRow row, long weight) {
      if (row.isNullAt(column)) return;
      n += weight;
      sum.add(wide ? row.getDouble(column) : row.getFloat(column), weight);
    }

    @Override public void merge(Accumulator change, GroupValues values) {
      super.merge(change, values);
      sum.add(((Floating) change).sum);
    }

    @Override public boolean isZero() { return n == 0 && sum.isZero(); }

    @Override public Object result(long rows, GroupValues values) {
      if (n == 0) return null;
      double value = average ? sum.value() / n : sum.value();
      if (result == DataTypes.FloatType) {
        if (Float.isInfinite((float) value) && sum.isFinite()) throw Numbers.overflow();
        return (float) value;
      }
      if (Double.isInfinite(value) && sum.isFinite()) throw Numbers.overflow();
      return value;
    }

    @Override public void write(DataOutput out) throws IOException {
      super.write(out);
      sum.write(out);
    }

    @Override public void read(DataInput in) throws IOException {
      super.read(in);
      sum.read(in);
    }
  }
}
