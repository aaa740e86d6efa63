package tailgate;

import java.io.*;
import java.util.*;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.Rows.Bytes;
import tailgate.Tick.Change;
import tailgate.formats.connect.UnavailableValue;

/**
 * Out = the rows of a database's table with a key, made of its change events ({@link ChangeEvent}), which come at least once.
 *
 * <pre>   c, u, d        the key's row, unless its position was reached already: a copy, or an old event that comes late
 *   r              the key's row, unless the log has told a newer one
 *   r, of a snapshot that is newer than the last   all other rows of the table go: what was deleted while no connector ran has no event
 *   t              all rows of the table go that stand before it</pre>
 *
 * <p>Events of the log from before the last snapshot are passed over. A value that the connector could not have ({@link #UNAVAILABLE}) is that of the
 * row before; if there is none, the words stay. Between two events of a whole table, a tick emits -old +new once per key.
 *
 * <p>State: port 0, key → origin, time, place and lanes of the newest event, row; port 1, origin → its snapshot, the position of its truncate, the row
 * of its last delete (a change of a key is a delete and an insert at one position). A deleted key is kept, for its position.
 */
final class Captured extends Operator {
  private static final long serialVersionUID = 1;
  /** What stands in place of a large value which did not change (PostgreSQL's TOAST), as text, as a jsonb and as bytes. */
  static final UTF8String UNAVAILABLE = UnavailableValue.TEXT, UNAVAILABLE_JSONB = UnavailableValue.JSONB;
  private static final byte[] UNAVAILABLE_BYTES = UNAVAILABLE.getBytes();
  private static final int ROWS = 0, TABLES = 1;
  private final StructType row;
  private final Columns key, columns;
  private final Growing growing;
  private final int[] large;
  private transient UnsafeProjection projection;

  Captured(StructType row, int[] key, int first) {
    this.row = row;
    this.key = Columns.key(row, key);
    this.columns = Columns.first(row, row.length());
    this.growing = new Growing(row, first, false);
    List<Integer> keys = Arrays.stream(key).boxed().toList();
    this.large = java.util.stream.IntStream.range(0, row.length()).filter(i -> !keys.contains(i) && large(row.apply(i).dataType())).toArray();
  }

  private static boolean large(DataType type) { return type instanceof StringType || type instanceof BinaryType || type instanceof ArrayType a && a.elementType() instanceof StringType; }

  @Override StructType[] ports() { return new StructType[] {new StructType(java.util.stream.Stream.of(row.fields(), ChangeEvent.COLUMNS.fields()).flatMap(Arrays::stream).toArray(StructField[]::new))}; }

  @Override StructType output() { return row; }

  @Override byte[] key(int port, UnsafeRow event) { return key.bytes(event); }

  @Override boolean everywhere(int port, UnsafeRow event) { return ChangeEvent.ofTable(event, row.length()); }

  @Override void run(Tick tick, List<List<Change>> input) {
    Work work = new Work(tick);
    for (Change c : input.get(0)) if (c.weight() > 0) work.apply(c.row());
    work.finish();
  }

  /** One tick's events. */
  private final class Work {
    private final Tick tick;
    private final Map<Bytes, Slot> slots = new LinkedHashMap<>();
    private final Map<String, Table> tables = new LinkedHashMap<>();

    Work(Tick tick) { this.tick = tick; }

    void apply(UnsafeRow event) {
      ChangeEvent e = ChangeEvent.of(event, row.length());
      Table table = tables.computeIfAbsent(e.origin(), o -> Table.parse(tick.state.get(id, TABLES, utf8(o), State.NONE), growing));
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
        clear(e.origin(), kept -> kept.lanes.of().containsKey(e.lane()) && ChangeEvent.compare(kept.lanes.of().get(e.lane()), e.position()) > 0, true);
        return;
      }
      byte[] k = key.bytes(event);
      if (!tick.here(id, k)) return;  // the event came because it speaks of the table, the row is another partition's
      Slot slot = slots.computeIfAbsent(new Bytes(k), b -> new Slot(Kept.parse(tick.state.get(id, ROWS, b.bytes, State.NONE), growing)));
      Kept now = slot.now;
      if (now != null && (e.snapshot() ? !now.lanes.isEmpty() : now.lanes.reached(e))) return;
      Lanes lanes = (now == null ? Lanes.NONE : now.lanes).with(e);
      byte[] before = now == null ? null : now.row;
      if (e.op() == 'd' && before != null && e.position() != null && large.length > 0) table.deleted(e, before);
      if (before == null && table.deletedAt != null && ChangeEvent.compare(table.deletedAt, e.position()) == 0) before = table.deletedRow;
      slot.now = new Kept(e.origin(), e.time(), e.place(), lanes, e.op() == 'd' ? null : complete(event, before));
    }

