package tailgate.formats.json;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.formats.Format;
import tailgate.functions.json.Jsonb;

/** A JSON document as the canonical text of jsonb. */
public final class JsonbFormat extends Format {
  private static final long serialVersionUID = 1;

  @Override public DataType type() { return DataTypes.StringType; }

  @Override public Object decode(byte[] bytes) { return UTF8String.fromBytes(Jsonb.canonical(bytes)); }
}
