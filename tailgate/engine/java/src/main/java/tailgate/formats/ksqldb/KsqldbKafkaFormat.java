package tailgate.formats.ksqldb;

import java.nio.ByteBuffer;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import tailgate.formats.Format;
import tailgate.functions.text.Utf8;

/** ksqlDB's KAFKA: one column as Kafka's serializers of primitives write it. */
final class KsqldbKafkaFormat extends Format {
  private static final long serialVersionUID = 1;
  private final KsqldbColumns columns;

  KsqldbKafkaFormat(KsqldbColumns columns) {
    this.columns = columns;
  }

  @Override public DataType type() { return columns.struct(); }

  @Override public Object decode(byte[] bytes) { return new GenericInternalRow(new Object[] {value(bytes)}); }

  private Object value(byte[] bytes) {
    return switch (columns.types()[0]) {
      case "int4" -> sized(bytes, 4).getInt();
      case "int8" -> sized(bytes, 8).getLong();
      case "float8" -> sized(bytes, 8).getDouble();
      case "bytea" -> bytes;
      default -> Utf8.text(bytes);
    };
  }

  private ByteBuffer sized(byte[] bytes, int size) {
    if (bytes.length != size) {
      throw malformed("a value of type " + columns.spark(0).catalogString() + " has " + size + " bytes, not " + bytes.length);
    }
    return ByteBuffer.wrap(bytes);
  }
}
