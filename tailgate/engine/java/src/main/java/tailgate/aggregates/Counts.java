package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;

/** count(*) and count(column), which ignores NULLs. */
class Counts extends Accumulator {
  final int column;
  long n;

  Counts(int column) { this.column = column; }

  static Supplier<Accumulator> factory(AggregateCall call) {
    if (call.result != DataTypes.LongType) throw none(call);
    if (call.columns.length == 0 && call.filter < 0) return Rows::new;
    int column = call.columns.length > 0 ? call.columns[0] : call.filter;
    return () -> new Counts(column);
  }

  @Override public void add(InternalRow row, long weight) { if (!row.isNullAt(column)) n += weight; }

  @Override public void merge(Accumulator change, GroupValues values) { n += ((Counts) change).n; }

  @Override public boolean isZero() { return n == 0; }

  @Override public Object result(long rows, GroupValues values) { return n; }

  @Override public void write(DataOutput out) throws IOException { out.writeLong(n); }

  @Override public void read(DataInput in) throws IOException { n = in.readLong(); }

  /** count(*): the number of rows of the group. */
  private static final class Rows extends Accumulator {
    @Override public void add(InternalRow row, long weight) {}

    @Override public void merge(Accumulator change, GroupValues values) {}

    @Override public boolean isZero() { return true; }

    @Override public Object result(long rows, GroupValues values) { return rows; }
  }
}
