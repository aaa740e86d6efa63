package tailgate.functions.network;

import java.math.BigInteger;
import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.TextInput;

/**
 * Functions of inet and cidr, which are their stored form ({@link Address}).
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/networks.py} computes the same and names the sources.
 */
public final class NetworkFunctions {
  private NetworkFunctions() {}

  // ---- text -------------------------------------------------------------------------------------

  public static byte[] textToInet(UTF8String text) { return read(text, "inet").encode(); }

  public static byte[] textToCidr(UTF8String text) {
    Address address = read(text, "cidr");
    if (!address.isNetwork()) throw new SqlError("22P02", "invalid cidr value: \"" + text + "\"");
    return address.encode();
  }

  private static Address read(UTF8String text, String type) {
    try {
      return AddressInput.parse(text.toString(), type.equals("cidr"));
    } catch (AddressInput.MalformedException e) {
      throw TextInput.invalid(type, text);
    }
  }

  public static UTF8String inetOutput(byte[] form) { return UTF8String.fromString(Address.decode(form).inetText()); }

  public static UTF8String inetToText(byte[] form) {
    return UTF8String.fromString(Address.decode(form).textWithLength());
  }

  public static UTF8String host(byte[] form) { return UTF8String.fromString(Address.decode(form).text()); }

  public static UTF8String abbrevCidr(byte[] form) {
    Address address = Address.decode(form);
    String text = address.family() == 6 ? abbreviated(address) : "0";
    if (address.family() == 4 && address.length() > 0) {
      int octets = (address.length() + 7) / 8;
      text = String.join(".", Arrays.asList(address.text().split("\\.")).subList(0, octets));
    }
    return UTF8String.fromString(text + "/" + address.length());
  }

