package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import tailgate.circuit.Operator;
import tailgate.circuit.Tick;
import tailgate.rows.Change;
import tailgate.rows.Columns;
import tailgate.rows.Rows;
import tailgate.state.State;

/**
 * Output = the pairs of rows of two streams with equal keys and with times within a distance of each other
 *
 * <p>A row of the left at time t has the window [t - before, t + after], in which the times of its matches on the right are; for
 * a row of the right it is [t - after, t + before]. The window closes when the stream time is after its end and has reached its
 * end plus `grace`. Rows whose window is closed are dropped when they arrive; they match no row any more, and their state is
 * released.
 *
 * <p>An outer side also emits its rows without a match, with NULLs: if `eager`, when they arrive, although a match may follow;
 * otherwise when their window closes. Rows whose key or time is NULL are ignored. The output is append-only and depends on the
 * order of the input: the changes of a tick are processed by {@link Change#order}, those of the left first if it is equal.
 *
 * <p>The stream time is that of all keys, so every partition receives all rows, and processes those of its keys.
 *
 * <p>While the view is being filled, all rows wait: the histories of both streams must be merged by time. They are processed in
 * the first tick after the fill. History has separate ports.
 *
 * <p>Output: the row of the left, that of the right, and a number: rows of one key are numbered in the order in which they are
 * emitted.
 *
 * <p>State: (side, key and interval, time, number) → row; (time of closing, side, number) → key, and whether the row is emitted
 * then; the stream time; rows that wait. Cost: two scans of the rows in the window and two puts for each row.
 */
final class WithinJoin extends Operator {
  private static final long serialVersionUID = 1;
  private static final int LEFT = 0, HISTORY = 2;  // ports of the left; those of the right follow
  private static final int CLOSING = 2, CLOCK = 3, WAITING = 4;  // ports of the state, after those of the two sides
  private static final int CLOSED_AT_ONCE = 1000;  // rows that are read before they are removed
  private final StructType[] row;
  private final Columns[] key;
  private final int[] time;
  private final boolean[] outer;
  private final long[] back, reach;  // of the window of a row, in µs
  private final long grace, width;
  private final boolean eager, filling;

  /** One change of a side. */
  private record Arrival(int side, Change change) {
    static final Comparator<Arrival> ORDER = Comparator.<Arrival>comparingLong(a -> a.change.order()).thenComparingInt(a -> a.side);
  }

  /** A row whose window closes. `alone`: it is emitted then, unless it finds a match. */
  private record Entry(int side, long closing, long number, boolean alone, byte[] place) {}

  WithinJoin(String kind, StructType left, int[] leftKey, int leftTime, StructType right, int[] rightKey, int rightTime,
      long before, long after, long grace, boolean eager, boolean filling) {
    row = new StructType[] {left, right};
    key = new Columns[] {Columns.key(left, leftKey), Columns.key(right, rightKey)};
    for (int i = 0; i < leftKey.length; i++)
      if (!key[0].schema.apply(i).dataType().equals(key[1].schema.apply(i).dataType()))
        throw new IllegalArgumentException("keys of different types: "
            + key[0].schema.catalogString() + ", " + key[1].schema.catalogString());
    time = new int[] {leftTime, rightTime};
    for (int side = 0; side < 2; side++)
      if (!row[side].apply(time[side]).dataType().equals(DataTypes.TimestampType))
        throw new IllegalArgumentException("not a timestamp: " + row[side].apply(time[side]));
    outer = new boolean[] {kind.equals("left") || kind.equals("full"), kind.equals("right") || kind.equals("full")};
    back = new long[] {before, after};
    reach = new long[] {after, before};
    this.grace = Math.max(1, grace);  // the end belongs to the window
    width = Math.max(1, before + after);
    this.eager = eager;
    this.filling = filling;
  }

  @Override public StructType[] ports() { return new StructType[] {row[0], row[1], row[0], row[1]}; }

  @Override public StructType output() {
    StructType both = row[0];
    for (var f : row[1].fields()) both = both.add(f);
    return both.add("number", DataTypes.LongType, false);
  }

  @Override public byte[] key(int port, UnsafeRow of) { return key[port % 2].bytes(of); }

  @Override public boolean everywhere(int port, UnsafeRow of) { return true; }

  @Override public boolean ordered() { return true; }

  @Override public void compile() { for (Columns columns : key) columns.compile(); }

  /** Runs in every tick after the fill: the first one has the rows that wait. */
  @Override public boolean everywhere() { return !filling; }

