package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;

/**
 * ksqldb_first_time: the smallest value of the rows that made the group. It stays until the group leaves, so the values of rows that
 * come later or leave may differ each time they are computed.
 */
final class FirstTime extends Accumulator {
  private final int column;
  private long first = Long.MAX_VALUE;

  FirstTime(AggregateCall call) {
    if (!call.result.equals(DataTypes.LongType)) throw none(call);
    column = call.columns[0];
  }

  @Override public void add(InternalRow row, long weight) {
    if (weight > 0 && !row.isNullAt(column)) first = Math.min(first, row.getLong(column));
  }

  @Override public void merge(Accumulator change, GroupValues values) {
    if (first == Long.MAX_VALUE) first = ((FirstTime) change).first;
  }

  /** Returns true: the value is of no use without rows. */
  @Override public boolean isZero() { return true; }

  @Override public Object result(long rows, GroupValues values) { return first == Long.MAX_VALUE ? null : first; }

  @Override public void write(DataOutput out) throws IOException { out.writeLong(first); }

  @Override public void read(DataInput in) throws IOException { first = in.readLong(); }
}
