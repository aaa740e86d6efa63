package tailgate;

/** Bytes that may be UTF-8, as PostgreSQL checks them. Source: PostgreSQL, src/common/wchar.c, pg_utf8_islegal. */
final class Utf8 {
  private Utf8() {}

  /** The same bytes; 22021 if they are not UTF-8, or hold a zero, which PostgreSQL's text cannot. */
  static byte[] checked(byte[] bytes) {
    for (int i = 0; i < bytes.length; ) {
      if (bytes[i] > 0) {
        i++;
        continue;
      }
      int length = length(bytes[i]);
      if (i + length > bytes.length || !legal(bytes, i, length)) throw new SqlError("22021", "invalid byte sequence for encoding \"UTF8\": " + hex(bytes, i, Math.min(length, bytes.length - i)));
      i += length;
    }
    return bytes;
  }

  /** The text as bytes if it is ASCII, without a zero; null otherwise. */
  static byte[] ascii(char[] text, int from, int length) {
    byte[] bytes = new byte[length];
    for (int i = 0; i < length; i++) {
      char c = text[from + i];
      if (c == 0 || c > 127) return null;
      bytes[i] = (byte) c;
    }
    return bytes;
  }

  private static int length(byte first) {
    int b = first & 255;
    return b >= 0xf0 && b < 0xf8 ? 4 : b >= 0xe0 && b < 0xf0 ? 3 : b >= 0xc0 && b < 0xe0 ? 2 : 1;
  }

  private static boolean legal(byte[] bytes, int at, int length) {
    int first = bytes[at] & 255, second = length > 1 ? bytes[at + 1] & 255 : 0;
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
