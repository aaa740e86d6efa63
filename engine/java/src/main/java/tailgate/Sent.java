package tailgate;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;

/**
 * What travels between the stages of a tick and, at the end, to the driver.
 *
 * <p>From zero up `kind` is a port: a change on its way to the operator `to`. Below zero it is one of
 *
 * <pre>   Edge.RELATION  a change of relation `to`; at the end, all its changes as an Arrow stream of n rows
 *   FILE           the same, with the name of a file that holds the stream
 *   STATE          the id of the version that store `to` committed in partition n
 *   COUNT          source `to` read n records; the bytes are how many dead letters, how many bytes, and the newest time in ms
 *   REMAINS        the forgotten node `to` still has state
 *   DUE            there is something to do at time n
 *   STATISTICS     what the operator `to` did and holds in partition n, as {@link Statistics} counts it</pre>
 */
record Sent(int kind, int to, byte[] bytes, long n) implements Serializable {
  static final int STATE = -2, COUNT = -3, COUNTS = 4, REMAINS = -4, DUE = -5, FILE = -6, STATISTICS = -7;

  /** Where it goes: all of one node and key to one place. */
  static int place(int to, byte[] key) { return Rows.hash(key, to); }

  static int place(InternalRow row) { return row.getInt(0); }

  static int kind(InternalRow row) { return row.getInt(1); }

  static int to(InternalRow row) { return row.getInt(2); }

  static byte[] bytes(InternalRow row) { return row.getBinary(3); }

  static long n(InternalRow row) { return row.getLong(4); }

  static Sent of(InternalRow row) { return new Sent(kind(row), to(row), bytes(row), n(row)); }

  static final int WIDTH = 5;

  UnsafeRow row() { return row(State.NONE); }

  UnsafeRow row(byte[] key) { return row(place(to, key)); }

  /** To this place. */
  UnsafeRow row(int place) {
    UnsafeRowWriter out = new UnsafeRowWriter(WIDTH, bytes.length + 8);
    out.resetRowWriter();
    out.write(0, place);
    out.write(1, kind);
    out.write(2, to);
    out.write(3, bytes);
    out.write(4, n);
    return out.getRow();
  }

  @Override public String toString() { return "Sent[" + kind + " to " + to + ", " + n + ", " + Arrays.hashCode(bytes) + "]"; }
}
