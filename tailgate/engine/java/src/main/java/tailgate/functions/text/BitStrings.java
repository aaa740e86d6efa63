package tailgate.functions.text;

import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * Functions of bit and bit varying, which are texts of the digits 0 and 1.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/values/strings/bits.py} and {@code tailgate/sql/compute/text/bit_strings.py} compute the same.
 */
public final class BitStrings {
  private BitStrings() {}

  // ---- text -------------------------------------------------------------------------------------

  public static UTF8String textToBit(UTF8String text) {
    String source = text.toString();
    char first = source.isEmpty() ? ' ' : source.charAt(0);
    boolean isHexadecimal = first == 'x' || first == 'X';
    int begin = isHexadecimal || first == 'b' || first == 'B' ? 1 : 0;
    StringBuilder bits = new StringBuilder();
    for (int at = begin; at < source.length(); at++) {
      char digit = source.charAt(at);
      int value = digit < 128 ? Character.digit(digit, isHexadecimal ? 16 : 2) : -1;
      if (value < 0) {
        String shown = Character.toString(source.codePointAt(at));
        throw new SqlError("22P02", "\"" + shown + "\" is not a valid " + (isHexadecimal ? "hexadecimal" : "binary") + " digit");
      }
      for (int bit = isHexadecimal ? 3 : 0; bit >= 0; bit--) bits.append(value >> bit & 1);
    }
    return UTF8String.fromString(bits.toString());
  }

  public static UTF8String textToVarbit(UTF8String text) { return textToBit(text); }

  // ---- operators --------------------------------------------------------------------------------

  public static UTF8String bitsAnd(UTF8String a, UTF8String b) { return combined("AND", a, b); }

  public static UTF8String bitsOr(UTF8String a, UTF8String b) { return combined("OR", a, b); }

  public static UTF8String bitsXor(UTF8String a, UTF8String b) { return combined("XOR", a, b); }

  private static UTF8String combined(String operation, UTF8String a, UTF8String b) {
    byte[] left = a.getBytes();
    byte[] right = b.getBytes();
    if (left.length != right.length) throw differentSizes(operation);
    byte[] result = new byte[left.length];
    for (int i = 0; i < result.length; i++) {
      result[i] = switch (operation) {
        case "AND" -> (byte) (left[i] & right[i]);
        case "OR" -> (byte) (left[i] | right[i]);
        default -> (byte) ('0' + (left[i] ^ right[i]));
      };
    }
    return UTF8String.fromBytes(result);
  }

  public static SqlError differentSizes(String operation) {
    return new SqlError("22026", "cannot " + operation + " bit strings of different sizes");
  }

  public static UTF8String bitsShiftLeft(UTF8String bits, int count) { return shifted(bits, count); }

  public static UTF8String bitsShiftRight(UTF8String bits, int count) { return shifted(bits, -(long) count); }

  /** Moves the bits to the left, or to the right by a negative count. The number of bits stays. */
  private static UTF8String shifted(UTF8String bits, long count) {
    byte[] source = bits.getBytes();
    byte[] result = new byte[source.length];
    for (int i = 0; i < result.length; i++) {
      long from = i + count;
      result[i] = from >= 0 && from < source.length ? source[(int) from] : (byte) '0';
    }
    return UTF8String.fromBytes(result);
  }

  // ---- bits -------------------------------------------------------------------------------------

  public static int bitsGetBit(UTF8String bits, int index) {
    checkIndex(bits, index);
    return bits.getByte(index) - '0';
  }

  public static UTF8String bitsSetBit(UTF8String bits, int index, int value) {
    checkIndex(bits, index);
    if (value != 0 && value != 1) throw SqlError.invalidParameter("new bit must be 0 or 1");
    byte[] result = bits.getBytes().clone();
    result[index] = (byte) ('0' + value);
    return UTF8String.fromBytes(result);
  }

  private static void checkIndex(UTF8String bits, int index) {
    if (index < 0 || index >= bits.numBytes()) {
      throw new SqlError("2202E", "bit index " + index + " out of valid range (0.." + (bits.numBytes() - 1) + ")");
    }
  }

  // ---- casts ------------------------------------------------------------------------------------

  public static UTF8String integerToBits(long value, int length) {
    byte[] result = new byte[length];
    for (int i = 0; i < length; i++) result[i] = (byte) ('0' + (value >> Math.min(length - 1 - i, 63) & 1));
    return UTF8String.fromBytes(result);
  }

  public static int bitsToInt4(UTF8String bits) {
    if (bits.numBytes() > 32) throw new SqlError("22003", "integer out of range");
    return (int) number(bits);
  }

  public static long bitsToInt8(UTF8String bits) {
    if (bits.numBytes() > 64) throw new SqlError("22003", "bigint out of range");
    return number(bits);
  }

  private static long number(UTF8String bits) {
    long number = 0;
    for (byte bit : bits.getBytes()) number = number << 1 | bit - '0';
    return number;
  }
}
