package tailgate.operators;

import java.util.*;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import tailgate.circuit.Operator;
import tailgate.circuit.Tick;
import tailgate.rows.Change;
import tailgate.rows.Columns;
import tailgate.rows.RowMap;
import tailgate.rows.Rows;
import tailgate.state.LongPair;
import tailgate.state.State;

/**
 * Δ(L op R) = f(l_new, r_new) - f(l_old, r_old), over the rows that ΔL and ΔR touch; l and r are a
 * row's number of copies on each side
 *
 * <pre>   INTERSECT ALL  min(l, r)        EXCEPT ALL  max(l - r, 0)
 *   INTERSECT      [l > 0 ∧ r > 0]  EXCEPT      [l > 0 ∧ r = 0]</pre>
 *
 * <p>A negative number, possible while a view is being filled, counts as zero. NULLs are equal, and
 * so are -0.0 and 0.0: rows are emitted in normalized form, as those of a group are.
 *
 * <p>State: row → l, r. Cost: one get and one put for each changed row.
 */
final class SetOperation extends Operator {
  private static final long serialVersionUID = 1;
  private final Columns row;
  private final boolean except, all;

  SetOperation(StructType row, boolean except, boolean all) {
    this.row = Columns.key(row, java.util.stream.IntStream.range(0, row.length()).toArray());
    this.except = except;
    this.all = all;
  }

  @Override public StructType[] ports() { return new StructType[] {row.schema, row.schema}; }

  @Override public StructType output() { return row.schema; }

  @Override public byte[] key(int port, UnsafeRow of) { return row.bytes(of); }

  @Override public byte[] owner(int port, byte[] key, byte[] row) { return key; }

  @Override public void compile() { row.compile(); }

  @Override public void run(Tick tick, List<List<Change>> input) {
    RowMap<long[]> changes = new RowMap<>();
    for (int side = 0; side < 2; side++)
      for (Change c : input.get(side))
        changes.computeIfAbsent(row.of(c.row()), () -> new long[2])[side] += c.weight();
    changes.forEach((k, change) -> {
      if (change[0] == 0 && change[1] == 0) return;
      byte[] stored = tick.state.get(id, 0, k, State.NONE);
      LongPair old = stored == null ? new LongPair(0, 0) : LongPair.of(stored),
          now = new LongPair(old.first() + change[0], old.second() + change[1]);
      if (now.first() == 0 && now.second() == 0) tick.state.remove(id, 0, k, State.NONE);
      else tick.state.put(id, 0, k, State.NONE, now.bytes(), stored == null);
      tick.emit(this, Rows.row(k, row.schema.length()), often(now) - often(old));
    });
  }

  private long often(LongPair sides) {
    long l = Math.max(sides.first(), 0), r = Math.max(sides.second(), 0);
    if (all) return except ? Math.max(l - r, 0) : Math.min(l, r);
    return l > 0 && r > 0 != except ? 1 : 0;
  }
}
