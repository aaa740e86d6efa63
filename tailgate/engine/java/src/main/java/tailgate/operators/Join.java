package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.*;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import tailgate.circuit.Operator;
import tailgate.circuit.Tick;
import tailgate.rows.Change;
import tailgate.rows.Columns;
import tailgate.rows.RowMap;
import tailgate.rows.Rows;
import tailgate.rows.Rows.Bytes;
import tailgate.rows.Steps;
import tailgate.state.State;

/**
 * Δ(L ⋈ R) = ΔL ⋈ R_old + L_new ⋈ ΔR, by equal keys
 *
 * <p>Join is bilinear: using the new left side once and the old right side once avoids the term ΔL
 * ⋈ ΔR. A side is <i>watched</i> if its rows are also emitted alone: those without a partner (left,
 * right, full: with NULLs for the other side; anti), or those with one (semi). With n the number of
 * rows of the other side under the key,
 *
 * <pre>   Δ(L alone) = ΔL [n_old] + L_new ([n_new] - [n_old])       [n] = 1 if rows with n partners are emitted alone, else 0</pre>
 *
 * <p>so the rows of a key are scanned only if the number of their partners becomes or leaves zero.
 * Output: the left row, then the right row; for semi and anti joins the left row.
 *
 * <p>NULL keys never match and are not stored; null-safe key columns treat NULL as a value. Without
 * key columns every pair matches.
 *
 * <p>State: (side, key, row) → weight, for sides that are read later; (2 + side, key) → number of
 * rows, for a side whose other side is watched. Cost: the matches of the changed keys.
 *
 * <p>An append-only side is written without a read: the rows of a key and tick are stored in
 * entries (side, key, unique number) → weights and rows. Equal rows of other ticks are separate,
 * which does not change any sum. A side with a unique key has one entry (side, key) → weights and
 * rows, found by one look-up. It may hold several rows while history and changes arrive in any
 * order.
 */
class Join extends Operator {
  private static final long serialVersionUID = 1;
  // maximum size in bytes of an entry of an append-only side, except for its last row
  private static final int CHUNK = 1 << 16;
  private static final ByteBuffer EMPTY = ByteBuffer.allocate(0);
  private static final int COUNT = 2;    // port of the number of rows of side 0
  final StructType[] row;
  private final Columns[] key;
  private final boolean[] nullSafe, appendOnly, unique;
  /**
   * Whether pairs are emitted; which sides are watched; whether their rows are emitted with or
   * without partners.
   */
  final boolean pairs;
  final boolean[] watched;
  final boolean partnered;

  Join(String kind, StructType left, int[] leftKey, StructType right, int[] rightKey,
      boolean[] nullSafe, boolean[] appendOnly, boolean[] unique) {
    if (!Set.of("inner", "left", "right", "full", "semi", "anti").contains(kind))
      throw new IllegalArgumentException("no " + kind + " join");
    if (leftKey.length != rightKey.length || leftKey.length != nullSafe.length)
      throw new IllegalArgumentException(leftKey.length + " key columns left, " + rightKey.length
          + " right");
    row = new StructType[] {left, right};
    key = new Columns[] {Columns.key(left, leftKey), Columns.key(right, rightKey)};
    for (int i = 0; i < leftKey.length; i++)
      if (!key[0].schema.apply(i).dataType().equals(key[1].schema.apply(i).dataType()))
        throw new IllegalArgumentException("keys of different types: "
            + key[0].schema.catalogString() + ", " + key[1].schema.catalogString());
    this.nullSafe = nullSafe.clone();
    partnered = kind.equals("semi");
    pairs = !partnered && !kind.equals("anti");
    watched = new boolean[] {!kind.equals("inner") && !kind.equals("right"), kind.equals("right") || kind.equals("full")};
    this.unique = unique.clone();
    this.appendOnly = new boolean[] {appendOnly[0] && !unique[0], appendOnly[1] && !unique[1]};
  }

  /**
   * Creates a join. `unique`: the sides that have one row per key; ignored with a condition.
   * `condition`: a filter over the left columns, then the right ones, that pairs must pass too; or
   * null.
   */
  static Join of(String kind, StructType left, int[] leftKey, StructType right, int[] rightKey,
      boolean[] nullSafe, boolean[] appendOnly, boolean[] unique, Dataset<Row> condition) {
    if (condition == null) return new Join(kind, left, leftKey, right, rightKey, nullSafe, appendOnly, unique);
    return new ConditionalJoin(kind, left, leftKey, right, rightKey, nullSafe, appendOnly, new Steps(condition));
  }

