package tailgate;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/** A Protobuf message and the place in it. Source: Protocol Buffers, "Encoding". */
final class ProtobufBytes {
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, LITTLE_ENDIAN), LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, LITTLE_ENDIAN);
  static final int VARINT = 0, FIXED64 = 1, LENGTH = 2, GROUP = 3, END = 4, FIXED32 = 5;
  private static final int DEPTH = 100;  // of messages in messages, as in Google's own libraries
  final byte[] bytes;
  int at;

  ProtobufBytes(byte[] bytes) { this.bytes = bytes; }

  static SqlError malformed(String reason) { return new SqlError("22P02", reason); }

  static SqlError cut() { return malformed(AvroBytes.SHORT); }

  static void deeper(int depth) { if (depth > DEPTH) throw new SqlError("54001", "messages are nested more than " + DEPTH + " deep"); }

  long varint(int end) {
    long n = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at >= end) throw cut();
      byte b = bytes[at++];
      n |= (b & 127L) << shift;
      if (b >= 0) return n;
    }
    throw malformed("a number of more than ten bytes");
  }

  /** A field's number and how its value is written; 0 is no number. */
  int tag(int end) {
    long tag = varint(end);
    if (tag >>> 32 != 0 || tag >>> 3 == 0) throw malformed("a field of number " + (tag >>> 3));
    return (int) tag;
  }

  /** Goes past a length and as many bytes; returns where they begin. */
  int length(int end) {
    long n = varint(end);
    if (n < 0 || n > end - at) throw cut();
    at += (int) n;
    return at - (int) n;
  }

  int fixed32(int end) {
    if (end - at < 4) throw cut();
    at += 4;
    return (int) INTS.get(bytes, at - 4);
  }

  long fixed64(int end) {
    if (end - at < 8) throw cut();
    at += 8;
    return (long) LONGS.get(bytes, at - 8);
  }

  /** Passes over the value of a field that nobody asked for. */
  void skip(int tag, int end, int depth) {
    switch (tag & 7) {
      case VARINT -> varint(end);
      case FIXED64 -> fixed64(end);
      case LENGTH -> length(end);
      case FIXED32 -> fixed32(end);
      case GROUP -> {
        deeper(depth);
        for (int inner = tag(end); inner != (tag & ~7 | END); inner = tag(end)) {
          if ((inner & 7) == END) throw malformed("a group ends that did not begin");
          skip(inner, end, depth + 1);
        }
      }
      default -> throw malformed((tag & 7) == END ? "a group ends that did not begin" : "a value of type " + (tag & 7));
    }
  }

  static long zigzag(long n) { return n >>> 1 ^ -(n & 1); }
}
