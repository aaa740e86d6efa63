package tailgate.state;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.execution.streaming.state.ByteArrayPair;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.util.NextIterator;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * One partition of a store: (operator, port, key, row) → value, in the order of the bytes.
 *
 * <p>The bytes are written directly to the RocksDB under Spark's state store, without its row
 * encoders. The rows of a key are therefore in the order of their bytes, so the best value of a
 * group is one seek. All entries of an operator are adjacent, so its state is removed by one scan.
 * Each look-up also saves two projections and copies. Spark still manages versions, changelog,
 * snapshots and their ids. Entries without a row, the values of keys, are also in a {@link ValueCache}. They and new
 * entries with a row are written in {@link BatchedWrites}.
 *
 * <pre>   operator (4) | port (1) | length of key (4) | key | row  →  value</pre>
 */
public final class State {
  public static final byte[] NONE = new byte[0];
  private static final int SIZE = 127;  // the port of an operator's statistics, without key and row; an aggregate may have values there
  // arbitrary, but stored sums depend on them
  private static final long SEED = 0x9e3779b97f4a7c15L, SEED2 = 0xc2b2ae3d27d4eb4fL;
  private static final String FAMILY = StateStore.DEFAULT_COL_FAMILY_NAME();
  private final StateStore store;
  private final RocksDB db;
  private final ValueCache cache;
  private final BatchedWrites writes;
  private boolean rowsWait;  // whether entries with a row are among the waiting writes
  private final Map<Integer, Size> sizes = new HashMap<>();
  private int sized = -1;  // the operator that `size` belongs to
  private Size size;

  public State(StateStore store) {
    this.store = store;
    this.db = ((RocksDBStateStoreProvider.RocksDBStateStore) store).dbInstance();
    this.cache = ValueCache.take(db);
    this.writes = new BatchedWrites(db);
  }

  /** Returns the value, or null. */
  public byte[] get(int operator, int port, byte[] key, byte[] row) { return read(place(operator, port, key, row), row.length == 0); }

  /** Writes an entry. `fresh`: the entry does not exist yet. */
  public void put(int operator, int port, byte[] key, byte[] row, byte[] value, boolean fresh) {
    byte[] place = place(operator, port, key, row);
    if (row.length == 0) writeCached(place, value);
    else if (fresh) writeNew(place, value);
    else writeRow(place, value);
    size(operator).put(place.length + value.length, fresh);
  }

  /** Removes an existing entry. */
  public void remove(int operator, int port, byte[] key, byte[] row) {
    delete(place(operator, port, key, row), row.length == 0);
    size(operator).removed();
  }

  /** Adds to the weight of a row and returns the new weight. An entry of weight zero is removed. */
  public long weigh(int operator, int port, byte[] key, byte[] row, long weight) {
    boolean isCached = row.length == 0;
    byte[] place = place(operator, port, key, row), old = read(place, isCached);
    long now = (old == null ? 0 : weight(old)) + weight;
    if (now == 0) {
      delete(place, isCached);
      if (old != null) size(operator).removed();
    } else {
      byte[] value = weight(now);
      if (isCached) writeCached(place, value);
      else writeRow(place, value);
      size(operator).put(place.length + value.length, old == null);
    }
    return now;
  }

  private byte[] read(byte[] place, boolean isCached) {
    int at = isCached ? cache.find(place) : -1;
    if (at >= 0) return cache.value(at);
    if (!isCached && rowsWait) flush();
    byte[] value = db.get(place, FAMILY);  // all values that wait in `writes` are in the cache
    if (isCached && value != null && !cache.put(place, value)) flush();
    return value;
  }

  private void writeCached(byte[] place, byte[] value) {
    writes.put(place, value);
    if (!cache.put(place, value)) flush();
  }

  /** Writes a new entry with a row. Most of them are read by later ticks only. */
  private void writeNew(byte[] place, byte[] value) {
    writes.put(place, value);
    rowsWait = true;
  }

