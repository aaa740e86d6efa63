package tailgate;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.AvroRuntimeException;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.DataType;

/**
 * Avro in Confluent's wire format to Spark's rows: one pass over the bytes, no objects between.
 *
 * <pre>   0 | schema id | Avro ──► read for this id ──► the reader schema's type
 *        unknown id, bytes missing, bytes left, out of range ──► dead letter
 *        registry does not answer ──► UncheckedIOException: no property of the record</pre>
 */
final class AvroFormat extends Format {
  private static final long serialVersionUID = 1;
  private static final String SHORT = "the message ends within a value";
  private final String reader;
  private final AvroRegistry registry;
  private final boolean wire;
  private transient DataType type;
  private transient Map<Integer, AvroReads.Read> known;
  private transient UnsafeRowWriter out;
  private transient AvroBytes in;

  /** Without a registry (null) the reader's schema is the writer's too; `wire`: that a message begins with the id of its schema all the same. */
  AvroFormat(String reader, AvroRegistry registry, boolean wire) {
    this.wire = wire;
    this.reader = reader;
    this.registry = registry;
    type();  // what cannot become a type is refused here, not row by row
  }

  @Override DataType type() { return type == null ? type = AvroTypes.type(AvroTypes.parse(reader)) : type; }

  @Override Object decode(byte[] message) {
    if (in == null) start();
    try {
      out.reset();
      out.zeroOutNullBytes();
      in.bytes = message;
      in.at = 0;
      if (wire && (message.length < 5 || message[in.at++] != 0)) throw undecodable("not in Confluent's wire format");
      int id = wire ? in.id() : 0;
      read(registry == null ? 0 : id).read(in, out, 0);
      if (in.at != message.length) throw undecodable((message.length - in.at) + " bytes after the end of the value");
      return out.getRow().get(0, type());
    } catch (ArithmeticException e) {
      throw undecodable(e.getMessage());
    } catch (ArrayIndexOutOfBoundsException e) {
      throw undecodable(SHORT);
    } catch (StackOverflowError e) {
      throw SqlError.tooDeep();
    }
  }

  private void start() {
    known = new HashMap<>();
    out = new UnsafeRowWriter(1, 1024);
    in = new AvroBytes();
  }

  private AvroReads.Read read(int id) {
    AvroReads.Read read = known.get(id);
    if (read != null) return read;
    try {
      List<String> writer = registry == null ? List.of(reader) : registry.byId(id);
      if (writer == null) throw undecodable("schema " + id + " is not in the registry");
      read = new AvroReads(out).resolve(AvroTypes.parse(writer), AvroTypes.parse(reader));
      known.put(id, read);
      return read;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (AvroRuntimeException e) {
      throw undecodable("schema " + id + ": " + e.getMessage());
    }
  }

  private static SqlError undecodable(String reason) { return new SqlError("22P02", reason); }
}
