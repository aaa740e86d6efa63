package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;

/**
 * ksqldb_high_watermark: the greatest time that a group has had, of its rows and of the records by which rows have left. The
 * group stays when its last row leaves.
 */
final class HighWatermark extends Accumulator {
  private final int column;
  private long greatest = Long.MIN_VALUE;

  HighWatermark(AggregateCall call) {
    if (!call.result.equals(DataTypes.TimestampType)) throw none(call);
    column = call.columns[0];
  }

  @Override public void add(InternalRow row, long weight) {
    if (!row.isNullAt(column)) greatest = Math.max(greatest, row.getLong(column));
  }

  @Override public void add(InternalRow row, long weight, long order) {
    add(row, weight);
    if (weight < 0 && order > 0) greatest = Math.max(greatest, order * 1000);
  }

  @Override public void merge(Accumulator change, GroupValues values) {
    greatest = Math.max(greatest, ((HighWatermark) change).greatest);
  }

  @Override public boolean isZero() { return false; }

  @Override public boolean keepsGroup() { return true; }

  @Override public Object result(long rows, GroupValues values) { return greatest == Long.MIN_VALUE ? null : greatest; }

  @Override public void write(DataOutput out) throws IOException { out.writeLong(greatest); }

  @Override public void read(DataInput in) throws IOException { greatest = in.readLong(); }
}
