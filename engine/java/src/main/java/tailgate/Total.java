package tailgate;

import java.io.*;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.*;
import tailgate.Rows.Bytes;

/**
 * One aggregate of one group, as something that can be added and taken away again without a trace.
 *
 * <p>Totals are exact: whole numbers and decimals as whole numbers of any size, floating point as {@link ExactSum}. So what was retracted is gone, and the result does
 * not depend on the order of arrival. NULLs do not count; a total of no values is NULL.
 */
abstract class Total {
  abstract void add(InternalRow row, long weight);

  /** Adds what has changed. `values` is where the values of the group are kept in order, for those who need it. */
  abstract void merge(Total change, Reduce.Values values);

  abstract boolean isZero();

  /** Catalyst's form of the result, or null. Throws SqlError if the type cannot hold it. */
  abstract Object result(long rows);

  abstract void write(DataOutput out) throws IOException;

  abstract void read(DataInput in) throws IOException;

  static Total of(String function, StructType row, int column, DataType result) {
    if (function.equals("count") && result != DataTypes.LongType) throw new IllegalArgumentException("count is a bigint, not " + result.catalogString());
    if (function.equals("count") && column < 0) return new Rows();
    DataType type = row.apply(column).dataType();
    boolean floating = type == DataTypes.DoubleType || type == DataTypes.FloatType;
    return switch (function) {
      case "count" -> new Count(column);
      case "sum", "avg" -> floating ? new Floating(column, type, result, function.equals("avg")) : new Whole(column, type, result, function.equals("avg"));
      case "min", "max" -> {
        if (!type.equals(result)) throw new IllegalArgumentException(function + " of " + type.catalogString() + " is no " + result.catalogString());
        yield new Extreme(column, new Ordered(type, function.equals("max")));
      }
      default -> throw new IllegalArgumentException("no function " + function);
    };
  }

  /** count(*): the number of rows, which the group knows. */
  private static final class Rows extends Total {
    @Override void add(InternalRow row, long weight) {}

    @Override void merge(Total change, Reduce.Values values) {}

    @Override boolean isZero() { return true; }

    @Override Object result(long rows) { return rows; }

    @Override void write(DataOutput out) {}

    @Override void read(DataInput in) {}
  }

  /** count(column): the number of values. */
  private static class Count extends Total {
    final int column;
    long n;

    Count(int column) { this.column = column; }

    @Override void add(InternalRow row, long weight) { if (!row.isNullAt(column)) n += weight; }

    @Override void merge(Total change, Reduce.Values values) { n += ((Count) change).n; }

    @Override boolean isZero() { return n == 0; }

    @Override Object result(long rows) { return n; }

    @Override void write(DataOutput out) throws IOException { out.writeLong(n); }

    @Override void read(DataInput in) throws IOException { n = in.readLong(); }
  }

  /** Sums and averages of whole numbers and decimals: a count, and a whole number of units of the column's scale. */
  private static final class Whole extends Count {
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
      if (!(type instanceof IntegralType || type instanceof DecimalType || type instanceof DayTimeIntervalType || type instanceof YearMonthIntervalType))
        throw new IllegalArgumentException("no sum of " + type.catalogString());
      Numbers.of(BigDecimal.ZERO, result);
    }

