package tailgate.formats.ksqldb;

import java.util.Arrays;
import org.apache.spark.sql.types.DataType;
import tailgate.formats.Format;

/** ksqlDB's JSON_SR: JSON behind the id of its schema, which is not needed to read it. JSON may have the id. */
final class KsqldbSchemaJsonFormat extends Format {
  private static final long serialVersionUID = 1;
  private static final int HEADER = 5;  // a zero byte and the id
  private final Format json;
  private final boolean required;  // whether there must be an id

  KsqldbSchemaJsonFormat(Format json, boolean required) {
    this.json = json;
    this.required = required;
  }

  @Override public DataType type() { return json.type(); }

  @Override public Object decode(byte[] bytes) {
    if (!required && (bytes.length == 0 || bytes[0] != 0)) return json.decode(bytes);
    if (bytes.length < HEADER || bytes[0] != 0) throw malformed("not in Confluent's wire format");
    return json.decode(Arrays.copyOfRange(bytes, HEADER, bytes.length));
  }
}
