package tailgate.functions.ksqldb;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;
import tailgate.functions.json.JsonbTree;

/**
 * ksqlDB's functions of texts and bytes.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL, and a result of null is
 * NULL. {@code tailgate/sql/compute/ksqldb/texts.py} computes the same and names the source.
 */
public final class KsqldbTexts {
  private static final int MASKS = 4;  // replacements
  private static final UTF8String NOTHING = UTF8String.fromString("[]"), EMPTY_TEXT = UTF8String.fromString("[\"\"]");  // as parts
  private static final String BLANKS = " \t\n\u000b\f\r";  // between words

  private KsqldbTexts() {}

  private static UTF8String text(String value) { return UTF8String.fromString(value); }

  /** Returns the text with each word capitalized, in queries of earlier versions. Words are separated by spaces. */
  public static UTF8String ksqldbInitcap(UTF8String value) { return capitalized(value, " "); }

  /** Returns the text with each word capitalized. Words are separated by white space. */
  public static UTF8String ksqldbCapitalized(UTF8String value) { return capitalized(value, BLANKS); }

  private static UTF8String capitalized(UTF8String value, String blanks) {
    StringBuilder out = new StringBuilder();
    boolean first = true;
    for (int c : value.toString().codePoints().toArray()) {
      String character = Character.toString(c);
      out.append(first ? character.toUpperCase(Locale.ROOT) : character.toLowerCase(Locale.ROOT));
      first = blanks.indexOf(c) >= 0;
    }
    return text(out.toString());
  }

  /** Returns the position of the nth occurrence of a part, counted from a position, or 0. */
  public static int ksqldbInstr(UTF8String value, UTF8String part, int position, int occurrence) {
    if (position == 0 || occurrence < 1 || part.numBytes() == 0) return 0;
    int[] characters = value.toString().codePoints().toArray();
    int[] searched = part.toString().codePoints().toArray();
    int step = position > 0 ? 1 : -1;
    int remaining = occurrence;
    int at = position > 0 ? position - 1 : characters.length + position;
    for (; at >= 0 && at < characters.length; at += step) {
      if (startsWith(characters, searched, at) && --remaining == 0) return at + 1;
    }
    return 0;
  }

  private static boolean startsWith(int[] characters, int[] part, int at) {
    int end = at + part.length;
    return end <= characters.length && Arrays.equals(characters, at, end, part, 0, part.length);
  }

  /** Returns the index of a position; a negative one counts from the end. */
  private static int start(int length, int position) {
    return position < 0 ? Math.max(length + position, 0) : Math.max(position - 1, 0);
  }

  public static UTF8String ksqldbSubstring(UTF8String value, int position, int length) {
    int size = value.numChars();
    int start = Math.min(start(size, position), size);
    return value.substring(start, start + Math.min(Math.max(length, 0), size - start));
  }

  public static byte[] ksqldbSubstringBytes(byte[] data, int position, int length) {
    int start = Math.min(start(data.length, position), data.length);
    return Arrays.copyOfRange(data, start, start + Math.min(Math.max(length, 0), data.length - start));
  }

  // ---- masks ------------------------------------------------------------------------------------

