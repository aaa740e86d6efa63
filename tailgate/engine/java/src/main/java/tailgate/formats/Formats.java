package tailgate.formats;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import tailgate.formats.avro.AvroFormat;
import tailgate.formats.avro.SchemaRegistry;
import tailgate.formats.connect.ConnectFormat;
import tailgate.formats.json.JsonColumnsFormat;
import tailgate.formats.json.JsonbFormat;
import tailgate.formats.ksqldb.KsqldbFormats;
import tailgate.formats.protobuf.ProtobufFormat;
import tailgate.functions.text.Utf8;
import tailgate.security.Secrets;

/** Creates the formats. Python calls these methods by py4j. */
public final class Formats {
  private Formats() {}

  /** Returns a format whose values are always NULL, of type binary. */
  public static Format none() { return new PlainFormat(null); }

  /** Returns a format of type binary. */
  public static Format bytes() { return new PlainFormat(DataTypes.BinaryType); }

  /** Returns a format of UTF-8 text. */
  public static Format text() { return new PlainFormat(DataTypes.StringType); }

  /** Returns a format of JSON documents, as canonical text of jsonb. */
  public static Format json() { return new JsonbFormat(); }

  /** Returns a format of JSON objects, as a struct of columns that are read by name. */
  public static Format jsonColumns(StructType columns) { return new JsonColumnsFormat(columns); }

  /** Returns a format of ksqlDB, as a struct of columns c0, c1, and so on ({@link KsqldbFormats}). */
  public static Format ksqldb(String spec, String registryUrl, String access) {
    return KsqldbFormats.of(spec, registryUrl, access);
  }

  /**
   * Returns a format of one CSV line, as a struct of strings c0, c1, and so on.
   *
   * @param header the names of the columns if each message begins with a header line, else empty
   * @param emptyIsNull whether an empty field without quotes is NULL
   */
  public static Format csv(int columns, String delimiter, String[] header, boolean emptyIsNull) {
    return new CsvFormat(columns, delimiter.charAt(0), header, emptyIsNull);
  }

  /** Returns a format of text, as a struct of an expression's groups: strings c0, c1, and so on. */
  public static Format regex(String expression) { return new RegexFormat(expression); }

  /**
   * Returns a format of Debezium's envelopes or keys in Kafka Connect's JSON ({@link
   * ConnectFormat}).
   */
  public static Format connectJson(String spec) { return new ConnectFormat(spec); }

  /**
   * Returns a format of Protobuf messages, as a struct with a column for each field ({@link
   * ProtobufFormat}).
   */
  public static Format protobuf(String spec) { return new ProtobufFormat(spec); }

  /**
   * Returns a format of Avro in Confluent's wire format. Each message contains the id of its
   * writer's schema, which the registry has.
   *
   * @param access the number of the registry's credentials in {@link Secrets}, or empty
   */
  public static Format avro(String readerSchema, String registryUrl, String access) {
    return new AvroFormat(readerSchema, SchemaRegistry.of(registryUrl, access), true);
  }

  /**
   * Returns a format of Avro whose messages are all written with one schema.
   *
   * @param hasSchemaId whether messages begin with a schema id, which is ignored
   */
  public static Format avroInline(String schema, boolean hasSchemaId) {
    return new AvroFormat(schema, null, hasSchemaId);
  }

  /** Bytes or text as they are; with the type null, always NULL. */
  private static final class PlainFormat extends Format {
    private static final long serialVersionUID = 1;
    private final DataType type;

    PlainFormat(DataType type) { this.type = type; }

    @Override public DataType type() { return type == null ? DataTypes.BinaryType : type; }

    @Override public Object decode(byte[] bytes) {
      if (type == null) return null;
      return type == DataTypes.BinaryType ? bytes : Utf8.text(bytes);
    }
  }
}
