package tailgate.circuit;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import tailgate.rows.Rows;
import tailgate.state.State;
import tailgate.state.StateIds;

/**
 * A message between the stages of a tick or, at the end, to the driver.
 *
 * <p>`kind` is one of
 *
 * <pre>   BLOCK          n changes for the operators of level `to`, or for relations, see {@link SentBlocks}
 *   Edge.RELATION  all changes of relation `to`, as an Arrow stream of n rows
 *   REPEATED       rows of relation `to` that changes removed and added again, as an Arrow stream of n rows
 *   FILE           the same as RELATION, with the name of a file that holds the stream
 *   STATE          the id of the version that store `to` committed in partition n; the order is the number of
 *                  its versions without an uploaded snapshot
 *   COUNT          source `to` read n records; the bytes are the number of dead letters, the number of bytes, and the newest time in ms
 *   LATE           the operator `to` dropped n late rows
 *   FAILURE        n rows failed with the message in the bytes: in the edge to a port, the order, of node `to`, which continues with
 *                  NULL; or, with KEY or VALUE as order, n records of source `to` could not be decoded
 *   RELEASED       the operator `to` has retracted the groups of windows that end at or before n ms
 *   REMAINS        the forgotten node `to` still has state
 *   DUE            a tick is needed at time n
 *   TOOK           a step took n nanoseconds: the level `to`, DECODING of the records, or COMMITTING the state
 *   STATISTICS     work and state size of the operator `to` in partition n, as {@link Statistics} defines them</pre>
 */
public record Sent(int kind, int to, byte[] bytes, long n, long order) implements Serializable {
  static final int STATE = -2, COUNT = -3, COUNTS = 4, REMAINS = -4, DUE = -5, FILE = -6, STATISTICS = -7, LATE = -8, RELEASED = -9;
  static final int FAILURE = -10, TOOK = -11, REPEATED = -12, BLOCK = -13, DECODING = -1, COMMITTING = Integer.MAX_VALUE;
  /** The parts of a record, instead of a port. */
  static final int VALUE = -2, KEY = -3;

  Sent(int kind, int to, byte[] bytes, long n) { this(kind, to, bytes, n, 0); }

  /** Returns the place of a key: all messages of one node and key go to one partition. */
  static int place(int to, byte[] key) { return Rows.hash(key, to); }

  static int place(InternalRow row) { return row.getInt(0); }

  static int kind(InternalRow row) { return row.getInt(1); }

  public static int to(InternalRow row) { return row.getInt(2); }

  public static byte[] bytes(InternalRow row) { return row.getBinary(3); }

  public static long n(InternalRow row) { return row.getLong(4); }

  static long order(InternalRow row) { return row.getLong(5); }

  public static Sent of(InternalRow row) { return new Sent(kind(row), to(row), bytes(row), n(row), order(row)); }

  static final int WIDTH = 6;

  UnsafeRow row() { return row(place(to, State.NONE)); }

  /** Encodes the message for this place. */
  UnsafeRow row(int place) {
    UnsafeRowWriter out = new UnsafeRowWriter(WIDTH, bytes.length + 8);
    out.resetRowWriter();
    out.write(0, place);
    out.write(1, kind);
    out.write(2, to);
    out.write(3, bytes);
    out.write(4, n);
    out.write(5, order);
    return out.getRow();
  }

  /** Returns the version that a message of kind STATE reports. */
  StateIds.Committed committed() { return new StateIds.Committed(to, (int) n, new String(bytes, StandardCharsets.US_ASCII)); }

  /** Returns the failure that a message of kind FAILURE reports. */
  TickResult.Failure failure() { return new TickResult.Failure(to, (int) order, new String(bytes, StandardCharsets.UTF_8), n); }

  @Override public String toString() { return "Sent[" + kind + " to " + to + ", " + n + ", " + Arrays.hashCode(bytes) + "]"; }
}