  @Override public StructType[] ports() { return row; }

  @Override public StructType output() { return pairs ? both() : row[0]; }

  final StructType both() {
    StructType both = row[0];
    for (var f : row[1].fields()) both = both.add(f);
    return both;
  }

  @Override public byte[] key(int port, UnsafeRow of) { return key[port].bytes(of); }

  @Override public byte[] owner(int port, byte[] key, byte[] row) { return key; }

  @Override public void compile() { for (Columns columns : key) columns.compile(); }

  @Override public void run(Tick tick, List<List<Change>> input) {
    RowMap<List<List<Change>>> changes = new RowMap<>();
    Work work = new Work(tick);
    for (int side = 0; side < 2; side++)
      for (Change c : input.get(side)) {
        UnsafeRow k = key[side].of(c.row());
        if (matchable(k))
          changes.computeIfAbsent(k, () -> List.of(new ArrayList<>(1), new ArrayList<>(1))).get(side).add(c);
        else if (watched[side] && !partnered) {
          tick.at(c);
          work.alone(side, c.row(), c.weight());
        }
      }
    changes.forEach((k, sides) -> {
      tick.at(order(sides));
      for (int side = 0; side < 2; side++) {
        List<Change> ours = appendOnly[side] ? sides.get(side) : net(sides.get(side));
        if (!ours.isEmpty()) change(work, k, side, ours);
      }
    });
  }

  /** Returns the highest order of changes. */
  private static long order(List<List<Change>> sides) {
    long order = 0;
    for (List<Change> side : sides) for (Change c : side) order = Math.max(order, c.order());
    return order;
  }

  /** Sums the changes of each row. */
  private static List<Change> net(List<Change> changes) {
    if (changes.size() < 2) return changes;
    Map<Bytes, Change> net = new LinkedHashMap<>();
    for (Change c : changes)
      net.merge(new Bytes(c.row().getBytes()), c,
          (a, b) -> new Change(a.row(), Math.addExact(a.weight(), b.weight())));
    net.values().removeIf(c -> c.weight() == 0);
    return List.copyOf(net.values());
  }

  private boolean matchable(UnsafeRow k) {
    if (k.anyNull()) for (int i = 0; i < nullSafe.length; i++) if (!nullSafe[i] && k.isNullAt(i)) return false;
    return true;
  }

  /** Joins the changes of one side under one key with the current rows of the other side. */
  void change(Work work, byte[] k, int side, List<Change> ours) {
    int other = 1 - side;
    boolean turned = false, met = false;
    if (watched[side] && work.count(other, k) > 0 == partnered) for (Change mine : ours) work.alone(side, mine.row(), mine.weight());
    if (watched[other]) {
      long arrived = ours.stream().mapToLong(Change::weight).sum(),
          now = arrived == 0 ? 0 : work.tick.state.weigh(id, COUNT + side, k, State.NONE, arrived);
      met = now > 0;
      turned = arrived != 0 && met != now - arrived > 0;
    }
    if (pairs || turned)
      try (Kept theirs = new Kept(work.tick.state, k, other)) {
        while (theirs.next()) {
          long weight = theirs.weight();
          if (pairs) for (Change mine : ours) work.pair(side, mine.row(), theirs.row, Math.multiplyExact(mine.weight(), weight));
          if (turned) work.alone(other, theirs.row, met == partnered ? weight : -weight);
        }
      }
    if (pairs || watched[side]) work.keep(k, side, ours);
  }

  /** A scan of the rows of a side under a key. */
  final class Kept implements AutoCloseable {
    UnsafeRow row;
    private final int side;
    private final State.Entries entries;  // null for a side with a unique key
    private ByteBuffer chunk = EMPTY;  // the unread rest of an entry that holds several rows
    private long weight;

    Kept(State state, byte[] k, int side) {
      this.side = side;
      this.entries = unique[side] ? null : state.entries(id, side, k);
      byte[] only = unique[side] ? state.get(id, side, k, State.NONE) : null;
      if (only != null) chunk = ByteBuffer.wrap(only);
    }

