package tailgate.operators;

import java.io.*;
import java.util.*;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.circuit.Operator;
import tailgate.circuit.Tick;
import tailgate.errors.SqlError;
import tailgate.formats.connect.UnavailableValue;
import tailgate.rows.Change;
import tailgate.rows.Columns;
import tailgate.rows.EvolvingRowCodec;
import tailgate.rows.Rows;
import tailgate.rows.Rows.Bytes;
import tailgate.state.State;

/**
 * The rows of a database table with a primary key, computed from its change events
 * ({@link ChangeEvent}), which are delivered at least once.
 *
 * <pre>   c, u, d        set or delete the key's row, unless its position was reached before (a copy or a late event)
 *   r              sets the key's row, unless the log has a newer one
 *   r, of a newer snapshot   also deletes all other rows of the table: rows deleted while no connector ran have no event
 *   t              deletes all rows of the table at earlier positions</pre>
 *
 * <p>Log events from before the last snapshot are ignored. If the connector could not read a value
 * ({@link #UNAVAILABLE}), the value of the previous row is used; without a previous row, the
 * placeholder stays. Between two events of a whole table, a tick emits -old +new once per key.
 *
 * <p>State: port 0, key → origin, time, place and lanes of the newest event, row; port 1, origin →
 * its snapshot, the position of its truncate, the row of its last delete (a change of a key is a
 * delete and an insert at one position). The entry of a deleted key is kept for its position.
 */
final class CdcUpsert extends Operator {
  private static final long serialVersionUID = 1;
  /**
   * Placeholder for a large value that did not change (PostgreSQL's TOAST), as text and as jsonb.
   */
  static final UTF8String UNAVAILABLE = UnavailableValue.TEXT, UNAVAILABLE_JSONB = UnavailableValue.JSONB;
  private static final byte[] UNAVAILABLE_BYTES = UNAVAILABLE.getBytes();
  private static final int ROWS = 0, TABLES = 1;
  private final StructType row;
  private final Columns key, columns;
  private final EvolvingRowCodec codec;
  private final int[] large;
  private transient UnsafeProjection projection;

  CdcUpsert(StructType row, int[] key, int first) {
    this.row = row;
    this.key = Columns.key(row, key);
    this.columns = Columns.first(row, row.length());
    this.codec = new EvolvingRowCodec(row, first, false);
    List<Integer> keys = Arrays.stream(key).boxed().toList();
    this.large = java.util.stream.IntStream.range(0, row.length())
        .filter(i -> !keys.contains(i) && large(row.apply(i).dataType())).toArray();
  }

  private static boolean large(DataType type) {
    return type instanceof StringType || type instanceof BinaryType
        || type instanceof ArrayType a && a.elementType() instanceof StringType;
  }

  @Override public StructType[] ports() { return new StructType[] {new StructType(java.util.stream.Stream.of(row.fields(), ChangeEvent.COLUMNS.fields()).flatMap(Arrays::stream).toArray(StructField[]::new))}; }

  @Override public StructType output() { return row; }

  @Override public byte[] key(int port, UnsafeRow event) { return key.bytes(event); }

  @Override public void compile() {
    key.compile();
    columns.compile();
  }

  @Override public boolean everywhere(int port, UnsafeRow event) { return ChangeEvent.ofTable(event, row.length()); }

  @Override public byte[] owner(int port, byte[] key, byte[] row) { return port == TABLES ? null : key; }

  /** Throws 55000 if the partitions have not read the same snapshots and truncates. */
  @Override public byte[] merged(int port, byte[] one, byte[] other) {
    Table a = Table.parse(one, codec), b = Table.parse(other, codec);
    if (!Arrays.equals(a.place, b.place) || a.time != b.time || !a.truncated.same(b.truncated))
      throw new SqlError("55000", "a snapshot of the source with operator " + id + " is being read");
    return a.deletedAt == null ? other : one;
  }

  @Override public void run(Tick tick, List<List<Change>> input) {
    Work work = new Work(tick);
    for (Change c : input.get(0)) if (c.weight() > 0) work.apply(c.row());
    work.finish();
  }

  /** Applies the events of one tick. */
  private final class Work {
    private final Tick tick;
    private final Map<Bytes, Slot> slots = new LinkedHashMap<>();
    private final Map<String, Table> tables = new LinkedHashMap<>();

    Work(Tick tick) { this.tick = tick; }