  private static String abbreviated(Address address) {
    if (address.length() == 0) return "::";
    byte[] data = address.data();
    int count = Math.max((address.length() + 15) / 16, 2);
    int[] words = Arrays.copyOf(address.words(), count);
    int[] zeros = longestZeros(words);
    int begin = zeros[0];
    int size = zeros[1];
    boolean isV4 = size != count && begin == 0 && (size == 6 || size == 5 && words[5] == 0xFFFF
        || size == 7 && data[14] != 0 && data[15] != 1);
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < count; i++) {
      if (i >= begin && i < begin + size) {
        if (i == begin) text.append(':');
        if (i == count - 1) text.append(':');
      } else if (isV4 && i > 5) {
        text.append(i == 6 ? ':' : '.').append(words[i] >> 8);
        if (i != 7 || address.length() > 120) text.append('.').append(words[i] & 0xFF);
      } else {
        if (text.length() > 0) text.append(':');
        text.append(Integer.toHexString(words[i]));
      }
    }
    return text.toString();
  }

  /** Returns the begin and length of a run of zeros. A shorter run is counted together with the next one. */
  private static int[] longestZeros(int[] words) {
    int begin = 0;
    int size = 0;
    int currentBegin = 0;
    int current = 0;
    for (int i = 0; i < words.length; i++) {
      if (words[i] == 0) {
        if (current == 0) currentBegin = i;
        current++;
      } else if (current > size) {
        begin = currentBegin;
        size = current;
        current = 0;
      }
    }
    return current > size ? new int[] {currentBegin, current} : new int[] {begin, size};
  }

  // ---- parts ------------------------------------------------------------------------------------

  public static int inetFamily(byte[] form) { return form[0]; }

  public static int masklen(byte[] form) { return Address.decode(form).length(); }

  public static byte[] network(byte[] form) { return Address.decode(form).network().encode(); }

  public static byte[] broadcast(byte[] form) {
    Address a = Address.decode(form);
    byte[] data = new byte[a.data().length];
    for (int i = 0; i < data.length; i++) data[i] = (byte) (a.data()[i] | ~a.mask(i));
    return new Address(data, a.length()).encode();
  }

  public static byte[] netmask(byte[] form) { return mask(Address.decode(form), 0); }

  public static byte[] hostmask(byte[] form) { return mask(Address.decode(form), 0xFF); }

  private static byte[] mask(Address a, int inverted) {
    byte[] data = new byte[a.data().length];
    for (int i = 0; i < data.length; i++) data[i] = (byte) (a.mask(i) ^ inverted);
    return new Address(data, a.width()).encode();
  }

  public static byte[] setMasklen(byte[] form, int length) {
    Address a = Address.decode(form);
    return a.withLength(length(a, length)).encode();
  }

  public static byte[] setMasklenCidr(byte[] form, int length) {
    Address a = Address.decode(form);
    return a.withLength(length(a, length)).network().encode();
  }

  private static int length(Address a, int length) {
    if (length == -1) return a.width();
    if (length < 0 || length > a.width()) throw SqlError.invalidParameter("invalid mask length: " + length);
    return length;
  }

  public static byte[] inetMerge(byte[] form, byte[] other) {
    Address a = Address.decode(form);
    Address b = Address.decode(other);
    if (a.family() != b.family()) {
      throw SqlError.invalidParameter("cannot merge addresses from different families");
    }
    int length = Math.min(Math.min(a.length(), b.length()), a.commonBits(b));
    return a.withLength(length).network().encode();
  }

  // ---- comparison of networks -------------------------------------------------------------------

  public static boolean networkSub(byte[] form, byte[] other) { return contains(other, form, 1); }

  public static boolean networkSubeq(byte[] form, byte[] other) { return contains(other, form, 0); }

  public static boolean networkSup(byte[] form, byte[] other) { return contains(form, other, 1); }

  public static boolean networkSupeq(byte[] form, byte[] other) { return contains(form, other, 0); }

  public static boolean networkOverlap(byte[] form, byte[] other) { return contains(form, other, -Address.V6_BITS); }

  /** Returns whether networks overlap, and the second netmask has at least `more` bits more than the first. */
  private static boolean contains(byte[] form, byte[] other, int more) {
    if (form[0] != other[0]) return false;
    Address a = Address.decode(form);
    Address b = Address.decode(other);
    return b.length() - a.length() >= more && a.commonBits(b) >= Math.min(a.length(), b.length());
  }

  // ---- arithmetic -------------------------------------------------------------------------------

  public static byte[] inetNot(byte[] form) {
    Address a = Address.decode(form);
    byte[] data = new byte[a.data().length];
    for (int i = 0; i < data.length; i++) data[i] = (byte) ~a.data()[i];
    return new Address(data, a.length()).encode();
  }

  public static byte[] inetAnd(byte[] form, byte[] other) {
    Address a = Address.decode(form);
    Address b = ofSameFamily(a, other, "AND");
    byte[] data = new byte[a.data().length];
    for (int i = 0; i < data.length; i++) data[i] = (byte) (a.data()[i] & b.data()[i]);
    return new Address(data, Math.max(a.length(), b.length())).encode();
  }

  public static byte[] inetOr(byte[] form, byte[] other) {
    Address a = Address.decode(form);
    Address b = ofSameFamily(a, other, "OR");
    byte[] data = new byte[a.data().length];
    for (int i = 0; i < data.length; i++) data[i] = (byte) (a.data()[i] | b.data()[i]);
    return new Address(data, Math.max(a.length(), b.length())).encode();
  }

  private static Address ofSameFamily(Address a, byte[] other, String operation) {
    Address b = Address.decode(other);
    if (a.family() == b.family()) return b;
    throw SqlError.invalidParameter("cannot " + operation + " inet values of different sizes");
  }

  public static byte[] inetPlus(byte[] form, long addend) {
    return plus(Address.decode(form), BigInteger.valueOf(addend));
  }

  public static byte[] inetMinus(byte[] form, long subtrahend) {
    return plus(Address.decode(form), BigInteger.valueOf(-subtrahend)); // the smallest bigint is its own negation
  }

  private static byte[] plus(Address a, BigInteger addend) {
    BigInteger sum = new BigInteger(1, a.data()).add(addend);
    if (sum.signum() < 0 || sum.bitLength() > a.width()) throw outOfRange();
    byte[] bytes = sum.toByteArray();
    byte[] data = new byte[a.data().length];
    int count = Math.min(bytes.length, data.length);
    System.arraycopy(bytes, bytes.length - count, data, data.length - count, count);
    return new Address(data, a.length()).encode();
  }

  public static long inetDifference(byte[] form, byte[] other) {
    Address a = Address.decode(form);
    Address b = ofSameFamily(a, other, "subtract");
    BigInteger difference = new BigInteger(1, a.data()).subtract(new BigInteger(1, b.data()));
    if (a.width() == Address.V6_BITS) difference = signed(difference);
    if (difference.bitLength() > 63) throw outOfRange();
    return difference.longValue();
  }

  /** Returns a difference as a number of 128 bits with a sign, as PostgreSQL computes it. */
  private static BigInteger signed(BigInteger difference) {
    BigInteger half = BigInteger.ONE.shiftLeft(Address.V6_BITS - 1);
    return difference.add(half).mod(half.shiftLeft(1)).subtract(half);
  }

  private static SqlError outOfRange() { return new SqlError("22003", "result is out of range"); }
}
