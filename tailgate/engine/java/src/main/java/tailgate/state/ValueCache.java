package tailgate.state;

import java.util.Arrays;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.LongSupplier;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;
import tailgate.rows.Rows;

/**
 * The values of keys that ticks have read or written in one store. A look-up in RocksDB takes five times as long.
 *
 * <p>A cache belongs to one version of the store. A tick takes it when it opens this version, changes it together with the store,
 * and returns it with the version that it commits. A tick that fails does not return it, so a tick that opens any version other
 * than the returned one, such as a repeated tick, begins with an empty cache.
 *
 * <pre>   version 7 ─take─► tick ─put─► store and cache ─commit─► version 8, ─give─► cache of version 8</pre>
 *
 * <p>The values are in one array without objects, so garbage collections have no work with them. A value is replaced in its place if
 * it fits. When the array has its maximum size, the cache is emptied.
 */
final class ValueCache {
  private static final int PART = 4;  // all caches of a process together may have as much memory as RocksDB, divided by this
  private static final int FIRST_BYTES = 1 << 12, FIRST_SLOTS = 1 << 6;
  private static final int KEY_LENGTH = 0, CAPACITY = 4, LENGTH = 8, KEY = 12;  // layout of an entry; the value follows the key
  private static final int NO_VALUE = -1;  // the length for a key that has no value
  private static final int SEED = 42;
  private static final Map<RocksDB, ValueCache> ALL = new WeakHashMap<>();  // of the stores of this process
  private final LongSupplier limit;  // maximum of the bytes
  private String version;  // id of the version that the cache belongs to, null while a tick has it
  private byte[] entries = new byte[FIRST_BYTES];
  private int end;  // of the entries
  private long[] slots = new long[FIRST_SLOTS];  // by hash: the hash of a key and 1 + the position of its entry, or 0
  private int count;  // of the slots that are used
  private int emptied;  // how often the cache was emptied

  ValueCache(LongSupplier limit) { this.limit = limit; }

  /** Returns the cache of the version that a store has opened. No other tick has it until it is returned. */
  static ValueCache take(RocksDB db) {
    synchronized (ALL) {
      ValueCache cache = ALL.get(db);
      if (cache == null || !db.loadedStateStoreCkptId().contains(cache.version) || cache.bytes() > cache.limit.getAsLong()) {
        long memory = db.conf().totalMemoryUsageMB() << 20;
        ALL.put(db, cache = new ValueCache(() -> share(memory)));
      }
      cache.version = null;
      return cache;
    }
  }

  /** Returns the cache: its values are those of this version of the store. */
  void give(String version) {
    synchronized (ALL) {
      this.version = version;
    }
  }

  private static long share(long memory) {
    synchronized (ALL) {
      return memory / PART / Math.max(1, ALL.size());
    }
  }

  /** Returns the size in bytes. */
  long bytes() { return entries.length + (long) Long.BYTES * slots.length; }

  /** Returns the position of a key's entry, or -1 if it is not known whether the key has a value. */
  int find(byte[] key) {
    int hash = hash(key), mask = slots.length - 1;
    for (int i = hash & mask; slots[i] != 0; i = i + 1 & mask) {
      int at = position(slots[i]);  // the entries of other hashes are not read: they are rarely in the processor's cache
      if (hash(slots[i]) == hash && field(at, KEY_LENGTH) == key.length && startsAt(at + KEY, key)) return at;
    }
    return -1;
  }

  private boolean startsAt(int from, byte[] key) {
    return ByteArrayMethods.arrayEquals(key, Platform.BYTE_ARRAY_OFFSET, entries, Platform.BYTE_ARRAY_OFFSET + from, key.length);
  }

  /** Returns the value of the entry at this position, or null if the key has none. */
  byte[] value(int at) {
    int length = field(at, LENGTH), from = at + KEY + field(at, KEY_LENGTH);
    return length == NO_VALUE ? null : Arrays.copyOfRange(entries, from, from + length);
  }

  /** Returns whether the cache has this value, and still has all earlier ones. */
  boolean put(byte[] key, byte[] value) {
    int at = find(key), before = emptied;
    if (at < 0 || field(at, CAPACITY) < value.length) at = add(key, value.length, at);
    if (at < 0) return false;
    System.arraycopy(value, 0, entries, at + KEY + key.length, value.length);
    field(at, LENGTH, value.length);
    return emptied == before;
  }

  void remove(byte[] key) {
    int at = find(key);
    if (at >= 0) field(at, LENGTH, NO_VALUE);
  }

  /** Adds an entry, which replaces the one at `old`, if that is not -1. Returns its position, or -1 if it does not fit. */
  private int add(byte[] key, int length, int old) {
    int capacity = length + Long.BYTES;  // a count or a sum becomes longer
    long size = ((long) KEY + key.length + capacity + 7) / 8 * 8;
    if (!reserve(end + size, old < 0 ? count + 1 : count)) {
      clear();
      old = -1;
      if (size > entries.length) return -1;
    }
    int at = end, hash = hash(key);
    end += (int) size;
    field(at, KEY_LENGTH, key.length);
    field(at, CAPACITY, capacity);
    System.arraycopy(key, 0, entries, at + KEY, key.length);
    if (old < 0) count++;
    int mask = slots.length - 1, i = hash & mask;
    while (position(slots[i]) != old) i = i + 1 & mask;
    slots[i] = (long) hash << 32 | at + 1;
    return at;
  }

  /** Makes room for so many bytes of entries, and for so many of them. Returns false if the limit does not allow it. */
  private boolean reserve(long bytes, int used) {
    long length = entries.length;
    while (length < bytes) length *= 2;
    int width = 2 * used > slots.length ? 2 * slots.length : slots.length;
    if (length == entries.length && width == slots.length) return true;
    if (length + (long) Long.BYTES * width > limit.getAsLong() || length > Integer.MAX_VALUE / 2) return false;
    if (length > entries.length) entries = Arrays.copyOf(entries, (int) length);
    if (width > slots.length) slots = widened(width);
    return true;
  }

  private long[] widened(int width) {
    long[] more = new long[width];
    int mask = width - 1;
    for (long slot : slots) {
      if (slot == 0) continue;
      int i = hash(slot) & mask;
      while (more[i] != 0) i = i + 1 & mask;
      more[i] = slot;
    }
    return more;
  }

  private void clear() {
    Arrays.fill(slots, 0);
    emptied++;
    count = 0;
    end = 0;
  }

  private static int hash(byte[] key) { return Rows.hash(key, SEED); }

  private static int hash(long slot) { return (int) (slot >>> 32); }

  /** Returns the position of a slot's entry, or -1 if it has none. */
  private static int position(long slot) { return (int) slot - 1; }

  private int field(int at, int field) { return Platform.getInt(entries, Platform.BYTE_ARRAY_OFFSET + at + field); }

  private void field(int at, int field, int value) { Platform.putInt(entries, Platform.BYTE_ARRAY_OFFSET + at + field, value); }
}
