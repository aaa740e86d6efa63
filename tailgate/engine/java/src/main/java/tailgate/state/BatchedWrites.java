package tailgate.state;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriter;
import org.rocksdb.RocksDBException;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;
import scala.Option;

/**
 * Writes to a store that reach RocksDB together, which takes a third of the time of single ones. The changelog has them at once.
 *
 * <p>The batch is built here in RocksDB's own form, because a call of its library for each write takes as long as the write:
 *
 * <pre>   sequence (8, zero) | number of writes (4) | for each write: 1 | length | key | length | value</pre>
 *
 * <p>Numbers have their lowest byte first, lengths are in groups of seven bits. Spark's store has no method for several writes, so this
 * class takes the database and the changelog out of it.
 */
final class BatchedWrites {
  private static final int WRITES_MAX = 1000;
  private static final int BYTES_MAX = 1 << 20;  // a write that exceeds it is the last of its batch
  private static final int COUNT = 8, HEADER = 12, FIRST_BYTES = 1 << 12;
  private static final int LENGTHS_MAX = 11;  // bytes of a write in addition to its key and value
  private static final byte PUT = 1;
  private static final WriteOptions OPTIONS = new WriteOptions().setDisableWAL(true);  // as Spark's
  private static final Method DB = method("db"), CHANGELOG = method("changelogWriter");
  private final org.rocksdb.RocksDB db;
  private final StateStoreChangelogWriter changelog;
  private byte[] batch = new byte[FIRST_BYTES];
  private int end = HEADER;  // of the writes in the batch
  private int waiting;

  /** `store`: one that has opened the version that the writes change. */
  BatchedWrites(RocksDB store) {
    try {
      db = (org.rocksdb.RocksDB) DB.invoke(store);
      changelog = (StateStoreChangelogWriter) ((Option<?>) CHANGELOG.invoke(store)).get();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  void put(byte[] key, byte[] value) {
    changelog.put(key, value);
    int needed = Math.addExact(end + LENGTHS_MAX, Math.addExact(key.length, value.length));
    if (needed > batch.length) batch = Arrays.copyOf(batch, (int) Math.max(needed, Math.min(2L * batch.length, BYTES_MAX)));
    batch[end++] = PUT;
    add(key);
    add(value);
    if (++waiting == WRITES_MAX || end >= BYTES_MAX) flush();
  }

  private void add(byte[] bytes) {
    int length = bytes.length;
    for (; length >= 128; length >>>= 7) batch[end++] = (byte) (length | 128);
    batch[end++] = (byte) length;
    System.arraycopy(bytes, 0, batch, end, bytes.length);
    end += bytes.length;
  }

  /**
   * Writes what waits. It must be called before other writes of the same entries, reads that the cache cannot answer, scans, and the
   * commit.
   */
  void flush() {
    if (waiting == 0) return;
    ByteBuffer.wrap(batch).order(ByteOrder.LITTLE_ENDIAN).putInt(COUNT, waiting);
    try (WriteBatch writes = new WriteBatch(Arrays.copyOf(batch, end))) {
      db.write(OPTIONS, writes);
    } catch (RocksDBException e) {
      throw sneaky(e);  // as Spark's store does: it is not a failure of the operator that writes
    }
    waiting = 0;
    end = HEADER;
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException sneaky(Throwable e) throws E { throw (E) e; }

  private static Method method(String name) {
    try {
      Method method = RocksDB.class.getDeclaredMethod(name);
      method.setAccessible(true);
      return method;
    } catch (NoSuchMethodException e) {
      throw new IllegalStateException(e);
    }
  }
}
