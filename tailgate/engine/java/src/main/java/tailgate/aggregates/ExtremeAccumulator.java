package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Arrays;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import tailgate.rows.SortKey;
import tailgate.rows.SortKeyCodec;

/**
 * The first of a group's values in some order: min, max, and the value of the row with the least or
 * greatest value of another column.
 *
 * <p>The first value is stored separately. The other values are read only when it is deleted, and
 * then the next one is one seek away. Among values that are equal in the order, the smallest wins.
 * For append-only input only the first value is kept.
 */
final class ExtremeAccumulator extends Accumulator.Keeping {
  private final int[] needed;
  private final SortKeyCodec order;
  private final int shown;
  private final boolean appendOnly;
  private byte[] best;

  private ExtremeAccumulator(boolean appendOnly, int[] needed, int shown, SortKeyCodec order) {
    this.appendOnly = appendOnly;
    this.needed = needed;
    this.order = order;
    this.shown = shown;
  }

  static Supplier<Accumulator> extremes(AggregateCall call, StructType row, boolean appendOnly) {
    if (!call.type(row, 0).equals(call.result)) throw none(call);
    int value = call.columns[0];
    boolean last = call.is("max", "max_by", "latest_by_offset");
    if (call.is("min", "max")) {
      SortKeyCodec order = new SortKeyCodec(row, new SortKey(value, last, false));
      int[] needed = {value};
      return () -> new ExtremeAccumulator(appendOnly, needed, 0, order);
    }
    call.type(row, 1);
    int by = call.columns[1];
    int[] needed = call.is("min_by", "max_by") ? new int[] {by} : new int[] {value, by};
    SortKeyCodec order = new SortKeyCodec(row, new SortKey(by, last, false), new SortKey(value, false, false));
    return () -> new ExtremeAccumulator(appendOnly, needed, 1, order);
  }

  @Override public void add(InternalRow row, long weight) {
    for (int column : needed) if (row.isNullAt(column)) return;
    if (!appendOnly) change(order.encode(row), weight);
    else if (weight > 0) come(order.encode(row));
    else throw new IllegalStateException("a row of an input that is append-only went");
  }

  private void come(byte[] value) { if (best == null || Arrays.compareUnsigned(value, best) < 0) best = value; }

  @Override public void merge(Accumulator change, GroupValues values) {
    if (appendOnly && ((ExtremeAccumulator) change).best != null) come(((ExtremeAccumulator) change).best);
    boolean[] lost = {false};
    ((ExtremeAccumulator) change).changes.forEach((value, weight) -> {
      if (weight == 0) return;
      long left = values.weigh(value.bytes, weight);
      if (left > 0 && (best == null || Arrays.compareUnsigned(value.bytes, best) < 0)) {
        best = value.bytes;
        lost[0] = false;
      } else if (left <= 0 && best != null && Arrays.equals(value.bytes, best)) lost[0] = true;
    });
    if (lost[0]) best = values.first();
  }

  @Override public boolean isZero() { return best == null; }

  @Override public Object result(long rows, GroupValues values) { return best == null ? null : order.decode(best)[shown]; }

  @Override public void write(DataOutput out) throws IOException {
    out.writeInt(best == null ? -1 : best.length);
    if (best != null) out.write(best);
  }

  @Override public void read(DataInput in) throws IOException {
    int length = in.readInt();
    if (length >= 0) in.readFully(best = new byte[length]);
  }
}
