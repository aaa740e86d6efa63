package tailgate;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * An aggregate with DISTINCT: adds a value when its first copy is inserted and removes it when its
 * last copy is deleted.
 */
final class Once extends Total.Keeping {
  private final Call of;
  private final StructType values;
  private final SortOrder order;
  private final Total total;

  Once(Call call, StructType row) {
    int[] columns = new int[call.columns.length];
    StructField[] fields = new StructField[columns.length];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = i;
      fields[i] = row.apply(call.columns[i]);
    }
    this.of = new Call(call.function, columns, call.result, false, -1, new Call.SortKey[0], call.fraction);
    this.values = new StructType(fields);
    this.order = new SortOrder(row, SortOrder.ascending(call.columns));
    this.total = Total.plain(of, values, false);
  }

  @Override void add(InternalRow row, long weight) { change(order.encode(row), weight); }

  @Override void merge(Total change, Values kept) {
    Total net = Total.plain(of, values, false);
    ((Once) change).changes.forEach((value, weight) -> {
      if (weight == 0) return;
      long now = kept.weigh(value.bytes, weight);
      int came = (now > 0 ? 1 : 0) - (now - weight > 0 ? 1 : 0);
      if (came != 0) net.add(new GenericInternalRow(order.decode(value.bytes)), came);
    });
    total.merge(net, kept);
  }

  @Override boolean isZero() { return total.isZero(); }

  @Override Object result(long rows, Values kept) { return total.result(rows, kept); }

  @Override void write(DataOutput out) throws IOException { total.write(out); }

  @Override void read(DataInput in) throws IOException { total.read(in); }
}