  private void writeRow(byte[] place, byte[] value) {
    if (rowsWait) flush();
    db.put(place, value, FAMILY, false, false, false);
  }

  private void delete(byte[] place, boolean isCached) {
    if (isCached || rowsWait) flush();
    db.remove(place, FAMILY, false, false, false);
    if (isCached) cache.remove(place);
  }

  private void flush() {
    writes.flush();
    rowsWait = false;
  }

  /** Scans the rows of a key, in the order of their bytes. */
  public Entries entries(int operator, int port, byte[] key) { return new Entries(place(operator, port, key, NONE)); }

  /**
   * Scans all entries of an operator's port. Their {@link Entries#row} can be passed to
   * {@link #key}.
   */
  public Entries entries(int operator, int port) { return new Entries(ByteBuffer.allocate(5).putInt(operator).put((byte) port).array()); }

  /** An entry, with its place. */
  public record Entry(int operator, int port, byte[] key, byte[] row, byte[] value) {
    public Entry withRow(byte[] of) { return new Entry(operator, port, key, of, value); }
    public Entry withValue(byte[] of) { return new Entry(operator, port, key, row, of); }
  }

  /** Calls an action for the entries of all operators, but not for their statistics. */
  public void forEach(Consumer<Entry> action) {
    try (Entries entries = new Entries(NONE)) {
      while (entries.next()) {
        ByteBuffer in = ByteBuffer.wrap(entries.row());
        int operator = in.getInt(), port = in.get() & 255;
        byte[] key = new byte[in.getInt()];
        in.get(key);
        byte[] row = new byte[in.remaining()];
        in.get(row);
        if (port == SIZE && key.length == 0 && row.length == 0) continue;
        action.accept(new Entry(operator, port, key, row, entries.value()));
      }
    }
  }

  /** Returns the key of an entry without a row. */
  public static byte[] key(byte[] entry) { return Arrays.copyOfRange(entry, 4, entry.length); }

  /** Removes up to `limit` entries of an operator. Returns whether there are more. */
  public boolean forget(int operator, int limit) {
    try (Entries entries = new Entries(ByteBuffer.allocate(4).putInt(operator).array())) {
      for (int n = 0; entries.next(); n++) {
        if (n == limit) return true;
        delete(entries.pair.key(), true);
      }
    }
    return false;
  }

  // ---- statistics -------------------------------------------------------------------------------

  private Size size(int operator) {
    if (operator != sized) {
      size = sizes.computeIfAbsent(operator, o -> Size.parse(get(o, SIZE, NONE, NONE)));
      sized = operator;
    }
    return size;
  }

  /**
   * Returns the number of an operator's entries in this partition, their approximate size in bytes,
   * and the {@link Input sum of its input}: 1 and two numbers, or 0 if unknown. Stores changed
   * statistics with the entries.
   */
  public long[] sized(int operator) {
    Size size = size(operator);
    if (size.changed) writeCached(place(operator, SIZE, NONE, NONE), size.bytes());
    size.changed = false;
    long bytes = size.writes == 0 ? 0 : Math.round((double) size.entries * size.written / size.writes);
    return new long[] {size.entries, bytes, size.summed ? 1 : 0, size.sum, size.sum2};
  }

  /** Sets the sum of an operator's input, or that it is not known. {@link #sized} stores it. */
  public void sum(int operator, boolean isKnown, long sum, long sum2) {
    Size size = size(operator);
    size.summed = isKnown;
    size.sum = sum;
    size.sum2 = sum2;
    size.changed = true;
  }

  /** Returns the input of an operator, to which changes are added as they arrive. */
  public Input input(int operator) { return size(operator); }

  /**
   * The sum of an operator's input: two hashes of each row, times its weight. The state of an operator
   * is a function of the sum of its input, so two equal operators have the same state if these sums are
   * equal.
   */
  public interface Input {
    void received(int port, UnsafeRow row, long weight);
  }

