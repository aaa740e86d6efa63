package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
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
import tailgate.rows.SortKeyCodec;
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
 * <p>Equal values of some types have several forms, such as 1.0 and 1.00. A port then has the sort keys of these columns after the
 * round, and rows with equal keys are one row, which has the smallest form of those in its first round.
 *
 * <p>State: UNION ALL (row, round) → weight; UNION row → its first round and the weights of its derivations by round and form, of
 * which there are at most as many as rounds and forms. Cost: one get and one put for each changed row and round.
 */
final class Fixpoint extends Operator {
  private static final long serialVersionUID = 1;
  /** The maximum number of copies of a row in one round: the sums of a step over it then fit 64 bits. */
  private static final long COPIES_MAX = 1L << 31;
  private final StructType row;
  private final Columns values;  // the columns without the round
  private final Columns identity;  // of these, the columns that say which rows are equal; null if all do
  private final int width;
  private final boolean all;
  private final int limit;
  private final String name;

  private transient SortKeyCodec forms;

  /** @param keys the columns of a port that say which rows are equal, without the round; empty if all do */
  Fixpoint(StructType row, int width, int[] keys, boolean all, int limit, String name) {
    this.row = row;
    this.width = width;
    if (row.apply(width).dataType() != DataTypes.IntegerType)
      throw new IllegalArgumentException("column " + width + " of " + row.catalogString() + " is not a round");
    int[] ordinals = IntStream.range(0, row.length()).filter(i -> i != width).toArray();
    this.values = all ? Columns.first(row, width) : Columns.key(row, ordinals);
    this.identity = keys.length == 0 ? null : Columns.key(values.schema, IntStream.of(keys).map(i -> i < width ? i : i - 1).toArray());
    this.all = all;
    this.limit = limit;
    this.name = name;
  }

  @Override public StructType[] ports() { return new StructType[] {row, row}; }

  @Override public StructType output() { return new StructType(Arrays.copyOf(row.fields(), width + 1)); }

  @Override public int feedback() { return 1; }

  /** All rows are in one partition, that of the loop. */
  @Override public byte[] key(int port, UnsafeRow of) { return State.NONE; }

  @Override public byte[] owner(int port, byte[] key, byte[] row) { return State.NONE; }

  @Override public void compile() {
    values.compile();
    if (identity != null) identity.compile();
  }

  /** Returns the codec of a row's form. */
  private SortKeyCodec forms() {
    if (forms == null) forms = SortKeyCodec.exact(values.schema, IntStream.range(0, width).toArray());
    return forms;
  }

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
    out.emit(Rows.row(of, width), out.round, (many(now) ? 0 : now) - (many(before) ? 0 : before));
    if (many(now) == many(before)) return;
    SqlError error = new SqlError("54000", "a row of recursive query \"" + name + "\" has more than " + COPIES_MAX + " copies");
    out.tick.fail(this, error, many(now) ? 1 : -1);
  }

  private static boolean many(long copies) { return copies > COPIES_MAX || copies < -COPIES_MAX; }

  /** Emits a row of a UNION if this round has become its first one, or was it, and the form that the row now has in it. */
  private void show(Output out, byte[] of, long change, Derivations later) {
    UnsafeRow whole = Rows.row(of, values.schema.length());
    byte[] key = identity == null ? of : identity.bytes(whole);
    byte[] stored = out.tick.state.get(id, 0, key, State.NONE);
    Rounds rounds = new Rounds(stored, identity != null);
    if (change != 0) rounds.add(out.round, identity == null ? State.NONE : forms().encode(whole), change);
    boolean first = out.round == rounds.from(0);
    byte[] form = first ? rounds.form(out.round) : State.NONE;
    if (first && (rounds.shown != out.round || !Arrays.equals(rounds.shownForm, form))) {
      if (rounds.shown != Rounds.NEVER) out.emit(row(of, rounds.shownForm), rounds.shown, -1);
      out.emit(row(of, form), out.round, 1);
      rounds.shown = out.round;
      rounds.shownForm = form;
    } else if (!first && rounds.shown == out.round) {
      out.emit(row(of, rounds.shownForm), out.round, -1);
      rounds.shown = Rounds.NEVER;
      int next = rounds.from(out.round + 1);
      if (next != Rounds.NEVER) later.add(next, whole, 0);
    }
    if (!rounds.weights.isEmpty()) out.tick.state.put(id, 0, key, State.NONE, rounds.bytes(), stored == null);
    else if (stored != null) out.tick.state.remove(id, 0, key, State.NONE);
  }

  /** Returns a row without its round; `of` is the row itself if rows have no forms. */
  private InternalRow row(byte[] of, byte[] form) {
    return identity == null ? Rows.row(of, width) : new GenericInternalRow(forms().decode(form));
  }

  /** The rounds that derive a row, with the weights of the derivations by form, and the round and the form that have been emitted. */
  private static final class Rounds {
    static final int NEVER = -1;
    final boolean hasForms;
    int shown = NEVER;
    byte[] shownForm = State.NONE;
    final TreeMap<Integer, TreeMap<byte[], Long>> weights = new TreeMap<>();

    Rounds(byte[] stored, boolean hasForms) {
      this.hasForms = hasForms;
      if (stored == null) return;
      ByteBuffer in = ByteBuffer.wrap(stored);
      shown = in.getInt();
      if (shown != NEVER) shownForm = read(in);
      while (in.hasRemaining()) {
        int round = in.getInt();
        byte[] form = read(in);
        add(round, form, in.getLong());
      }
    }

    private byte[] read(ByteBuffer in) {
      if (!hasForms) return State.NONE;
      byte[] form = new byte[in.getInt()];
      in.get(form);
      return form;
    }

    void add(int round, byte[] form, long weight) {
      var forms = weights.computeIfAbsent(round, r -> new TreeMap<byte[], Long>(Arrays::compareUnsigned));
      forms.merge(form, weight, (a, b) -> Math.addExact(a, b) == 0 ? null : a + b);
      if (forms.isEmpty()) weights.remove(round);
    }

    /** Returns the first round at or after this one that derives the row, or NEVER. */
    int from(int round) {
      for (int at : weights.tailMap(round).keySet()) if (form(at) != null) return at;
      return NEVER;
    }

    /** Returns the smallest form in which a round derives the row, or null. */
    byte[] form(int round) {
      for (var e : weights.get(round).entrySet()) if (e.getValue() > 0) return e.getKey();
      return null;
    }

    byte[] bytes() {
      ByteBuffer out = ByteBuffer.allocate(size());
      out.putInt(shown);
      if (shown != NEVER) write(out, shownForm);
      weights.forEach((round, forms) -> forms.forEach((form, weight) -> {
        out.putInt(round);
        write(out, form);
        out.putLong(weight);
      }));
      return out.array();
    }

    private int size() {
      int size = Integer.BYTES + (shown == NEVER ? 0 : size(shownForm));
      for (var forms : weights.values()) for (byte[] form : forms.keySet()) size += Integer.BYTES + size(form) + Long.BYTES;
      return size;
    }

    private int size(byte[] form) { return hasForms ? Integer.BYTES + form.length : 0; }

    private void write(ByteBuffer out, byte[] form) {
      if (hasForms) out.putInt(form.length).put(form);
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

    void emit(InternalRow of, int at, long weight) {
      if (at > limit) {
        tick.fail(Fixpoint.this, new SqlError("54000", "recursive query \"" + name + "\" needs more than " + limit + " rounds"), weight);
        return;
      }
      last.update(0, at);
      tick.emit(Fixpoint.this, joined.apply(of, last), weight);
    }
  }
}
