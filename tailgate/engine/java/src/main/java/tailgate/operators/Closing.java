package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.*;
import java.util.function.LongUnaryOperator;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import tailgate.circuit.Tick;
import tailgate.rows.Change;
import tailgate.rows.Columns;
import tailgate.rows.Rows;
import tailgate.state.State;

/**
 * Output = the rows whose window is open when they arrive
 *
 * <p>A window closes when the stream time has reached its end plus `grace`. Rows that arrive later are dropped. Rows whose time or
 * end is NULL are dropped, too. With `last`, rows are emitted when their window closes, all of them in the same tick; rows of
 * windows that are open are not emitted.
 *
 * <p>Output: the first `width` columns.
 *
 * <p>State: the stream time; with `last` (time of closing, number) → row, so it has the rows of open windows only. Cost: nothing,
 * or one put and one removal for each row.
 */
final class Closing extends StreamOperator {
  private static final long serialVersionUID = 1;
  private static final int ROWS = 0;  // port of the state
  private static final int CLOSED_AT_ONCE = 1000;  // rows that are read before they are removed
  private final Columns columns;
  private final int end;
  private final long grace;
  private final boolean last;

  /** A row whose window closes. */
  private record Entry(byte[] place, long closing, long weight, byte[] bytes) {}

  Closing(StructType row, int width, int time, int end, long grace, boolean last, boolean filling) {
    super(new StructType[] {row}, new int[] {time}, filling);
    if (!row.apply(end).dataType().equals(DataTypes.TimestampType))
      throw new IllegalArgumentException("not a timestamp: " + row.apply(end));
    this.columns = Columns.first(row, width);
    this.end = end;
    this.grace = grace;
    this.last = last;
  }

  @Override public StructType output() { return columns.schema; }

  @Override public byte[] key(int port, UnsafeRow of) { return columns.bytes(of); }

  @Override public void compile() { columns.compile(); }

  @Override Work work(Tick tick) { return new Work(tick); }

  @Override void moveRows(State from, State.Entry entry, LongUnaryOperator number, Moved to) {
    byte[] owner = Arrays.copyOfRange(entry.value(), Long.BYTES, entry.value().length);
    to.accept(owner, entry.withRow(numbered(entry.row(), number)));
  }

  private final class Work extends StreamOperator.Work {
    Work(Tick tick) { super(tick); }

    @Override void process(int side, Change c) {
      if (c.row().isNullAt(time[0]) || c.row().isNullAt(end)) return;
      long closing = c.row().getLong(end) + grace;
      boolean isLate = closing <= clock.time;
      if (!isLate && clock.advance(c.row().getLong(time[0]))) close();
      byte[] bytes = columns.bytes(c.row());
      if (!tick.here(id, bytes)) return;
      if (isLate) {
        late += c.weight();
        return;
      }
      if (!last) {
        tick.emit(Closing.this, columns.of(c.row()), c.weight());
        return;
      }
      byte[] place = ByteBuffer.allocate(16).putLong(ordinal(closing)).putLong(clock.next()).array();
      byte[] value = ByteBuffer.allocate(8 + bytes.length).putLong(c.weight()).put(bytes).array();
      tick.state.put(id, ROWS, State.NONE, place, value, true);
      clock.expect(closing);
    }

    /** Emits and removes the rows of the windows that are closed. */
    private void close() {
      while (true) {
        List<Entry> due = new ArrayList<>();
        long next = Long.MAX_VALUE;
        try (State.Entries entries = tick.state.entries(id, ROWS, State.NONE)) {
          while (next == Long.MAX_VALUE && entries.next()) {
            byte[] place = entries.row();
            long closing = ordinal(ByteBuffer.wrap(place).getLong());
            ByteBuffer value = ByteBuffer.wrap(entries.value());
            if (closing > clock.time || due.size() == CLOSED_AT_ONCE) next = closing;
            else due.add(new Entry(place, closing, value.getLong(), rest(value)));
          }
        }
        for (Entry e : due) {
          tick.emit(Closing.this, Rows.row(e.bytes, columns.schema.length()), e.weight);
          tick.state.remove(id, ROWS, State.NONE, e.place);
        }
        clock.expectFrom(next);
        if (next > clock.time) return;
      }
    }
  }
}
