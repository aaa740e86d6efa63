package tailgate.rows;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/** Converts rows to bytes and back. */
public final class Rows {
  private Rows() {}

  /**
   * Returns a copy of the row's bytes. A projection reuses its buffer, which getBytes() may return
   * directly.
   */
  public static byte[] bytes(UnsafeRow row) {
    byte[] bytes = new byte[row.getSizeInBytes()];
    Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
    return bytes;
  }

  /** Returns a row of `width` columns over these bytes, without copying. */
  public static UnsafeRow row(byte[] bytes, int width) {
    UnsafeRow r = new UnsafeRow(width);
    r.pointTo(bytes, bytes.length);
    return r;
  }

  public static int hash(byte[] bytes, int seed) {
    return Murmur3_x86_32.hashUnsafeBytes2(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, seed);
  }

  /** Bytes with value equality, for use as map keys. */
  public static final class Bytes {
    public final byte[] bytes;
    private final int hash;

    public Bytes(byte[] bytes) {
      this.bytes = bytes;
      this.hash = Rows.hash(bytes, 42);
    }

    @Override public int hashCode() { return hash; }

    @Override public boolean equals(Object o) { return o instanceof Bytes b && hash == b.hash && Arrays.equals(bytes, b.bytes); }
  }
}
