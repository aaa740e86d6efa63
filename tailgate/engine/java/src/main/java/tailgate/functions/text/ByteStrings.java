package tailgate.functions.text;

import java.io.ByteArrayOutputStream;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * Functions of bytea: encodings, digests, substrings, single bytes and bits.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/text/byte_strings.py} computes the same and names the sources.
 */
public final class ByteStrings {
  private ByteStrings() {}

  // ---- encodings --------------------------------------------------------------------------------

  public static UTF8String encode(byte[] data, UTF8String encoding) {
    String text = switch (encoding.toString().toLowerCase(Locale.ROOT)) {
      case "hex" -> HexFormat.of().formatHex(data);
      case "base64" -> Base64.getMimeEncoder(76, new byte[] {'\n'}).encodeToString(data);
      case "escape" -> escape(data);
      default -> throw SqlError.invalidParameter("unrecognized encoding: \"" + encoding + "\"");
    };
    return UTF8String.fromString(text);
  }

  public static byte[] decode(UTF8String text, UTF8String encoding) {
    return switch (encoding.toString().toLowerCase(Locale.ROOT)) {
      case "hex" -> decodeHex(text.toString());
      case "base64" -> decodeBase64(text.toString());
      case "escape" -> unescape(text.getBytes());
      default -> throw SqlError.invalidParameter("unrecognized encoding: \"" + encoding + "\"");
    };
  }

  public static byte[] textToBytea(UTF8String text) {
    String s = text.toString();
    return s.startsWith("\\x") ? decodeHex(s.substring(2)) : unescape(text.getBytes());
  }

