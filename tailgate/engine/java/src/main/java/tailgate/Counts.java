package tailgate;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;

/** count(*) and count(column), which ignores NULLs. */
class Counts extends Total {
  final int column;
  long n;

  Counts(int column) { this.column = column; }

  static Total of(Call call) {
    if (call.result != DataTypes.LongType) throw none(call);
    return call.columns.length > 0 ? new Counts(call.columns[0]) : call.filter < 0 ? new Rows() : new Counts(call.filter);
  }

  @Override void add(InternalRow row, long weight) { if (!row.isNullAt(column)) n += weight; }

  @Override void merge(Total change, Values values) { n += ((Counts) change).n; }

  @Override boolean isZero() { return n == 0; }

  @Override Object result(long rows, Values values) { return n; }

  @Override void write(DataOutput out) throws IOException { out.writeLong(n); }

  @Override void read(DataInput in) throws IOException { n = in.readLong(); }

  /** count(*): the number of rows of the group. */
  private static final class Rows extends Total {
    @Override void add(InternalRow row, long weight) {}

    @Override void merge(Total change, Values values) {}

    @Override boolean isZero() { return true; }

    @Override Object result(long rows, Values values) { return rows; }
  }
}