    void apply(UnsafeRow event) {
      ChangeEvent e = ChangeEvent.of(event, row.length());
      Table table = tables.computeIfAbsent(e.origin(), o -> Table.parse(tick.state.get(id, TABLES, utf8(o), State.NONE), codec));
      if (e.snapshot()) {
        if (!table.current(e)) {
          if (!table.newer(e)) return;
          table.begin(e);
          clear(e.origin(), kept -> ChangeEvent.compare(kept.place, e.place()) >= 0 && kept.time >= e.time(), false);
        }
        if (!table.truncated.isEmpty()) return;
      } else if (table.passed(e) || table.truncated.reached(e)) return;
      if (e.op() == 't') {
        table.truncated = table.truncated.with(e);
        table.changed = true;
        clear(e.origin(), kept -> kept.lanes.of().containsKey(e.lane())
            && ChangeEvent.compare(kept.lanes.of().get(e.lane()), e.position()) > 0, true);
        return;
      }
      byte[] k = key.bytes(event);
      // an event about the whole table comes to every partition, but its row belongs to one
      if (!tick.here(id, k)) return;
      Slot slot = slots.computeIfAbsent(new Bytes(k), b -> new Slot(Kept.parse(tick.state.get(id, ROWS, b.bytes, State.NONE), codec)));
      Kept now = slot.now;
      if (now != null && (e.snapshot() ? !now.lanes.isEmpty() : now.lanes.reached(e))) return;
      LanePositions lanes = (now == null ? LanePositions.NONE : now.lanes).with(e);
      byte[] before = now == null ? null : now.row;
      if (e.op() == 'd' && before != null && e.position() != null && large.length > 0) table.deleted(e, before);
      if (before == null && table.deletedAt != null && ChangeEvent.compare(table.deletedAt, e.position()) == 0) before = table.deletedRow;
      slot.now = new Kept(e.origin(), e.time(), e.place(), lanes, e.op() == 'd' ? null : complete(event, before));
    }

    /**
     * Deletes the rows of a table except those that `spared` accepts. Keeps or removes the
     * positions of their keys. A table may be larger than memory: pending changes are written
     * first, then each row is deleted as it is read. The scan does not see rows that are written
     * meanwhile.
     */
    private void clear(String origin, Predicate<Kept> spared, boolean keepPositions) {
      write();
      try (State.Entries entries = tick.state.entries(id, ROWS)) {
        while (entries.next()) {
          Kept kept = Kept.parse(entries.value(), codec);
          if (!kept.of(origin) || kept.row == null && keepPositions || spared.test(kept)) continue;
          write(State.key(entries.row()), kept, keepPositions ? new Kept(origin, kept.time, kept.place, kept.lanes, null) : null);
        }
      }
    }

    /** Writes the pending changes. */
    private void write() {
      slots.forEach((k, slot) -> write(k.bytes, slot.old, slot.now));
      slots.clear();
    }

    private void write(byte[] key, Kept old, Kept now) {
      if (now == old) return;
      if (now == null) tick.state.remove(id, ROWS, key, State.NONE);
      else tick.state.put(id, ROWS, key, State.NONE, now.bytes(codec), old == null);
      byte[] before = old == null ? null : old.row, after = now == null ? null : now.row;
      if (Arrays.equals(before, after)) return;
      if (before != null) tick.emit(CdcUpsert.this, Rows.row(before, row.length()), -1);
      if (after != null) tick.emit(CdcUpsert.this, Rows.row(after, row.length()), 1);
    }

    void finish() {
      write();
      tables.forEach((origin, table) -> {
        if (table.changed) tick.state.put(id, TABLES, utf8(origin), State.NONE, table.bytes(codec), false);
      });
    }
  }

  // ---- unavailable values -----------------------------------------------------------------------

  private byte[] complete(UnsafeRow event, byte[] before) {
    boolean[] missing = null;
    if (before != null)
      for (int i : large)
        if (unavailable(event, i)) {
          if (missing == null) missing = new boolean[row.length()];
          missing[i] = true;
        }
    if (missing == null) return columns.bytes(event);
    UnsafeRow old = Rows.row(before, row.length());
    Object[] values = new Object[row.length()];
    for (int i = 0; i < values.length; i++) {
      InternalRow from = missing[i] ? old : event;
      values[i] = from.isNullAt(i) ? null : from.get(i, row.apply(i).dataType());
    }
    if (projection == null) projection = UnsafeProjection.create(row);
    return Rows.bytes(projection.apply(new GenericInternalRow(values)));
  }

