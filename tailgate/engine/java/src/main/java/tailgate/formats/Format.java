package tailgate.formats;

import java.io.Serializable;
import org.apache.spark.sql.types.DataType;
import tailgate.errors.SqlError;

/**
 * A decoder of the bytes of a message's key or value. A key or value that is NULL is never decoded.
 *
 * <p>A format is used by one thread.
 */
public abstract class Format implements Serializable {
  private static final long serialVersionUID = 1;

  /** The type of the decoded values. */
  public abstract DataType type();

  /**
   * Returns a value in Catalyst's form, or null. It is valid until the next call.
   *
   * @throws SqlError if the bytes cannot be decoded: the message becomes a dead letter
   * @throws java.io.UncheckedIOException if a schema registry does not answer: the source stalls
   */
  public abstract Object decode(byte[] bytes);

  /** Returns 22P02, for bytes that are not valid in the format. */
  public static SqlError malformed(String reason) { return new SqlError("22P02", reason); }

  /** Returns 22P02, for a message that ends within a value. */
  public static SqlError truncated() { return malformed("the message ends within a value"); }
}
