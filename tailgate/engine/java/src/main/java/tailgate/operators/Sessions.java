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
 * Output = the rows whose session is open when they arrive, with the bounds of their session
 *
 * <p>Each input row has bounds, its time and its time plus the gap. Rows of one key whose bounds overlap or touch are in one
 * session, which has the smallest start and the largest end. A session closes when the stream time is after its end plus `grace`.
 * A row is dropped if the session that it would be in is closed. One that is not late itself can extend a closed session, so
 * the state has closed sessions for one gap longer. Rows whose time or bounds are NULL are dropped.
 *
 * <p>The rows of a session that changes in a tick are emitted with their new bounds at the end of the tick, and those with the old
 * bounds are retracted. With `last`, they are emitted when the session closes, and never retracted: it is not extended then.
 *
 * <p>Output: the first `width` columns.
 *
 * <p>State: the stream time; (key, start) → end and number of a session; (number of the session, number) → row, as emitted;
 * (end, number of the session) → start, key. Cost: two puts per row, and a scan of the rows of each session that changes.
 */
final class Sessions extends StreamOperator {
  private static final long serialVersionUID = 1;
  private static final int SESSIONS = 0, ROWS = 1, ENDS = 2;  // ports of the state
  private static final int AT_ONCE = 1000;  // sessions that are read before they are removed
  private static final int CHANGED_MAX = 10_000;  // sessions with changes that are not emitted yet
  private final Columns columns, key;
  private final int start, end;
  private final long grace;
  private final boolean last;

  /** A session in the state. */
  private record Session(byte[] key, long start, long end, long number) {}

  Sessions(StructType row, int width, int[] key, int time, int start, int end, long grace, boolean last, boolean filling) {
    super(new StructType[] {row}, new int[] {time}, filling);
    for (int column : new int[] {start, end})
      if (column >= width || !row.apply(column).dataType().equals(DataTypes.TimestampType))
        throw new IllegalArgumentException("not a timestamp of the output: " + row.apply(column));
    this.columns = Columns.first(row, width);
    this.key = Columns.key(row, key);
    this.start = start;
    this.end = end;
    this.grace = grace;
    this.last = last;
  }

  @Override public StructType output() { return columns.schema; }

  @Override public byte[] key(int port, UnsafeRow of) { return key.bytes(of); }

  @Override public void compile() {
    columns.compile();
    key.compile();
  }

  @Override Work work(Tick tick) { return new Work(tick); }

  private static byte[] encoded(long number) { return ByteBuffer.allocate(8).putLong(ordinal(number)).array(); }

  private static byte[] place(Session s) { return ByteBuffer.allocate(16).putLong(ordinal(s.end)).putLong(s.number).array(); }

  /** The rows of a session move with the session, which has their key. */
  @Override void moveRows(State from, State.Entry entry, LongUnaryOperator number, Moved to) {
    switch (entry.port()) {
      case SESSIONS -> {
        to.accept(entry.key(), entry.withValue(numbered(entry.value(), number)));
        byte[] of = encoded(ByteBuffer.wrap(entry.value()).getLong(Long.BYTES));
        LongUnaryOperator ordinals = n -> ordinal(number.applyAsLong(ordinal(n)));
        try (State.Entries rows = from.entries(id, ROWS, of)) {
          while (rows.next()) {
            State.Entry row = new State.Entry(id, ROWS, numbered(of, ordinals), numbered(rows.row(), ordinals), rows.value());
            to.accept(entry.key(), row);
          }
        }
      }
      case ENDS -> {
        byte[] owner = Arrays.copyOfRange(entry.value(), Long.BYTES, entry.value().length);
        to.accept(owner, entry.withRow(numbered(entry.row(), number)));
      }
      default -> {}  // ROWS
    }
  }

  private final class Work extends StreamOperator.Work {
    private final Map<Long, Session> changed = new LinkedHashMap<>();  // by number: sessions whose rows are not emitted yet
    private long gap;  // of the row that is processed; all rows have the same one

    Work(Tick tick) { super(tick); }

    /** Returns the stream time from which a session is closed. */
    private long closing(long end) { return end + grace + 1; }

    /** Returns the stream time from which a session is not in the state. */
    private long removal(long end) { return closing(end) + (last ? 0 : gap); }

    @Override void process(int side, Change c) {
      if (c.row().isNullAt(time[0]) || c.row().isNullAt(start) || c.row().isNullAt(end)) return;
      long from = c.row().getLong(start), to = c.row().getLong(end);
      gap = to - from;
      if (clock.advance(c.row().getLong(time[0]))) remove();
      byte[] k = key.bytes(c.row());
      if (!tick.here(id, k)) return;
      List<Session> own = touching(k, from, to);
      if (closing(own.stream().mapToLong(Session::end).reduce(to, Math::max)) <= clock.time) {
        late += c.weight();
        return;
      }
      Session session = merged(k, from, to, own);
      byte[] bytes = columns.bytes(c.row());
      byte[] value = ByteBuffer.allocate(9 + bytes.length).put((byte) 0).putLong(c.weight()).put(bytes).array();
      tick.state.put(id, ROWS, encoded(session.number), encoded(clock.next()), value, true);
      clock.expect(removal(session.end));
      if (last) return;
      changed.put(session.number, session);
      if (changed.size() > CHANGED_MAX) emitChanged();
    }

