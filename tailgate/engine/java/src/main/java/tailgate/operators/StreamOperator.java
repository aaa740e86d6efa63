package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.*;
import java.util.function.LongUnaryOperator;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import tailgate.circuit.Operator;
import tailgate.circuit.Tick;
import tailgate.rows.Change;
import tailgate.rows.Rows;
import tailgate.state.State;

/**
 * An operator that processes the rows of streams one after the other, and knows the stream time
 *
 * <p>The changes of a tick are processed by {@link Change#order}, those of the first stream first if it is equal. The stream time
 * is that of all keys, so every partition receives all rows; it emits the results for those that belong to it.
 *
 * <p>While the view is being filled, all rows wait, because the histories of the streams must be merged by time. They are
 * processed in the first tick after the fill. History has separate ports, after those of the live rows.
 *
 * <p>State: (CLOCK) → the stream time; (WAITING, order, side, number) → a row that waits.
 */
abstract class StreamOperator extends Operator {
  private static final long serialVersionUID = 1;
  private static final int CLOCK = 100, WAITING = 101;  // ports of the state
  /** The columns of each stream, and the positions of their times. */
  final StructType[] row;
  final int[] time;
  private final boolean filling;

  /** One change of a stream. */
  private record Arrival(int side, Change change) {
    static final Comparator<Arrival> ORDER = Comparator.<Arrival>comparingLong(a -> a.change.order()).thenComparingInt(a -> a.side);
  }

  /** The rows of one tick, one after the other. */
  abstract class Work {
    final Tick tick;
    final StreamClock clock;
    /** The weights of the rows that were dropped because they were late. */
    long late;

    Work(Tick tick) {
      this.tick = tick;
      this.clock = new StreamClock(tick, id, CLOCK);
    }

    /** Processes one row. Every partition calls it for all rows, in the same order. */
    abstract void process(int side, Change c);

    /** Ends the tick, after its last row. */
    void finish() {}

    private void process(Arrival a) {
      tick.at(a.change);
      process(a.side, a.change);
    }
  }

  StreamOperator(StructType[] row, int[] time, boolean filling) {
    this.row = row;
    this.time = time;
    this.filling = filling;
    for (int side = 0; side < row.length; side++)
      if (!row[side].apply(time[side]).dataType().equals(DataTypes.TimestampType))
        throw new IllegalArgumentException("not a timestamp: " + row[side].apply(time[side]));
  }

  abstract Work work(Tick tick);

  @Override public StructType[] ports() {
    StructType[] ports = Arrays.copyOf(row, 2 * row.length);
    System.arraycopy(row, 0, ports, row.length, row.length);
    return ports;
  }

  @Override public boolean everywhere(int port, UnsafeRow of) { return true; }

  /** Each partition has the stream time and all rows that wait. */
  @Override public final byte[] owner(int port, byte[] key, byte[] row) { return null; }

  @Override public byte[] merged(int port, byte[] one, byte[] other) { return port == CLOCK ? StreamClock.merged(one, other) : one; }

  @Override public final void move(State from, State.Entry entry, LongUnaryOperator number, Moved to) {
    switch (entry.port()) {
      case CLOCK -> super.move(from, entry.withValue(StreamClock.numbered(entry.value(), number)), number, to);
      case WAITING -> super.move(from, entry, number, to);
      default -> moveRows(from, entry, number, to);
    }
  }

  /** Passes an entry of the operator's own ports on, as {@link #move} does. */
  abstract void moveRows(State from, State.Entry entry, LongUnaryOperator number, Moved to);

  /** Returns bytes of which the last 8 are a number with another number. */
  static byte[] numbered(byte[] place, LongUnaryOperator number) {
    byte[] bytes = place.clone();
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    int at = bytes.length - Long.BYTES;
    buffer.putLong(at, number.applyAsLong(buffer.getLong(at)));
    return bytes;
  }

  @Override public boolean ordered() { return true; }

  /** Runs in every tick after the fill: the first one has the rows that wait. */
  @Override public boolean everywhere() { return !filling; }

  @Override public void run(Tick tick, List<List<Change>> input) {
    List<Arrival> live = arrivals(input, 0);
    if (filling) {
      hold(tick, arrivals(input, row.length), 0);
      hold(tick, live, 1);
      return;
    }
    Work work = work(tick);
    for (int next = work.clock.released() ? 0 : release(work, live); next < live.size(); next++) work.process(live.get(next));
    work.finish();
    tick.late(this, work.late);
    work.clock.store();
  }

  /** Processes the rows that wait, merged with those of the tick. Returns the number of rows of the tick that are processed. */
  private int release(Work work, List<Arrival> live) {
    int next = 0;
    try (State.Entries waiting = work.tick.state.entries(id, WAITING, State.NONE)) {
      long order = Long.MIN_VALUE;
      while (waiting.next()) {
        Arrival held = held(waiting, order);
        byte[] place = waiting.row();  // before other scans, which share the buffer of an entry
        order = held.change.order();
        while (next < live.size() && Arrival.ORDER.compare(live.get(next), held) < 0) work.process(live.get(next++));
        work.process(held);
        work.tick.state.remove(id, WAITING, State.NONE, place);
      }
    }
    work.clock.release();
    return next;
  }

  /** Returns the rows of the ports from `first` in their order. Rows of a stored relation have none: theirs is that of their times. */
  private List<Arrival> arrivals(List<List<Change>> input, int first) {
    List<Arrival> all = new ArrayList<>();
    for (int side = 0; side < row.length; side++)
      for (Change c : input.get(first + side)) {
        long order = c.order() > 0 || c.row().isNullAt(time[side]) ? c.order() : c.row().getLong(time[side]) / 1000;
        all.add(new Arrival(side, new Change(c.row(), c.weight(), order)));
      }
    all.sort(Arrival.ORDER);
    return all;
  }

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
    return new Arrival(side, new Change(Rows.row(rest(value), row[side].length()), weight, order));
  }

  /** Encodes a number so that the bytes are in the order of the numbers. */
  static long ordinal(long number) { return number ^ Long.MIN_VALUE; }

  /** Returns the remaining bytes. */
  static byte[] rest(ByteBuffer in) {
    byte[] bytes = new byte[in.remaining()];
    in.get(bytes);
    return bytes;
  }
}
