package tailgate;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import tailgate.formats.Format;

/** What makes rows of a record. One decoder is used by one thread; state between records is transient. */
public interface Decoder extends Serializable {
  /** Takes the rows of one record. */
  interface Rows {
    /** The row may be reused when this returns. */
    void row(InternalRow row, long weight);
  }

  /** The columns of its rows. */
  StructType schema();

  /**
   * Gives the rows of one record (Kafka's columns).
   *
   * @throws SqlError why the record has no rows: it becomes a dead letter, and rows given before do not count
   * @throws java.io.UncheckedIOException if something outside does not answer: no property of the record
   */
  void decode(InternalRow record, Rows rows);

  // ---- for py4j -------------------------------------------------------------------------------------------------------------

  /** Columns `key`, `value` by their formats, then `__topic`, `__partition`, `__offset`, `__timestamp`, `__headers`. */
  static Decoder kafka(Format key, Format value) { return kafka(key, value, Integer.MAX_VALUE); }

  /** The same; a record whose key and value have more bytes has no rows: 54000. */
  static Decoder kafka(Format key, Format value, int bytesMax) { return new KafkaDecoder(key, value, bytesMax); }

  /** The value is an Arrow IPC stream with the row's columns and `__weight`: many weighted rows in one record. */
  static Decoder arrow(StructType row) { return new ArrowDecoder(row); }
}
