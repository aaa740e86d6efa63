package tailgate;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;

/** One record, one row: its key and value by their formats, and where it came from. */
final class KafkaDecoder implements Decoder {
  private static final long serialVersionUID = 1;
  private final Format key, value;

  KafkaDecoder(Format key, Format value) {
    this.key = key;
    this.value = value;
  }

  @Override public StructType schema() {
    return new StructType().add("key", key.type()).add("value", value.type())
        .add("__topic", "string", false).add("__partition", "int", false).add("__offset", "long", false).add("__timestamp", "timestamp")
        .add("__headers", Circuit.HEADERS_TYPE);
  }

  @Override public void decode(InternalRow record, Rows rows) {
    rows.row(new GenericInternalRow(new Object[] {
        record.isNullAt(Circuit.KEY) ? null : key.decode(record.getBinary(Circuit.KEY)),
        record.isNullAt(Circuit.VALUE) ? null : value.decode(record.getBinary(Circuit.VALUE)),
        record.getUTF8String(Circuit.TOPIC), record.getInt(Circuit.PARTITION), record.getLong(Circuit.OFFSET),
        record.isNullAt(Circuit.TIMESTAMP) ? null : record.getLong(Circuit.TIMESTAMP),
        record.numFields() <= Circuit.HEADERS || record.isNullAt(Circuit.HEADERS) ? null : record.getArray(Circuit.HEADERS)}), 1);
  }
}
