package tailgate;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
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
 * <p>The bytes go to the RocksDB under Spark's state store as they are, past its row encoders. So the rows of a key lie in the order of their own bytes,
 * which makes the best value of a group one seek; all entries of an operator lie together, which makes forgetting it a scan; and two projections
 * and copies a look-up are saved. Versions, changelog, snapshots and their ids remain Spark's.
 *
 * <pre>   operator (4) | port (1) | length of key (4) | key | row  →  value</pre>
 */
final class State {
  static final byte[] NONE = new byte[0];
  private static final int SIZE = 127;  // the port of what is counted of an operator
  private static final long SEED = 0x9e3779b97f4a7c15L, SEED2 = 0xc2b2ae3d27d4eb4fL;  // any two numbers; kept sums go by them
  private static final String FAMILY = StateStore.DEFAULT_COL_FAMILY_NAME();
  private final StateStore store;
  private final RocksDB db;
  private final Map<Integer, Size> sizes = new HashMap<>();
  private int sized = -1;  // whose size is the one at hand
  private Size size;

  State(StateStore store) {
    this.store = store;
    this.db = ((RocksDBStateStoreProvider.RocksDBStateStore) store).dbInstance();
  }

  /** The value, or null. */
  byte[] get(int operator, int port, byte[] key, byte[] row) { return db.get(place(operator, port, key, row), FAMILY); }

  /** `fresh`: there is no such entry yet. */
  void put(int operator, int port, byte[] key, byte[] row, byte[] value, boolean fresh) {
    byte[] place = place(operator, port, key, row);
    db.put(place, value, FAMILY, false, false, false);
    size(operator).put(place.length + value.length, fresh);
  }

  /** Of an entry that is there. */
  void remove(int operator, int port, byte[] key, byte[] row) {
    db.remove(place(operator, port, key, row), FAMILY, false, false, false);
    size(operator).removed();
  }

  /** Adds to the weight of a row; returns the new weight. A weight of zero is no entry. */
  long weigh(int operator, int port, byte[] key, byte[] row, long weight) {
    byte[] place = place(operator, port, key, row), old = db.get(place, FAMILY);
    long now = (old == null ? 0 : weight(old)) + weight;
    if (now == 0) {
      db.remove(place, FAMILY, false, false, false);
      if (old != null) size(operator).removed();
    } else {
      byte[] value = weight(now);
      db.put(place, value, FAMILY, false, false, false);
      size(operator).put(place.length + value.length, old == null);
    }
    return now;
  }

  /** The rows of a key, in the order of their bytes. */
  Entries entries(int operator, int port, byte[] key) { return new Entries(place(operator, port, key, NONE)); }

  /** All entries of an operator's port; their {@link Entries#row} is what {@link #key} takes. */
  Entries entries(int operator, int port) { return new Entries(ByteBuffer.allocate(5).putInt(operator).put((byte) port).array()); }

  /** The key, of an entry without a row. */
  static byte[] key(byte[] entry) { return Arrays.copyOfRange(entry, 4, entry.length); }

  /** Removes some entries of an operator; false if none is left. */
  boolean forget(int operator, int limit) {
    try (Entries entries = new Entries(ByteBuffer.allocate(4).putInt(operator).array())) {
      for (int n = 0; entries.next(); n++) {
        if (n == limit) return true;
        db.remove(entries.pair.key(), FAMILY, false, false, false);
      }
    }
    return false;
  }

  // ---- how much there is --------------------------------------------------------------------------------------------------

  private Size size(int operator) {
    if (operator != sized) {
      size = sizes.computeIfAbsent(operator, o -> Size.parse(get(o, SIZE, NONE, NONE)));
      sized = operator;
    }
    return size;
  }

  /**
   * How many entries an operator has here, about how many bytes, and its {@link #received input's sum}: 1 and two numbers, or 0 where it is not known. What was counted is
   * kept with the entries.
   */
  long[] sized(int operator) {
    Size size = size(operator);
    if (size.changed) db.put(place(operator, SIZE, NONE, NONE), size.bytes(), FAMILY, false, false, false);
    size.changed = false;
    long bytes = size.writes == 0 ? 0 : Math.round((double) size.entries * size.written / size.writes);
    return new long[] {size.entries, bytes, size.summed ? 1 : 0, size.sum, size.sum2};
  }

  /**
   * Adds changes to the sum of an operator's input: of each row two hashes, times its weight. What an operator holds is a function of the sum of its input, so two operators that do the
   * same hold the same if these are equal.
   */
  void received(int operator, int port, List<Tick.Change> changes) {
    Size size = size(operator);
    if (!size.summed || changes.isEmpty()) return;
    for (Tick.Change c : changes) {
      Object base = c.row().getBaseObject();
      long offset = c.row().getBaseOffset();
      int length = c.row().getSizeInBytes();
      size.sum += c.weight() * XXH64.hashUnsafeBytes(base, offset, length, SEED + port);
      size.sum2 += c.weight() * XXH64.hashUnsafeBytes(base, offset, length, SEED2 + port);
    }
    size.changed = true;
  }

  /** Entries are counted. Their bytes, before compression, are taken to be those of what was written on average. */
  private static final class Size {
    long entries, writes, written, sum, sum2;
    boolean changed, summed = true;

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
      size.summed = in.hasRemaining();  // not of an operator that received rows before there were sums
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

  /** Commits the next version, in the tick at this time; returns its id. */
  String commit(long time) {
    store.commit();
    Snapshots.committed(db, time);
    Option<String> id = store.getStateStoreCheckpointInfo().stateStoreCkptId();
    if (id.isEmpty()) throw new IllegalStateException("spark.sql.streaming.stateStore.checkpointFormatVersion has to be 2");
    return id.get();
  }

  static long weight(byte[] value) {
    long w = value[0];
    for (int i = 1; i < value.length; i++) w = w << 8 | value[i] & 255;
    return w;
  }

  /** As few bytes as hold it. */
  static byte[] weight(long weight) {
    int length = 1;
    while (length < 8 && weight >> 8 * length - 1 != weight >> 63) length++;
    byte[] value = new byte[length];
    for (int i = length - 1; i >= 0; i--, weight >>= 8) value[i] = (byte) weight;
    return value;
  }

  private static byte[] place(int operator, int port, byte[] key, byte[] row) {
    return ByteBuffer.allocate(9 + key.length + row.length).putInt(operator).put((byte) port).putInt(key.length).put(key).put(row).array();
  }

  /** A walk over the entries that begin with some bytes. To be closed: RocksDB keeps what an open walk may still read. */
  final class Entries implements AutoCloseable {
    private final int prefix;
    private final NextIterator<ByteArrayPair> scan;
    private final Iterator<ByteArrayPair> walk;
    private ByteArrayPair pair;

    private Entries(byte[] prefix) {
      this.prefix = prefix.length;
      this.scan = db.prefixScan(prefix, FAMILY);
      this.walk = CollectionConverters.asJava(scan);
    }

    boolean next() {
      if (!walk.hasNext()) return false;
      pair = walk.next();
      return true;
    }

    byte[] row() { return Arrays.copyOfRange(pair.key(), prefix, pair.key().length); }

    byte[] value() { return pair.value(); }

    @Override public void close() { scan.closeIfNeeded(); }
  }
}
