package tailgate.formats.ksqldb;

import java.util.Map;
import org.apache.spark.sql.types.DataType;
import tailgate.formats.Format;
import tailgate.formats.avro.AvroTree;
import tailgate.formats.avro.SchemaRegistry;

/** ksqlDB's AVRO: a record whose fields are columns, or the value of the only column. */
final class KsqldbAvroFormat extends Format {
  private static final long serialVersionUID = 1;
  private final KsqldbColumns columns;
  private final boolean wrapped;
  private final AvroTree trees;

  KsqldbAvroFormat(KsqldbColumns columns, boolean wrapped, SchemaRegistry registry) {
    this.columns = columns;
    this.wrapped = wrapped;
    this.trees = new AvroTree(registry);
  }

  @Override public DataType type() { return columns.struct(); }

  @Override public Object decode(byte[] bytes) {
    Object tree = trees.read(bytes);
    if (tree == null) return null;
    if (!wrapped) return KsqldbTree.alone(columns, tree);
    if (tree instanceof Map<?, ?> record) return KsqldbTree.row(columns, record);
    throw malformed("the value is not a record");
  }
}
