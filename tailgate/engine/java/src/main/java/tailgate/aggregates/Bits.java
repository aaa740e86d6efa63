package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.*;

/**
 * bool_and, bool_or, bit_and, bit_or, bit_xor: computed from the number of values that have each
 * bit set.
 */
final class Bits {
  private Bits() {}

  static final class Truth extends Counts {
    private final boolean all;
    private long trues;

    Truth(AggregateCall call, StructType row) {
      super(call.columns[0]);
      this.all = !call.is("bool_or");
      if (call.type(row, 0) != DataTypes.BooleanType || call.result != DataTypes.BooleanType) throw none(call);
    }

    @Override public void add(InternalRow row, long weight) {
      super.add(row, weight);
      if (!row.isNullAt(column) && row.getBoolean(column)) trues += weight;
    }

    @Override public void merge(Accumulator change, GroupValues values) {
      super.merge(change, values);
      trues += ((Truth) change).trues;
    }

    @Override public boolean isZero() { return n == 0 && trues == 0; }

    @Override public Object result(long rows, GroupValues values) { return n == 0 ? null : (Object) (all ? trues == n : trues != 0); }

    @Override public void write(DataOutput out) throws IOException {
      super.write(out);
      out.writeLong(trues);
    }

    @Override public void read(DataInput in) throws IOException {
      super.read(in);
      trues = in.readLong();
    }
  }

  static final class Whole extends Counts {
    private final String function;
    private final DataType type;
    private final long[] ones;

    Whole(AggregateCall call, StructType row) {
      super(call.columns[0]);
      this.function = call.function;
      this.type = call.type(row, 0);
      if (!type.equals(call.result)) throw none(call);
      this.ones = new long[type == DataTypes.LongType ? 64 : type == DataTypes.IntegerType ? 32
          : type == DataTypes.ShortType ? 16 : none()];
    }

    private int none() { throw new IllegalArgumentException("no " + function + " of " + type.catalogString()); }

    @Override public void add(InternalRow row, long weight) {
      if (row.isNullAt(column)) return;
      n += weight;
      long value = ones.length == 64 ? row.getLong(column) : ones.length == 32 ? row.getInt(column) : row.getShort(column);
      for (int i = 0; i < ones.length; i++) if ((value >> i & 1) != 0) ones[i] += weight;
    }

    @Override public void merge(Accumulator change, GroupValues values) {
      super.merge(change, values);
      for (int i = 0; i < ones.length; i++) ones[i] += ((Whole) change).ones[i];
    }

    @Override public boolean isZero() {
      for (long one : ones) if (one != 0) return false;
      return n == 0;
    }

    @Override public Object result(long rows, GroupValues values) {
      if (n == 0) return null;
      long value = 0;
      for (int i = 0; i < ones.length; i++)
        if (function.equals("bit_and") ? ones[i] == n : function.equals("bit_or") ? ones[i] != 0 : (ones[i] & 1) != 0) value |= 1L << i;
      if (ones.length == 64) return value;
      return ones.length == 32 ? (Object) (int) value : (Object) (short) value;
    }

    /** Writes the count of each bit that is set in some value. */
    @Override public void write(DataOutput out) throws IOException {
      super.write(out);
      long some = 0;
      for (int i = 0; i < ones.length; i++) if (ones[i] != 0) some |= 1L << i;
      out.writeLong(some);
      for (long one : ones) if (one != 0) out.writeLong(one);
    }

    @Override public void read(DataInput in) throws IOException {
      super.read(in);
      long some = in.readLong();
      for (int i = 0; i < ones.length; i++) if ((some >> i & 1) != 0) ones[i] = in.readLong();
    }
  }
}
