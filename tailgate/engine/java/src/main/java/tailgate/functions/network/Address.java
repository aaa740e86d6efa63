package tailgate.functions.network;

import java.util.Arrays;
import java.util.StringJoiner;

/**
 * An IP address with the length of its netmask, and its stored form: bytes whose unsigned order is
 * PostgreSQL's order.
 *
 * <p>{@code tailgate/values/networks/addresses.py} describes the form.
 */
record Address(byte[] data, int length) {
  static final int V4_BITS = 32;
  static final int V6_BITS = 128;

  /** Returns the address of a stored form. */
  static Address decode(byte[] form) {
    int size = form[0] == 4 ? V4_BITS / 8 : V6_BITS / 8;
    int begin = form.length > size + 2 ? size + 2 : 1;
    return new Address(Arrays.copyOfRange(form, begin, begin + size), form[size + 1] & 0xFF);
  }

  /** Returns the stored form. */
  byte[] encode() {
    byte[] network = network().data;
    boolean isNetwork = Arrays.equals(network, data);
    byte[] form = new byte[2 + (isNetwork ? 1 : 2) * data.length];
    form[0] = (byte) family();
    System.arraycopy(network, 0, form, 1, data.length);
    form[data.length + 1] = (byte) length;
    if (!isNetwork) System.arraycopy(data, 0, form, data.length + 2, data.length);
    return form;
  }

  int family() { return data.length == V4_BITS / 8 ? 4 : 6; }

  int width() { return 8 * data.length; }

  Address withLength(int other) { return new Address(data, other); }

  /** Returns the address with zeros to the right of the netmask. */
  Address network() {
    byte[] network = new byte[data.length];
    for (int i = 0; i < data.length; i++) network[i] = (byte) (data[i] & mask(i));
    return new Address(network, length);
  }

  boolean isNetwork() { return Arrays.equals(network().data, data); }

  /** Returns byte i of the netmask. */
  int mask(int i) {
    int ones = Math.max(0, Math.min(8, length - 8 * i));
    return 0xFF << 8 - ones & 0xFF;
  }

  /** Returns the number of first bits that two addresses of a family have in common. */
  int commonBits(Address other) {
    int i = Arrays.mismatch(data, other.data);
    if (i < 0) return width();
    return 8 * i + Integer.numberOfLeadingZeros((data[i] ^ other.data[i]) & 0xFF) - 24;
  }

  /** Returns the text of the address alone. */
  String text() {
    if (data.length == V4_BITS / 8) return octets(0);
    int[] words = words();
    int begin = -1;
    int size = 0;
    for (int i = 0, run = 0; i < words.length; i++) {
      run = words[i] == 0 ? run + 1 : 0;
      if (run > size) {
        size = run;
        begin = i - run + 1;
      }
    }
    boolean embedsV4 = begin == 0 && (size == 6 || size == 5 && words[5] == 0xFFFF);
    if (size < 2) return hex(words, 0, words.length);
    String end = embedsV4 ? octets(12) : hex(words, begin + size, words.length);
    if (embedsV4 && size == 5) end = "ffff:" + end;
    return hex(words, 0, begin) + "::" + end;
  }

  /** Returns the text with the length of the netmask. */
  String textWithLength() { return text() + "/" + length; }

  /** Returns the text of an inet: the length of the netmask is left out if it is the whole address. */
  String inetText() { return length == width() ? text() : textWithLength(); }

  int[] words() {
    int[] words = new int[data.length / 2];
    for (int i = 0; i < words.length; i++) words[i] = (data[2 * i] & 0xFF) << 8 | data[2 * i + 1] & 0xFF;
    return words;
  }

  private String octets(int begin) {
    StringJoiner text = new StringJoiner(".");
    for (int i = begin; i < data.length; i++) text.add(Integer.toString(data[i] & 0xFF));
    return text.toString();
  }

  private static String hex(int[] words, int begin, int end) {
    StringJoiner text = new StringJoiner(":");
    for (int i = begin; i < end; i++) text.add(Integer.toHexString(words[i]));
    return text.toString();
  }
}
