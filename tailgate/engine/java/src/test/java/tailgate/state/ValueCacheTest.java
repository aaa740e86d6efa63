package tailgate.state;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.*;
import org.apache.spark.sql.execution.streaming.state.*;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Option;
import tailgate.circuit.Lab;

/** The cache of values and their writes in batches. */
class ValueCacheTest {
  private static final int OPERATOR = 7;

  private static final byte[] PLACE =  // of the entry of key(1) in RocksDB
      ByteBuffer.allocate(9 + key(1).length).putInt(OPERATOR).put((byte) 0).putInt(key(1).length).put(key(1)).array();

  private static byte[] key(int n) { return ByteBuffer.allocate(4 + n % 5).putInt(n).array(); }

  /**
   * Every value that the cache knows is that of a map, and without the limit it knows all. It has all that were put since it last
   * said that it lacks some.
   */
  @ParameterizedTest
  @ValueSource(longs = {1 << 13, 1 << 15, 1 << 24})
  void knowsTheNewestValues(long limit) {
    Random random = new Random(limit);
    ValueCache cache = new ValueCache(() -> limit);
    Map<Integer, byte[]> values = new HashMap<>();
    Set<Integer> certain = new HashSet<>();
    int hits = 0, unknown = 0;
    for (int n = 0; n < 200_000; n++) {
      int k = random.nextInt(2_000);
      int at = cache.find(key(k));
      if (at >= 0) {
        assertArrayEquals(values.get(k), cache.value(at));
        hits++;
      } else if (values.containsKey(k)) unknown++;
      assertTrue(at >= 0 || !certain.contains(k));
      if (random.nextInt(4) == 0) {
        cache.remove(key(k));
        values.remove(k);
      } else {
        byte[] value = new byte[random.nextInt(random.nextInt(100) == 0 ? 10_000 : 40)];
        random.nextBytes(value);
        if (cache.put(key(k), value)) certain.add(k);
        else certain.clear();
        values.put(k, value);
      }
      assertTrue(cache.bytes() <= limit);
    }
    assertTrue(hits > 100);
    assertEquals(limit < 1 << 24, unknown > 0);
  }

  @Test
  void aTickHasTheValuesOfItsVersion() throws Exception {
    RocksDBStateStoreProvider provider = provider();
    try {
      String first = written(provider, 0, null, "one");
      State next = opened(provider, 1, first);
      assertEquals("one", value(next));
      put(next, "lost");
      next.abort();
      State again = opened(provider, 1, first);
      assertEquals("one", value(again), "a repeated tick has no value of the one that failed");
      put(again, "two");
      String second = again.commit(2);
      State repeated = opened(provider, 1, first);
      assertEquals("one", value(repeated), "a tick whose version did not enter the log is repeated");
      repeated.abort();
      State last = opened(provider, 2, second);
      assertEquals("two", value(last));
      last.remove(OPERATOR, 0, key(1), State.NONE);
      String third = last.commit(3);
      State removed = opened(provider, 3, third);
      assertNull(removed.get(OPERATOR, 0, key(1), State.NONE));
      put(removed, "three");
      assertEquals("three", value(removed));
      assertFalse(removed.forget(OPERATOR, 10));
      assertNull(removed.get(OPERATOR, 0, key(1), State.NONE));
      removed.abort();
    } finally {
      provider.close();
    }
  }

  @Test
  void aLookUpDoesNotReachTheStore() throws Exception {
    RocksDBStateStoreProvider provider = provider();
    try {
      String first = written(provider, 0, null, "one");
      StateStore store = provider.getStore(1, Option.apply(first), false, false);
      RocksDB db = ((RocksDBStateStoreProvider.RocksDBStateStore) store).dbInstance();
      assertArrayEquals(Lab.utf8("one"), db.get(PLACE, StateStore.DEFAULT_COL_FAMILY_NAME()));
      db.put(PLACE, Lab.utf8("other"), StateStore.DEFAULT_COL_FAMILY_NAME(), false, false, false);
      State state = new State(store);
      assertEquals("one", value(state));
      state.abort();
    } finally {
      provider.close();
    }
  }

  @Test
  void aLookUpOfAnotherKeyWritesNothing() throws Exception {
    RocksDBStateStoreProvider provider = provider();
    try {
      StateStore store = provider.getStore(0, Option.empty(), false, false);
      RocksDB db = ((RocksDBStateStoreProvider.RocksDBStateStore) store).dbInstance();
      State state = new State(store);
      put(state, "one");
      assertNull(state.get(OPERATOR, 0, key(2), State.NONE));
      assertNull(db.get(PLACE, StateStore.DEFAULT_COL_FAMILY_NAME()), "it waits for others");
      assertEquals("one", value(state));
      state.abort();
    } finally {
      provider.close();
    }
  }

