package tailgate;

import java.io.Serializable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** What makes one value of the bytes of a key or a value. NULL bytes are NULL in every format and never come here. */
public abstract class Format implements Serializable {
  private static final long serialVersionUID = 1;

  abstract DataType type();

  /** Catalyst's form of the value, or null; valid until the next call. Throws SqlError if there is none. */
  abstract Object decode(byte[] bytes);

  // ---- for py4j -------------------------------------------------------------------------------------------------------------

  /** Not looked at: NULL, of type binary. */
  public static Format none() { return new Plain(null); }

  /** binary */
  public static Format bytes() { return new Plain(DataTypes.BinaryType); }

  /** string; 22021 if it is not UTF-8 */
  public static Format text() { return new Plain(DataTypes.StringType); }

  /** string: the canonical text of a jsonb */
  public static Format json() { return new JsonFormat(); }

  /** struct of the declared columns, read by name from a JSON object */
  public static Format jsonColumns(StructType columns) { return new JsonColumns(columns); }

  /** struct of n strings c0, c1, …: the fields of one line. `header`: the columns' names, if a first line tells their order; `nulls`: that an empty field without quotes is NULL */
  public static Format csv(int columns, String delimiter, String[] header, boolean nulls) { return new CsvFormat(columns, delimiter.charAt(0), header, nulls); }

  /** struct of strings c0, c1, …: the groups of an expression that matches the whole text, in their order */
  public static Format regex(String expression) { return new RegexFormat(expression); }

  /** Debezium's envelope or key in Kafka Connect's JSON: see {@link ConnectJson} */
  public static Format connectJson(String spec) { return new ConnectJson(spec); }

  /** struct of a column for each field of a message: see {@link ProtobufTypes} */
  public static Format protobuf(String spec) { return new ProtobufFormat(spec); }

  /** the reader schema's type, from Confluent's wire format; the writer's schema comes from the registry by its id. `access`: under which name {@link Secrets} keeps how the registry is reached, or empty */
  public static Format avro(String readerSchema, String registryUrl, String access) { return new AvroFormat(readerSchema, AvroRegistry.of(registryUrl, access), true); }

  /** the same of messages that were all written with the reader's schema; `wire`: they begin with an id all the same */
  public static Format avroInline(String schema, boolean wire) { return new AvroFormat(schema, null, wire); }

  private static final class Plain extends Format {
    private static final long serialVersionUID = 1;
    private final DataType type;

    Plain(DataType type) { this.type = type; }

    @Override DataType type() { return type == null ? DataTypes.BinaryType : type; }

    @Override Object decode(byte[] bytes) {
      if (type == null) return null;
      return type == DataTypes.BinaryType ? bytes : Utf8.text(bytes);
    }
  }
}
