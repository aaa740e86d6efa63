package tailgate.operators;

import static tailgate.operators.CdcUpsert.*;

import java.nio.ByteBuffer;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.*;
import tailgate.circuit.Operator;
import tailgate.circuit.Tick;
import tailgate.rows.Change;
import tailgate.rows.EvolvingRowCodec;
import tailgate.rows.Rows;
import tailgate.state.State;

/**
 * The rows of a database table without a primary key, computed from its change events. A row may
 * occur several times, and an event names the row to delete and the row to insert.
 *
 * <p>Without a key, only the order of the log tells a copy from a change: in a partition of the
 * topic, an event at or before the last position is a copy. The connector must therefore write a
 * table to one partition, or always to the same ones (which it does). A row of a snapshot that the
 * producer wrote twice occurs twice here. A new snapshot (another place, a first row, or any row
 * after the last one) deletes all rows of the table before its own rows are inserted.
 *
 * <p>A row may have been stored before new columns of its table were read. The old row of an event
 * has values for these columns, so it is looked up with and without them.
 *
 * <p>Input: the row after, the row before, {@link ChangeEvent#COLUMNS}. State: port 0, origin and
 * row → copies; port 1, origin → its snapshot; port 2, origin and partition → lanes. All of it is
 * in one partition.
 */
final class CdcBag extends Operator {
  private static final long serialVersionUID = 1;
  private static final int ROWS = 0, TABLES = 1, READ = 2, META = 2;
  private final StructType row;
  private final EvolvingRowCodec codec;

  CdcBag(StructType row, int first) {
    this.row = row;
    this.codec = new EvolvingRowCodec(row, first, true);
  }

  /** Returns the stored form of a record with the columns of a row: its fields are f1, f2, and so on. */
  private static StructType record(StructType row) {
    StructType fields = new StructType();
    for (int i = 0; i < row.length(); i++) fields = fields.add("f" + (i + 1), row.apply(i).dataType());
    return fields;
  }

  @Override public StructType[] ports() {
    StructType image = record(row);
    StructType port = new StructType().add("after", image).add("before", image);
    for (StructField f : ChangeEvent.COLUMNS.fields()) port = port.add(f);
    return new StructType[] {port};
  }

  @Override public StructType output() { return row; }

  @Override public byte[] key(int port, UnsafeRow event) { return State.NONE; }

  @Override public byte[] owner(int port, byte[] key, byte[] row) { return State.NONE; }

  @Override public void run(Tick tick, List<List<Change>> input) {
    Map<String, Snapshot> snapshots = new LinkedHashMap<>();
    for (Change c : input.get(0)) for (long copy = 0; copy < c.weight(); copy++) apply(tick, c.row(), snapshots);
    snapshots.forEach((origin, s) -> tick.state.put(id, TABLES, utf8(origin), State.NONE, s.bytes(), false));
  }

  private void apply(Tick tick, UnsafeRow event, Map<String, Snapshot> snapshots) {
    ChangeEvent e = ChangeEvent.of(event, META);
    byte[] origin = utf8(e.origin());
    Snapshot snapshot = snapshots.computeIfAbsent(e.origin(), o -> Snapshot.parse(tick.state.get(id, TABLES, origin, State.NONE)));
    if (e.snapshot()) {
      boolean same = snapshot.place != null && ChangeEvent.compare(snapshot.place, e.place()) == 0;
      if (!same && snapshot.place != null && e.time() < snapshot.time) return;
      if (!same || e.first() || snapshot.complete) {
        snapshot.place = e.place() == null ? State.NONE : e.place();
        snapshot.time = e.time();
        clear(tick, origin);
        forget(tick, origin);
      }
      snapshot.complete = e.last();
    } else if (snapshot.passed(e)) {
      return;
    } else {
      byte[] partition = ByteBuffer.allocate(4).putInt(e.partition()).array(), read = tick.state.get(id, READ, origin, partition);
      LanePositions lanes = read == null ? LanePositions.NONE : CdcUpsert.read(read, LanePositions::read);
      if (lanes.reached(e)) return;
      if (e.position() != null) tick.state.put(id, READ, origin, partition, written(lanes.with(e)::write), read == null);
    }
    if (e.op() == 't') clear(tick, origin);
    if (!event.isNullAt(1) && (e.op() == 'u' || e.op() == 'd')) add(tick, origin, event.getStruct(1, row.length()), -1);
    if (!event.isNullAt(0) && e.op() != 'd' && e.op() != 't') add(tick, origin, event.getStruct(0, row.length()), 1);
  }

  /**
   * Adds or removes copies of a row. The removal of an unknown row is ignored: it was inserted
   * before the source began to read.
   */
  private void add(Tick tick, byte[] origin, UnsafeRow of, long weight) {
    if (weight > 0) {
      weigh(tick, origin, codec.encode(of), weight);
      return;
    }
    for (int width = row.length(); width >= codec.first(); width--) {
      byte[] bytes = codec.encode(of, width);
      for (byte[] from : new byte[][] {origin, State.NONE})  // restored state has no origin
        if (tick.state.get(id, ROWS, from, bytes) != null) {
          weigh(tick, from, bytes, weight);
          return;
        }
    }
  }

  private void weigh(Tick tick, byte[] origin, byte[] bytes, long weight) {
    tick.state.weigh(id, ROWS, origin, bytes, weight);
    tick.emit(this, Rows.row(codec.decode(bytes), row.length()), weight);
  }

  private void clear(Tick tick, byte[] origin) {
    if (origin.length > 0) clear(tick, State.NONE);
    // the scan does not see rows that are written meanwhile
    try (State.Entries entries = tick.state.entries(id, ROWS, origin)) {
      while (entries.next()) {
        byte[] bytes = entries.row();
        tick.state.remove(id, ROWS, origin, bytes);
        tick.emit(this, Rows.row(codec.decode(bytes), row.length()), -State.weight(entries.value()));
      }
    }
  }

  /**
   * Forgets the positions read in each partition: after a new snapshot the log may be another
   * server's.
   */
  private void forget(Tick tick, byte[] origin) {
    List<byte[]> partitions = new ArrayList<>();
    try (State.Entries entries = tick.state.entries(id, READ, origin)) {
      while (entries.next()) partitions.add(entries.row());
    }
    for (byte[] partition : partitions) tick.state.remove(id, READ, origin, partition);
  }

  private static final class Snapshot {
    byte[] place;
    long time;
    boolean complete;

    boolean passed(ChangeEvent e) {
      return place != null && e.lane().isEmpty() && e.place() != null && e.time() <= time
          && ChangeEvent.compare(e.place(), place) < 0;
    }

    byte[] bytes() {
      return written(out -> {
        some(out, place);
        out.writeLong(time);
        out.writeBoolean(complete);
      });
    }

    static Snapshot parse(byte[] bytes) {
      Snapshot s = new Snapshot();
      if (bytes == null) return s;
      return CdcUpsert.read(bytes, in -> {
        s.place = some(in);
        s.time = in.readLong();
        s.complete = in.readBoolean();
        return s;
      });
    }
  }
}