  /** The newest value of each key is in a scan of the same tick, and in the files that another process reads. */
  @Test
  void writesReachTheStoreAndItsChangelog() throws Exception {
    String folder = Files.createTempDirectory("state").toString();
    RocksDBStateStoreProvider provider = provider(folder);
    State state = opened(provider, 0, null);
    int keys = 1_500;
    for (int n = 0; n < 2 * keys; n++)
      state.put(OPERATOR, 0, key(n % keys), State.NONE, Lab.utf8("value " + n), n < keys);
    state.remove(OPERATOR, 0, key(keys - 1), State.NONE);
    assertEquals(keys - 1, scanned(state, keys));
    state.put(OPERATOR, 0, key(keys - 1), State.NONE, Lab.utf8("value " + (2 * keys - 1)), true);
    String id = state.commit(1);
    provider.close();
    provider = provider(folder);
    try {
      State read = opened(provider, 1, id);
      assertEquals(keys, scanned(read, keys));
      read.abort();
    } finally {
      provider.close();
    }
  }

  /** Each look-up and scan finds the newest writes of its tick, also of values that the cache has forgotten. */
  @Test
  void aTickReadsItsWrites() throws Exception {
    RocksDBStateStoreProvider provider = provider(Files.createTempDirectory("state").toString(), 1);
    try {
      State state = opened(provider, 0, null);
      Random random = new Random(20);
      Map<String, byte[]> entries = new HashMap<>();
      for (int n = 0; n < 50_000; n++) {
        int k = random.nextInt(40), r = random.nextInt(20);
        byte[] row = random.nextBoolean() ? State.NONE : key(r + 1), old = entries.get(name(k, row));
        switch (random.nextInt(5)) {
          case 0 -> assertArrayEquals(old, state.get(OPERATOR, 0, key(k), row));
          case 1 -> {
            if (old != null) state.remove(OPERATOR, 0, key(k), row);
            entries.remove(name(k, row));
          }
          case 2 -> {
            if (random.nextInt(20) == 0) assertEquals(rows(entries, k), rows(state, k));
          }
          default -> {
            byte[] value = new byte[random.nextInt(8_000)];
            random.nextBytes(value);
            if (row.length == 0) assertArrayEquals(old, state.get(OPERATOR, 0, key(k), row));
            state.put(OPERATOR, 0, key(k), row, value, old == null);
            entries.put(name(k, row), value);
          }
        }
      }
      state.abort();
    } finally {
      provider.close();
    }
  }

  private static String name(int key, byte[] row) { return key + " " + Arrays.toString(row); }

  /** Returns the rows of a key, with the hashes of their values. */
  private static Map<String, Integer> rows(Map<String, byte[]> entries, int key) {
    Map<String, Integer> rows = new HashMap<>();
    entries.forEach((name, value) -> {
      if (name.startsWith(key + " ")) rows.put(name, Arrays.hashCode(value));
    });
    return rows;
  }

  private static Map<String, Integer> rows(State state, int key) {
    Map<String, Integer> rows = new HashMap<>();
    try (State.Entries entries = state.entries(OPERATOR, 0, key(key))) {
      while (entries.next()) rows.put(name(key, entries.row()), Arrays.hashCode(entries.value()));
    }
    return rows;
  }

  private static int scanned(State state, int keys) {
    int count = 0;
    try (State.Entries entries = state.entries(OPERATOR, 0)) {
      for (; entries.next(); count++) {
        int n = ByteBuffer.wrap(State.key(entries.row())).getInt();
        assertEquals("value " + (keys + n), new String(entries.value()));
      }
    }
    return count;
  }

  private static String written(RocksDBStateStoreProvider provider, long version, String id, String value) {
    State state = opened(provider, version, id);
    put(state, value);
    return state.commit(1);
  }

  private static void put(State state, String value) {
    state.put(OPERATOR, 0, key(1), State.NONE, Lab.utf8(value), state.get(OPERATOR, 0, key(1), State.NONE) == null);
  }

  private static String value(State state) { return new String(state.get(OPERATOR, 0, key(1), State.NONE)); }

  private static State opened(RocksDBStateStoreProvider provider, long version, String id) {
    return new State(provider.getStore(version, Option.apply(id), false, false));
  }

  private static RocksDBStateStoreProvider provider() throws Exception { return provider(Files.createTempDirectory("state").toString()); }

  private static RocksDBStateStoreProvider provider(String folder) throws Exception { return provider(folder, 256); }

  static RocksDBStateStoreProvider provider(String folder, int memoryMb) throws Exception {
    var session = (org.apache.spark.sql.classic.SparkSession) Lab.spark();
    session.streams().stateStoreCoordinator();  // the stores tell it of their snapshots
    var hadoop = session.sessionState().newHadoopConf();
    hadoop.set("sql.streaming.runId", new UUID(0, 1).toString());
    StructType bytes = new StructType().add("bytes", "binary", false);
    StateStoreId id = new StateStoreId(folder, 0, 0, StateStoreId.DEFAULT_STORE_NAME());
    var settings = session.sessionState().conf().clone();
    settings.setConfString("spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB", Integer.toString(memoryMb));
    return (RocksDBStateStoreProvider) StateStoreProvider$.MODULE$.createAndInit(new StateStoreProviderId(id, new UUID(0, 1)), bytes, bytes,
        new NoPrefixKeyStateEncoderSpec(bytes), false, Snapshots.conf(settings), hadoop, false, Option.empty());
  }
}
