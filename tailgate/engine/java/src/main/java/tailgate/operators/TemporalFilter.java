package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import tailgate.circuit.Operator;
import tailgate.circuit.Tick;
import tailgate.rows.Change;
import tailgate.rows.Columns;
import tailgate.rows.Rows;
import tailgate.state.State;

/**
 * Output at time t = the rows with from ≤ t < until: temporal filters.
 *
 * <p>Input: the row, then `from` and `until` in ms, where NULL means no bound. A row of weight w is
 * two events, +w at `from` and -w at `until`. A due event is emitted; a later one is stored and
 * emitted when the clock reaches it. The retraction of a row creates the opposite events. The
 * operator is therefore linear, and the sum of its output is a function of the sum of its input and
 * the time.
 *
 * <p>State: (time, row) → weight, in the order of time. Cost: one get and one put for each future
 * event, and one seek per tick.
 */
final class TemporalFilter extends Operator {
  private static final long serialVersionUID = 1;
  private static final int TIME = 8;
  private final StructType row;
  private final Columns columns;

  TemporalFilter(StructType row) {
    this.row = row;
    this.columns = Columns.first(row, row.length());
  }

  @Override public StructType[] ports() { return new StructType[] {row.add("from", "long").add("until", "long")}; }

  @Override public StructType output() { return row; }

  @Override public byte[] key(int port, UnsafeRow of) { return columns.bytes(of); }

  @Override public byte[] owner(int port, byte[] key, byte[] event) { return Arrays.copyOfRange(event, TIME, event.length); }

  @Override public void compile() { columns.compile(); }

  @Override public boolean everywhere() { return true; }

  @Override public void run(Tick tick, List<List<Change>> input) {
    for (Change c : input.get(0)) {
      boolean always = c.row().isNullAt(row.length()), forever = c.row().isNullAt(row.length() + 1);
      long from = always ? Long.MIN_VALUE : c.row().getLong(row.length()),
          until = forever ? Long.MAX_VALUE : c.row().getLong(row.length() + 1);
      if (until <= from) continue;
      byte[] bytes = columns.bytes(c.row());
      event(tick, from, bytes, c.weight());
      if (!forever) event(tick, until, bytes, -c.weight());
    }
    try (State.Entries events = tick.state.entries(id, 0, State.NONE)) {
      while (events.next()) {
        byte[] event = events.row();
        long at = time(event);
        if (at > tick.time) {
          tick.due(at);
          return;
        }
        tick.state.remove(id, 0, State.NONE, event);
        tick.emit(this, Rows.row(Arrays.copyOfRange(event, TIME, event.length), row.length()), State.weight(events.value()));
      }
    }
  }

  private void event(Tick tick, long at, byte[] bytes, long weight) {
    if (at <= tick.time) tick.emit(this, Rows.row(bytes, row.length()), weight);
    else
      tick.state.weigh(id, 0, State.NONE,
          ByteBuffer.allocate(TIME + bytes.length).putLong(at ^ Long.MIN_VALUE).put(bytes).array(),
          weight);
  }

  /**
   * Decodes the time of an event. It is stored with the sign flipped, so that the bytes are in the
   * order of time.
   */
  private static long time(byte[] event) { return ByteBuffer.wrap(event).getLong() ^ Long.MIN_VALUE; }
}
