package tailgate.rows;

import java.io.DataInput;
import java.io.DataInputStream;
import java.io.DataOutput;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.util.Arrays;

/**
 * Encodes values as bytes and decodes them. One thread uses a buffer again and again: the streams of Java's library allocate
 * several arrays each, and take a lock for each byte.
 */
public final class DataBuffer {
  private byte[] written = new byte[64];
  private int size;
  private byte[] source;
  private int at;

  private final DataOutputStream out = new DataOutputStream(new OutputStream() {
    @Override public void write(int b) {
      if (size == written.length) grow(size + 1);
      written[size++] = (byte) b;
    }

    @Override public void write(byte[] bytes, int from, int length) {
      if (length > written.length - size) grow(size + length);
      System.arraycopy(bytes, from, written, size, length);
      size += length;
    }
  });

  private final DataInputStream in = new DataInputStream(new InputStream() {
    @Override public int read() { return at == source.length ? -1 : source[at++] & 255; }

    @Override public int read(byte[] bytes, int from, int length) {
      if (at == source.length) return length == 0 ? 0 : -1;
      int n = Math.min(length, source.length - at);
      System.arraycopy(source, at, bytes, from, n);
      at += n;
      return n;
    }
  });

  /** Writes a value. */
  public interface Writer {
    void write(DataOutput out) throws IOException;
  }

  /** Reads a value. */
  public interface Reader {
    void read(DataInput in) throws IOException;
  }

  /** Returns the bytes that a writer writes. */
  public byte[] encode(Writer writer) {
    size = 0;
    try {
      writer.write(out);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return Arrays.copyOf(written, size);
  }

  /** Lets a reader read from these bytes. */
  public void decode(byte[] bytes, Reader reader) {
    source = bytes;
    at = 0;
    try {
      reader.read(in);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void grow(int length) { written = Arrays.copyOf(written, Math.max(length, 2 * written.length)); }
}
