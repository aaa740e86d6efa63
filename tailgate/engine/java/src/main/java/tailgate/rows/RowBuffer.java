package tailgate.rows;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntPredicate;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/**
 * Copies of rows of one schema, with their weights and {@link Change#order}. The bytes of all rows are in a few
 * large arrays, so a garbage collection copies these arrays and not several objects for each row.
 */
public final class RowBuffer implements RowSink {
  private static final int FIRST = 64;  // rows
  private static final int PAGE_BYTES_MIN = 1 << 12, PAGE_BYTES_MAX = 1 << 18;
  private final List<byte[]> pages = new ArrayList<>();
  private int used;    // bytes of the last page
  private int fields;  // columns of a row
  private int[] page = new int[FIRST], start = new int[FIRST], bytes = new int[FIRST];  // the place of each row
  private long[] weights = new long[FIRST], orders = new long[FIRST];
  private int size;

  @Override public void add(UnsafeRow row, long weight, long order) {
    if (size == weights.length) grow();
    int n = row.getSizeInBytes();
    int last = pages.size() - 1;
    if (last < 0 || pages.get(last).length - used < n) {
      int next = last < 0 ? PAGE_BYTES_MIN : Math.min(2 * pages.get(last).length, PAGE_BYTES_MAX);
      pages.add(new byte[Math.max(next, n)]);
      last++;
      used = 0;
    }
    Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), pages.get(last), Platform.BYTE_ARRAY_OFFSET + used, n);
    fields = row.numFields();
    page[size] = last;
    start[size] = used;
    bytes[size] = n;
    weights[size] = weight;
    orders[size++] = order;
    used += n;
  }

  private void grow() {
    int length = 2 * size;
    page = Arrays.copyOf(page, length);
    start = Arrays.copyOf(start, length);
    bytes = Arrays.copyOf(bytes, length);
    weights = Arrays.copyOf(weights, length);
    orders = Arrays.copyOf(orders, length);
  }

  public int size() { return size; }

  /** Calls `to` with each row, which stays valid after the call. */
  public void forEach(RowSink to) {
    for (int i = 0; i < size; i++) {
      UnsafeRow row = new UnsafeRow(fields);
      row.pointTo(pages.get(page[i]), Platform.BYTE_ARRAY_OFFSET + start[i], bytes[i]);
      to.add(row, weights[i], orders[i]);
    }
  }

  /** Removes the rows from index `n` on. */
  public void truncate(int n) { size = n; }

  /** Removes the rows whose index does not satisfy the predicate, which is called for each index, ascending. */
  public void retain(IntPredicate stays) {
    int n = 0;
    for (int i = 0; i < size; i++) {
      if (!stays.test(i)) continue;
      page[n] = page[i];
      start[n] = start[i];
      bytes[n] = bytes[i];
      weights[n] = weights[i];
      orders[n++] = orders[i];
    }
    size = n;
  }
}