    boolean next() {
      if (!appendOnly[side] && !unique[side]) {
        if (!entries.next()) return false;
        row = Rows.row(entries.row(), Join.this.row[side].length());
        return true;
      }
      if (!chunk.hasRemaining()) {
        if (unique[side] || !entries.next()) return false;
        chunk = ByteBuffer.wrap(entries.value());
      }
      weight = chunk.getLong();
      byte[] bytes = new byte[chunk.getInt()];
      chunk.get(bytes);
      row = Rows.row(bytes, Join.this.row[side].length());
      return true;
    }

    long weight() { return appendOnly[side] || unique[side] ? weight : State.weight(entries.value()); }

    /** Returns the entry's value, for a side with one entry per row. */
    byte[] value() { return entries.value(); }

    @Override public void close() { if (entries != null) entries.close(); }
  }

  /** Writes state and output for one tick. */
  final class Work {
    final Tick tick;
    private final JoinedRow pair = new JoinedRow();
    private final InternalRow[] none = {new GenericInternalRow(row[0].length()), new GenericInternalRow(row[1].length())};
    private final UUID number = UUID.randomUUID();
    private int numbers;

    Work(Tick tick) { this.tick = tick; }

    /** Returns the pair, valid until the next call. */
    InternalRow paired(int side, InternalRow mine, InternalRow theirs) {
      return side == 0 ? pair.apply(mine, theirs) : pair.apply(theirs, mine);
    }

    void pair(int side, InternalRow mine, InternalRow theirs, long weight) { tick.emit(Join.this, paired(side, mine, theirs), weight); }

    void alone(int side, InternalRow mine, long weight) { tick.emit(Join.this, pairs ? paired(side, mine, none[1 - side]) : mine, weight); }

    /** Returns the number of rows of a side under a key. */
    private long count(int side, byte[] k) {
      byte[] value = tick.state.get(id, COUNT + side, k, State.NONE);
      return value == null ? 0 : State.weight(value);
    }

    void keep(byte[] k, int side, List<Change> ours) {
      if (unique[side]) replace(k, side, ours);
      else if (appendOnly[side]) append(k, side, ours);
      else for (Change mine : ours) tick.state.weigh(id, side, k, mine.row().getBytes(), mine.weight());
    }

    /** Writes the entry of a unique key with its changes. */
    private void replace(byte[] k, int side, List<Change> ours) {
      Map<Bytes, Change> now = new LinkedHashMap<>();
      boolean fresh = true;
      try (Kept kept = new Kept(tick.state, k, side)) {
        for (; kept.next(); fresh = false) now.put(new Bytes(kept.row.getBytes()), new Change(kept.row, kept.weight()));
      }
      for (Change mine : ours)
        now.merge(new Bytes(mine.row().getBytes()), mine,
            (a, b) -> new Change(a.row(), Math.addExact(a.weight(), b.weight())));
      now.values().removeIf(c -> c.weight() == 0);
      if (!now.isEmpty()) tick.state.put(id, side, k, State.NONE, chunk(List.copyOf(now.values())), fresh);
      else if (!fresh) tick.state.remove(id, side, k, State.NONE);
    }

    /** Stores the rows of a tick in one entry, or in several of CHUNK bytes. */
    private void append(byte[] k, int side, List<Change> ours) {
      for (int from = 0, to; from < ours.size(); from = to) {
        int size = 0;
        for (to = from; to < ours.size() && (to == from || size < CHUNK); to++) size += 12 + ours.get(to).row().getSizeInBytes();
        tick.state.put(id, side, k, number(), chunk(ours.subList(from, to)), true);
      }
    }

    private byte[] chunk(List<Change> rows) {
      int size = 0;
      for (Change c : rows) size += 12 + c.row().getSizeInBytes();
      ByteBuffer chunk = ByteBuffer.allocate(size);
      for (Change c : rows) chunk.putLong(c.weight()).putInt(c.row().getSizeInBytes()).put(c.row().getBytes());
      return chunk.array();
    }

    /** Returns a number that is never used again: it contains a random part per tick. */
    private byte[] number() {
      return ByteBuffer.allocate(16).putLong(number.getMostSignificantBits())
          .putInt((int) number.getLeastSignificantBits()).putInt(numbers++).array();
    }
  }
}
