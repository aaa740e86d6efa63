package tailgate.formats.avro;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.apache.avro.Schema;
import tailgate.formats.Format;

/**
 * An Avro message and a read position in it. Reading past the end throws an
 * ArrayIndexOutOfBoundsException.
 *
 * <p>Source: Avro 1.12 specification, "Binary encoding".
 */
final class AvroInput {
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, LITTLE_ENDIAN);
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, LITTLE_ENDIAN);
  byte[] bytes;
  int at;

  /** Reads the schema id of the wire format, a big-endian integer. */
  int schemaId() {
    return bytes[at++] << 24 | (bytes[at++] & 255) << 16 | (bytes[at++] & 255) << 8 | bytes[at++] & 255;
  }

  /** Reads a zig-zag variable-length integer. */
  long integer() {
    long n = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      byte b = bytes[at++];
      n |= (b & 127L) << shift;
      if (b >= 0) return n >>> 1 ^ -(n & 1);
    }
    throw Format.malformed("an integer has more than ten bytes");
  }

  /** Reads a length and checks that as many bytes follow. */
  int length() {
    long n = integer();
    if (n < 0 || n > bytes.length - at) throw Format.truncated();
    return (int) n;
  }

  /** Reads the index of a branch of a union or of a symbol of an enum. */
  int index(int count) {
    long i = integer();
    if (i < 0 || i >= count) throw Format.malformed("branch or symbol " + i + " of " + count);
    return (int) i;
  }

  /** Skips n bytes and returns their start. */
  int skip(int n) {
    if (n > bytes.length - at) throw Format.truncated();
    at += n;
    return at - n;
  }

  float float32() { return Float.intBitsToFloat((int) INTS.get(bytes, skip(4))); }

  double float64() { return Double.longBitsToDouble((long) LONGS.get(bytes, skip(8))); }

  /** Runs a reader for each item of an array's or map's blocks, and returns the number of items. */
  int items(Runnable reader) {
    int n = 0;
    for (long count = integer(); count != 0; count = integer()) {
      if (count < 0) {
        count = -count;
        integer();  // the block's size in bytes
      }
      // An item has at least one byte; otherwise a few bytes could claim all memory.
      if (count > bytes.length - at || n + count > bytes.length) throw Format.truncated();
      for (long i = 0; i < count; i++) reader.run();
      n += (int) count;
    }
    return n;
  }

  /** Skips a value of a schema. */
  void skip(Schema s) {
    switch (s.getType()) {
      case NULL -> {}
      case BOOLEAN -> skip(1);
      case INT, LONG, ENUM -> integer();
      case FLOAT -> skip(4);
      case DOUBLE -> skip(8);
      case STRING, BYTES -> skip(length());
      case FIXED -> skip(s.getFixedSize());
      case UNION -> skip(s.getTypes().get(index(s.getTypes().size())));
      case ARRAY -> items(() -> skip(s.getElementType()));
      case MAP -> items(() -> {
        skip(length());
        skip(s.getValueType());
      });
      case RECORD -> {
        for (Schema.Field f : s.getFields()) skip(f.schema());
      }
    }
  }
}
