package tailgate;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Locale;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Strings of bytes: encodings, digests, single bytes and bits. The twin of sql/compute/bytestrings.py, which names its sources.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class Bytestrings {
  private Bytestrings() {}

  public static UTF8String encode(byte[] data, UTF8String form) {
    switch (form.toString().toLowerCase(Locale.ROOT)) {
      case "hex": return Strings.text(HexFormat.of().formatHex(data));
      case "base64": return Strings.text(Base64.getMimeEncoder(76, new byte[] {'\n'}).encodeToString(data));
      case "escape":
        StringBuilder out = new StringBuilder();
        for (byte b : data) out.append(b == '\\' ? "\\\\" : b <= 0 ? String.format("\\%03o", b & 255) : String.valueOf((char) b));
        return Strings.text(out.toString());
      default: throw Strings.parameter("unrecognized encoding: \"" + form + "\"");
    }
  }

  public static byte[] decode(UTF8String text, UTF8String form) {
    return switch (form.toString().toLowerCase(Locale.ROOT)) {
      case "hex" -> hexadecimal(text.toString());
      case "base64" -> base64(text.toString());
      case "escape" -> escaped(text.getBytes());
      default -> throw Strings.parameter("unrecognized encoding: \"" + form + "\"");
    };
  }

  static byte[] hexadecimal(String text) {
    String digits = text.replaceAll("[ \t\n\r]", "");
    for (int c : digits.codePoints().toArray()) if (c > 127 || Character.digit(c, 16) < 0) throw Strings.parameter("invalid hexadecimal digit: \"" + Character.toString(c) + "\"");
    if (digits.length() % 2 == 1) throw Strings.parameter("invalid hexadecimal data: odd number of digits");
    return HexFormat.of().parseHex(digits);
  }

  private static byte[] base64(String text) {
    String symbols = text.replaceAll("[ \t\n\r]", ""), body = symbols.replaceAll("=+$", "");
    for (int c : body.codePoints().toArray()) {
      if (c == '=') throw Strings.parameter("unexpected \"=\" while decoding base64 sequence");
      if (!(c < 128 && (Character.isLetterOrDigit(c) || c == '+' || c == '/'))) throw Strings.parameter("invalid symbol \"" + Character.toString(c) + "\" found while decoding base64 sequence");
    }
    try {
      if (symbols.length() % 4 == 0) return Base64.getDecoder().decode(symbols);
    } catch (IllegalArgumentException e) {
      // below
    }
    throw Strings.parameter("invalid base64 end sequence");
  }

  static byte[] escaped(byte[] data) {
    byte[] out = new byte[data.length];
    int n = 0;
    for (int at = 0; at < data.length; n++) {
      if (data[at] != '\\') out[n] = data[at++];
      else if (at + 1 < data.length && data[at + 1] == '\\') {
        out[n] = '\\';
        at += 2;
      } else if (at + 3 < data.length && data[at + 1] >= '0' && data[at + 1] <= '3' && octal(data[at + 2]) && octal(data[at + 3])) {
        out[n] = (byte) Integer.parseInt(new String(data, at + 1, 3, StandardCharsets.US_ASCII), 8);
        at += 4;
      } else throw new SqlError("22P02", "invalid input syntax for type bytea");
    }
    return Arrays.copyOf(out, n);
  }

  private static boolean octal(byte b) { return b >= '0' && b <= '7'; }

  private static byte[] digest(byte[] data, String name) {
    try {
      return MessageDigest.getInstance(name).digest(data);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  public static byte[] sha224(byte[] data) { return digest(data, "SHA-224"); }

  public static byte[] sha256(byte[] data) { return digest(data, "SHA-256"); }

  public static byte[] sha384(byte[] data) { return digest(data, "SHA-384"); }

  public static byte[] sha512(byte[] data) { return digest(data, "SHA-512"); }

  public static UTF8String md5Bytea(byte[] data) { return Strings.text(HexFormat.of().formatHex(digest(data, "MD5"))); }

  private static void index(long index, long size) { if (index < 0 || index >= size) throw new SqlError("2202E", "index " + index + " out of valid range, 0.." + (size - 1)); }

  public static int getByte(byte[] data, int index) {
    index(index, data.length);
    return data[index] & 255;
  }

  public static byte[] setByte(byte[] data, int index, int value) {
    index(index, data.length);
    byte[] out = data.clone();
    out[index] = (byte) value;
    return out;
  }

  public static int getBit(byte[] data, long index) {
    index(index, 8L * data.length);
    return data[(int) (index / 8)] >> index % 8 & 1;
  }

  public static byte[] setBit(byte[] data, long index, int value) {
    index(index, 8L * data.length);
    if (value != 0 && value != 1) throw Strings.parameter("new bit must be 0 or 1");
    byte[] out = data.clone();
    int at = (int) (index / 8), bit = (int) (index % 8);
    out[at] = (byte) (out[at] & ~(1 << bit) | value << bit);
    return out;
  }

  public static long bitCount(byte[] data) {
    long count = 0;
    for (byte b : data) count += Integer.bitCount(b & 255);
    return count;
  }

  public static byte[] byteaFrom(byte[] data, int start) { return part(data, (long) start - 1, data.length); }

  public static byte[] byteaPart(byte[] data, int start, int length) {
    if (length < 0) throw new SqlError("22011", "negative substring length not allowed");
    return part(data, (long) start - 1, (long) start - 1 + length);
  }

  private static byte[] part(byte[] data, long from, long to) {
    int begin = (int) Math.min(Math.max(from, 0), data.length), end = (int) Math.min(Math.max(to, 0), data.length);
    return end <= begin ? new byte[0] : Arrays.copyOfRange(data, begin, end);
  }

  public static int byteaPosition(byte[] part, byte[] data) {
    for (int i = 0; i + part.length <= data.length; i++) if (Arrays.equals(data, i, i + part.length, part, 0, part.length)) return i + 1;
    return 0;
  }

  public static byte[] byteaOverlay(byte[] data, byte[] part, int start, int count) {
    if (start <= 0) throw new SqlError("22011", "negative substring length not allowed");
    byte[] before = part(data, 0, start - 1), after = part(data, Math.max((long) start + count, 1) - 1, data.length);
    byte[] out = Arrays.copyOf(before, before.length + part.length + after.length);
    System.arraycopy(part, 0, out, before.length, part.length);
    System.arraycopy(after, 0, out, before.length + part.length, after.length);
    return out;
  }

  public static byte[] byteaBtrim(byte[] data, byte[] wanted) { return trimmed(data, wanted, true, true); }

  public static byte[] byteaLtrim(byte[] data, byte[] wanted) { return trimmed(data, wanted, true, false); }

  public static byte[] byteaRtrim(byte[] data, byte[] wanted) { return trimmed(data, wanted, false, true); }

  private static byte[] trimmed(byte[] data, byte[] wanted, boolean left, boolean right) {
    int begin = 0, end = data.length;
    while (left && begin < end && holds(wanted, data[begin])) begin++;
    while (right && end > begin && holds(wanted, data[end - 1])) end--;
    return Arrays.copyOfRange(data, begin, end);
  }

  private static boolean holds(byte[] wanted, byte b) {
    for (byte w : wanted) if (w == b) return true;
    return false;
  }

  public static byte[] convertTo(UTF8String text, UTF8String encoding) {
    String name = encoding.toString().toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
    switch (name) {
      case "utf8", "unicode", "sqlascii": return text.getBytes();
      case "latin1", "iso88591":
        var encoder = StandardCharsets.ISO_8859_1.newEncoder();
        for (int c : text.toString().codePoints().toArray())
          if (c > 255) {
            StringBuilder hex = new StringBuilder();
            for (byte b : Character.toString(c).getBytes(StandardCharsets.UTF_8)) hex.append(hex.isEmpty() ? "" : " ").append(String.format("0x%02x", b));
            throw new SqlError("22P05", "character with byte sequence " + hex + " in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\"");
          }
        return text.toString().getBytes(encoder.charset());
      default: throw Strings.parameter("invalid destination encoding name \"" + encoding + "\"");
    }
  }
}