    @Override void add(InternalRow row, long weight) {
      if (row.isNullAt(column)) return;
      n += weight;
      if (type instanceof DecimalType) {
        Decimal value = row.getDecimal(column, precision, scale);
        if (precision <= Decimal.MAX_LONG_DIGITS()) plus(value.toUnscaledLong(), weight);
        else large = large.add(value.toJavaBigDecimal().setScale(scale, RoundingMode.HALF_UP).unscaledValue().multiply(BigInteger.valueOf(weight)));
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

    @Override void merge(Total change, Reduce.Values values) {
      super.merge(change, values);
      Whole other = (Whole) change;
      plus(other.small, 1);
      large = large.add(other.large);
    }

    @Override boolean isZero() { return n == 0 && sum().signum() == 0; }

    @Override Object result(long rows) {
      if (n == 0) return null;
      BigDecimal sum = new BigDecimal(sum(), scale);
      return average ? Numbers.quotient(sum, n, result) : Numbers.of(sum, result);
    }

    @Override void write(DataOutput out) throws IOException {
      super.write(out);
      byte[] bytes = sum().toByteArray();
      out.writeShort(bytes.length);
      out.write(bytes);
    }

    @Override void read(DataInput in) throws IOException {
      super.read(in);
      byte[] bytes = new byte[in.readUnsignedShort()];
      in.readFully(bytes);
      if (bytes.length <= 8) small = State.weight(bytes);
      else large = new BigInteger(bytes);
    }
  }

  /** Sums and averages of floating point. */
  private static final class Floating extends Count {
    private final boolean wide, average;
    private final DataType result;
    private final ExactSum sum = new ExactSum();

    Floating(int column, DataType type, DataType result, boolean average) {
      super(column);
      this.wide = type == DataTypes.DoubleType;
      this.result = result;
      this.average = average;
      if (result != DataTypes.DoubleType && result != DataTypes.FloatType) throw new IllegalArgumentException("a floating-point sum is no " + result.catalogString());
    }

    @Override void add(InternalRow row, long weight) {
      if (row.isNullAt(column)) return;
      n += weight;
      sum.add(wide ? row.getDouble(column) : row.getFloat(column), weight);
    }

    @Override void merge(Total change, Reduce.Values values) {
      super.merge(change, values);
      sum.add(((Floating) change).sum);
    }

    @Override boolean isZero() { return n == 0 && sum.isZero(); }

    @Override Object result(long rows) {
      if (n == 0) return null;
      double value = average ? sum.value() / n : sum.value();
      if (result == DataTypes.FloatType) {
        if (Float.isInfinite((float) value) && sum.isFinite()) throw Numbers.overflow();
        return (float) value;
      }
      if (Double.isInfinite(value) && sum.isFinite()) throw Numbers.overflow();
      return value;
    }

    @Override void write(DataOutput out) throws IOException {
      super.write(out);
      sum.write(out);
    }

    @Override void read(DataInput in) throws IOException {
      super.read(in);
      sum.read(in);
    }
  }

  /**
   * min and max: the first of the group's values in order. It is remembered, so values are looked through only when it goes, and then the next one is one seek away.
   */
  private static final class Extreme extends Total {
    private final int column;
    private final Ordered order;
    private final Map<Bytes, Long> changes = new HashMap<>();
    private byte[] best;

    Extreme(int column, Ordered order) {
      this.column = column;
      this.order = order;
    }

    @Override void add(InternalRow row, long weight) {
      if (!row.isNullAt(column)) changes.merge(new Bytes(order.encode(row, column)), weight, Long::sum);
    }

    @Override void merge(Total change, Reduce.Values values) {
      boolean[] lost = {false};
      ((Extreme) change).changes.forEach((value, weight) -> {
        if (weight == 0) return;
        long left = values.weigh(value.bytes, weight);
        if (left > 0 && (best == null || Arrays.compareUnsigned(value.bytes, best) < 0)) {
          best = value.bytes;
          lost[0] = false;
        } else if (left <= 0 && best != null && Arrays.equals(value.bytes, best)) lost[0] = true;
      });
      if (lost[0]) best = values.first();
    }

    @Override boolean isZero() { return best == null; }

    @Override Object result(long rows) { return best == null ? null : order.decode(best); }

    @Override void write(DataOutput out) throws IOException {
      out.writeInt(best == null ? -1 : best.length);
      if (best != null) out.write(best);
    }

    @Override void read(DataInput in) throws IOException {
      int length = in.readInt();
      if (length >= 0) in.readFully(best = new byte[length]);
    }
  }
}
