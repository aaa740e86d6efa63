package tailgate;

import java.nio.ByteBuffer;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import tailgate.Rows.Bytes;
import tailgate.Tick.Change;

/**
 * Δ(L ⋈ R) = ΔL ⋈ R_old + L_new ⋈ ΔR
 *
 * <p>Inner equi-join; output is the left row, then the right row. It is bilinear: using the new left side once and the old right side once avoids the term ΔL ⋈ ΔR. NULL keys
 * never match and are not kept. With no key columns it is the cross join.
 *
 * <p>State: (side, key, row) → weight. Cost: the matches of the changed keys. A side that is append-only is written without being read: its rows get a number of their own
 * and lie beside equal ones, which changes no sum.
 */
final class Join extends Operator {
  private static final long serialVersionUID = 1;
  private static final int NUMBER = 16;  // bytes behind a row of an append-only side
  private final StructType[] row;
  private final Columns[] key;
  private final boolean[] appendOnly;

  Join(StructType left, int[] leftKey, StructType right, int[] rightKey, boolean leftAppendOnly, boolean rightAppendOnly) {
    if (leftKey.length != rightKey.length) throw new IllegalArgumentException(leftKey.length + " key columns left, " + rightKey.length + " right");
    row = new StructType[] {left, right};
    key = new Columns[] {Columns.key(left, leftKey), Columns.key(right, rightKey)};
    appendOnly = new boolean[] {leftAppendOnly, rightAppendOnly};
    for (int i = 0; i < leftKey.length; i++)
      if (!key[0].schema.apply(i).dataType().equals(key[1].schema.apply(i).dataType()))
        throw new IllegalArgumentException("keys of different types: " + key[0].schema.catalogString() + ", " + key[1].schema.catalogString());
  }

  @Override StructType[] ports() { return row; }

  @Override StructType output() {
    StructType both = row[0];
    for (var f : row[1].fields()) both = both.add(f);
    return both;
  }

  @Override byte[] key(int port, UnsafeRow of) { return key[port].bytes(of); }

  @Override void run(Tick tick, List<List<Change>> input) {
    Map<Bytes, List<Map<Bytes, Long>>> changes = new LinkedHashMap<>();
    for (int side = 0; side < 2; side++)
      for (Change c : input.get(side)) {
        UnsafeRow k = key[side].of(c.row());
        if (!k.anyNull())
          changes.computeIfAbsent(new Bytes(Rows.bytes(k)), x -> List.of(new LinkedHashMap<>(), new LinkedHashMap<>()))
              .get(side).merge(new Bytes(Rows.bytes(c.row())), c.weight(), Long::sum);
      }
    Numbers numbers = new Numbers();
    JoinedRow pair = new JoinedRow();
    changes.forEach((k, sides) -> {
      for (int side = 0; side < 2; side++) {
        Map<Bytes, Long> ours = sides.get(side);
        ours.values().removeIf(w -> w == 0);
        if (ours.isEmpty()) continue;
        match(tick, k.bytes, side, ours, pair);
        for (var mine : ours.entrySet()) {
          if (appendOnly[side]) tick.state.put(id, side, k.bytes, numbers.behind(mine.getKey().bytes), State.weight(mine.getValue()));
          else tick.state.weigh(id, side, k.bytes, mine.getKey().bytes, mine.getValue());
        }
      }
    });
  }

  private void match(Tick tick, byte[] k, int side, Map<Bytes, Long> ours, JoinedRow pair) {
    int other = 1 - side;
    try (State.Entries entries = tick.state.entries(id, other, k)) {
      while (entries.next()) {
        byte[] bytes = entries.row();
        InternalRow theirs = Rows.row(appendOnly[other] ? Arrays.copyOf(bytes, bytes.length - NUMBER) : bytes, row[other].length());
        long weight = State.weight(entries.value());
        for (var mine : ours.entrySet()) {
          InternalRow one = Rows.row(mine.getKey().bytes, row[side].length());
          tick.emit(this, side == 0 ? pair.apply(one, theirs) : pair.apply(theirs, one), Math.multiplyExact(mine.getValue(), weight));
        }
      }
    }
  }

  /** A number for every row kept, never used again: it holds a random part per tick. */
  private static final class Numbers {
    private final UUID tick = UUID.randomUUID();
    private int next;

    byte[] behind(byte[] row) {
      return ByteBuffer.allocate(row.length + NUMBER).put(row).putLong(tick.getMostSignificantBits()).putInt((int) tick.getLeastSignificantBits()).putInt(next++).array();
    }
  }
}
