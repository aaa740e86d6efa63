package tailgate.sources;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import tailgate.formats.Format;

/**
 * Converts a record to rows. A decoder is used by one thread; its state between records is
 * transient.
 */
public interface Decoder extends Serializable {
  /** Receives the rows of one record. */
  interface Rows {
    /** Receives a row. The caller may reuse it afterwards. */
    void row(InternalRow row, long weight);
  }

  /** The time of the tick of old records, which come before all others. */
  long HISTORY = 0;

  /** Returns the columns of the rows. */
  StructType schema();

  /**
   * Passes the rows of one record (Kafka's columns) to `rows`.
   *
   * @param tick the time of the tick that reads it, in ms; {@link #HISTORY} for a record of a fill
   * @param order its {@link tailgate.rows.Change#order}
   * @throws SqlError if the record cannot be decoded: it becomes a dead letter, and rows passed
   * before do not count
   * @throws java.io.UncheckedIOException if an external system does not answer, whatever the record
   */
  void decode(InternalRow record, long tick, long order, Rows rows);

  // ---- for py4j ---------------------------------------------------------------------------------

  /**
   * Returns a decoder with the columns `key`, `value` by their formats, then `__topic`,
   * `__partition`, `__offset`, `__timestamp`, `__headers`, `__tick`, `__order`.
   */
  static Decoder kafka(Format key, Format value) { return kafka(key, value, Integer.MAX_VALUE); }

  /**
   * Returns the same decoder with a limit: a record whose key and value have more bytes fails with
   * 54000.
   */
  static Decoder kafka(Format key, Format value, int bytesMax) { return new KafkaDecoder(key, value, bytesMax); }

  /**
   * Returns a decoder of values that are Arrow IPC streams with the row's columns and `__weight`:
   * many weighted rows in one record.
   */
  static Decoder arrow(StructType row) { return new ArrowDecoder(row); }
}
