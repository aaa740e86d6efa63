package tailgate.circuit;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/**
 * Changes for operators and relations in other partitions or later levels. They travel in blocks: one for each level and partition,
 * and more for many changes. Blocks for later levels pass through a level as they are, so its exchanges cost a copy of their bytes.
 *
 * <pre>   block    a {@link Sent} of kind BLOCK for a level
 *   change   port, or Edge.RELATION (4) | operator or relation (4) | weight (8) | order (8) | columns (4) | length of the row (4) |
 *            row</pre>
 *
 * <p>Changes of one task for the same level and partition stay in their order.
 */
final class SentBlocks {
  static final int RELATIONS = Integer.MAX_VALUE;  // the level of changes of relations
  private static final int BYTES_MAX = 1 << 20, FIRST_BYTES = 1 << 9, HEADER = 32;
  private static final int TO = 4, WEIGHT = 8, ORDER = 16, COLUMNS = 24, LENGTH = 28;
  private final int partitions;
  private final List<InternalRow> full;
  private final Map<Long, Block> open = new TreeMap<>();  // by level and partition

  /** `full`: receives the blocks. */
  SentBlocks(int partitions, List<InternalRow> full) {
    this.partitions = partitions;
    this.full = full;
  }

  /** A receiver of changes. The row stays valid. */
  interface Receiver {
    void receive(int port, int to, UnsafeRow row, long weight, long order);
  }

  private static final class Block {
    byte[] bytes = new byte[FIRST_BYTES];
    int end, changes;
  }

  /** Adds a change for a place ({@link Sent#place}). `level`: that of the operator, or RELATIONS. */
  void add(int level, int place, int port, int to, UnsafeRow row, long weight, long order) {
    int partition = Math.floorMod(place, partitions), length = row.getSizeInBytes();
    long key = (long) level << 32 | partition;
    Block block = open.computeIfAbsent(key, k -> new Block());
    long needed = (long) block.end + HEADER + length;
    if (needed > BYTES_MAX && block.changes > 0) {
      send(key, block);
      open.put(key, block = new Block());
      needed = HEADER + length;
    }
    if (needed > block.bytes.length)
      block.bytes = Arrays.copyOf(block.bytes, (int) Math.max(needed, Math.min(2L * block.bytes.length, BYTES_MAX)));
    long at = Platform.BYTE_ARRAY_OFFSET + block.end;
    Platform.putInt(block.bytes, at, port);
    Platform.putInt(block.bytes, at + TO, to);
    Platform.putLong(block.bytes, at + WEIGHT, weight);
    Platform.putLong(block.bytes, at + ORDER, order);
    Platform.putInt(block.bytes, at + COLUMNS, row.numFields());
    Platform.putInt(block.bytes, at + LENGTH, length);
    Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), block.bytes, at + HEADER, length);
    block.end += HEADER + length;
    block.changes++;
  }

  private void send(long key, Block block) {
    full.add(new Sent(Sent.BLOCK, (int) (key >>> 32), Arrays.copyOf(block.bytes, block.end), block.changes).row((int) key));
  }

  /** Sends the changes that wait for more of them. */
  void flush() {
    open.forEach(this::send);
    open.clear();
  }

  /** Calls `to` with each change of a block. */
  static void forEach(InternalRow block, Receiver to) {
    byte[] bytes = Sent.bytes(block);
    for (int i = 0; i < bytes.length;) {
      long at = Platform.BYTE_ARRAY_OFFSET + i;
      int length = Platform.getInt(bytes, at + LENGTH);
      UnsafeRow row = new UnsafeRow(Platform.getInt(bytes, at + COLUMNS));
      row.pointTo(bytes, at + HEADER, length);
      long weight = Platform.getLong(bytes, at + WEIGHT), order = Platform.getLong(bytes, at + ORDER);
      to.receive(Platform.getInt(bytes, at), Platform.getInt(bytes, at + TO), row, weight, order);
      i += HEADER + length;
    }
  }
}
