package tailgate.operators;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import tailgate.aggregates.Accumulator;
import tailgate.aggregates.AggregateCall;
import tailgate.aggregates.GroupValues;
import tailgate.circuit.Operator;
import tailgate.circuit.Pending;
import tailgate.circuit.Tick;
import tailgate.errors.SqlError;
import tailgate.rows.Columns;
import tailgate.rows.DataBuffer;
import tailgate.rows.RowMap;
import tailgate.rows.Rows;
import tailgate.state.State;

/**
 * Δγ(A) = γ(A_new) - γ(A_old), over the groups that ΔA touches
 *
 * <p>Emits one row per group that has rows: the group columns, then the results. NULL keys group
 * together. Without group columns there is exactly one row, also for empty input. Without
 * aggregates it is DISTINCT. If a result does not fit its type, the group's row is an error until
 * the group changes.
 *
 * <p>With `retention`, the second port has times. When the greatest one, the stream time, has reached the column `end` of
 * a group plus `retention`, the group's row is retracted by the next tick, and its state is released. So readers of changes see
 * the last row also of a group that changes in the tick in which the stream time jumps. All rows of a group have the same `end`.
 *
 * <p>State: group → number of rows, {@link Accumulator}s; (group, value) → weight, in order, for
 * aggregates that need the values; with `retention` the stream time and (time of release, group). Cost: one look-up and one
 * write for each changed group.
 */
final class Reduce extends Operator {
  private static final long serialVersionUID = 1;
  private static final int OVERHEAD = 64;  // bytes of a group, an accumulator or a value, in addition to the row
  private static final int CALLS_MAX = 250;  // limit of the ports for values
  private static final int RELEASES = 251, CLOCK = 252;  // ports of the state
  private static final int RELEASED_AT_ONCE = 1000;  // groups that are read before they are removed
  private final StructType row, results;
  private final Columns group;
  private final AggregateCall[] calls;
  private final boolean appendOnly;
  private final int end;
  private final long retention;
  private final boolean keeps;  // whether groups stay when their last row leaves
  private transient List<Supplier<Accumulator>> factories;  // of the calls
  private transient DataBuffer buffer;  // for the values of the state

  /** `end`: the column from which the retention of a group in µs is counted, or -1. */
  Reduce(StructType row, int[] group, AggregateCall[] calls, boolean appendOnly, int end, long retention) {
    if (calls.length > CALLS_MAX) throw new IllegalArgumentException("more than " + CALLS_MAX + " aggregates");
    this.row = row;
    this.group = Columns.key(row, group);
    this.calls = calls.clone();
    this.appendOnly = appendOnly;
    this.end = end;
    this.retention = retention;
    if (end >= 0 && !row.apply(end).dataType().equals(DataTypes.TimestampType))
      throw new IllegalArgumentException("not a timestamp: " + row.apply(end));
    StructType results = new StructType();
    for (AggregateCall call : calls) results = results.add(call.function, call.result);
    this.results = results;
    keeps = Arrays.stream(totals()).anyMatch(Accumulator::keepsGroup);  // rejects aggregates that cannot be computed
  }

  private Accumulator[] totals() {
    if (factories == null) factories = Arrays.stream(calls).map(call -> Accumulator.factory(call, row, appendOnly)).toList();
    Accumulator[] totals = new Accumulator[calls.length];
    for (int i = 0; i < totals.length; i++) totals[i] = factories.get(i).get();
    return totals;
  }

  private DataBuffer buffer() {
    if (buffer == null) buffer = new DataBuffer();
    return buffer;
  }

  @Override public StructType[] ports() {
    return end < 0 ? new StructType[] {row} : new StructType[] {row, new StructType().add("time", DataTypes.TimestampType)};
  }

  @Override public boolean everywhere(int port, UnsafeRow time) { return port == 1; }

  /** Runs in every tick with `retention`, because groups may be due since the last one. */
  @Override public boolean everywhere() { return end >= 0; }

  @Override public StructType output() {
    StructType out = group.schema;
    for (var f : results.fields()) out = out.add(f);
    return out;
  }