  /**
   * The statistics of an operator. The size in bytes, before compression, is estimated from the
   * average size of its writes.
   */
  private static final class Size implements Input {
    long entries, writes, written, sum, sum2;
    boolean changed, summed = true;

    @Override public void received(int port, UnsafeRow row, long weight) {
      if (!summed) return;
      Object base = row.getBaseObject();
      long offset = row.getBaseOffset();
      int length = row.getSizeInBytes();
      sum += weight * XXH64.hashUnsafeBytes(base, offset, length, SEED + port);
      sum2 += weight * XXH64.hashUnsafeBytes(base, offset, length, SEED2 + port);
      changed = true;
    }

    void put(int bytes, boolean fresh) {
      if (fresh) entries++;
      writes++;
      written += bytes;
      changed = true;
    }

    void removed() {
      entries--;
      changed = true;
    }

    static Size parse(byte[] bytes) {
      Size size = new Size();
      if (bytes == null) return size;
      ByteBuffer in = ByteBuffer.wrap(bytes);
      size.entries = in.getLong();
      size.writes = in.getLong();
      size.written = in.getLong();
      size.summed = in.hasRemaining();  // unknown for an operator that received rows before sums existed
      if (!size.summed) return size;
      size.sum = in.getLong();
      size.sum2 = in.getLong();
      return size;
    }

    byte[] bytes() {
      ByteBuffer out = ByteBuffer.allocate(summed ? 40 : 24).putLong(entries).putLong(writes).putLong(written);
      return (summed ? out.putLong(sum).putLong(sum2) : out).array();
    }
  }

  /** Commits the next version, in the tick at this time. Returns its id. */
  public String commit(long time) {
    flush();
    store.commit();
    Snapshots.committed(db, time);
    Option<String> id = store.getStateStoreCheckpointInfo().stateStoreCkptId();
    if (id.isEmpty()) throw new IllegalStateException("spark.sql.streaming.stateStore.checkpointFormatVersion has to be 2");
    cache.give(id.get());
    return id.get();
  }

  /** Ends the use of a version without a next one. */
  public void abort() { store.abort(); }

  /** Returns the number of versions since an uploaded snapshot. */
  public int lineage() { return Snapshots.lineage(db); }

  public static long weight(byte[] value) {
    long w = value[0];
    for (int i = 1; i < value.length; i++) w = w << 8 | value[i] & 255;
    return w;
  }

  /** Encodes a weight in as few bytes as possible. */
  public static byte[] weight(long weight) {
    int length = 1;
    while (length < 8 && weight >> 8 * length - 1 != weight >> 63) length++;
    byte[] value = new byte[length];
    for (int i = length - 1; i >= 0; i--, weight >>= 8) value[i] = (byte) weight;
    return value;
  }

  private static byte[] place(int operator, int port, byte[] key, byte[] row) {
    return ByteBuffer.allocate(9 + key.length + row.length).putInt(operator).put((byte) port).putInt(key.length).put(key).put(row).array();
  }

  /**
   * A scan of the entries with a prefix. It must be closed: RocksDB retains all that an open scan
   * may read.
   */
  public final class Entries implements AutoCloseable {
    private final int prefix;
    private final NextIterator<ByteArrayPair> scan;
    private final Iterator<ByteArrayPair> walk;
    private ByteArrayPair pair;

    private Entries(byte[] prefix) {
      this.prefix = prefix.length;
      flush();
      this.scan = db.prefixScan(prefix, FAMILY);
      this.walk = CollectionConverters.asJava(scan);
    }

    public boolean next() {
      if (!walk.hasNext()) return false;
      pair = walk.next();
      return true;
    }

    public byte[] row() { return Arrays.copyOfRange(pair.key(), prefix, pair.key().length); }

    public byte[] value() { return pair.value(); }

    @Override public void close() { scan.closeIfNeeded(); }
  }
}
