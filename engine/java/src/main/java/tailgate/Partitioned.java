package tailgate;

import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import tailgate.Call.SortKey;
import tailgate.Rows.Bytes;
import tailgate.Tick.Change;

/**
 * An operator that keeps the rows of each partition in order: (partition, place) → weight. A row's place is what it is sorted by, as bytes in that order, and then its values in their order, so that all
 * rows but equal ones have places of their own, and the place holds the row.
 *
 * <p>Of the input's columns the first `width` are the row; those behind it are computed from it, to be split or sorted by.
 */
abstract class Partitioned extends Operator {
  private static final long serialVersionUID = 1;
  static final int ROWS = 0;  // the port of the state
  final StructType row;
  final int width;
  private final int[] partition;
  private final SortKey[] keys;
  private transient Columns of;
  private transient SortOrder order, values;

  Partitioned(StructType row, int width, int[] partition, SortKey[] keys) {
    this.row = row;
    this.width = width;
    this.partition = partition.clone();
    this.keys = keys.clone();
    open();  // what has no order is refused here
  }

  private void open() {
    if (of != null) return;
    order = new SortOrder(row, keys);
    values = SortOrder.exact(row, java.util.stream.IntStream.range(0, width).toArray());
    of = Columns.key(row, partition);
  }

  @Override StructType[] ports() { return new StructType[] {row}; }

  @Override byte[] key(int port, UnsafeRow of) {
    open();
    return this.of.bytes(of);
  }

  @Override void run(Tick tick, List<List<Change>> input) {
    open();
    Map<Bytes, Map<Bytes, Long>> partitions = new LinkedHashMap<>();
    for (Change c : input.get(0)) partitions.computeIfAbsent(new Bytes(of.bytes(c.row())), k -> new LinkedHashMap<>()).merge(new Bytes(place(c.row())), c.weight(), Long::sum);
    partitions.forEach((k, changes) -> {
      changes.values().removeIf(w -> w == 0);
      if (!changes.isEmpty()) run(tick, k.bytes, changes);
    });
  }

  /** Changes of the rows of one partition, by place, none of them zero. They are not yet in the state. */
  abstract void run(Tick tick, byte[] partition, Map<Bytes, Long> changes);

  private byte[] place(InternalRow of) {
    byte[] first = order.encode(of), then = values.encode(of), both = Arrays.copyOf(first, first.length + then.length);
    System.arraycopy(then, 0, both, first.length, then.length);
    return both;
  }

  /** How many of a place's bytes say what it is sorted by. */
  int sorted(byte[] place) {
    Ordered.Reader in = new Ordered.Reader(place);
    order.decode(in);
    return in.at();
  }

  InternalRow row(byte[] place) {
    Ordered.Reader in = new Ordered.Reader(place);
    order.decode(in);
    return new GenericInternalRow(values.decode(in));
  }

  StructType first(int columns) { return new StructType(Arrays.copyOf(row.fields(), columns)); }
}