  /** Decodes pairs of digits. White space may be between pairs, not inside. */
  private static byte[] decodeHex(String text) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    int[] symbols = text.codePoints().toArray();
    for (int at = 0; at < symbols.length; ) {
      if (" \t\n\r".indexOf(symbols[at]) >= 0) {
        at++;
        continue;
      }
      int high = hexDigit(symbols[at]);
      if (at + 1 == symbols.length) throw SqlError.invalidParameter("invalid hexadecimal data: odd number of digits");
      bytes.write(high << 4 | hexDigit(symbols[at + 1]));
      at += 2;
    }
    return bytes.toByteArray();
  }

  private static int hexDigit(int symbol) {
    if (symbol > 127 || Character.digit(symbol, 16) < 0) {
      throw SqlError.invalidParameter("invalid hexadecimal digit: \"" + Character.toString(symbol) + "\"");
    }
    return Character.digit(symbol, 16);
  }

  private static byte[] decodeBase64(String text) {
    String symbols = text.replaceAll("[ \t\n\r]", "");
    for (int c : symbols.replaceAll("=+$", "").codePoints().toArray()) {
      if (c == '=') throw SqlError.invalidParameter("unexpected \"=\" while decoding base64 sequence");
      if (!(c < 128 && (Character.isLetterOrDigit(c) || c == '+' || c == '/'))) {
        String symbol = Character.toString(c);
        throw SqlError.invalidParameter("invalid symbol \"" + symbol + "\" found while decoding base64 sequence");
      }
    }
    try {
      if (symbols.length() % 4 == 0) return Base64.getDecoder().decode(symbols);
    } catch (IllegalArgumentException e) {
      // the error is raised below
    }
    throw SqlError.invalidParameter("invalid base64 end sequence");
  }

  private static String escape(byte[] data) {
    StringBuilder text = new StringBuilder();
    for (byte b : data) {
      if (b == '\\') text.append("\\\\");
      else if (b <= 0) text.append(String.format("\\%03o", b & 255));
      else text.append((char) b);
    }
    return text.toString();
  }

  private static byte[] unescape(byte[] text) {
    byte[] data = new byte[text.length];
    int n = 0;
    for (int at = 0; at < text.length; n++) {
      if (text[at] != '\\') {
        data[n] = text[at++];
      } else if (at + 1 < text.length && text[at + 1] == '\\') {
        data[n] = '\\';
        at += 2;
      } else if (isOctalByte(text, at + 1)) {
        data[n] = (byte) Integer.parseInt(new String(text, at + 1, 3, StandardCharsets.US_ASCII), 8);
        at += 4;
      } else {
        throw new SqlError("22P02", "invalid input syntax for type bytea");
      }
    }
    return Arrays.copyOf(data, n);
  }

  /** Returns whether three octal digits of a byte follow. */
  private static boolean isOctalByte(byte[] text, int at) {
    if (at + 2 >= text.length || text[at] < '0' || text[at] > '3') return false;
    return isOctal(text[at + 1]) && isOctal(text[at + 2]);
  }

  private static boolean isOctal(byte b) { return b >= '0' && b <= '7'; }

  /** Computes convert_from(bytea, name) for UTF-8 and some single-byte encodings. */
  public static UTF8String convertFrom(byte[] bytes, UTF8String encoding) {
    Charset charset = switch (encodingName(encoding)) {
      case "utf8", "unicode", "sqlascii" -> StandardCharsets.UTF_8;
      case "latin1", "iso88591" -> StandardCharsets.ISO_8859_1;
      case "latin9", "iso885915" -> Charset.forName("ISO-8859-15");
      case "win1252", "windows1252" -> Charset.forName("windows-1252");
      default -> throw SqlError.invalidParameter("invalid source encoding name \"" + encoding + "\"");
    };
    if (charset == StandardCharsets.UTF_8) return Utf8.text(bytes);
    return Utf8.text(new String(bytes, charset));
  }

  /** Computes convert_to(text, name) for UTF-8 and LATIN1. */
  public static byte[] convertTo(UTF8String text, UTF8String encoding) {
    return switch (encodingName(encoding)) {
      case "utf8", "unicode", "sqlascii" -> text.getBytes();
      case "latin1", "iso88591" -> latin1(text.toString());
      default -> throw SqlError.invalidParameter("invalid destination encoding name \"" + encoding + "\"");
    };
  }

  /** Computes convert(bytea, source, destination). */
  public static byte[] convert(byte[] bytes, UTF8String source, UTF8String destination) {
    convertTo(UTF8String.EMPTY_UTF8, destination);  // checks the name
    return convertTo(convertFrom(bytes, source), destination);
  }

  private static String encodingName(UTF8String encoding) {
    return encoding.toString().toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
  }

  private static byte[] latin1(String text) {
    for (int c : text.codePoints().toArray()) {
      if (c <= 255) continue;
      StringBuilder hex = new StringBuilder();
      for (byte b : Character.toString(c).getBytes(StandardCharsets.UTF_8)) {
        hex.append(hex.isEmpty() ? "" : " ").append(String.format("0x%02x", b));
      }
      String character = "character with byte sequence " + hex + " in encoding \"UTF8\"";
      throw new SqlError("22P05", character + " has no equivalent in encoding \"LATIN1\"");
    }
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }

  // ---- digests ----------------------------------------------------------------------------------

  private static byte[] digest(byte[] data, String algorithm) {
    try {
      return MessageDigest.getInstance(algorithm).digest(data);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  public static byte[] sha224(byte[] data) { return digest(data, "SHA-224"); }

  public static byte[] sha256(byte[] data) { return digest(data, "SHA-256"); }

  public static byte[] sha384(byte[] data) { return digest(data, "SHA-384"); }

  public static byte[] sha512(byte[] data) { return digest(data, "SHA-512"); }

  public static UTF8String md5Bytea(byte[] data) {
    return UTF8String.fromString(HexFormat.of().formatHex(digest(data, "MD5")));
  }

  /** Java's names of the algorithms of digest() and hmac(): of the digest, and of its HMAC. */
  private static final Map<String, String> DIGESTS = Map.of(
      "md5", "MD5", "sha1", "SHA-1", "sha224", "SHA-224", "sha256", "SHA-256", "sha384", "SHA-384", "sha512", "SHA-512");

  private static String digestName(UTF8String algorithm) {
    String name = algorithm.toString().toLowerCase(Locale.ROOT);
    String javaName = DIGESTS.get(name);
    if (javaName == null) throw new SqlError("22023", "Cannot use \"" + name + "\": No such hash algorithm");
    return javaName;
  }

  public static byte[] digest(byte[] data, UTF8String algorithm) { return digest(data, digestName(algorithm)); }

  public static byte[] hmac(byte[] data, byte[] key, UTF8String algorithm) {
    String name = "Hmac" + digestName(algorithm).replace("-", "");
    try {
      Mac mac = Mac.getInstance(name);
      mac.init(new SecretKeySpec(key.length == 0 ? new byte[1] : key, name));  // keys are filled up with zeros
      return mac.doFinal(data);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  // ---- bytes and bits ---------------------------------------------------------------------------

  private static void checkIndex(long index, long size) {
    if (index >= 0 && index < size) return;
    throw new SqlError("2202E", "index " + index + " out of valid range, 0.." + (size - 1));
  }

  public static int getByte(byte[] data, int index) {
    checkIndex(index, data.length);
    return data[index] & 255;
  }

  public static byte[] setByte(byte[] data, int index, int value) {
    checkIndex(index, data.length);
    byte[] result = data.clone();
    result[index] = (byte) value;
    return result;
  }

  public static int getBit(byte[] data, long index) {
    checkIndex(index, 8L * data.length);
    return data[(int) (index / 8)] >> index % 8 & 1;
  }

  public static byte[] setBit(byte[] data, long index, int value) {
    checkIndex(index, 8L * data.length);
    if (value != 0 && value != 1) throw SqlError.invalidParameter("new bit must be 0 or 1");
    byte[] result = data.clone();
    int at = (int) (index / 8);
    int bit = (int) (index % 8);
    result[at] = (byte) (result[at] & ~(1 << bit) | value << bit);
    return result;
  }

  public static long bitCount(byte[] data) {
    long count = 0;
    for (byte b : data) count += Integer.bitCount(b & 255);
    return count;
  }

  // ---- substrings -------------------------------------------------------------------------------

  public static byte[] byteaFrom(byte[] data, int start) { return slice(data, (long) start - 1, data.length); }

  public static byte[] byteaPart(byte[] data, int start, int length) {
    if (length < 0) throw new SqlError("22011", "negative substring length not allowed");
    return slice(data, (long) start - 1, (long) start - 1 + length);
  }

  /** Returns the bytes from one index up to another; indexes outside of the data are allowed. */
  private static byte[] slice(byte[] data, long from, long to) {
    int begin = (int) Math.min(Math.max(from, 0), data.length);
    int end = (int) Math.min(Math.max(to, 0), data.length);
    return end <= begin ? new byte[0] : Arrays.copyOfRange(data, begin, end);
  }

  public static int byteaPosition(byte[] part, byte[] data) {
    for (int i = 0; i + part.length <= data.length; i++) {
      if (Arrays.equals(data, i, i + part.length, part, 0, part.length)) return i + 1;
    }
    return 0;
  }

  public static byte[] byteaOverlay(byte[] data, byte[] replacement, int start, int count) {
    if (start <= 0) throw new SqlError("22011", "negative substring length not allowed");
    byte[] head = slice(data, 0, start - 1);
    byte[] tail = slice(data, Math.max((long) start + count, 1) - 1, data.length);
    byte[] result = Arrays.copyOf(head, head.length + replacement.length + tail.length);
    System.arraycopy(replacement, 0, result, head.length, replacement.length);
    System.arraycopy(tail, 0, result, head.length + replacement.length, tail.length);
    return result;
  }

  public static byte[] byteaBtrim(byte[] data, byte[] set) { return trimmed(data, set, true, true); }

  public static byte[] byteaLtrim(byte[] data, byte[] set) { return trimmed(data, set, true, false); }

  public static byte[] byteaRtrim(byte[] data, byte[] set) { return trimmed(data, set, false, true); }

  private static byte[] trimmed(byte[] data, byte[] set, boolean left, boolean right) {
    int begin = 0;
    int end = data.length;
    while (left && begin < end && contains(set, data[begin])) begin++;
    while (right && end > begin && contains(set, data[end - 1])) end--;
    return Arrays.copyOfRange(data, begin, end);
  }

  private static boolean contains(byte[] set, byte b) {
    for (byte element : set) if (element == b) return true;
    return false;
  }
}