    /** Returns the sessions of a key that overlap or touch these bounds. */
    private List<Session> touching(byte[] k, long from, long to) {
      List<Session> all = new ArrayList<>();
      try (State.Entries entries = tick.state.entries(id, SESSIONS, k)) {
        while (entries.next()) {
          long begin = ordinal(ByteBuffer.wrap(entries.row()).getLong());
          ByteBuffer value = ByteBuffer.wrap(entries.value());
          long until = value.getLong();
          if (begin > to) break;
          if (until >= from) all.add(new Session(k, begin, until, value.getLong()));
        }
      }
      return all;
    }

    /** Returns the session of a row, after it has replaced those that it touches. */
    private Session merged(byte[] k, long from, long to, List<Session> own) {
      for (Session s : own) {
        from = Math.min(from, s.start);
        to = Math.max(to, s.end);
      }
      Session session = new Session(k, from, to, own.isEmpty() ? clock.next() : own.get(0).number);
      if (own.size() == 1 && session.start == own.get(0).start && session.end == own.get(0).end) return session;
      for (Session s : own) {
        removed(s);
        if (s.number != session.number) move(s.number, session.number);
      }
      byte[] value = ByteBuffer.allocate(16).putLong(to).putLong(session.number).array();
      tick.state.put(id, SESSIONS, k, encoded(from), value, true);
      byte[] begin = ByteBuffer.allocate(8 + k.length).putLong(from).put(k).array();
      tick.state.put(id, ENDS, State.NONE, place(session), begin, true);
      return session;
    }

    /** Removes a session without its rows. */
    private void removed(Session s) {
      changed.remove(s.number);
      tick.state.remove(id, SESSIONS, s.key, encoded(s.start));
      tick.state.remove(id, ENDS, State.NONE, place(s));
    }

    /** Moves the rows of a session to another one. */
    private void move(long number, long to) {
      try (State.Entries entries = tick.state.entries(id, ROWS, encoded(number))) {
        while (entries.next()) {
          byte[] place = entries.row();
          tick.state.put(id, ROWS, encoded(to), place, entries.value().clone(), true);
          tick.state.remove(id, ROWS, encoded(number), place);
        }
      }
    }

    /** Removes the sessions that have been closed for long enough, and emits their rows if they wait for that. */
    private void remove() {
      while (true) {
        List<Session> due = new ArrayList<>();
        long next = Long.MAX_VALUE;
        try (State.Entries entries = tick.state.entries(id, ENDS, State.NONE)) {
          while (next == Long.MAX_VALUE && entries.next()) {
            ByteBuffer place = ByteBuffer.wrap(entries.row()), value = ByteBuffer.wrap(entries.value());
            long until = ordinal(place.getLong());
            if (removal(until) > clock.time || due.size() == AT_ONCE) next = removal(until);
            else {
              long from = value.getLong();
              due.add(new Session(rest(value), from, until, place.getLong()));
            }
          }
        }
        for (Session s : due) {
          emit(s, true);
          removed(s);
        }
        clock.expectFrom(next);
        if (next > clock.time) return;
      }
    }

    @Override void finish() { emitChanged(); }

    private void emitChanged() {
      for (Session s : changed.values()) emit(s, false);
      changed.clear();
    }

    /** Emits the rows of a session that are not emitted with its bounds yet. `removed`: the rows are removed from the state. */
    private void emit(Session s, boolean removed) {
      byte[] of = encoded(s.number);
      try (State.Entries entries = tick.state.entries(id, ROWS, of)) {
        while (entries.next()) {
          byte[] place = entries.row();
          ByteBuffer value = ByteBuffer.wrap(entries.value());
          boolean emitted = value.get() == 1;
          long weight = value.getLong();
          byte[] bytes = rest(value);
          UnsafeRow row = Rows.row(bytes, columns.schema.length());
          boolean same = emitted && row.getLong(start) == s.start && row.getLong(end) == s.end;
          if (!same) {
            if (emitted) tick.emit(Sessions.this, row, -weight);
            row.setLong(start, s.start);
            row.setLong(end, s.end);
            tick.emit(Sessions.this, row, weight);
          }
          if (removed) tick.state.remove(id, ROWS, of, place);
          else if (!same) {
            byte[] stored = ByteBuffer.allocate(9 + bytes.length).put((byte) 1).putLong(weight).put(bytes).array();
            tick.state.put(id, ROWS, of, place, stored, false);
          }
        }
      }
    }
  }
}
