package tailgate.formats.ksqldb;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import tailgate.formats.Format;

/**
 * A key before the bounds of its window: 8 bytes with the start of a window of known size, or 16 bytes with
 * the end and the start of a session. The last two columns are the start and the end, in milliseconds.
 *
 * <p>Source: Kafka 3.9, TimeWindowedSerializer and SessionWindowedSerializer.
 */
final class KsqldbWindowedKey extends Format {
  private static final long serialVersionUID = 1;
  private final Format key;
  private final StructType type;
  private final long size;  // 0 for sessions

  /** @param key the format of the columns without the bounds; `type`: all columns */
  KsqldbWindowedKey(Format key, StructType type, long size) {
    this.key = key;
    this.type = type;
    this.size = size;
  }

  @Override public DataType type() { return type; }

  @Override public Object decode(byte[] bytes) {
    int suffix = size > 0 ? Long.BYTES : 2 * Long.BYTES;
    if (bytes.length < suffix) throw malformed("the key has no window");
    int end = bytes.length - suffix;
    ByteBuffer bounds = ByteBuffer.wrap(bytes, end, suffix);
    long first = bounds.getLong();
    InternalRow columns = (InternalRow) key.decode(Arrays.copyOf(bytes, end));
    if (columns == null) return null;
    Object[] values = Arrays.copyOf(((GenericInternalRow) columns).values(), type.size());
    values[values.length - 2] = size > 0 ? first : bounds.getLong();
    values[values.length - 1] = size > 0 ? first + size : first;
    return new GenericInternalRow(values);
  }
}