  /** Returns the text with the characters of a part replaced. */
  public static UTF8String ksqldbMask(UTF8String value, UTF8String part, int count, UTF8String masks) {
    if (count < 0) {
      throw SqlError.invalidParameter("function requires a non-negative number of characters to mask or skip");
    }
    int[] characters = value.toString().codePoints().toArray();
    int[] replacements = masks.toString().codePoints().toArray();
    if (replacements.length < MASKS) throw SqlError.invalidParameter("function requires " + MASKS + " replacements");
    String name = part.toString();
    int cut = name.endsWith("left") ? Math.min(count, characters.length) : Math.max(characters.length - count, 0);
    boolean head = name.equals("left") || name.equals("not right");
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < characters.length; i++) {
      out.appendCodePoint(i < cut == head ? masked(characters[i], replacements) : characters[i]);
    }
    return text(out.toString());
  }

  private static int masked(int c, int[] masks) {
    int kind = Character.isUpperCase(c) ? 0 : Character.isLowerCase(c) ? 1 : Character.isDigit(c) ? 2 : 3;
    return masks[kind] == 1 ? c : masks[kind];
  }

  // ---- parts ------------------------------------------------------------------------------------

  /** Returns the parts of a text between delimiters. */
  private static List<String> parts(String text, String delimiter) {
    List<String> parts = new ArrayList<>();
    int from = 0;
    for (int at; (at = text.indexOf(delimiter, from)) >= 0; from = at + delimiter.length()) {
      parts.add(text.substring(from, at));
    }
    parts.add(text.substring(from));
    return parts;
  }

  public static UTF8String ksqldbSplit(UTF8String value, UTF8String delimiter) {
    String text = value.toString();
    return JsonbTree.text(delimiter.numBytes() > 0 ? parts(text, delimiter.toString()) : characters(text));
  }

  static List<String> characters(String text) { return text.codePoints().mapToObj(Character::toString).toList(); }

  /** Returns the parts of a text. An empty text, which has no characters, is its only part. */
  public static UTF8String ksqldbParts(UTF8String parts) { return parts.equals(NOTHING) ? EMPTY_TEXT : parts; }

  /** Returns the parts of bytes in base64. */
  public static UTF8String ksqldbSplitBytes(byte[] data, byte[] delimiter) {
    String text = new String(data, StandardCharsets.ISO_8859_1), between = new String(delimiter, StandardCharsets.ISO_8859_1);
    List<String> parts = between.isEmpty() ? text.chars().mapToObj(Character::toString).toList() : parts(text, between);
    return JsonbTree.text(parts.stream().map(part -> base64(part.getBytes(StandardCharsets.ISO_8859_1))).toList());
  }

  private static String base64(byte[] data) { return Base64.getEncoder().encodeToString(data); }

  /** Returns the entries of a text. Those without a delimiter after the key are ignored. */
  public static UTF8String ksqldbSplitToMap(UTF8String value, UTF8String betweenEntries, UTF8String afterKey) {
    if (betweenEntries.numBytes() == 0 || afterKey.numBytes() == 0) return null;
    String separator = afterKey.toString();
    Map<String, Object> map = new TreeMap<>(JsonbTree.KEY_ORDER);
    for (String entry : parts(value.toString(), betweenEntries.toString())) {
      int at = entry.indexOf(separator);
      if (at >= 0) map.put(entry.substring(0, at), entry.substring(at + separator.length()));
    }
    return JsonbTree.text(map);
  }

  // ---- encodings --------------------------------------------------------------------------------

  private static SqlError unknown(UTF8String encoding) {
    return SqlError.invalidParameter("unknown encoding type '" + encoding + "'");
  }

  /** Returns the bytes that a text in an encoding stands for. Throws 22023. */
  public static byte[] ksqldbToBytes(UTF8String value, UTF8String encoding) {
    String s = value.toString();
    try {
      return switch (encoding.toString().toLowerCase(Locale.ROOT)) {
        case "hex" -> {
          boolean quoted = s.startsWith("X'") || s.startsWith("x'");
          String digits = quoted ? s.substring(2, s.length() - 1) : s.startsWith("0x") ? s.substring(2) : s;
          yield HexFormat.of().parseHex(digits.length() % 2 == 1 ? "0" + digits : digits);
        }
        case "utf8" -> value.getBytes();
        case "ascii" -> s.codePoints()
            .mapToObj(c -> c < 128 ? Character.toString(c) : "?")
            .reduce("", String::concat)
            .getBytes(StandardCharsets.US_ASCII);
        case "base64" -> Base64.getDecoder().decode(s);
        default -> throw unknown(encoding);
      };
    } catch (IllegalArgumentException e) {
      throw SqlError.invalidParameter("invalid text in the encoding " + encoding);
    }
  }

  /** Returns bytes as a text in an encoding. Throws 22023. */
  public static UTF8String ksqldbFromBytes(byte[] data, UTF8String encoding) {
    return switch (encoding.toString().toLowerCase(Locale.ROOT)) {
      case "hex" -> text(HexFormat.of().formatHex(data));
      case "utf8" -> text(new String(data, StandardCharsets.UTF_8).replace('\0', '\ufffd'));
      case "ascii" -> text(new String(data, StandardCharsets.US_ASCII).replace('\0', '\ufffd'));
      case "base64" -> text(Base64.getEncoder().encodeToString(data));
      default -> throw unknown(encoding);
    };
  }

  /** Returns a buffer of bytes in an order, or null for another number of bytes or an unknown order. */
  private static ByteBuffer buffer(byte[] data, UTF8String order, int size) {
    String name = order.toString().toUpperCase(Locale.ROOT);
    boolean big = name.equals("BIG_ENDIAN");
    if (data.length != size || !big && !name.equals("LITTLE_ENDIAN")) return null;
    return ByteBuffer.wrap(data).order(big ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN);
  }

  @Returns("int")
  public static Integer ksqldbIntFromBytes(byte[] data, UTF8String order) {
    ByteBuffer buffer = buffer(data, order, Integer.BYTES);
    return buffer == null ? null : (Integer) buffer.getInt();
  }

  @Returns("bigint")
  public static Long ksqldbBigintFromBytes(byte[] data, UTF8String order) {
    ByteBuffer buffer = buffer(data, order, Long.BYTES);
    return buffer == null ? null : (Long) buffer.getLong();
  }

  @Returns("double")
  public static Double ksqldbDoubleFromBytes(byte[] data, UTF8String order) {
    ByteBuffer buffer = buffer(data, order, Double.BYTES);
    return buffer == null ? null : (Double) buffer.getDouble();
  }

  // ---- numbers as texts -------------------------------------------------------------------------

  /** Returns a DOUBLE as Java writes it: 1.0, 1.0E10. */
  public static UTF8String ksqldbDoubleText(double value) { return text(Double.toString(value)); }
}
