package tailgate;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/** Rows as bytes and back. */
final class Rows {
  private Rows() {}

  /** A copy of its own: a projection reuses its buffer, and getBytes() may hand out that buffer itself. */
  static byte[] bytes(UnsafeRow row) {
    byte[] bytes = new byte[row.getSizeInBytes()];
    Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
    return bytes;
  }

  /** Reads bytes of a row with `width` columns, without copying. */
  static UnsafeRow row(byte[] bytes, int width) {
    UnsafeRow r = new UnsafeRow(width);
    r.pointTo(bytes, bytes.length);
    return r;
  }

  static int hash(byte[] bytes, int seed) { return Murmur3_x86_32.hashUnsafeBytes2(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, seed); }

  /** Bytes with value equality, for maps. */
  static final class Bytes {
    final byte[] bytes;
    private final int hash;

    Bytes(byte[] bytes) {
      this.bytes = bytes;
      this.hash = Rows.hash(bytes, 42);
    }

    @Override public int hashCode() { return hash; }

    @Override public boolean equals(Object o) { return o instanceof Bytes b && hash == b.hash && Arrays.equals(bytes, b.bytes); }
  }
}