  @Override public byte[] key(int port, UnsafeRow of) { return group.bytes(of); }

  @Override public byte[] owner(int port, byte[] key, byte[] row) {
    return switch (port) {
      case RELEASES -> Arrays.copyOfRange(row, Long.BYTES, row.length);
      case CLOCK -> null;
      default -> key;
    };
  }

  @Override public byte[] merged(int port, byte[] one, byte[] other) { return StreamClock.merged(one, other); }

  /** A group that stays when its last row leaves exists also if its rows come and leave in one tick. */
  @Override public boolean sequential() { return keeps; }

  @Override public boolean always() { return group.schema.length() == 0; }

  @Override public void compile() { group.compile(); }

  @Override public Pending pending() { return new Groups(); }

  /** Changes, summed by group as they arrive. */
  private final class Groups implements Pending {
    private final RowMap<Group> changes = new RowMap<>();
    private final Supplier<Group> newGroup = Group::new;
    private long newest = Long.MIN_VALUE;  // the greatest time
    private long last;  // the highest order

    @Override public int add(int port, UnsafeRow row, long weight, long order) {
      last = Math.max(last, order);
      if (port == 1) {
        if (!row.isNullAt(0)) newest = Math.max(newest, row.getLong(0));
        return 0;
      }
      int before = changes.size();
      UnsafeRow key = group.of(row);
      Group of = changes.computeIfAbsent(key, newGroup);
      int bytes = of.add(row, weight, order);
      return changes.size() == before ? bytes : bytes + key.getSizeInBytes() + OVERHEAD * (1 + calls.length);
    }

    @Override public void run(Tick tick) {
      if (always()) changes.computeIfAbsent(group.of(new GenericInternalRow(0)), newGroup);
      StreamClock clock = end < 0 ? null : new StreamClock(tick, id, CLOCK);
      if (clock != null) {
        tick.at(last);
        if (!clock.hasAdvanced()) release(tick, clock);
        clock.advanceInTick(newest);
      }
      changes.forEach((key, change) -> change(tick, key, change, clock));
      if (clock == null) return;
      if (clock.due <= clock.time) tick.due(tick.time + 1);
      clock.store();
    }
  }

  /** Applies the change of a group. */
  private void change(Tick tick, byte[] key, Group change, StreamClock clock) {
    byte[] stored = tick.state.get(id, 0, key, State.NONE);
    if (appendOnly && calls.length == 0 && stored != null) return;  // the number of copies is not needed
    Group now = new Group();
    if (stored != null) buffer().decode(stored, now);
    Member member = new Member(tick.state, key);
    Object old = stored == null ? null : now.row(member);
    now.merge(change, member);
    long at = clock == null ? Long.MAX_VALUE : change.end + retention;
    if (!always() && now.isZero()) {
      if (stored != null) remove(tick, key, at);
    } else {
      if (clock != null && stored == null) {
        tick.state.put(id, RELEASES, State.NONE, place(at, key), State.NONE, true);
        clock.expect(at);
      }
      byte[] bytes = buffer().encode(now);
      if (!Arrays.equals(bytes, stored)) tick.state.put(id, 0, key, State.NONE, bytes, stored == null);
    }
    Object next = now.row(member);
    if (same(old, next) && !(tick.single && repeats && next instanceof Object[])) return;
    tick.at(change.order);
    emit(tick, key, old, -1);
    emit(tick, key, next, 1);
  }

  private static byte[] place(long at, byte[] key) {
    return ByteBuffer.allocate(8 + key.length).putLong(StreamOperator.ordinal(at)).put(key).array();
  }

  /** Removes a group without its values. */
  private void remove(Tick tick, byte[] key, long at) {
    tick.state.remove(id, 0, key, State.NONE);
    if (end >= 0) tick.state.remove(id, RELEASES, State.NONE, place(at, key));
  }

