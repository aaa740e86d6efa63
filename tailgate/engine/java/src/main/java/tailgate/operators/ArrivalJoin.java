package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import tailgate.circuit.Operator;
import tailgate.circuit.Tick;
import tailgate.rows.Change;
import tailgate.rows.Columns;
import tailgate.rows.Rows;
import tailgate.rows.Rows.Bytes;
import tailgate.state.State;

/**
 * Output = each row of the stream with the rows that the table has under its key when it arrives
 *
 * <p>Only rows of the stream cause output, and changes of the table never retract it. So, unlike
 * the output of other operators, that of this one depends on the order of its input: the changes of
 * a tick are processed by {@link Change#order}, those of the table first if it is equal.
 *
 * <p>While the view is being filled, live changes of both sides wait, because the history of the
 * table must come first. History has separate ports. The rows that wait are processed in the
 * first tick after the fill.
 *
 * <p>Output: the stream's row, then the table's. `left`: also rows of the stream without a match,
 * with NULLs. NULL keys never match.
 *
 * <p>State: (0, key) → weights and rows of the table; (1, number) → a change that waits. Cost: one
 * look-up for each key of a tick.
 */
final class ArrivalJoin extends Operator {
  private static final long serialVersionUID = 1;
  private static final int STREAM = 0, TABLE = 1, STREAM_HISTORY = 2, TABLE_HISTORY = 3;  // ports
  private static final int ROWS = 0, WAITING = 1;  // of the state
  private static final int NUMBER = 16;  // bytes of a number: the time of the tick, and the number within it
  private final StructType[] row;
  private final Columns[] key;
  private final boolean left, filling;

  /** One change of a side. */
  private record Arrival(int side, Change change) {
    static final Comparator<Arrival> ORDER =
        Comparator.<Arrival>comparingLong(a -> a.change.order()).thenComparingInt(a -> -a.side);
  }

  /** The rows of the table under one key. */
  private static final class Matches {
    final Map<Bytes, Change> rows = new LinkedHashMap<>();
    boolean stored, changed;
  }

  ArrivalJoin(boolean left, StructType stream, int[] streamKey, StructType table, int[] tableKey, boolean filling) {
    row = new StructType[] {stream, table};
    key = new Columns[] {Columns.key(stream, streamKey), Columns.key(table, tableKey)};
    for (int i = 0; i < streamKey.length; i++)
      if (!key[0].schema.apply(i).dataType().equals(key[1].schema.apply(i).dataType()))
        throw new IllegalArgumentException("keys of different types: "
            + key[0].schema.catalogString() + ", " + key[1].schema.catalogString());
    this.left = left;
    this.filling = filling;
  }

  @Override public StructType[] ports() { return new StructType[] {row[0], row[1], row[0], row[1]}; }

  @Override public StructType output() {
    StructType both = row[0];
    for (var f : row[1].fields()) both = both.add(f);
    return both;
  }

  @Override public byte[] key(int port, UnsafeRow of) { return key[port % 2].bytes(of); }

  /** Rows that wait for the end of the fill cannot be moved. */
  @Override public byte[] owner(int port, byte[] key, byte[] row) { return port == ROWS ? key : super.owner(port, key, row); }

  @Override public boolean ordered() { return true; }

  @Override public void compile() { for (Columns columns : key) columns.compile(); }

  /** Runs in every tick after the fill: the first one has the changes that wait. */
  @Override public boolean everywhere() { return !filling; }

  @Override public void run(Tick tick, List<List<Change>> input) {
    List<Arrival> live = arrivals(input.get(STREAM), input.get(TABLE));
    if (filling) hold(tick, live);
    Work work = new Work(tick);
    for (Change c : input.get(TABLE_HISTORY)) work.table(c);
    for (Change c : input.get(STREAM_HISTORY)) work.stream(c);
    if (!filling) {
      List<Arrival> waiting = released(tick);
      if (!waiting.isEmpty()) {
        waiting.addAll(live);
        waiting.sort(Arrival.ORDER);
        live = waiting;
      }
      for (Arrival a : live)
        if (a.side == TABLE) work.table(a.change);
        else work.stream(a.change);
    }
    work.store();
  }

  private static List<Arrival> arrivals(List<Change> stream, List<Change> table) {
    List<Arrival> all = new ArrayList<>(stream.size() + table.size());
    for (Change c : stream) all.add(new Arrival(STREAM, c));
    for (Change c : table) all.add(new Arrival(TABLE, c));
    all.sort(Arrival.ORDER);
    return all;
  }