  @Override public void run(Tick tick, List<List<Change>> input) {
    if (filling) {
      hold(tick, arrivals(input, HISTORY), 0);
      hold(tick, arrivals(input, LEFT), 1);
      return;
    }
    Work work = new Work(tick);
    List<Arrival> live = arrivals(input, LEFT);
    int next = 0;
    try (State.Entries waiting = tick.state.entries(id, WAITING, State.NONE)) {
      long order = Long.MIN_VALUE;
      while (waiting.next()) {
        Arrival held = held(waiting, order);
        byte[] place = waiting.row();  // before other scans, which share the buffer of an entry
        order = held.change.order();
        while (next < live.size() && Arrival.ORDER.compare(live.get(next), held) < 0) work.process(live.get(next++));
        work.process(held);
        tick.state.remove(id, WAITING, State.NONE, place);
      }
    }
    while (next < live.size()) work.process(live.get(next++));
    work.clock.store();
  }

  /** Returns the rows of two ports in their order. Rows of a stored relation have none: theirs is the order of their times. */
  private List<Arrival> arrivals(List<List<Change>> input, int first) {
    List<Arrival> all = new ArrayList<>(input.get(first).size() + input.get(first + 1).size());
    for (int side = 0; side < 2; side++)
      for (Change c : input.get(first + side)) {
        long order = c.order() > 0 || c.row().isNullAt(time[side]) ? c.order() : c.row().getLong(time[side]) / 1000;
        all.add(new Arrival(side, new Change(c.row(), c.weight(), order)));
      }
    all.sort(Arrival.ORDER);
    return all;
  }

  // ---- rows that wait ---------------------------------------------------------------------------

  /** Stores rows until the fill ends. Live rows (`phase` 1) come after the history, in the order of their arrival. */
  private void hold(Tick tick, List<Arrival> arrivals, int phase) {
    long number = 0;
    for (Arrival a : arrivals) {
      byte[] bytes = Rows.bytes(a.change.row());
      ByteBuffer value = ByteBuffer.allocate(17 + bytes.length)
          .put((byte) a.side).putLong(a.change.weight()).putLong(a.change.order()).put(bytes);
      byte[] place = ByteBuffer.allocate(26).put((byte) phase).putLong(phase == 0 ? ordinal(a.change.order()) : 0)
          .put((byte) (phase == 0 ? a.side : 0)).putLong(tick.time).putLong(number++).array();
      tick.state.put(id, WAITING, State.NONE, place, value.array(), true);
    }
  }

  /** Returns the row of an entry. Its order is not below that of the entry before. */
  private Arrival held(State.Entries waiting, long before) {
    ByteBuffer value = ByteBuffer.wrap(waiting.value());
    int side = value.get();
    long weight = value.getLong(), order = Math.max(before, value.getLong());
    byte[] bytes = new byte[value.remaining()];
    value.get(bytes);
    return new Arrival(side, new Change(Rows.row(bytes, row[side].length()), weight, order));
  }

  // ---- the join ---------------------------------------------------------------------------------

  /** Encodes a number so that the bytes are in the order of the numbers. */
  private static long ordinal(long number) { return number ^ Long.MIN_VALUE; }

  private static byte[] numbered(long time, long number) {
    return ByteBuffer.allocate(16).putLong(ordinal(time)).putLong(number).array();
  }

  private static byte[] closing(Entry e) {
    return ByteBuffer.allocate(17).putLong(ordinal(e.closing)).put((byte) e.side).putLong(e.number).array();
  }

  /** Returns the key of the rows of one key whose times are in an interval of the window's length. */
  private byte[] interval(byte[] k, long n) { return ByteBuffer.allocate(k.length + 8).put(k).putLong(n).array(); }

  /** The rows of one tick, one after the other. */
  private final class Work {
    final StreamClock clock;
    private final Tick tick;
    private final JoinedRow pair = new JoinedRow(), output = new JoinedRow();
    private final InternalRow[] none = {new GenericInternalRow(row[0].length()), new GenericInternalRow(row[1].length())};

    Work(Tick tick) {
      this.tick = tick;
      this.clock = new StreamClock(tick, id, CLOCK);
    }

