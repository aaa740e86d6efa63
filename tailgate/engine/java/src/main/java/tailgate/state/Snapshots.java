package tailgate.state;

import java.lang.ref.WeakReference;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.logging.log4j.LogManager;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Uploads snapshots of the state concurrently with ticks, and counts the versions of the state
 * since the last upload.
 *
 * <p>Spark writes the ids of all versions since the last uploaded snapshot into every changelog
 * file, as text of at most 65,535 bytes: about 800 versions. With more, no store can be opened.
 * Spark itself uploads once a minute, and less often if uploads are slow. This class therefore
 * starts an upload after each snapshot, and the driver delays ticks when there are many versions
 * (tailgate/engine/runtime/ticks/pacing.py).
 *
 * <pre>   tick ─commit─► version n ─every 50th─► snapshot on the local disk ─► upload ─► older versions are no longer listed</pre>
 *
 * <p>A snapshot is made within a commit: RocksDB writes its memory to files and syncs them, which takes some milliseconds, and
 * 100 while the disk is busy. Each snapshot is therefore uploaded.
 */
public final class Snapshots {
  /**
   * Maximum number of versions since an uploaded snapshot. With numbers of ten digits, 65,535 bytes
   * hold 789.
   */
  private static final int LIMIT = Integer.getInteger("tailgate.lineage.max", 700);
  static final int EVERY = Math.max(1, LIMIT / 14);  // versions between two snapshots
  private static final int AGAIN = 10;  // versions between two attempts to upload
  private static final Map<RocksDB, Store> STORES = Collections.synchronizedMap(new WeakHashMap<>());
  private static final ExecutorService UPLOADS = Executors.newCachedThreadPool(r -> {
    Thread thread = new Thread(r, "tailgate-snapshots");
    thread.setDaemon(true);
    return thread;
  });

  private static volatile int elsewhere;

  private Snapshots() {}

  /** Returns the settings of stores, with a snapshot every EVERY versions. */
  public static StateStoreConf conf(SQLConf settings) {
    SQLConf all = settings.clone();
    all.setConfString(SQLConf.STATE_STORE_MIN_DELTAS_FOR_SNAPSHOT().key(), Integer.toString(EVERY));
    return new StateStoreConf(all, scala.collection.immutable.Map$.MODULE$.empty());
  }

  /** One store of one partition, while it is open. */
  private static final class Store implements Runnable {
    private final WeakReference<RocksDB> db;
    private final AtomicBoolean running = new AtomicBoolean();
    private int waited = AGAIN;
    volatile long time;  // time of the newest tick that committed

    Store(RocksDB db) { this.db = new WeakReference<>(db); }

    int lineage() {
      RocksDB open = db.get();
      return open == null ? 0 : Snapshots.lineage(open);
    }

    void committed(long time) {
      this.time = time;
      // the lineage begins with the uploaded snapshot, and is longer than EVERY when the next one is made
      if (++waited >= AGAIN && lineage() > EVERY && running.compareAndSet(false, true)) {
        waited = 0;
        UPLOADS.execute(this);
      }
    }

    @Override public void run() {
      RocksDB open = db.get();
      if (open == null) return;
      try {
        open.doMaintenance();
      } catch (Throwable e) {
        open.org$apache$spark$sql$execution$streaming$state$RocksDB$$lastSnapshotVersion_$eq(0);  // the next version has a snapshot
        LogManager.getLogger(Snapshots.class).error("a snapshot of the state could not be uploaded; the next one is tried", e);
      } finally {
        running.set(false);
      }
    }
  }

  /** Records that a tick at this time has committed a version of a store. */
  static void committed(RocksDB db, long time) { STORES.computeIfAbsent(db, Store::new).committed(time); }

  /** Returns the number of versions of a store since an uploaded snapshot. */
  static int lineage(RocksDB db) { return db.lineageManager().getLineageForCurrVersion().length; }

  /** Records the highest number of versions that a tick of other processes has returned. */
  public static void returned(int versions) { elsewhere = versions; }

  /**
   * Returns the highest number of versions since an uploaded snapshot among the stores of the
   * newest tick. Of stores in other processes, it is the number when the tick ended.
   */
  public static int lineage() {
    synchronized (STORES) {
      if (STORES.isEmpty()) return elsewhere;
      long newest = STORES.values().stream().mapToLong(s -> s.time).max().orElse(0);
      return STORES.values().stream().filter(s -> s.time == newest).mapToInt(Store::lineage).max().orElse(0);
    }
  }

  /**
   * Returns the memory of RocksDB in this process, in bytes: block cache, write buffers and indexes.
   * All stores share the cache, which the write buffers are charged to, so the largest value counts.
   */
  public static long memory() {
    synchronized (STORES) {
      return STORES.keySet().stream().mapToLong(Snapshots::memory).max().orElse(0);
    }
  }

  private static long memory(RocksDB db) {
    try {
      return db.getMemoryUsage();
    } catch (RuntimeException e) {
      return 0;  // it is being closed
    }
  }

  /** Returns the maximum number of these versions. */
  public static int limit() { return LIMIT; }
}
