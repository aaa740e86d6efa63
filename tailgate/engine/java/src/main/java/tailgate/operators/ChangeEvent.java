package tailgate.operators;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Metadata of a change of a database table: the last columns of the input of {@link CdcUpsert} and
 * {@link CdcBag}.
 *
 * <pre>   op         c, u, d, t, or r: a row that a snapshot read
 *   origin     the connector and its table; several may write to one topic
 *   lane       positions order the changes within a lane: a GTID's domain or server, otherwise one for all
 *   position   padded, so that bytes compare; NULL for rows of a snapshot and for unknown connectors
 *   place      position in the server's own log, padded too; for a snapshot, where its log continues
 *   time       time of the database's clock in ms
 *   marker     for `r`: Debezium's snapshot marker (first, last, …, incremental)
 *   partition  Kafka's partition</pre>
 */
record ChangeEvent(char op, String origin, String lane, byte[] position, byte[] place, long time, String marker, int partition) {
  static final StructType COLUMNS = new StructType().add("__op", "string").add("__origin", "string")
      .add("__lane", "string").add("__position", "string")
      .add("__place", "string").add("__time", "long").add("__marker", "string").add("__partition", "int");

  /** Reads the event whose columns begin at ordinal `at`. */
  static ChangeEvent of(InternalRow row, int at) {
    return new ChangeEvent((char) row.getUTF8String(at).getByte(0), text(row, at + 1),
        text(row, at + 2), bytes(row, at + 3), bytes(row, at + 4),
        row.isNullAt(at + 5) ? 0 : row.getLong(at + 5), text(row, at + 6), row.getInt(at + 7));
  }

  /**
   * Returns whether the event concerns the whole table: a truncate, or the begin or end of a
   * snapshot.
   */
  static boolean ofTable(InternalRow row, int at) {
    byte op = row.getUTF8String(at).getByte(0);
    return op == 't' || op == 'r' && !row.isNullAt(at + 6)
        && (row.getUTF8String(at + 6).startsWith(FIRST)
        || row.getUTF8String(at + 6).startsWith(LAST));
  }

  private static final UTF8String FIRST = UTF8String.fromString("first"), LAST = UTF8String.fromString("last");

  /**
   * Returns whether a snapshot of the whole table read this row. An incremental snapshot, requested
   * by a signal, runs concurrently with the log and has no position in it.
   */
  boolean snapshot() { return op == 'r' && !marker.equals("incremental"); }

  boolean first() { return marker.startsWith("first"); }

  boolean last() { return marker.startsWith("last"); }

  private static String text(InternalRow row, int at) { return row.isNullAt(at) ? "" : row.getUTF8String(at).toString(); }

  private static byte[] bytes(InternalRow row, int at) { return row.isNullAt(at) ? null : row.getUTF8String(at).getBytes(); }

  /** Compares positions. Null sorts before all others. */
  static int compare(byte[] a, byte[] b) {
    if (a == null || b == null) return a == b ? 0 : a == null ? -1 : 1;
    return Arrays.compareUnsigned(a, b);
  }
}
