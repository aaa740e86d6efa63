package tailgate.operators;

import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import tailgate.circuit.Circuit;
import tailgate.rows.Change;
import tailgate.rows.Steps;
import tailgate.state.LongPair;

/**
 * A join with a condition in addition to equal keys.
 *
 * <p>Rows of one key then have different numbers of partners, so a watched side keeps this number
 * for each row: m(l) = Σ R(r) over the pairs that pass. The law of {@link Join} holds with each row
 * and its m in place of a key's rows and n. For a new row its partners are counted; later each
 * added or removed partner changes the number.
 *
 * <p>State: (side, key, row) → weight and, on a watched side, the number of partners. Cost: one
 * evaluation for each pair of a changed row and a row of the other side with its key. If the
 * condition fails for a pair, the pair does not match, and an error with its weight is emitted.
 */
final class ConditionalJoin extends Join {
  private static final long serialVersionUID = 1;
  private final Steps condition;

  ConditionalJoin(String kind, StructType left, int[] leftKey, StructType right, int[] rightKey,
      boolean[] nullSafe, boolean[] appendOnly, Steps condition) {
    super(kind, left, leftKey, right, rightKey, nullSafe,
        new boolean[] {appendOnly[0] && kind.matches("inner|right"),
        appendOnly[1] && !kind.matches("right|full")}, new boolean[2]);
    Circuit.same("condition", both(), condition.input);
    this.condition = condition;
  }

  @Override public void compile() {
    super.compile();
    condition.compile();
  }

  @Override void change(Work work, byte[] k, int side, List<Change> ours) {
    int other = 1 - side;
    List<ChangedRow> rows = new ArrayList<>();
    for (Change c : ours) rows.add(new ChangedRow(c, watched[side] ? work.tick.state.get(id, side, k, c.row().getBytes()) : null));
    try (Kept entries = new Kept(work.tick.state, k, other)) {
      while (entries.next()) {
        UnsafeRow theirs = entries.row;
        LongPair kept = watched[other] ? LongPair.of(entries.value()) : new LongPair(entries.weight(), 0);
        long theirWeight = kept.first(), partners = kept.second();
        long gained = 0;
        for (ChangedRow mine : rows) {
          long weight = Math.multiplyExact(mine.weight, theirWeight);
          if (!holds(work, work.paired(side, mine.row, theirs), weight)) continue;
          if (pairs) work.pair(side, mine.row, theirs, weight);
          if (mine.isNew) mine.partners += theirWeight;
          gained += mine.weight;
        }
        if (!watched[other] || gained == 0) continue;
        boolean met = partners + gained > 0;
        if (met != partners > 0) work.alone(other, theirs, met == partnered ? theirWeight : -theirWeight);
        work.tick.state.put(id, other, k, theirs.getBytes(), new LongPair(theirWeight, partners + gained).bytes(), false);
      }
    }
    if (!watched[side]) {
      if (pairs || watched[other]) work.keep(k, side, ours);
      return;
    }
    for (ChangedRow mine : rows) {
      if (mine.partners > 0 == partnered) work.alone(side, mine.row, mine.weight);
      long now = mine.before + mine.weight;
      if (now == 0) work.tick.state.remove(id, side, k, mine.bytes);
      else work.tick.state.put(id, side, k, mine.bytes, new LongPair(now, mine.partners).bytes(), mine.isNew);
    }
  }

  /**
   * Evaluates the condition for every added or removed pair, even if only errors can result, so
   * that the error is removed with its pair.
   */
  private boolean holds(Work work, InternalRow pair, long weight) {
    try {
      return condition.apply(pair) != null;
    } catch (Exception e) {  // Spark throws checked exceptions, too
      work.tick.fail(this, condition.error(e), weight);
      return false;
    }
  }

  /** A changed row, with the change of its weight. */
  private final class ChangedRow {
    final byte[] bytes;
    final UnsafeRow row;
    final long weight, before;
    final boolean isNew;
    long partners;

    ChangedRow(Change change, byte[] stored) {
      this.row = change.row();
      this.bytes = row.getBytes();
      this.weight = change.weight();
      this.isNew = stored == null;
      LongPair kept = isNew ? new LongPair(0, 0) : LongPair.of(stored);
      this.before = kept.first();
      this.partners = kept.second();
    }
  }
}
