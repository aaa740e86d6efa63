package tailgate.formats.avro;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.AvroRuntimeException;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.DataType;
import tailgate.errors.SqlError;
import tailgate.formats.Format;

/**
 * Avro in Confluent's wire format, decoded to Spark's rows in one pass over the bytes without
 * intermediate objects.
 *
 * <pre>
 *   0 | schema id | Avro ──► the reader for this id ──► the reader schema's type
 *        unknown id, missing bytes, extra bytes, out of range ──► dead letter
 *        the registry does not answer ──► UncheckedIOException: the source stalls
 * </pre>
 */
public final class AvroFormat extends Format {
  private static final long serialVersionUID = 1;
  private final String readerSchema;
  private final SchemaRegistry registry;
  private final boolean hasSchemaId;
  private transient DataType type;
  private transient Map<Integer, AvroResolver.ValueReader> readers;  // by schema id
  private transient UnsafeRowWriter out;
  private transient AvroInput in;

  /**
   * @param registry the registry of the writers' schemas, or null if all have the reader's schema
   * @param hasSchemaId whether messages begin with a schema id
   */
  public AvroFormat(String readerSchema, SchemaRegistry registry, boolean hasSchemaId) {
    this.hasSchemaId = hasSchemaId;
    this.readerSchema = readerSchema;
    this.registry = registry;
    type();  // an unsupported schema fails here, not for each message
  }

  @Override public DataType type() {
    if (type == null) type = AvroTypes.type(AvroTypes.parse(readerSchema));
    return type;
  }

  @Override public Object decode(byte[] message) {
    if (in == null) start();
    try {
      out.reset();
      out.zeroOutNullBytes();
      in.bytes = message;
      in.at = 0;
      if (hasSchemaId && (message.length < 5 || message[in.at++] != 0)) {
        throw malformed("not in Confluent's wire format");
      }
      int id = hasSchemaId ? in.schemaId() : 0;
      reader(registry == null ? 0 : id).read(in, out, 0);
      if (in.at != message.length) throw malformed((message.length - in.at) + " bytes after the end of the value");
      return out.getRow().get(0, type());
    } catch (ArithmeticException e) {
      throw malformed(e.getMessage());
    } catch (ArrayIndexOutOfBoundsException e) {
      throw truncated();
    } catch (StackOverflowError e) {
      throw SqlError.tooDeep();
    }
  }

  private void start() {
    readers = new HashMap<>();
    out = new UnsafeRowWriter(1, 1024);
    in = new AvroInput();
  }

  private AvroResolver.ValueReader reader(int id) {
    AvroResolver.ValueReader cached = readers.get(id);
    if (cached != null) return cached;
    try {
      List<String> writerSchema = registry == null ? List.of(readerSchema) : registry.byId(id);
      if (writerSchema == null) throw malformed("schema " + id + " is not in the registry");
      AvroResolver resolver = new AvroResolver(out);
      var reader = resolver.resolve(AvroTypes.parse(writerSchema), AvroTypes.parse(readerSchema));
      readers.put(id, reader);
      return reader;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (AvroRuntimeException e) {
      throw malformed("schema " + id + ": " + e.getMessage());
    }
  }
}