  // ---- changes that wait ------------------------------------------------------------------------

  private void hold(Tick tick, List<Arrival> live) {
    long number = 0;
    for (Arrival a : live) {
      byte[] bytes = Rows.bytes(a.change.row());
      ByteBuffer value = ByteBuffer.allocate(17 + bytes.length)
          .put((byte) a.side).putLong(a.change.weight()).putLong(a.change.order()).put(bytes);
      byte[] place = ByteBuffer.allocate(NUMBER).putLong(tick.time).putLong(number++).array();
      tick.state.put(id, WAITING, State.NONE, place, value.array(), true);
    }
  }

  /**
   * Returns the changes that wait, and removes them. Their order is that of their arrival: no order
   * is below that of an earlier tick.
   */
  private List<Arrival> released(Tick tick) {
    List<Arrival> waiting = new ArrayList<>();
    List<byte[]> places = new ArrayList<>();
    long order = Long.MIN_VALUE;
    try (State.Entries entries = tick.state.entries(id, WAITING, State.NONE)) {
      while (entries.next()) {
        ByteBuffer value = ByteBuffer.wrap(entries.value());
        int side = value.get();
        long weight = value.getLong();
        order = Math.max(order, value.getLong());
        byte[] bytes = new byte[value.remaining()];
        value.get(bytes);
        waiting.add(new Arrival(side, new Change(Rows.row(bytes, row[side].length()), weight, order)));
        places.add(entries.row());
      }
    }
    for (byte[] place : places) tick.state.remove(id, WAITING, State.NONE, place);
    return waiting;
  }

  // ---- the join ---------------------------------------------------------------------------------

  /** The rows of the table that a tick reads or changes. */
  private final class Work {
    private final Tick tick;
    private final Map<Bytes, Matches> keys = new HashMap<>();
    private final JoinedRow pair = new JoinedRow();
    private final InternalRow none = new GenericInternalRow(row[TABLE].length());

    Work(Tick tick) { this.tick = tick; }

    void table(Change c) {
      UnsafeRow k = key[TABLE].of(c.row());
      if (k.anyNull()) return;
      Matches matches = matches(k);
      matches.changed = true;
      matches.rows.merge(new Bytes(Rows.bytes(c.row())), c,
          (a, b) -> a.weight() + b.weight() == 0 ? null : new Change(a.row(), a.weight() + b.weight()));
    }

    void stream(Change c) {
      tick.at(c);
      UnsafeRow k = key[STREAM].of(c.row());
      boolean met = false;
      if (!k.anyNull())
        for (Change match : matches(k).rows.values())
          if (match.weight() > 0) {
            met = true;
            tick.emit(ArrivalJoin.this, pair.apply(c.row(), match.row()), Math.multiplyExact(c.weight(), match.weight()));
          }
      if (!met && left) tick.emit(ArrivalJoin.this, pair.apply(c.row(), none), c.weight());
    }

    private Matches matches(UnsafeRow k) { return keys.computeIfAbsent(new Bytes(Rows.bytes(k)), this::stored); }

    private Matches stored(Bytes k) {
      Matches matches = new Matches();
      byte[] stored = tick.state.get(id, ROWS, k.bytes, State.NONE);
      if (stored == null) return matches;
      matches.stored = true;
      for (ByteBuffer in = ByteBuffer.wrap(stored); in.hasRemaining(); ) {
        long weight = in.getLong();
        byte[] bytes = new byte[in.getInt()];
        in.get(bytes);
        matches.rows.put(new Bytes(bytes), new Change(Rows.row(bytes, row[TABLE].length()), weight));
      }
      return matches;
    }

    void store() {
      keys.forEach((k, matches) -> {
        if (!matches.changed) return;
        if (matches.rows.isEmpty()) {
          if (matches.stored) tick.state.remove(id, ROWS, k.bytes, State.NONE);
          return;
        }
        ByteBuffer out = ByteBuffer.allocate(matches.rows.keySet().stream().mapToInt(r -> 12 + r.bytes.length).sum());
        matches.rows.forEach((r, c) -> out.putLong(c.weight()).putInt(r.bytes.length).put(r.bytes));
        tick.state.put(id, ROWS, k.bytes, State.NONE, out.array(), !matches.stored);
      });
    }
  }
}
