package tailgate;

/** An Avro message and the place in it. Reading past the end is an ArrayIndexOutOfBoundsException. Source: Avro 1.12 specification, "Binary encoding". */
final class AvroBytes {
  static final String SHORT = "the message ends within a value";
  byte[] bytes;
  int at;

  /** Big-endian, as the wire format has it. */
  int id() { return bytes[at++] << 24 | (bytes[at++] & 255) << 16 | (bytes[at++] & 255) << 8 | bytes[at++] & 255; }

  /** A zig-zag variable-length number. */
  long number() {
    long n = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      byte b = bytes[at++];
      n |= (b & 127L) << shift;
      if (b >= 0) return n >>> 1 ^ -(n & 1);
    }
    throw new SqlError("22P02", "a number of more than ten bytes");
  }

  int length() {
    long n = number();
    if (n < 0 || n > bytes.length - at) throw new SqlError("22P02", SHORT);
    return (int) n;
  }

  int index(int n) {
    long i = number();
    if (i < 0 || i >= n) throw new SqlError("22P02", "branch or symbol " + i + " of " + n);
    return (int) i;
  }

  /** Goes on by n bytes; returns where they begin. */
  int pass(int n) {
    if (n > bytes.length - at) throw new SqlError("22P02", SHORT);
    at += n;
    return at - n;
  }

  float float32() { return Float.intBitsToFloat((int) INTS.get(bytes, pass(4))); }
  double float64() { return Double.longBitsToDouble((long) LONGS.get(bytes, pass(8))); }

  /** The blocks of an array or map; returns how many items there were. */
  int items(Runnable item) {
    int n = 0;
    for (long count = number(); count != 0; count = number()) {
      if (count < 0) { count = -count; number(); }
      if (count > bytes.length - at || n + count > bytes.length) throw new SqlError("22P02", SHORT);  // an item has a byte at least, or a few bytes could ask for all memory
      for (long i = 0; i < count; i++) item.run();
      n += (int) count;
    }
    return n;
  }

  void skip(org.apache.avro.Schema s) {
    switch (s.getType()) {
      case NULL -> {}
      case BOOLEAN -> pass(1);
      case INT, LONG, ENUM -> number();
      case FLOAT -> pass(4);
      case DOUBLE -> pass(8);
      case STRING, BYTES -> pass(length());
      case FIXED -> pass(s.getFixedSize());
      case UNION -> skip(s.getTypes().get(index(s.getTypes().size())));
      case ARRAY -> items(() -> skip(s.getElementType()));
      case MAP -> items(() -> { pass(length()); skip(s.getValueType()); });
      case RECORD -> { for (org.apache.avro.Schema.Field f : s.getFields()) skip(f.schema()); }
    }
  }

  private static final java.lang.invoke.VarHandle INTS = java.lang.invoke.MethodHandles.byteArrayViewVarHandle(int[].class, java.nio.ByteOrder.LITTLE_ENDIAN);
  private static final java.lang.invoke.VarHandle LONGS = java.lang.invoke.MethodHandles.byteArrayViewVarHandle(long[].class, java.nio.ByteOrder.LITTLE_ENDIAN);
}
