package tailgate.functions.network;

import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.TextInput;

/**
 * Functions of macaddr and macaddr8, which are their text.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/values/networks/macaddr.py} and {@code tailgate/sql/compute/networks.py} compute the same.
 */
public final class HardwareAddresses {
  private static final HexFormat OCTETS = HexFormat.ofDelimiter(":");
  private static final Pattern NUMBER = Pattern.compile("([+-]?)(?:0[xX]([0-9a-fA-F]*)|([0-9a-fA-F]+))");
  private static final String MIDDLE = "ff:fe";
  private static final int ALL = Integer.MAX_VALUE;

  private HardwareAddresses() {}

  /** A format of C's scanf(): the most characters of a number, and what separates six of them. */
  private record Format(int width, String... separators) {}

  private static final Format[] FORMATS = {
      new Format(ALL, ":", ":", ":", ":", ":", ""),
      new Format(ALL, "-", "-", "-", "-", "-", ""),
      new Format(2, "", "", ":", "", "", ""),
      new Format(2, "", "", "-", "", "", ""),
      new Format(2, "", ".", "", ".", "", ""),
      new Format(2, "", "-", "", "-", "", ""),
      new Format(2, "", "", "", "", "", ""),
  };

  // ---- text -------------------------------------------------------------------------------------

  public static UTF8String textToMacaddr(UTF8String text) {
    for (Format format : FORMATS) {
      int[] numbers = scan(text.toString(), format);
      if (numbers == null) continue;
      byte[] octets = new byte[numbers.length];
      for (int i = 0; i < numbers.length; i++) {
        if (numbers[i] < 0 || numbers[i] > 255) {
          throw new SqlError("22003", "invalid octet value in \"macaddr\" value: \"" + text + "\"");
        }
        octets[i] = (byte) numbers[i];
      }
      return text(octets);
    }
    throw TextInput.invalid("macaddr", text);
  }

  /** Returns six numbers of a format, or null. White space may be before each number and at the end. */
  private static int[] scan(String text, Format format) {
    int[] numbers = new int[format.separators.length];
    int at = 0;
    for (int i = 0; i < numbers.length; i++) {
      at = skipped(text, at);
      int end = (int) Math.min((long) at + format.width, text.length());
      Matcher match = NUMBER.matcher(text).region(at, end);
      if (!match.lookingAt() || !text.startsWith(format.separators[i], match.end())) return null;
      String digits = match.group(2) == null ? match.group(3) : match.group(2);
      digits = digits.replaceFirst("^0+", "");
      int value = digits.isEmpty() ? 0 : digits.length() > 2 ? ALL : Integer.parseInt(digits, 16);
      numbers[i] = match.group(1).equals("-") ? -value : value;
      at = match.end() + format.separators[i].length();
    }
    return skipped(text, at) == text.length() ? numbers : null;
  }

  private static int skipped(String text, int at) {
    int end = at;
    while (end < text.length() && TextInput.isSpace(text.charAt(end))) end++;
    return end;
  }

  /** Reads pairs of digits, with one kind of separator after some of them; it ignores one character at the end. */
  public static UTF8String textToMacaddr8(UTF8String text) {
    String s = text.toString();
    s = s.substring(skipped(s, 0));
    byte[] octets = new byte[8];
    int count = 0;
    char separator = 0;
    for (int at = 0; at + 1 < s.length() && !((count == 6 || count == 8) && skipped(s, at) == s.length()); ) {
      boolean isPair = HexFormat.isHexDigit(s.charAt(at)) && HexFormat.isHexDigit(s.charAt(at + 1));
      if (!isPair || count == octets.length) throw TextInput.invalid("macaddr8", text);
      octets[count++] = (byte) HexFormat.fromHexDigits(s, at, at + 2);
      at += 2;
      if (at < s.length() && ":-.".indexOf(s.charAt(at)) >= 0) {
        if (separator != 0 && separator != s.charAt(at)) throw TextInput.invalid("macaddr8", text);
        separator = s.charAt(at++);
      }
    }
    if (count != 6 && count != 8) throw TextInput.invalid("macaddr8", text);
    UTF8String all = text(octets);
    return count == 8 ? all : macaddrToMacaddr8(all.substring(0, 17));
  }

  // ---- operators and functions ------------------------------------------------------------------

  public static UTF8String macaddrNot(UTF8String text) {
    byte[] octets = octets(text);
    for (int i = 0; i < octets.length; i++) octets[i] = (byte) ~octets[i];
    return text(octets);
  }

  public static UTF8String macaddrAnd(UTF8String text, UTF8String other) {
    byte[] octets = octets(text);
    byte[] others = octets(other);
    for (int i = 0; i < octets.length; i++) octets[i] &= others[i];
    return text(octets);
  }

  public static UTF8String macaddrOr(UTF8String text, UTF8String other) {
    byte[] octets = octets(text);
    byte[] others = octets(other);
    for (int i = 0; i < octets.length; i++) octets[i] |= others[i];
    return text(octets);
  }

  public static UTF8String macaddrTrunc(UTF8String text) {
    byte[] octets = octets(text);
    for (int i = 3; i < octets.length; i++) octets[i] = 0;
    return text(octets);
  }

  public static UTF8String macaddr8Set7bit(UTF8String text) {
    byte[] octets = octets(text);
    octets[0] |= 2;
    return text(octets);
  }

  public static UTF8String macaddrToMacaddr8(UTF8String text) {
    String s = text.toString();
    return UTF8String.fromString(s.substring(0, 9) + MIDDLE + s.substring(8));
  }

  public static UTF8String macaddr8ToMacaddr(UTF8String text) {
    String s = text.toString();
    if (!s.startsWith(MIDDLE, 9)) throw new SqlError("22003", "macaddr8 data out of range to convert to macaddr");
    return UTF8String.fromString(s.substring(0, 8) + s.substring(14));
  }

  private static byte[] octets(UTF8String text) { return OCTETS.parseHex(text.toString()); }

  private static UTF8String text(byte[] octets) { return UTF8String.fromString(OCTETS.formatHex(octets)); }
}
