package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.*;
import java.util.function.LongUnaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
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
 * otherwise when their window closes. Rows whose key or time is NULL are ignored. The output is append-only.
 *
 * <p>Output: the row of the left, that of the right, and a number: rows of one key are numbered in the order in which they are
 * emitted.
 *
 * <p>State: (side, key and interval, time, number) → row; (time of closing, side, number) → key, and whether the row is emitted
 * then. Cost: two scans of the rows in the window and two puts for each row.
 */
final class WithinJoin extends StreamOperator {
  private static final long serialVersionUID = 1;
  private static final int LEFT = 0;
  private static final int CLOSING = 2;  // port of the state, after those of the two sides
  private static final int CLOSED_AT_ONCE = 1000;  // rows that are read before they are removed
  private final Columns[] key;
  private final boolean[] outer;
  private final long[] back, reach;  // of the window of a row, in µs
  private final long grace, width;
  private final boolean eager;

  /** A row whose window closes. `alone`: it is emitted then, unless it finds a match. */
  private record Entry(int side, long closing, long number, boolean alone, byte[] place) {}

  WithinJoin(String kind, StructType left, int[] leftKey, int leftTime, StructType right, int[] rightKey, int rightTime,
      long before, long after, long grace, boolean eager, boolean filling) {
    super(new StructType[] {left, right}, new int[] {leftTime, rightTime}, filling);
    key = new Columns[] {Columns.key(left, leftKey), Columns.key(right, rightKey)};
    for (int i = 0; i < leftKey.length; i++)
      if (!key[0].schema.apply(i).dataType().equals(key[1].schema.apply(i).dataType()))
        throw new IllegalArgumentException("keys of different types: "
            + key[0].schema.catalogString() + ", " + key[1].schema.catalogString());
    outer = new boolean[] {kind.equals("left") || kind.equals("full"), kind.equals("right") || kind.equals("full")};
    back = new long[] {before, after};
    reach = new long[] {after, before};
    this.grace = Math.max(1, grace);  // the end belongs to the window
    width = Math.max(1, before + after);
    this.eager = eager;
  }

  @Override public StructType output() {
    StructType both = row[0];
    for (var f : row[1].fields()) both = both.add(f);
    return both.add("number", DataTypes.LongType, false);
  }

  @Override public byte[] key(int port, UnsafeRow of) { return key[port % 2].bytes(of); }

  @Override public void compile() { for (Columns columns : key) columns.compile(); }

  @Override Work work(Tick tick) { return new Work(tick); }

  private static byte[] numbered(long time, long number) {
    return ByteBuffer.allocate(16).putLong(ordinal(time)).putLong(number).array();
  }

  private static byte[] closing(Entry e) {
    return ByteBuffer.allocate(17).putLong(ordinal(e.closing)).put((byte) e.side).putLong(e.number).array();
  }

  @Override void moveRows(State from, State.Entry entry, LongUnaryOperator number, Moved to) {
    byte[] interval = entry.port() == CLOSING ? Arrays.copyOfRange(entry.value(), 1, entry.value().length) : entry.key();
    to.accept(Arrays.copyOf(interval, interval.length - Long.BYTES), entry.withRow(numbered(entry.row(), number)));
  }

  /** Returns the key of the rows of one key whose times are in an interval of the window's length. */
  private byte[] interval(byte[] k, long n) { return ByteBuffer.allocate(k.length + 8).put(k).putLong(n).array(); }

  /** The rows of one tick, one after the other. */
  private final class Work extends StreamOperator.Work {
    private final JoinedRow pair = new JoinedRow(), output = new JoinedRow();
    private final InternalRow[] none = {new GenericInternalRow(row[0].length()), new GenericInternalRow(row[1].length())};

    Work(Tick tick) { super(tick); }

    @Override void process(int side, Change c) {
      UnsafeRow of = key[side].of(c.row());
      if (of.anyNull() || c.row().isNullAt(time[side])) return;
      byte[] k = Rows.bytes(of);
      long at = c.row().getLong(time[side]), closing = at + reach[side] + grace;
      boolean isLate = closing <= clock.time;
      if (!isLate && clock.advance(at)) close();
      if (!tick.here(id, k)) return;
      if (isLate) {
        late += c.weight();
        return;
      }
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
            emit(side, c.row(), Rows.row(rest(value), row[other].length()), Math.multiplyExact(c.weight(), weight));
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
        emit(e.side, Rows.row(rest(value), row[e.side].length()), none[1 - e.side], weight);
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
      return new Entry(side, closing, place.getLong(), alone, rest(value));
    }

    /** Emits a row of a side with one of the other. */
    private void emit(int side, InternalRow own, InternalRow other, long weight) {
      InternalRow both = side == LEFT ? pair.apply(own, other) : pair.apply(other, own);
      tick.emit(WithinJoin.this, output.apply(both, new GenericInternalRow(new Object[] {clock.next()})), weight);
    }
  }
}
