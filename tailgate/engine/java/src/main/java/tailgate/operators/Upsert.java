package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.circuit.Operator;
import tailgate.circuit.Tick;
import tailgate.rows.Change;
import tailgate.rows.Columns;
import tailgate.rows.EvolvingRowCodec;
import tailgate.rows.RowMap;
import tailgate.rows.Rows;
import tailgate.state.State;

/**
 * Output = for each key, the row of its event with the highest position, unless that event is a
 * deletion.
 *
 * <p>Input: the row, `__deleted` boolean, `__position` string. Positions compare as bytes. A
 * position with a slash is compared only within its lane, the part before the slash. Delivery is at
 * least once and may repeat old events, so events at or below the position applied to their key are
 * ignored. A deleted key keeps its position. An event without a position always applies, in order
 * of arrival, and does not change the position. A tick emits -old +new once per key, whatever
 * happens in between, or for a sequential operator once per event.
 *
 * <p>State: key → position, row.
 */
public final class Upsert extends Operator {
  private static final long serialVersionUID = 1;
  private final StructType row;
  private final Columns key, columns;
  private final EvolvingRowCodec codec;

  Upsert(StructType row, int[] key, int first) {
    this.row = row;
    this.key = Columns.key(row, key);
    this.columns = Columns.first(row, row.length());
    this.codec = new EvolvingRowCodec(row, first, false);
  }

  @Override public StructType[] ports() { return new StructType[] {row.add("__deleted", "boolean").add("__position", "string")}; }

  @Override public StructType output() { return row; }

  @Override public byte[] key(int port, UnsafeRow event) { return key.bytes(event); }

  @Override public byte[] owner(int port, byte[] key, byte[] row) { return key; }

  @Override public void compile() {
    key.compile();
    columns.compile();
  }

  @Override public UnsafeRow deletion(Object... key) {
    StructType port = ports()[0];
    Object[] values = Arrays.copyOf(key, port.length());
    values[row.length()] = true;
    return UnsafeProjection.create(port).apply(new GenericInternalRow(values));
  }

  @Override public void run(Tick tick, List<List<Change>> input) {
    RowMap<List<Change>> events = new RowMap<>();
    for (Change c : input.get(0))
      if (c.weight() > 0)
        events.computeIfAbsent(key.of(c.row()), () -> new ArrayList<>(1)).add(c);
    events.forEach((k, of) -> {
      byte[] stored = tick.state.get(id, 0, k, State.NONE);
      Kept old = stored == null ? new Kept(null, null) : parse(stored), now = old;
      for (Change event : of) {
        Kept before = now;
        now = applied(now, event.row());
        if (stepwise) emit(tick, event, before, now);
      }
      if (now == old) return;
      if (now.position != null || now.row != null) tick.state.put(id, 0, k, State.NONE, bytes(now), stored == null);
      else if (stored != null) tick.state.remove(id, 0, k, State.NONE);
      if (!stepwise) emit(tick, of.get(of.size() - 1), old, now);
    });
  }

  private void emit(Tick tick, Change event, Kept old, Kept now) {
    if (Arrays.equals(old.row, now.row)) return;
    tick.at(event);
    if (old.row != null) tick.emit(this, Rows.row(old.row, row.length()), -1);
    if (now.row != null) tick.emit(this, Rows.row(now.row, row.length()), 1);
  }

  private Kept applied(Kept kept, UnsafeRow event) {
    UTF8String at = event.getUTF8String(row.length() + 1);
    byte[] position = at == null ? null : at.getBytes();
    if (position != null && kept.position != null && old(position, kept.position)) return kept;
    boolean deleted = !event.isNullAt(row.length()) && event.getBoolean(row.length());
    return new Kept(position == null ? kept.position : position, deleted ? null : columns.bytes(event));
  }

  /**
   * Returns whether a position is at or before another one of the same lane, which is the part
   * before the first slash.
   */
  private static boolean old(byte[] position, byte[] than) {
    int slash = 0;
    while (slash < position.length && position[slash] != '/') slash++;
    if (slash < position.length && (than.length <= slash || !Arrays.equals(position, 0, slash + 1, than, 0, slash + 1))) return false;
    return Arrays.compareUnsigned(position, than) <= 0;
  }

  /** The position applied to a key and its full row; either may be null. */
  private record Kept(byte[] position, byte[] row) {}

  private byte[] bytes(Kept kept) {
    byte[] row = kept.row == null ? State.NONE : codec.encode(kept.row);
    int length = kept.position == null ? 0 : kept.position.length;
    ByteBuffer out = ByteBuffer.allocate(4 + length + row.length).putInt(kept.position == null ? -1 : length);
    if (kept.position != null) out.put(kept.position);
    return out.put(row).array();
  }

  private Kept parse(byte[] bytes) {
    int length = ByteBuffer.wrap(bytes).getInt(), begin = 4 + Math.max(length, 0);
    return new Kept(length < 0 ? null : Arrays.copyOfRange(bytes, 4, begin),
        begin == bytes.length ? null : codec.decode(Arrays.copyOfRange(bytes, begin, bytes.length)));
  }
}
