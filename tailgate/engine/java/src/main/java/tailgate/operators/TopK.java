package tailgate.operators;

import java.util.*;
import org.apache.spark.sql.types.StructType;
import tailgate.rows.SortKey;
import tailgate.circuit.Tick;
import tailgate.rows.Rows.Bytes;
import tailgate.rows.SortKeyCodec;
import tailgate.state.State;

/**
 * Δτ(A) = τ(A_new) - τ(A_old), of the partitions that ΔA touches
 *
 * <p>Emits the rows of each partition from `offset` on, at most `count` of them, in order; with
 * `ties` also the peers of the last one. A negative count means no limit.
 *
 * <p>State: the partition's rows in order ({@link Partitioned}). Cost: the rows up to the last one
 * shown, before and after, and the changes; changes after the last one shown cost only themselves.
 * For append-only input with a count, rows after the last one shown are never shown later and are
 * not stored.
 */
final class TopK extends Partitioned {
  private static final long serialVersionUID = 1;
  private final long count, offset;
  private final boolean ties, appendOnly;

  TopK(StructType row, int width, int[] partition, SortKey[] keys, long count, long offset, boolean ties, boolean appendOnly) {
    super(row, width, partition, keys);
    this.count = count;
    this.offset = offset;
    this.ties = ties;
    this.appendOnly = appendOnly;
  }

  @Override public StructType output() { return first(width); }

  @Override public void run(Tick tick, byte[] partition, Map<Bytes, Long> changes) {
    boolean all = count < 0;  // the result is computed as all rows except the first ones
    long from = all ? 0 : offset, until = all ? offset : offset + Math.min(count, Long.MAX_VALUE - offset);
    Shown old = shown(tick.state, partition, from, until);
    Map<Bytes, Long> net = new LinkedHashMap<>();
    boolean touched = false;
    for (var c : changes.entrySet()) {
      if (appendOnly && !all && old.endsBefore(c.getKey().bytes)) continue;
      long now = tick.state.weigh(id, ROWS, partition, c.getKey().bytes, c.getValue()), before = now - c.getValue();
      if (all) net.merge(c.getKey(), Math.max(now, 0) - Math.max(before, 0), Long::sum);
      touched = touched || !old.endsBefore(c.getKey().bytes);
    }
    if (touched) {
      int sign = all ? -1 : 1;
      old.rows.forEach((place, n) -> net.merge(place, -sign * n, Long::sum));
      Shown next = shown(tick.state, partition, from, until);
      next.rows.forEach((place, n) -> net.merge(place, sign * n, Long::sum));
      if (appendOnly && !all) forget(tick.state, partition, old, next, changes.keySet());
    }
    net.forEach((place, n) -> {
      if (n != 0) tick.emit(this, row(place.bytes), n);
    });
  }

  /** Removes rows after the last one shown now: rows that were shown before, and new ones. */
  private void forget(State state, byte[] partition, Shown old, Shown next, Set<Bytes> came) {
    Set<Bytes> behind = new HashSet<>(old.rows.keySet());
    for (Bytes place : came) if (!old.endsBefore(place.bytes)) behind.add(place);
    behind.removeIf(place -> !next.endsBefore(place.bytes));
    for (Bytes place : behind) state.remove(id, ROWS, partition, place.bytes);
  }

  /** Returns the rows of a partition in [from, until) and, with ties, the peers of the last one. */
  private Shown shown(State state, byte[] partition, long from, long until) {
    Shown shown = new Shown();
    if (until <= from) {
      shown.full = true;
      return shown;
    }
    try (State.Entries entries = state.entries(id, ROWS, partition)) {
      long passed = 0;
      while (entries.next()) {
        long weight = State.weight(entries.value());
        if (weight <= 0) continue;
        byte[] place = entries.row();
        if (passed >= until) {
          if (!ties || !SortKeyCodec.begins(place, shown.last)) {
            shown.full = true;
            break;
          }
        } else shown.last = ties ? Arrays.copyOf(place, sorted(place)) : place;
        long n = ties ? Math.min(weight, passed + weight - from) : Math.min(until, passed + weight) - Math.max(from, passed);
        if (n > 0) shown.rows.put(new Bytes(place), n);
        passed += weight;
        if (passed >= until && !ties) {
          shown.full = true;
          break;
        }
      }
    }
    return shown;
  }

  private static final class Shown {
    final Map<Bytes, Long> rows = new LinkedHashMap<>();
    /**
     * The place of the last row, or with ties, the prefix that its peers share; null if there is
     * none.
     */
    byte[] last;
    /** Whether no row after the last one can be shown. */
    boolean full;

    boolean endsBefore(byte[] place) {
      return full && (last == null
          || Arrays.compareUnsigned(place, last) > 0 && !SortKeyCodec.begins(place, last));
    }
  }
}
