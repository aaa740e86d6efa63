package tailgate;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** JSON as the canonical text of a jsonb. */
final class JsonFormat extends Format {
  private static final long serialVersionUID = 1;

  @Override DataType type() { return DataTypes.StringType; }

  @Override Object decode(byte[] bytes) { return UTF8String.fromBytes(Jsonb.canonical(bytes)); }
}
