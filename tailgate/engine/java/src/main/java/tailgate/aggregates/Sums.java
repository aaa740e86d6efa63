package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.*;
import tailgate.functions.numeric.Numbers;
import tailgate.functions.time.Interval;
import tailgate.functions.time.IntervalFunctions;
import tailgate.state.State;

/** Sums and averages. */
final class Sums {
  private Sums() {}

  static Accumulator of(AggregateCall call, StructType row) {
    DataType type = call.type(row, 0);
    boolean average = call.is("avg");
    if (type.equals(Intervals.TYPE) && call.result.equals(type)) return new Intervals(call.columns[0], average);
    if (type == DataTypes.DoubleType || type == DataTypes.FloatType) return new Floating(call.columns[0], type, call.result, average);
    return new Whole(call.columns[0], type, call.result, average);
  }

  /**
   * Sums and averages of integers and decimals: a count, and the sum as an integer at the column's
   * scale.
   */
  private static final class Whole extends Counts {
    private final DataType type, result;
    private final boolean average;
    private final int precision, scale;
    private long small;                         // the sum is small + large
    private BigInteger large = BigInteger.ZERO;

    Whole(int column, DataType type, DataType result, boolean average) {
      super(column);
      this.type = type;
      this.result = result;
      this.average = average;
      this.precision = type instanceof DecimalType d ? d.precision() : 0;
      this.scale = type instanceof DecimalType d ? d.scale() : 0;
      if (!(type instanceof IntegralType || type instanceof DecimalType
          || type instanceof DayTimeIntervalType || type instanceof YearMonthIntervalType))
        throw new IllegalArgumentException("no sum of " + type.catalogString());
      Numbers.of(BigDecimal.ZERO, result);
    }

    @Override public void add(InternalRow row, long weight) {
      if (row.isNullAt(column)) return;
      n += weight;
      if (type instanceof DecimalType) {
        Decimal value = row.getDecimal(column, precision, scale);
        if (precision <= Decimal.MAX_LONG_DIGITS()) plus(value.toUnscaledLong(), weight);
        else
          large = large.add(value.toJavaBigDecimal().setScale(scale, RoundingMode.HALF_UP)
              .unscaledValue().multiply(BigInteger.valueOf(weight)));
      } else if (type == DataTypes.LongType || type instanceof DayTimeIntervalType) plus(row.getLong(column), weight);
      else if (type == DataTypes.IntegerType || type instanceof YearMonthIntervalType) plus(row.getInt(column), weight);
      else plus(type == DataTypes.ShortType ? row.getShort(column) : row.getByte(column), weight);
    }

    private void plus(long value, long weight) {
      long high = Math.multiplyHigh(value, weight), low = value * weight, sum = small + low;
      if (high == low >> 63 && ((small ^ sum) & (low ^ sum)) >= 0) small = sum;
      else large = large.add(BigInteger.valueOf(value).multiply(BigInteger.valueOf(weight)));
    }

    private BigInteger sum() { return large.signum() == 0 ? BigInteger.valueOf(small) : large.add(BigInteger.valueOf(small)); }

    @Override public void merge(Accumulator change, GroupValues values) {
      super.merge(change, values);
      Whole other = (Whole) change;
      plus(other.small, 1);
      large = large.add(other.large);
    }

    @Override public boolean isZero() { return n == 0 && sum().signum() == 0; }

    @Override public Object result(long rows, GroupValues values) {
      if (n == 0) return null;
      BigDecimal sum = new BigDecimal(sum(), scale);
      return average ? Numbers.quotient(sum, n, result) : Numbers.of(sum, result);
    }

    @Override public void write(DataOutput out) throws IOException {
      super.write(out);
      byte[] bytes = sum().toByteArray();
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
