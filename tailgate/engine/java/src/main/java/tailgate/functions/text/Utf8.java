package tailgate.functions.text;

import java.nio.charset.StandardCharsets;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * Text from outside, with validation of UTF-8 by PostgreSQL's rules. Every decoder creates its
 * texts here.
 *
 * <p>Source: PostgreSQL 15, src/common/wchar.c, pg_utf8_islegal().
 */
public final class Utf8 {
  private Utf8() {}

  /**
   * Returns the text of the bytes. Throws 22021 if they are not UTF-8 or contain a zero byte,
   * which text cannot.
   */
  public static UTF8String text(byte[] bytes) { return UTF8String.fromBytes(checked(bytes)); }

  /** Returns the text of a part of the bytes. */
  public static UTF8String text(byte[] bytes, int from, int length) {
    check(bytes, from, from + length);
    return UTF8String.fromBytes(bytes, from, length);
  }

  /**
   * Returns the text of a string whose escapes a parser has replaced. Throws 22021 if it contains
   * a zero, and 22P02 if it contains half of a surrogate pair.
   */
  public static UTF8String text(String text) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (!Character.isSurrogate(c)) continue;
      boolean isPair = i + 1 < text.length() && Character.isSurrogatePair(c, text.charAt(i + 1));
      if (!isPair) throw new SqlError("22P02", "Unicode escape of an unpaired surrogate");
      i++;
    }
    return text(text.getBytes(StandardCharsets.UTF_8));
  }

  /** Returns the same bytes. Throws 22021 as {@link #text(byte[])} does. */
  public static byte[] checked(byte[] bytes) {
    check(bytes, 0, bytes.length);
    return bytes;
  }

  /** Checks the bytes in a range, whose end is exclusive. Throws 22021. */
  public static void check(byte[] bytes, int from, int to) {
    for (int i = from; i < to; ) {
      if (bytes[i] > 0) {
        i++;
        continue;
      }
      int length = sequenceLength(bytes[i]);
      if (i + length > to || !isLegal(bytes, i, length)) {
        String hex = hex(bytes, i, Math.min(length, to - i));
        throw new SqlError("22021", "invalid byte sequence for encoding \"UTF8\": " + hex);
      }
      i += length;
    }
  }

  /** Returns a text's bytes if it is ASCII without a zero, else null. */
  public static byte[] ascii(char[] text, int from, int length) {
    byte[] bytes = new byte[length];
    for (int i = 0; i < length; i++) {
      char c = text[from + i];
      if (c == 0 || c > 127) return null;
      bytes[i] = (byte) c;
    }
    return bytes;
  }

  /** Returns the number of bytes of the character that begins with a byte. */
  private static int sequenceLength(byte first) {
    int b = first & 255;
    return b >= 0xf0 && b < 0xf8 ? 4 : b >= 0xe0 && b < 0xf0 ? 3 : b >= 0xc0 && b < 0xe0 ? 2 : 1;
  }

  private static boolean isLegal(byte[] bytes, int at, int length) {
    int first = bytes[at] & 255;
    int second = length > 1 ? bytes[at + 1] & 255 : 0;
    for (int i = 1; i < length; i++) if ((bytes[at + i] & 0xc0) != 0x80) return false;
    return switch (length) {
      case 2 -> first >= 0xc2;
      case 3 -> !(first == 0xe0 && second < 0xa0) && !(first == 0xed && second > 0x9f);
      case 4 -> first <= 0xf4 && !(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second > 0x8f);
      default -> false;
    };
  }

  private static String hex(byte[] bytes, int at, int length) {
    StringBuilder hex = new StringBuilder();
    for (int i = 0; i < length; i++) hex.append(i == 0 ? "" : " ").append(String.format("0x%02x", bytes[at + i]));
    return hex.toString();
  }
}
