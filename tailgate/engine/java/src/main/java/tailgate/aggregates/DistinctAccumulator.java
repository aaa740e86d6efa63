package tailgate.aggregates;

import tailgate.rows.SortKey;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import tailgate.rows.SortKeyCodec;

/**
 * An aggregate with DISTINCT: adds a value when its first copy is inserted and removes it when its
 * last copy is deleted.
 */
final class DistinctAccumulator extends Accumulator.Keeping {
  private final Supplier<Accumulator> totals;
  private final SortKeyCodec order;
  private final Accumulator total;

  private DistinctAccumulator(Supplier<Accumulator> totals, SortKeyCodec order) {
    this.totals = totals;
    this.order = order;
    this.total = totals.get();
  }

  static Supplier<Accumulator> factory(AggregateCall call, StructType row) {
    int[] columns = new int[call.columns.length];
    StructField[] fields = new StructField[columns.length];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = i;
      fields[i] = row.apply(call.columns[i]);
    }
    AggregateCall of = new AggregateCall(call.function, columns, call.result, false, -1, new SortKey[0], call.fraction);
    Supplier<Accumulator> totals = Accumulator.plain(of, new StructType(fields), false);
    SortKeyCodec order = new SortKeyCodec(row, SortKeyCodec.ascending(call.columns));
    return () -> new DistinctAccumulator(totals, order);
  }

  @Override public void add(InternalRow row, long weight) { change(order.encode(row), weight); }

  @Override public void merge(Accumulator change, GroupValues kept) {
    Accumulator net = totals.get();
    ((DistinctAccumulator) change).changes.forEach((value, weight) -> {
      if (weight == 0) return;
      long now = kept.weigh(value.bytes, weight);
      int came = (now > 0 ? 1 : 0) - (now - weight > 0 ? 1 : 0);
      if (came != 0) net.add(new GenericInternalRow(order.decode(value.bytes)), came);
    });
    total.merge(net, kept);
  }

  @Override public boolean isZero() { return total.isZero(); }

  @Override public Object result(long rows, GroupValues kept) { return total.result(rows, kept); }

  @Override public void write(DataOutput out) throws IOException { total.write(out); }

  @Override public void read(DataInput in) throws IOException { total.read(in); }
}
