package tailgate.functions.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Pattern;
import tailgate.errors.SqlError;
import tailgate.functions.text.Utf8;

/**
 * Converts JSON to the canonical text of jsonb, which is the text that PostgreSQL prints and the
 * form in which jsonb is stored. {@link JsonbAccess} reads it without parsing.
 *
 * <p>Keys are ordered by length, then by bytes; the last of equal keys remains. One space follows a
 * colon or comma. Numbers are written as numeric is. Strings have as few escapes as possible.
 *
 * <p>Source: PostgreSQL 15, src/backend/utils/adt/jsonb.c (JsonbToCString), json.c (escape_json),
 * jsonb_util.c (lengthCompareJsonbStringValue).
 */
public final class Jsonb {
  private static final int STRING_MAX = 1 << 28;  // bytes of a string: PostgreSQL's limit
  // Digits of a number: numeric has up to 131,072 before the point and 16,383 after it.
  private static final int DIGITS_MAX = 150_000;
  // Bytes that expanded exponents may add to a document; a few bytes can denote 131,072 digits.
  private static final int EXPANSION_MAX = 4 << 20;
  private static final int DEPTH_MAX = 2_000;  // levels of nesting, about 100 bytes of stack each
  private static final Pattern INDEX = Pattern.compile("\\s*[+-]?[0-9]+");

  public static final JsonFactory FACTORY = new JsonFactoryBuilder()
      .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
      .disable(JsonFactory.Feature.FAIL_ON_SYMBOL_HASH_OVERFLOW)
      .streamReadConstraints(StreamReadConstraints.builder()
          .maxStringLength(STRING_MAX)
          .maxNameLength(STRING_MAX)
          .maxNumberLength(DIGITS_MAX)
          .maxNestingDepth(DEPTH_MAX)
          .build())
      .build();

  private byte[] out;
  private int length;
  private int expansion;

  private Jsonb(int capacity) { out = new byte[capacity]; }

  /** Returns the canonical text of a document. Throws 22P02 if it is not JSON. */
  public static byte[] canonical(byte[] json) {
    Utf8.checked(json);
    try (JsonParser parser = FACTORY.createParser(json)) {
      if (parser.nextToken() == null) throw invalid();
      byte[] text = canonical(parser, json.length);
      if (parser.nextToken() != null) throw invalid();
      return text;
    } catch (IOException e) {
      throw invalid(e);
    }
  }

  /** Returns the index that a step of a path is, null for another text. As with strtoint() of C, blanks may precede it. */
  static Integer index(String step) {
    if (!INDEX.matcher(step).matches()) return null;
    try {
      return Integer.valueOf(step.strip());
    } catch (NumberFormatException e) {
      return null;
    }
  }

  /** Returns the canonical text of the parser's current value, and moves the parser to its end. */
  public static byte[] canonical(JsonParser parser, int expectedSize) throws IOException {
    Jsonb jsonb = new Jsonb(expectedSize + expectedSize / 8 + 16);
    try {
      jsonb.writeValue(parser, parser.currentToken());
    } catch (StackOverflowError e) {
      throw SqlError.tooDeep();
    }
    return Arrays.copyOf(jsonb.out, jsonb.length);
  }

  /** Returns a text as a JSON string. */
  public static byte[] quoted(String text) {
    Jsonb jsonb = new Jsonb(text.length() + text.length() / 8 + 16);
    jsonb.writeString(text.toCharArray(), 0, text.length());
    return Arrays.copyOf(jsonb.out, jsonb.length);
  }

  public static SqlError invalid() { return new SqlError("22P02", "invalid input syntax for type json"); }

  /** Returns the error for an exception of Jackson's. */
  public static SqlError invalid(IOException e) {
    return e instanceof StreamConstraintsException ? limitExceeded() : invalid();
  }

  private static SqlError limitExceeded() { return new SqlError("54000", "JSON exceeds a limit"); }

  // ---- values -----------------------------------------------------------------------------------

  private void writeValue(JsonParser p, JsonToken token) throws IOException {
    switch (token) {
      case START_OBJECT -> writeObject(p);
      case START_ARRAY -> writeArray(p);
      case VALUE_STRING -> writeString(p.getTextCharacters(), p.getTextOffset(), p.getTextLength());
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> writeNumber(p.getText());
      case VALUE_TRUE -> write("true");
      case VALUE_FALSE -> write("false");
      case VALUE_NULL -> write("null");
      default -> throw invalid();
    }
  }

  private void writeArray(JsonParser p) throws IOException {
    write('[');
    boolean first = true;
    for (JsonToken token = p.nextToken(); token != JsonToken.END_ARRAY; token = p.nextToken()) {
      if (!first) write(", ");
      first = false;
      writeValue(p, token);
    }
    write(']');
  }

  /** A key, and the range of the output that contains its member. */
  private record Member(byte[] key, int from, int to) {
    static final Comparator<Member> ORDER = (a, b) -> a.key.length != b.key.length
        ? Integer.compare(a.key.length, b.key.length)
        : Arrays.compareUnsigned(a.key, b.key);
  }

