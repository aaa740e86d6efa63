package tailgate.rows;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/**
 * A map whose keys are rows, in the order of insertion. Rows with the same bytes are one key. Only a
 * new key is copied: a look-up allocates nothing.
 */
public final class RowMap<V> implements Iterable<RowMap.Entry<V>> {
  private static final int SEED = 42;
  private Entry<V>[] slots = table(16);
  private Entry<V> first, last;
  private int size;

  /** The bytes of a row, and its value. */
  public static final class Entry<V> {
    public final byte[] key;
    public final V value;
    private final int hash;
    private Entry<V> inSlot, after;

    private Entry(byte[] key, int hash, V value) {
      this.key = key;
      this.hash = hash;
      this.value = value;
    }

    private boolean is(UnsafeRow row) {
      return key.length == row.getSizeInBytes()
          && ByteArrayMethods.arrayEquals(row.getBaseObject(), row.getBaseOffset(), key, Platform.BYTE_ARRAY_OFFSET, key.length);
    }
  }

  /** Returns the value of the row, which is first created if the row is new. The caller may reuse the row. */
  public V computeIfAbsent(UnsafeRow row, Supplier<? extends V> value) {
    int hash = Murmur3_x86_32.hashUnsafeWords(row.getBaseObject(), row.getBaseOffset(), row.getSizeInBytes(), SEED);
    for (Entry<V> e = slots[hash & slots.length - 1]; e != null; e = e.inSlot) if (e.hash == hash && e.is(row)) return e.value;
    if (size == slots.length) grow();
    Entry<V> added = new Entry<>(Rows.bytes(row), hash, value.get());
    link(slots, added);
    if (last == null) first = added;
    else last.after = added;
    last = added;
    size++;
    return added.value;
  }

  public int size() { return size; }

  /** Calls the action with the bytes and the value of each row. */
  public void forEach(BiConsumer<byte[], ? super V> action) {
    for (Entry<V> e = first; e != null; e = e.after) action.accept(e.key, e.value);
  }

  @Override public Iterator<Entry<V>> iterator() {
    return new Iterator<>() {
      private Entry<V> next = first;

      @Override public boolean hasNext() { return next != null; }

      @Override public Entry<V> next() {
        if (next == null) throw new NoSuchElementException();
        Entry<V> entry = next;
        next = entry.after;
        return entry;
      }
    };
  }

  private void grow() {
    Entry<V>[] more = table(2 * slots.length);
    for (Entry<V> e = first; e != null; e = e.after) link(more, e);
    slots = more;
  }

  private static <V> void link(Entry<V>[] slots, Entry<V> entry) {
    int slot = entry.hash & slots.length - 1;
    entry.inSlot = slots[slot];
    slots[slot] = entry;
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static <V> Entry<V>[] table(int length) { return new Entry[length]; }
}
