package tailgate.functions.network;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads the text of inet and cidr. {@code tailgate/values/networks/address_input.py} reads the same. */
final class AddressInput {
  private static final Pattern OCTETS = Pattern.compile("[0-9]+(?:\\.[0-9]+)*");
  private static final Pattern HEX = Pattern.compile("0[xX]([0-9a-fA-F]+)");
  private static final Pattern LENGTH = Pattern.compile("/0*([0-9]{1,2})");
  private static final Pattern V6_LENGTH = Pattern.compile("0|[1-9][0-9]{0,2}");
  private static final Pattern OCTET = Pattern.compile("0?|[1-9][0-9]{0,2}");
  private static final Pattern WORD = Pattern.compile("([0-9a-fA-F]*)([^0-9a-fA-F]?)", Pattern.DOTALL);
  private static final int WORDS = 8;

  private AddressInput() {}

  /** The text is not an address. */
  static final class MalformedException extends Exception {
    private static final long serialVersionUID = 1;

    MalformedException() { super(null, null, false, false); }
  }

  static Address parse(String text, boolean isCidr) throws MalformedException {
    if (text.indexOf(':') >= 0) return v6(text);
    return isCidr ? cidrV4(text) : inetV4(text);
  }

  private static Address inetV4(String text) throws MalformedException {
    Matcher match = OCTETS.matcher(text);
    if (!match.lookingAt()) throw new MalformedException();
    byte[] octets = numbers(match.group());
    String rest = text.substring(match.end());
    if (rest.startsWith(".")) rest = rest.substring(1);
    if (rest.isEmpty()) {
      if (octets.length < 4) throw new MalformedException();
      return address(octets, Address.V4_BITS);
    }
    int length = length(rest);
    if (length / 8 > octets.length) throw new MalformedException();
    return address(octets, length);
  }

  private static Address cidrV4(String text) throws MalformedException {
    Matcher hex = HEX.matcher(text);
    Matcher decimal = OCTETS.matcher(text);
    byte[] octets;
    String rest;
    if (hex.lookingAt()) {
      String digits = hex.group(1);
      octets = new byte[(digits.length() + 1) / 2];
      for (int i = 0; i < digits.length(); i++) {
        octets[i / 2] |= (byte) (Character.digit(digits.charAt(i), 16) << (i % 2 == 0 ? 4 : 0));
      }
      rest = text.substring(hex.end());
    } else if (decimal.lookingAt()) {
      octets = numbers(decimal.group());
      rest = text.substring(decimal.end());
    } else {
      throw new MalformedException();
    }
    if (octets.length > 4) throw new MalformedException();
    return address(octets, rest.isEmpty() ? classLength(octets) : length(rest));
  }

  private static int classLength(byte[] octets) {
    int first = octets[0] & 0xFF;
    int length = first >= 240 ? 32 : first >= 224 ? 8 : first >= 192 ? 24 : first >= 128 ? 16 : 8;
    length = Math.max(length, 8 * octets.length);
    return length == 8 && first == 224 ? 4 : length;
  }

  private static byte[] numbers(String text) throws MalformedException {
    String[] parts = text.split("\\.");
    if (parts.length > 4) throw new MalformedException();
    byte[] octets = new byte[parts.length];
    for (int i = 0; i < parts.length; i++) {
      String digits = parts[i].replaceFirst("^0+(?=.)", "");
      if (digits.length() > 3 || Integer.parseInt(digits) > 255) throw new MalformedException();
      octets[i] = (byte) Integer.parseInt(digits);
    }
    return octets;
  }

  private static int length(String rest) throws MalformedException {
    Matcher match = LENGTH.matcher(rest);
    if (!match.matches() || Integer.parseInt(match.group(1)) > Address.V4_BITS) throw new MalformedException();
    return Integer.parseInt(match.group(1));
  }

  private static Address address(byte[] octets, int length) { return new Address(Arrays.copyOf(octets, 4), length); }

  private static Address v6(String text) throws MalformedException {
    if (text.startsWith(":") && !text.startsWith("::")) throw new MalformedException();
    List<Integer> words = new ArrayList<>();
    int gap = -1;
    int length = Address.V6_BITS;
    Matcher word = WORD.matcher(text);
    for (int at = text.startsWith(":") ? 1 : 0; at < text.length(); at = word.end()) {
      word.region(at, text.length()).lookingAt();
      String digits = word.group(1);
      String sign = word.group(2);
      if (digits.length() > 4) throw new MalformedException();
      if (sign.equals(":")) {
        if (digits.isEmpty()) {
          if (gap >= 0) throw new MalformedException();
          gap = words.size();
        } else if (word.end() == text.length()) {
          throw new MalformedException();
        } else {
          words.add(Integer.parseInt(digits, 16));
        }
        continue;
      }
      if (sign.equals(".") && words.size() <= WORDS - 2) {
        length = addEmbedded(text.substring(at), words);
        break;
      }
      if (!digits.isEmpty()) words.add(Integer.parseInt(digits, 16));
      if (sign.equals("/")) {
        length = v6Length(text.substring(word.end()));
        break;
      }
      if (!sign.isEmpty()) throw new MalformedException();
    }
    if (gap >= 0 && words.size() == WORDS) throw new MalformedException();
    while (gap >= 0 && words.size() < WORDS) words.add(gap, 0);
    if (words.size() != WORDS) throw new MalformedException();
    byte[] data = new byte[2 * WORDS];
    for (int i = 0; i < WORDS; i++) {
      data[2 * i] = (byte) (words.get(i) >> 8);
      data[2 * i + 1] = (byte) (int) words.get(i);
    }
    return new Address(data, length);
  }

  /** Adds the words of the IPv4 address that ends a text, and returns the length of the netmask behind it. */
  private static int addEmbedded(String text, List<Integer> words) throws MalformedException {
    int slash = text.indexOf('/');
    String[] parts = (slash < 0 ? text : text.substring(0, slash)).split("\\.", -1);
    if (parts.length > 4 || slash < 0 && parts[parts.length - 1].isEmpty()) throw new MalformedException();
    int[] octets = new int[4];
    for (int i = 0; i < parts.length; i++) {
      if (!OCTET.matcher(parts[i]).matches()) throw new MalformedException();
      octets[i] = parts[i].isEmpty() ? 0 : Integer.parseInt(parts[i]);
      if (octets[i] > 255) throw new MalformedException();
    }
    words.add(octets[0] << 8 | octets[1]);
    words.add(octets[2] << 8 | octets[3]);
    return slash < 0 ? Address.V6_BITS : v6Length(text.substring(slash + 1));
  }

  private static int v6Length(String rest) throws MalformedException {
    if (!V6_LENGTH.matcher(rest).matches() || Integer.parseInt(rest) > Address.V6_BITS) throw new MalformedException();
    return Integer.parseInt(rest);
  }
}