    void process(Arrival arrival) {
      Change c = arrival.change;
      int side = arrival.side;
      tick.at(c);
      UnsafeRow of = key[side].of(c.row());
      if (of.anyNull() || c.row().isNullAt(time[side])) return;
      byte[] k = Rows.bytes(of);
      long at = c.row().getLong(time[side]), closing = at + reach[side] + grace;
      if (closing <= clock.time) return;
      if (clock.advance(at)) close();
      if (!tick.here(id, k)) return;
      boolean alone = !match(side, c, k, at) && outer[side];
      if (alone && eager) emit(side, c.row(), none[1 - side], c.weight());
      long number = clock.next();
      byte[] in = interval(k, Math.floorDiv(at, width));
      byte[] bytes = Rows.bytes(c.row());
      byte[] value = ByteBuffer.allocate(8 + bytes.length).putLong(c.weight()).put(bytes).array();
      tick.state.put(id, side, in, numbered(at, number), value, true);
      Entry entry = new Entry(side, closing, number, alone && !eager, in);
      tick.state.put(id, CLOSING, State.NONE, closing(entry), value(entry), true);
      clock.expect(closing);
    }

    /** Emits a row with its matches. Returns whether it has any. */
    private boolean match(int side, Change c, byte[] k, long at) {
      int other = 1 - side;
      long from = at - back[side], to = at + reach[side];
      List<long[]> matches = new ArrayList<>();
      for (long n = Math.floorDiv(from, width); n <= Math.floorDiv(to, width); n++)
        try (State.Entries entries = tick.state.entries(id, other, interval(k, n))) {
          while (entries.next()) {
            ByteBuffer place = ByteBuffer.wrap(entries.row());
            long when = ordinal(place.getLong());
            if (when < from || when > to) continue;
            ByteBuffer value = ByteBuffer.wrap(entries.value());
            long weight = value.getLong();
            byte[] bytes = new byte[value.remaining()];
            value.get(bytes);
            emit(side, c.row(), Rows.row(bytes, row[other].length()), Math.multiplyExact(c.weight(), weight));
            matches.add(new long[] {when, place.getLong()});
          }
        }
      if (outer[other] && !eager) for (long[] match : matches) found(other, match[0], match[1]);
      return !matches.isEmpty();
    }

    /** Notes that a row has a match, so that it is not emitted when its window closes. */
    private void found(int side, long at, long number) {
      Entry entry = new Entry(side, at + reach[side] + grace, number, false, State.NONE);
      byte[] value = tick.state.get(id, CLOSING, State.NONE, closing(entry));
      if (value[0] == 0) return;
      value = value.clone();
      value[0] = 0;
      tick.state.put(id, CLOSING, State.NONE, closing(entry), value, false);
    }

    /** Closes the windows that end before the stream time. */
    private void close() {
      while (true) {
        List<Entry> due = new ArrayList<>();
        long next = Long.MAX_VALUE;
        try (State.Entries entries = tick.state.entries(id, CLOSING, State.NONE)) {
          while (next == Long.MAX_VALUE && entries.next()) {
            Entry entry = entry(entries);
            if (entry.closing > clock.time || due.size() == CLOSED_AT_ONCE) next = entry.closing;
            else due.add(entry);
          }
        }
        due.forEach(this::closed);
        clock.expectFrom(next);
        if (next > clock.time) return;
      }
    }

    private void closed(Entry e) {
      byte[] place = numbered(e.closing - reach[e.side] - grace, e.number);
      if (e.alone) {
        ByteBuffer value = ByteBuffer.wrap(tick.state.get(id, e.side, e.place, place));
        long weight = value.getLong();
        byte[] bytes = new byte[value.remaining()];
        value.get(bytes);
        emit(e.side, Rows.row(bytes, row[e.side].length()), none[1 - e.side], weight);
      }
      tick.state.remove(id, e.side, e.place, place);
      tick.state.remove(id, CLOSING, State.NONE, closing(e));
    }

    private byte[] value(Entry e) { return ByteBuffer.allocate(1 + e.place.length).put((byte) (e.alone ? 1 : 0)).put(e.place).array(); }

    private Entry entry(State.Entries entries) {
      ByteBuffer place = ByteBuffer.wrap(entries.row()), value = ByteBuffer.wrap(entries.value());
      long closing = ordinal(place.getLong());
      int side = place.get();
      boolean alone = value.get() == 1;
      byte[] in = new byte[value.remaining()];
      value.get(in);
      return new Entry(side, closing, place.getLong(), alone, in);
    }

    /** Emits a row of a side with one of the other. */
    private void emit(int side, InternalRow own, InternalRow other, long weight) {
      InternalRow both = side == LEFT ? pair.apply(own, other) : pair.apply(other, own);
      tick.emit(WithinJoin.this, output.apply(both, new GenericInternalRow(new Object[] {clock.next()})), weight);
    }
  }
}
