package tailgate.sources;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.rows.Rows;

/** Decodes a record to one row: its key and value by their formats, its position in Kafka, and its order. */
final class KafkaDecoder implements Decoder {
  private static final long serialVersionUID = 1;
  private final Format key, value;
  private final int bytesMax;

  KafkaDecoder(Format key, Format value, int bytesMax) {
    this.key = key;
    this.value = value;
    this.bytesMax = bytesMax;
  }

  @Override public StructType schema() {
    return new StructType().add("key", key.type()).add("value", value.type())
        .add("__topic", "string", false).add("__partition", "int", false).add("__offset", "long", false).add("__timestamp", "timestamp")
        .add("__headers", KafkaRecord.HEADERS_TYPE).add("__tick", "long", false).add("__order", "long", false);
  }

  @Override public void decode(InternalRow record, long tick, long order, Rows rows) {
    if (bytesMax != Integer.MAX_VALUE) check((long) bytes(record, KafkaRecord.KEY) + bytes(record, KafkaRecord.VALUE));
    rows.row(new GenericInternalRow(new Object[] {
        key(record),
        record.isNullAt(KafkaRecord.VALUE) ? null : value.decode(record.getBinary(KafkaRecord.VALUE)),
        record.getUTF8String(KafkaRecord.TOPIC), record.getInt(KafkaRecord.PARTITION), record.getLong(KafkaRecord.OFFSET),
        record.isNullAt(KafkaRecord.TIMESTAMP) ? null : record.getLong(KafkaRecord.TIMESTAMP),
        record.numFields() <= KafkaRecord.HEADERS || record.isNullAt(KafkaRecord.HEADERS) ? null : record.getArray(KafkaRecord.HEADERS),
        tick, Math.max(order, 0)}), 1);
  }

  private Object key(InternalRow record) {
    try {
      return record.isNullAt(KafkaRecord.KEY) ? null : key.decode(record.getBinary(KafkaRecord.KEY));
    } catch (SqlError e) {
      throw e.ofKey();
    }
  }

  private void check(long bytes) {
    if (bytes > bytesMax) throw new SqlError("54000", "the message has " + bytes + " bytes, and max_message_bytes is " + bytesMax);
  }

  private static int bytes(InternalRow record, int column) { return record.isNullAt(column) ? 0 : record.getBinary(column).length; }
}