  private void writeObject(JsonParser p) throws IOException {
    List<Member> members = new ArrayList<>();
    boolean ordered = true;
    write('{');
    int begin = length;
    while (p.nextToken() != JsonToken.END_OBJECT) {
      String name = p.currentName();
      if (!members.isEmpty()) write(", ");
      int from = length;
      writeString(name.toCharArray(), 0, name.length());
      write(": ");
      writeValue(p, p.nextToken());
      Member member = new Member(name.getBytes(StandardCharsets.UTF_8), from, length);
      ordered = ordered
          && (members.isEmpty() || Member.ORDER.compare(members.get(members.size() - 1), member) < 0);
      members.add(member);
    }
    if (!ordered) reorder(begin, members);
    write('}');
  }

  /** Orders the members that were written from {@code begin} on, and removes duplicates. */
  private void reorder(int begin, List<Member> members) {
    byte[] written = Arrays.copyOfRange(out, begin, length);
    members.sort(Member.ORDER);  // stable, so equal keys keep the order of the document
    length = begin;
    for (int i = 0; i < members.size(); i++) {
      Member member = members.get(i);
      if (i + 1 < members.size() && Member.ORDER.compare(member, members.get(i + 1)) == 0) continue;
      if (length > begin) write(", ");
      write(written, member.from - begin, member.to - member.from);
    }
  }

  private void writeNumber(String source) {
    String text = number(source);
    expansion += Math.max(0, text.length() - source.length());
    if (expansion > EXPANSION_MAX) throw limitExceeded();
    write(text);
  }

  /**
   * Returns a number as numeric prints it: with the scale that was written, without an exponent.
   */
  static String number(String text) {
    int exponent = Math.max(text.indexOf('e'), text.indexOf('E'));
    if (exponent < 0) return text.charAt(0) == '-' && isZero(text) ? text.substring(1) : text;
    BigDecimal value;
    try {
      value = new BigDecimal(text);
    } catch (NumberFormatException | ArithmeticException e) {
      throw numericOverflow();
    }
    boolean tooLarge = value.signum() != 0 && (long) value.precision() - value.scale() > 131_072;
    if (tooLarge || value.scale() > 16_383 || value.scale() < -131_072) throw numericOverflow();
    if (value.scale() >= 0) return value.toPlainString();
    return value.signum() == 0 ? "0" : value.unscaledValue() + "0".repeat(-value.scale());
  }

  public static SqlError numericOverflow() { return new SqlError("22003", "value overflows numeric format"); }

  private static boolean isZero(String text) {
    for (int i = 0; i < text.length(); i++) if (text.charAt(i) >= '1' && text.charAt(i) <= '9') return false;
    return true;
  }

  private void writeString(char[] chars, int from, int count) {
    write('"');
    for (int i = from; i < from + count; i++) {
      char c = chars[i];
      if (c < ' ' || c == '"' || c == '\\') {
        writeEscaped(c);
      } else if (c < 0x80) {
        write(c);
      } else if (c < 0x800) {
        write(0xc0 | c >> 6);
        write(0x80 | c & 0x3f);
      } else if (Character.isSurrogate(c)) {
        boolean pair = Character.isHighSurrogate(c) && i + 1 < from + count && Character.isLowSurrogate(chars[i + 1]);
        if (!pair) throw invalid();
        int codePoint = Character.toCodePoint(c, chars[++i]);
        write(0xf0 | codePoint >> 18);
        write(0x80 | codePoint >> 12 & 0x3f);
        write(0x80 | codePoint >> 6 & 0x3f);
        write(0x80 | codePoint & 0x3f);
      } else {
        write(0xe0 | c >> 12);
        write(0x80 | c >> 6 & 0x3f);
        write(0x80 | c & 0x3f);
      }
    }
    write('"');
  }

  private void writeEscaped(char c) {
    switch (c) {
      case 0 -> throw new SqlError("22P05", "unsupported Unicode escape sequence");
      case '"', '\\' -> {
        write('\\');
        write(c);
      }
      case '\b' -> write("\\b");
      case '\f' -> write("\\f");
      case '\n' -> write("\\n");
      case '\r' -> write("\\r");
      case '\t' -> write("\\t");
      default -> write(String.format("\\u%04x", (int) c));
    }
  }

  // ---- bytes ------------------------------------------------------------------------------------

  private void write(int b) {
    if (length == out.length) out = Arrays.copyOf(out, 2 * length + 16);
    out[length++] = (byte) b;
  }

  private void write(String ascii) { for (int i = 0; i < ascii.length(); i++) write(ascii.charAt(i)); }

  private void write(byte[] bytes, int from, int count) {
    if (length + count > out.length) out = Arrays.copyOf(out, 2 * (length + count));
    System.arraycopy(bytes, from, out, length, count);
    length += count;
  }
}
