package tailgate.sources;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The ordinals of the columns of a Kafka record, as Spark reads it. */
public final class KafkaRecord {
  public static final int KEY = 0, VALUE = 1, TOPIC = 2, PARTITION = 3, OFFSET = 4, TIMESTAMP = 5, HEADERS = 7;
  public static final ArrayType HEADERS_TYPE =
      DataTypes.createArrayType(new StructType().add("key", "string").add("value", "binary"));

  private KafkaRecord() {}
}
