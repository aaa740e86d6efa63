package tailgate.sources;

import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The columns of a Kafka record, as Spark reads it: their ordinals, and access to its headers. */
public final class KafkaRecord {
  public static final int KEY = 0, VALUE = 1, TOPIC = 2, PARTITION = 3, OFFSET = 4, TIMESTAMP = 5, HEADERS = 7;
  public static final ArrayType HEADERS_TYPE =
      DataTypes.createArrayType(new StructType().add("key", "string").add("value", "binary"));

  private KafkaRecord() {}

  /** Returns the bytes of a binary column; 0 for NULL. */
  public static int size(InternalRow record, int column) { return record.isNullAt(column) ? 0 : record.getBinary(column).length; }

  /** Returns the headers, or null if the record has none. */
  public static ArrayData headers(InternalRow record) {
    return record.numFields() <= HEADERS || record.isNullAt(HEADERS) ? null : record.getArray(HEADERS);
  }

  /** Returns the value of the last header of this name, as ASCII, or null. */
  public static String header(InternalRow record, String name) {
    ArrayData all = headers(record);
    for (int i = all == null ? -1 : all.numElements() - 1; i >= 0; i--) {
      InternalRow one = all.getStruct(i, 2);
      if (one.getUTF8String(0).toString().equals(name)) return new String(one.getBinary(1), StandardCharsets.US_ASCII);
    }
    return null;
  }
}
