package tailgate.formats.ksqldb;

import org.apache.spark.sql.types.DataType;
import tailgate.formats.Format;
import tailgate.formats.protobuf.ProtobufFormat;

/** ksqlDB's PROTOBUF and PROTOBUF_NOSR: a message whose fields are columns. */
final class KsqldbProtobufFormat extends Format {
  private static final long serialVersionUID = 1;
  private final KsqldbColumns columns;
  private final ProtobufFormat message;

  KsqldbProtobufFormat(KsqldbColumns columns, ProtobufFormat message) {
    this.columns = columns;
    this.message = message;
  }

  @Override public DataType type() { return columns.struct(); }

  @Override public Object decode(byte[] bytes) { return KsqldbTree.row(columns, message.tree(bytes)); }
}