  private void removeValues(Tick tick, byte[] key) {
    for (int call = 1; call <= calls.length; call++)
      try (State.Entries values = tick.state.entries(id, call, key)) {
        while (values.next()) tick.state.remove(id, call, key, values.row());
      }
  }

  /** Retracts and removes the groups that are due at the stream time of the ticks before. */
  private void release(Tick tick, StreamClock clock) {
    boolean any = false;
    while (clock.due <= clock.time) {
      List<byte[]> due = new ArrayList<>();
      long next = Long.MAX_VALUE;
      try (State.Entries entries = tick.state.entries(id, RELEASES, State.NONE)) {
        while (next == Long.MAX_VALUE && entries.next()) {
          byte[] place = entries.row();
          long at = StreamOperator.ordinal(ByteBuffer.wrap(place).getLong());
          if (at > clock.time || due.size() == RELEASED_AT_ONCE) next = at;
          else due.add(place);
        }
      }
      for (byte[] place : due) {
        byte[] key = Arrays.copyOfRange(place, 8, place.length);
        Group group = new Group();
        buffer().decode(tick.state.get(id, 0, key, State.NONE), group);
        emit(tick, key, group.row(new Member(tick.state, key)), -1);
        removeValues(tick, key);
        remove(tick, key, StreamOperator.ordinal(ByteBuffer.wrap(place).getLong()));
        any = true;
      }
      clock.expectFrom(next);
    }
    if (any) tick.released(this, Math.floorDiv(clock.time - retention, 1000));
  }

  private void emit(Tick tick, byte[] key, Object row, long weight) {
    if (row instanceof SqlError error) tick.fail(this, error, weight);
    else if (row != null)
      tick.emit(this, new JoinedRow(Rows.row(key, group.schema.length()),
          new GenericInternalRow((Object[]) row)), weight);
  }

  private static boolean same(Object old, Object now) {
    if (old instanceof SqlError a && now instanceof SqlError b)
      return a.sqlstate().equals(b.sqlstate()) && a.getMessage().equals(b.getMessage());
    return old instanceof Object[] a && now instanceof Object[] b ? Arrays.deepEquals(a, b) : old == now;
  }

  private final class Member {
    final State state;
    final byte[] group;

    Member(State state, byte[] group) {
      this.state = state;
      this.group = group;
    }

    GroupValues values(int call) { return new GroupValues.Stored(state, id, call + 1, group); }
  }

  /** The accumulators of a group, or of its changes. */
  private final class Group implements DataBuffer.Writer, DataBuffer.Reader {
    private long rows;
    private long end;  // of its window; only in a change
    private long order;  // the highest of the changes; only in a change
    private final Accumulator[] totals = totals();

    /** Adds a change. Returns the bytes of memory that its values take. */
    int add(UnsafeRow row, long weight, long order) {
      rows += weight;
      this.order = Math.max(this.order, order);
      if (Reduce.this.end >= 0) end = row.getLong(Reduce.this.end);
      int bytes = 0;
      for (Accumulator t : totals) {
        t.add(row, weight, order);
        if (t.keepsValues()) bytes += OVERHEAD + row.getSizeInBytes();
      }
      return bytes;
    }

    void merge(Group change, Member member) {
      rows += change.rows;
      for (int i = 0; i < totals.length; i++) totals[i].merge(change.totals[i], member.values(i));
    }

    boolean isZero() { return rows == 0 && Arrays.stream(totals).allMatch(Accumulator::isZero); }

    /** Returns the results, an error, or null if the group has no row. */
    Object row(Member member) {
      if (rows <= 0 && !always() && !keeps) return null;
      Object[] values = new Object[totals.length];
      try {
        for (int i = 0; i < values.length; i++) values[i] = totals[i].result(rows, member.values(i));
        return values;
      } catch (SqlError e) {
        return e;
      }
    }

    @Override public void write(DataOutput out) throws IOException {
      out.writeLong(rows);
      for (Accumulator t : totals) t.write(out);
    }

    @Override public void read(DataInput in) throws IOException {
      rows = in.readLong();
      for (Accumulator t : totals) t.read(in);
    }
  }
}