    /**
     * Takes away the rows of a table but those to be `spared`; their keys' positions are kept or forgotten. A table may have more rows than memory holds: what the tick has
     * changed so far is written first, then each row goes as it is read. The walk does not see what is written meanwhile.
     */
    private void clear(String origin, Predicate<Kept> spared, boolean keepPositions) {
      write();
      try (State.Entries entries = tick.state.entries(id, ROWS)) {
        while (entries.next()) {
          Kept kept = Kept.parse(entries.value(), growing);
          if (!kept.of(origin) || kept.row == null && keepPositions || spared.test(kept)) continue;
          write(State.key(entries.row()), kept, keepPositions ? new Kept(origin, kept.time, kept.place, kept.lanes, null) : null);
        }
      }
    }

    /** Writes what the events have changed so far. */
    private void write() {
      slots.forEach((k, slot) -> write(k.bytes, slot.old, slot.now));
      slots.clear();
    }

    private void write(byte[] key, Kept old, Kept now) {
      if (now == old) return;
      if (now == null) tick.state.remove(id, ROWS, key, State.NONE);
      else tick.state.put(id, ROWS, key, State.NONE, now.bytes(growing), old == null);
      byte[] before = old == null ? null : old.row, after = now == null ? null : now.row;
      if (Arrays.equals(before, after)) return;
      if (before != null) tick.emit(Captured.this, Rows.row(before, row.length()), -1);
      if (after != null) tick.emit(Captured.this, Rows.row(after, row.length()), 1);
    }

    void finish() {
      write();
      tables.forEach((origin, table) -> {
        if (table.changed) tick.state.put(id, TABLES, utf8(origin), State.NONE, table.bytes(growing), false);
      });
    }
  }

  // ---- values that were not sent ----------------------------------------------------------------------------------------------

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

  // ---- what is kept -----------------------------------------------------------------------------------------------------------

  private static final class Slot {
    final Kept old;
    Kept now;

    Slot(Kept kept) { old = now = kept; }
  }

  /** Of a key: its newest event, and its row or null. */
  private record Kept(String origin, long time, byte[] place, Lanes lanes, byte[] row) {
    /** Rows of state that was made again have no origin: they may be any table's. */
    boolean of(String table) { return origin.equals(table) || origin.isEmpty(); }

    byte[] bytes(Growing growing) {
      return written(out -> {
        out.writeUTF(origin);
        out.writeLong(time);
        some(out, place);
        lanes.write(out);
        if (row != null) out.write(growing.kept(row));
      });
    }

    static Kept parse(byte[] bytes, Growing growing) {
      if (bytes == null) return null;
      return read(bytes, in -> {
        String origin = in.readUTF();
        long time = in.readLong();
        byte[] place = some(in);
        Lanes lanes = Lanes.read(in);
        byte[] row = in.readAllBytes();
        return new Kept(origin, time, place, lanes, row.length == 0 ? null : growing.row(row));
      });
    }
  }

  /** Of a table: where its newest snapshot stands, where a truncate since then does, and the row that its last delete took. */
  private static final class Table {
    byte[] place, deletedAt, deletedRow;
    long time;
    Lanes truncated = Lanes.NONE;
    boolean changed;

    boolean current(ChangeEvent e) { return place != null && ChangeEvent.compare(place, e.place()) == 0; }

    boolean newer(ChangeEvent e) { return place == null || e.time() > time || e.time() == time && ChangeEvent.compare(e.place(), place) > 0; }

    /** Whether the snapshot had this event of the log in it. Places of servers that take over from one another do not compare; GTIDs are for that. */
    boolean passed(ChangeEvent e) { return place != null && e.lane().isEmpty() && e.place() != null && e.time() <= time && ChangeEvent.compare(e.place(), place) < 0; }

    void begin(ChangeEvent e) {
      place = e.place() == null ? State.NONE : e.place();
      time = e.time();
      truncated = Lanes.NONE;
      changed = true;
    }

    void deleted(ChangeEvent e, byte[] row) {
      deletedAt = e.position();
      deletedRow = row;
      changed = true;
    }

    byte[] bytes(Growing growing) {
      return written(out -> {
        some(out, place);
        out.writeLong(time);
        truncated.write(out);
        some(out, deletedAt);
        if (deletedRow != null && deletedRow.length > 0) out.write(growing.kept(deletedRow));
      });
    }

    static Table parse(byte[] bytes, Growing growing) {
      Table table = new Table();
      if (bytes == null) return table;
      return read(bytes, in -> {
        table.place = some(in);
        table.time = in.readLong();
        table.truncated = Lanes.read(in);
        table.deletedAt = some(in);
        byte[] row = in.readAllBytes();
        table.deletedRow = row.length == 0 ? row : growing.row(row);
        return table;
      });
    }
  }

  // ---- bytes ------------------------------------------------------------------------------------------------------------------

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
