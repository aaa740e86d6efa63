package tailgate.state;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider;
import org.junit.jupiter.api.Test;
import scala.Option;
import tailgate.circuit.Lab;

/** The snapshots of a store: when they are made and uploaded, and what follows an upload that fails. */
class SnapshotsTest {
  private static final int OPERATOR = 7;
  private static final long WAIT_MS = 10_000;

  /** One store, which commits versions. */
  private static final class Versions {
    final Path folder = Files.createTempDirectory("state");
    final Path partition = folder.resolve("0/0");
    private final RocksDBStateStoreProvider provider = ValueCacheTest.provider(folder.toString(), 256);
    private long version;
    private String id;
    private RocksDB db;

    Versions() throws Exception {}

    void commit(int count) {
      for (int n = 0; n < count; n++) {
        var store = (RocksDBStateStoreProvider.RocksDBStateStore) provider.getStore(version, Option.apply(id), false, false);
        State state = new State(store);
        db = store.dbInstance();
        state.put(OPERATOR, 0, Lab.utf8("key " + version), State.NONE, State.NONE, true);
        id = state.commit(++version);
      }
    }

    /** Waits until an upload has made the lineage shorter. */
    void awaitUpload() throws InterruptedException {
      long began = System.currentTimeMillis();
      while (Snapshots.lineage(db) > Snapshots.EVERY / 2) {
        assertTrue(System.currentTimeMillis() - began < WAIT_MS, "no snapshot was uploaded");
        Thread.sleep(5);
      }
    }

    long snapshots() throws Exception {
      try (var files = Files.list(partition)) {
        return files.filter(f -> f.toString().endsWith(".zip")).count();
      }
    }
  }

  @Test void eachSnapshotIsUploadedAtOnce() throws Exception {
    Versions versions = new Versions();
    for (int n = 1; n <= 2; n++) {
      versions.commit(n == 1 ? Snapshots.EVERY + 1 : Snapshots.EVERY - 1);
      versions.awaitUpload();
      assertEquals(n, versions.snapshots());
    }
  }

  /** The files of a snapshot cannot be written while a file has the name of their folder. */
  @Test void afterAFailedUploadTheNextVersionHasASnapshot() throws Exception {
    Versions versions = new Versions();
    versions.commit(1);
    Path files = Files.createFile(versions.partition.resolve("SSTs"));
    versions.commit(Snapshots.EVERY);
    Thread.sleep(500);
    Files.delete(files);
    versions.commit(Snapshots.EVERY / 2);
    versions.awaitUpload();
  }
}
