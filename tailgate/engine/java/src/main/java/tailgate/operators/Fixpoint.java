package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import tailgate.circuit.Operator;
import tailgate.circuit.Pending;
import tailgate.circuit.Tick;
import tailgate.errors.SqlError;
import tailgate.rows.Columns;
import tailgate.rows.RowMap;
import tailgate.rows.Rows;
import tailgate.state.State;

/**
 * The rows of a recursive query, each with the round in which the query derives it
 *
 * <pre>   D(0) = base        D(n + 1) = step(W(n))
 *   UNION ALL   W(n) = D(n)        UNION   W(n) = the distinct rows of D(n) that no earlier round has</pre>
 *
 * <p>Port 0 receives the base, with round 0. Port 1, the {@link #feedback feedback}, receives the rows of the step, each with
 * the round of the working table that it follows from. Output: the rows of all W(n), with n. The equations determine W(n) by
 * the rounds below n, so rows that only derive each other are in no W(n), and every order of changes leads to the same sum.
 * Changes are processed in ascending order of rounds, so that no row is emitted whose derivations still change: a row that
 * loses its first round enters its next one only when it is the turn of that round.
 *
 * <p>A row of a round above the limit is an error of the query, and so is a row with more than COPIES_MAX copies.
 *
 * <p>State: UNION ALL (row, round) → weight; UNION row → its first round and the weights of its derivations by round, of which
 * there are at most as many as rounds. Cost: one get and one put for each changed row and round.
 */
final class Fixpoint extends Operator {
  private static final long serialVersionUID = 1;
  /** The maximum number of copies of a row in one round: the sums of a step over it then fit 64 bits. */
  private static final long COPIES_MAX = 1L << 31;
  private final StructType row;
  private final Columns values;  // the columns without the round
  private final int width;
  private final boolean all;
  private final int limit;
  private final String name;

  Fixpoint(StructType row, boolean all, int limit, String name) {
    this.row = row;
    this.width = row.length() - 1;
    if (row.apply(width).dataType() != DataTypes.IntegerType)
      throw new IllegalArgumentException("the last column of " + row.catalogString() + " is not a round");
    int[] ordinals = java.util.stream.IntStream.range(0, width).toArray();
    this.values = all ? Columns.first(row, width) : Columns.key(row, ordinals);
    this.all = all;
    this.limit = limit;
    this.name = name;
  }

  @Override public StructType[] ports() { return new StructType[] {row, row}; }

  @Override public StructType output() { return row; }

  @Override public int feedback() { return 1; }

  /** All rows are in one partition, that of the loop. */
  @Override public byte[] key(int port, UnsafeRow of) { return State.NONE; }

  @Override public byte[] owner(int port, byte[] key, byte[] row) { return State.NONE; }

  @Override public void compile() { values.compile(); }

  @Override public Pending pending() { return new Derivations(); }

  /** The changes of D, by round and row. */
  private final class Derivations implements Pending {
    private static final int OVERHEAD = 96;  // of an entry of the map in bytes, in addition to the row
    private final TreeMap<Integer, RowMap<long[]>> rounds = new TreeMap<>();

    @Override public int add(int port, UnsafeRow of, long weight, long order) {
      int round = of.getInt(width) + port;
      return add(round, values.of(of), weight);
    }

    int add(int round, UnsafeRow of, long weight) {
      long[] sum = rounds.computeIfAbsent(round, r -> new RowMap<>()).computeIfAbsent(of, () -> new long[1]);
      sum[0] = Math.addExact(sum[0], weight);
      return of.getSizeInBytes() + OVERHEAD;
    }

    /** Processes the changes of the lowest round. Those of later rounds wait, and what this round leads to joins them. */
    @Override public void run(Tick tick) {
      tick.waiting(Fixpoint.this, this);
      var lowest = rounds.pollFirstEntry();
      Output out = new Output(tick, lowest.getKey());
      lowest.getValue().forEach((of, change) -> {
        if (all) count(out, of, change[0]);
        else show(out, of, change[0], this);
      });
      if (rounds.isEmpty()) tick.waiting(Fixpoint.this, null);
    }
  }

  /** Emits the copies of a row that a round of a UNION ALL gains or loses. */
  private void count(Output out, byte[] of, long change) {
    if (change == 0) return;
    long now = out.tick.state.weigh(id, 0, of, ByteBuffer.allocate(4).putInt(out.round).array(), change), before = now - change;
    out.emit(of, out.round, (many(now) ? 0 : now) - (many(before) ? 0 : before));
    if (many(now) == many(before)) return;
    SqlError error = new SqlError("54000", "a row of recursive query \"" + name + "\" has more than " + COPIES_MAX + " copies");
    out.tick.fail(this, error, many(now) ? 1 : -1);
  }

  private static boolean many(long copies) { return copies > COPIES_MAX || copies < -COPIES_MAX; }

  /** Emits a row of a UNION if this round has become its first one, or was it. */
  private void show(Output out, byte[] of, long change, Derivations later) {
    byte[] stored = out.tick.state.get(id, 0, of, State.NONE);
    Rounds rounds = new Rounds(stored);
    if (change != 0) rounds.weights.merge(out.round, change, (a, b) -> Math.addExact(a, b) == 0 ? null : a + b);
    boolean first = out.round == rounds.from(0);
    if (first && rounds.shown != out.round) {
      if (rounds.shown != Rounds.NEVER) out.emit(of, rounds.shown, -1);
      out.emit(of, out.round, 1);
      rounds.shown = out.round;
    } else if (!first && rounds.shown == out.round) {
      out.emit(of, out.round, -1);
      rounds.shown = Rounds.NEVER;
      int next = rounds.from(out.round + 1);
      if (next != Rounds.NEVER) later.add(next, Rows.row(of, width), 0);
    }
    if (!rounds.weights.isEmpty()) out.tick.state.put(id, 0, of, State.NONE, rounds.bytes(), stored == null);
    else if (stored != null) out.tick.state.remove(id, 0, of, State.NONE);
  }

  /** The rounds that derive a row, with the weight of the derivations, and the round that has been emitted. */
  private static final class Rounds {
    static final int NEVER = -1;
    int shown = NEVER;
    final TreeMap<Integer, Long> weights = new TreeMap<>();

    Rounds(byte[] stored) {
      if (stored == null) return;
      ByteBuffer in = ByteBuffer.wrap(stored);
      shown = in.getInt();
      while (in.hasRemaining()) weights.put(in.getInt(), in.getLong());
    }

    /** Returns the first round at or after this one that derives the row, or NEVER. */
    int from(int round) {
      for (var e : weights.tailMap(round).entrySet()) if (e.getValue() > 0) return e.getKey();
      return NEVER;
    }

    byte[] bytes() {
      ByteBuffer out = ByteBuffer.allocate(4 + 12 * weights.size()).putInt(shown);
      weights.forEach((round, weight) -> out.putInt(round).putLong(weight));
      return out.array();
    }
  }

  /** The output of one round. */
  private final class Output {
    final Tick tick;
    final int round;
    private final JoinedRow joined = new JoinedRow();
    private final GenericInternalRow last = new GenericInternalRow(1);

    Output(Tick tick, int round) {
      this.tick = tick;
      this.round = round;
    }

    void emit(byte[] of, int at, long weight) {
      if (at > limit) {
        tick.fail(Fixpoint.this, new SqlError("54000", "recursive query \"" + name + "\" needs more than " + limit + " rounds"), weight);
        return;
      }
      last.update(0, at);
      tick.emit(Fixpoint.this, joined.apply(Rows.row(of, width), last), weight);
    }
  }
}
