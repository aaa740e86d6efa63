package tailgate.formats;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;

/** Damages messages at random, in ways that decoders of binary and text formats get wrong. */
public final class Mutator {
  private static final String[] NUMBERS = {"e999999999", "e-999999999", "E+2147483647", "0".repeat(1000),
      "9".repeat(40_000), "1e131071", "-", ".", "1e", "18446744073709551616"};
  private static final byte[][] FRAGMENTS = {
      {(byte) 0xff},
      {(byte) 0xc0, (byte) 0x80},
      {(byte) 0xed, (byte) 0xa0, (byte) 0x80},
      {(byte) 0xf4, (byte) 0x90, (byte) 0x80, (byte) 0x80},
      {0},
      text("\\ud800"), text("\\u0000"), text("\""), text("{"), text("}"), text("["), text("]"), text(","),
      text("null"), text("\n"),
      text("\"schema\":{},\"payload\":"),
      text("\"schema\":{\"fields\":[{\"field\":\"after\"}]},"),
      text("\"after\":[],"),
      text("\"source\":{\"connector\":\"x\"},"),
      text("{\"scale\":-2147483648,\"value\":\"AQ==\"}"),
      text("{\"scale\":2147483647,\"value\":\"AQ==\"}"),
      text("P99999999999999999Y")};
  private static final String[] OPENINGS = {"[", "{\"a\":", "{\"after\":", "[[],", "(", "a ", "\"\","};
  private final Random random;

  public Mutator(Random random) { this.random = random; }

  static byte[] text(String s) { return s.getBytes(StandardCharsets.UTF_8); }

  /** Returns a message with one to three damages. */
  public byte[] mutate(byte[] message) {
    byte[] mutated = message;
    for (int n = 1 + random.nextInt(3); n > 0; n--) mutated = mutateOnce(mutated);
    return mutated;
  }

  private byte[] mutateOnce(byte[] m) {
    int at = random.nextInt(m.length + 1);
    return switch (random.nextInt(12)) {
      case 0 -> Arrays.copyOf(m, at);
      case 1 -> withByte(m, at, at < m.length ? m[at] ^ 1 << random.nextInt(8) : 0);
      case 2 -> withByte(m, at, random.nextInt());
      case 3 -> insert(m, at, randomBytes(1 + random.nextInt(8)));
      case 4 -> insert(m, at, varint(
          random.nextBoolean() ? random.nextLong() : (1L << random.nextInt(63)) - random.nextInt(2)));
      case 5 -> overwrite(m, at, varint(-random.nextLong(Long.MAX_VALUE)));
      case 6 -> insert(m, at, Arrays.copyOfRange(m, at, at + random.nextInt(m.length - at + 1)));
      case 7 -> withSchemaId(m, random.nextInt(4) == 0 ? random.nextInt() : random.nextInt(20));
      case 8 -> insert(m, at, nested());
      case 9 -> insert(m, afterDigit(m, at), text(NUMBERS[random.nextInt(NUMBERS.length)]));
      case 10 -> insert(m, at, FRAGMENTS[random.nextInt(FRAGMENTS.length)]);
      default -> overwrite(m, at, new byte[random.nextInt(m.length + 1)]);
    };
  }

  /** Returns deep nesting: rarely up to 200,000 levels. */
  private byte[] nested() {
    int depth = random.nextInt(40) == 0 ? 1 + random.nextInt(200_000) : random.nextInt(3000);
    return text(OPENINGS[random.nextInt(OPENINGS.length)].repeat(depth));
  }

  /**
   * Returns the index after a digit at or after an index, so that an insertion changes the number.
   */
  private static int afterDigit(byte[] m, int at) {
    for (int i = at; i < m.length; i++) if (m[i] >= '0' && m[i] <= '9') return i + 1;
    return at;
  }

  private byte[] randomBytes(int n) {
    byte[] bytes = new byte[n];
    random.nextBytes(bytes);
    return bytes;
  }

  private static byte[] varint(long n) {
    var out = new ByteArrayOutputStream();
    long rest = n;
    for (; (rest & ~127L) != 0; rest >>>= 7) out.write((int) (rest & 127 | 128));
    out.write((int) rest);
    return out.toByteArray();
  }

  private static byte[] withByte(byte[] m, int at, int value) {
    byte[] result = m.clone();
    if (at < m.length) result[at] = (byte) value;
    return result;
  }

  private static byte[] withSchemaId(byte[] m, int id) {
    byte[] result = m.clone();
    if (m.length >= 5) ByteBuffer.wrap(result).putInt(1, id);
    return result;
  }

  private static byte[] insert(byte[] m, int at, byte[] inserted) {
    byte[] result = Arrays.copyOf(m, m.length + inserted.length);
    System.arraycopy(inserted, 0, result, at, inserted.length);
    System.arraycopy(m, at, result, at + inserted.length, m.length - at);
    return result;
  }

  private static byte[] overwrite(byte[] m, int at, byte[] replacement) {
    byte[] result = m.clone();
    System.arraycopy(replacement, 0, result, at, Math.min(replacement.length, m.length - at));
    return result;
  }
}