  private boolean unavailable(UnsafeRow event, int i) {
    if (event.isNullAt(i)) return false;
    DataType type = row.apply(i).dataType();
    if (type instanceof BinaryType) return Arrays.equals(event.getBinary(i), UNAVAILABLE_BYTES);
    if (type instanceof StringType) return event.getUTF8String(i).equals(UNAVAILABLE) || event.getUTF8String(i).equals(UNAVAILABLE_JSONB);
    var array = event.getArray(i);
    return array.numElements() == 1 && !array.isNullAt(0) && array.getUTF8String(0).equals(UNAVAILABLE);
  }

  // ---- entries of the state ---------------------------------------------------------------------

  private static final class Slot {
    final Kept old;
    Kept now;

    Slot(Kept kept) { old = now = kept; }
  }

  /** The entry of a key: its newest event, and its row or null. */
  private record Kept(String origin, long time, byte[] place, LanePositions lanes, byte[] row) {
    /**
     * Returns whether the row may belong to this table. Rows of restored state have no origin and
     * may belong to any table.
     */
    boolean of(String table) { return origin.equals(table) || origin.isEmpty(); }

    byte[] bytes(EvolvingRowCodec codec) {
      return written(out -> {
        out.writeUTF(origin);
        out.writeLong(time);
        some(out, place);
        lanes.write(out);
        if (row != null) out.write(codec.encode(row));
      });
    }

    static Kept parse(byte[] bytes, EvolvingRowCodec codec) {
      if (bytes == null) return null;
      return read(bytes, in -> {
        String origin = in.readUTF();
        long time = in.readLong();
        byte[] place = some(in);
        LanePositions lanes = LanePositions.read(in);
        byte[] row = in.readAllBytes();
        return new Kept(origin, time, place, lanes, row.length == 0 ? null : codec.decode(row));
      });
    }
  }

  /**
   * The entry of a table: the position of its newest snapshot and of a truncate since then, and the
   * row that its last delete removed.
   */
  private static final class Table {
    byte[] place, deletedAt, deletedRow;
    long time;
    LanePositions truncated = LanePositions.NONE;
    boolean changed;

    boolean current(ChangeEvent e) { return place != null && ChangeEvent.compare(place, e.place()) == 0; }

    boolean newer(ChangeEvent e) {
      return place == null || e.time() > time
          || e.time() == time && ChangeEvent.compare(e.place(), place) > 0;
    }

    /**
     * Returns whether the snapshot already contains this log event. Positions of servers that
     * replace each other cannot be compared; with GTIDs the lanes are used instead.
     */
    boolean passed(ChangeEvent e) {
      return place != null && e.lane().isEmpty() && e.place() != null && e.time() <= time
          && ChangeEvent.compare(e.place(), place) < 0;
    }

    void begin(ChangeEvent e) {
      place = e.place() == null ? State.NONE : e.place();
      time = e.time();
      truncated = LanePositions.NONE;
      changed = true;
    }

    void deleted(ChangeEvent e, byte[] row) {
      deletedAt = e.position();
      deletedRow = row;
      changed = true;
    }

    byte[] bytes(EvolvingRowCodec codec) {
      return written(out -> {
        some(out, place);
        out.writeLong(time);
        truncated.write(out);
        some(out, deletedAt);
        if (deletedRow != null && deletedRow.length > 0) out.write(codec.encode(deletedRow));
      });
    }

    static Table parse(byte[] bytes, EvolvingRowCodec codec) {
      Table table = new Table();
      if (bytes == null) return table;
      return read(bytes, in -> {
        table.place = some(in);
        table.time = in.readLong();
        table.truncated = LanePositions.read(in);
        table.deletedAt = some(in);
        byte[] row = in.readAllBytes();
        table.deletedRow = row.length == 0 ? row : codec.decode(row);
        return table;
      });
    }
  }

  // ---- encoding ---------------------------------------------------------------------------------

  interface Writing { void to(DataOutputStream out) throws IOException; }

  interface Reading<T> { T from(DataInputStream in) throws IOException; }

  static byte[] written(Writing writing) {
    try (var bytes = new ByteArrayOutputStream(); var out = new DataOutputStream(bytes)) {
      writing.to(out);
      return bytes.toByteArray();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static <T> T read(byte[] bytes, Reading<T> reading) {
    try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      return reading.from(in);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static void some(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeShort(bytes == null ? -1 : bytes.length);
    if (bytes != null) out.write(bytes);
  }

  static byte[] some(DataInputStream in) throws IOException {
    int length = in.readShort();
    return length < 0 ? null : in.readNBytes(length);
  }

  static byte[] utf8(String text) { return text.getBytes(java.nio.charset.StandardCharsets.UTF_8); }
}
