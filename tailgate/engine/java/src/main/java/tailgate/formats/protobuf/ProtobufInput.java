package tailgate.formats.protobuf;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import tailgate.errors.SqlError;
import tailgate.formats.Format;

/**
 * A Protobuf message and a read position in it. Methods with the parameter {@code end} fail if they
 * would read past it.
 *
 * <p>Source: Protocol Buffers, "Encoding".
 */
final class ProtobufInput {
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, LITTLE_ENDIAN);
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, LITTLE_ENDIAN);
  private static final int DEPTH_MAX = 100;  // levels of nested messages, as in Google's libraries

  // Wire types: how a value is encoded.
  static final int VARINT = 0;
  static final int FIXED64 = 1;
  static final int LENGTH_DELIMITED = 2;
  static final int GROUP_START = 3;
  static final int GROUP_END = 4;
  static final int FIXED32 = 5;

  final byte[] bytes;
  int at;

  ProtobufInput(byte[] bytes) { this.bytes = bytes; }

  /** Checks the depth of nesting. Throws 54001. */
  static void checkDepth(int depth) {
    if (depth > DEPTH_MAX) {
      throw new SqlError("54001", "messages are nested more than " + DEPTH_MAX + " levels deep");
    }
  }

  long varint(int end) {
    long n = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at >= end) throw Format.truncated();
      byte b = bytes[at++];
      n |= (b & 127L) << shift;
      if (b >= 0) return n;
    }
    throw Format.malformed("an integer has more than ten bytes");
  }

  /** Reads a field's tag: its number, and in the lowest three bits its wire type. */
  int tag(int end) {
    long tag = varint(end);
    if (tag >>> 32 != 0 || tag >>> 3 == 0) throw Format.malformed("invalid field number " + (tag >>> 3));
    return (int) tag;
  }

  static int fieldNumber(int tag) { return tag >>> 3; }

  static int wireType(int tag) { return tag & 7; }

  /** Returns the tag that ends a field's group. */
  static int groupEndTag(int fieldNumber) { return fieldNumber << 3 | GROUP_END; }

  /** Reads a length, skips as many bytes, and returns their start. */
  int skipDelimited(int end) {
    long n = varint(end);
    if (n < 0 || n > end - at) throw Format.truncated();
    at += (int) n;
    return at - (int) n;
  }

  int fixed32(int end) {
    if (end - at < 4) throw Format.truncated();
    at += 4;
    return (int) INTS.get(bytes, at - 4);
  }

  long fixed64(int end) {
    if (end - at < 8) throw Format.truncated();
    at += 8;
    return (long) LONGS.get(bytes, at - 8);
  }

  /** Skips the value of a field. */
  void skip(int tag, int end, int depth) {
    switch (wireType(tag)) {
      case VARINT -> varint(end);
      case FIXED64 -> fixed64(end);
      case LENGTH_DELIMITED -> skipDelimited(end);
      case FIXED32 -> fixed32(end);
      case GROUP_START -> {
        checkDepth(depth);
        int endTag = groupEndTag(fieldNumber(tag));
        for (int inner = tag(end); inner != endTag; inner = tag(end)) skip(inner, end, depth + 1);
      }
      case GROUP_END -> throw Format.malformed("a group ends that did not begin");
      default -> throw Format.malformed("invalid wire type " + wireType(tag));
    }
  }

  static long zigzag(long n) { return n >>> 1 ^ -(n & 1); }
}
