package tailgate.operators;

import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import tailgate.rows.SortKey;
import tailgate.circuit.Operator;
import tailgate.circuit.Tick;
import tailgate.rows.Change;
import tailgate.rows.Columns;
import tailgate.rows.OrderedCodec;
import tailgate.rows.RowMap;
import tailgate.rows.Rows.Bytes;
import tailgate.rows.SortKeyCodec;

/**
 * An operator that stores the rows of each partition in order: (partition, place) → weight. The
 * place of a row is the encoding of its sort columns, then of all its values in order. Different
 * rows therefore have different places, and a place contains its row.
 *
 * <p>The first `width` columns of the input are the row. The columns after them are computed from
 * it, for partitioning or sorting.
 */
abstract class Partitioned extends Operator {
  private static final long serialVersionUID = 1;
  static final int ROWS = 0;  // port of the state
  final StructType row;
  final int width;
  private final int[] partition;
  private final SortKey[] keys;
  private transient Columns of;
  private transient SortKeyCodec order, values;

  Partitioned(StructType row, int width, int[] partition, SortKey[] keys) {
    this.row = row;
    this.width = width;
    this.partition = partition.clone();
    this.keys = keys.clone();
    open();  // rejects types without an order
  }

  private void open() {
    if (of != null) return;
    order = new SortKeyCodec(row, keys);
    values = SortKeyCodec.exact(row, java.util.stream.IntStream.range(0, width).toArray());
    of = Columns.key(row, partition);
  }

  @Override public StructType[] ports() { return new StructType[] {row}; }

  @Override public byte[] key(int port, UnsafeRow of) {
    open();
    return this.of.bytes(of);
  }

  @Override public byte[] owner(int port, byte[] key, byte[] row) { return key; }

  @Override public void compile() {
    open();
    of.compile();
  }

  @Override public void run(Tick tick, List<List<Change>> input) {
    open();
    RowMap<Map<Bytes, Long>> partitions = new RowMap<>();
    for (Change c : input.get(0))
      partitions.computeIfAbsent(of.of(c.row()), LinkedHashMap::new)
          .merge(new Bytes(place(c.row())), c.weight(), Long::sum);
    partitions.forEach((k, changes) -> {
      changes.values().removeIf(w -> w == 0);
      if (!changes.isEmpty()) run(tick, k, changes);
    });
  }

  /**
   * Processes the changes of the rows of one partition, by place. No weight is zero. The changes
   * are not yet in the state.
   */
  public abstract void run(Tick tick, byte[] partition, Map<Bytes, Long> changes);

  private byte[] place(InternalRow of) {
    byte[] first = order.encode(of), then = values.encode(of), both = Arrays.copyOf(first, first.length + then.length);
    System.arraycopy(then, 0, both, first.length, then.length);
    return both;
  }

  /** Returns the length of the prefix of a place that encodes the sort columns. */
  int sorted(byte[] place) {
    OrderedCodec.Reader in = new OrderedCodec.Reader(place);
    order.decode(in);
    return in.at();
  }

  InternalRow row(byte[] place) {
    OrderedCodec.Reader in = new OrderedCodec.Reader(place);
    order.decode(in);
    return new GenericInternalRow(values.decode(in));
  }

  StructType first(int columns) { return new StructType(Arrays.copyOf(row.fields(), columns)); }
}
