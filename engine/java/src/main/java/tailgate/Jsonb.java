package tailgate;

import com.fasterxml.jackson.core.*;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.*;

/**
 * JSON to the canonical text of a jsonb, which is what PostgreSQL prints: keys by length and then bytes, of equal keys the last, one space after a colon or comma, numbers as
 * numeric writes them, strings escaped as little as may be. It is how jsonb is stored, and what {@link JsonbText} reads without parsing.
 *
 * <p>Source: PostgreSQL 15, src/backend/utils/adt/jsonb.c (JsonbToCString), json.c (escape_json), jsonb_util.c (lengthCompareJsonbStringValue).
 */
final class Jsonb {
  private static final int LONG = 1 << 28;      // bytes of a string: PostgreSQL's own limit
  private static final int DIGITS = 150_000;    // of a number: numeric has 131,072 before the point and 16,383 after it
  private static final int EXPANDED = 4 << 20;  // bytes that exponents may add to a document: each of a few bytes may stand for 131,072
  private static final int DEPTH = 2_000;       // of nesting: some 100 bytes of stack each
  static final JsonFactory FACTORY = new JsonFactoryBuilder().disable(JsonFactory.Feature.INTERN_FIELD_NAMES).disable(JsonFactory.Feature.FAIL_ON_SYMBOL_HASH_OVERFLOW)
      .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(LONG).maxNameLength(LONG).maxNumberLength(DIGITS).maxNestingDepth(DEPTH).build()).build();

  private byte[] out;
  private int n, expanded;

  private Jsonb(int size) { out = new byte[size]; }

  /** The canonical text of a document; 22P02 if it is none. */
  static byte[] canonical(byte[] json) {
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

  /** The canonical text of the value at which the parser stands; it then stands at its end. */
  static byte[] canonical(JsonParser parser, int size) throws IOException {
    Jsonb jsonb = new Jsonb(size + size / 8 + 16);
    try {
      jsonb.value(parser, parser.currentToken());
    } catch (StackOverflowError e) {
      throw SqlError.tooDeep();
    }
    return Arrays.copyOf(jsonb.out, jsonb.n);
  }

  /** A text as a JSON string. */
  static byte[] quoted(String text) {
    Jsonb jsonb = new Jsonb(text.length() + text.length() / 8 + 16);
    jsonb.string(text.toCharArray(), 0, text.length());
    return Arrays.copyOf(jsonb.out, jsonb.n);
  }

  static SqlError invalid() { return new SqlError("22P02", "invalid input syntax for type json"); }

  static SqlError invalid(IOException e) { return e instanceof com.fasterxml.jackson.core.exc.StreamConstraintsException ? new SqlError("54000", "JSON exceeds a limit") : invalid(); }

  // ---- writing ------------------------------------------------------------------------------------------------------------------

  private void value(JsonParser p, JsonToken token) throws IOException {
    switch (token) {
      case START_OBJECT -> object(p);
      case START_ARRAY -> {
        put('[');
        for (boolean first = true; (token = p.nextToken()) != JsonToken.END_ARRAY; first = false) {
          if (!first) put(", ");
          value(p, token);
        }
        put(']');
      }
      case VALUE_STRING -> string(p.getTextCharacters(), p.getTextOffset(), p.getTextLength());
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> number(p);
      case VALUE_TRUE -> put("true");
      case VALUE_FALSE -> put("false");
      case VALUE_NULL -> put("null");
      default -> throw invalid();
    }
  }

  /** A key, and where its pair was written. */
  private record Pair(byte[] key, int from, int to) {
    static final Comparator<Pair> ORDER = (a, b) -> a.key.length != b.key.length ? Integer.compare(a.key.length, b.key.length) : Arrays.compareUnsigned(a.key, b.key);
  }

  private void object(JsonParser p) throws IOException {
    List<Pair> pairs = new ArrayList<>();
    boolean ordered = true;
    put('{');
    int begin = n;
    while (p.nextToken() != JsonToken.END_OBJECT) {
      String name = p.currentName();
      if (!pairs.isEmpty()) put(", ");
      int from = n;
      string(name.toCharArray(), 0, name.length());
      put(": ");
      value(p, p.nextToken());
      Pair pair = new Pair(name.getBytes(StandardCharsets.UTF_8), from, n);
      ordered = ordered && (pairs.isEmpty() || Pair.ORDER.compare(pairs.get(pairs.size() - 1), pair) < 0);
      pairs.add(pair);
    }
    if (!ordered) rewrite(begin, pairs);
    put('}');
  }

  private void rewrite(int begin, List<Pair> pairs) {
    byte[] written = Arrays.copyOfRange(out, begin, n);
    pairs.sort(Pair.ORDER);  // stable: of equal keys the last was written last
    n = begin;
    for (int i = 0; i < pairs.size(); i++) {
      if (i + 1 < pairs.size() && Pair.ORDER.compare(pairs.get(i), pairs.get(i + 1)) == 0) continue;
      if (n > begin) put(", ");
      put(written, pairs.get(i).from - begin, pairs.get(i).to - pairs.get(i).from);
    }
  }

  private void number(JsonParser p) throws IOException {
    String given = p.getText(), text = number(given);
    expanded += Math.max(0, text.length() - given.length());
    if (expanded > EXPANDED) throw new SqlError("54000", "JSON exceeds a limit");
    put(text);
  }

  /** As numeric prints it: no exponent, the scale that was written. */
  static String number(String text) {
    int exponent = Math.max(text.indexOf('e'), text.indexOf('E'));
    if (exponent < 0) return text.charAt(0) == '-' && zero(text) ? text.substring(1) : text;
    BigDecimal value;
    try {
      value = new BigDecimal(text);
    } catch (NumberFormatException | ArithmeticException e) {
      throw new SqlError("22003", "value overflows numeric format");
    }
    if (value.signum() != 0 && (long) value.precision() - value.scale() > 131_072 || value.scale() > 16_383 || value.scale() < -131_072) throw new SqlError("22003", "value overflows numeric format");
    return value.scale() >= 0 ? value.toPlainString() : value.signum() == 0 ? "0" : value.unscaledValue() + "0".repeat(-value.scale());
  }

  private static boolean zero(String text) {
    for (int i = 0; i < text.length(); i++) if (text.charAt(i) >= '1' && text.charAt(i) <= '9') return false;
    return true;
  }

  private void string(char[] chars, int at, int length) {
    put('"');
    for (int i = at; i < at + length; i++) {
      char c = chars[i];
      if (c < ' ' || c == '"' || c == '\\') escaped(c);
      else if (c < 0x80) put(c);
      else if (c < 0x800) {
        put(0xc0 | c >> 6);
        put(0x80 | c & 0x3f);
      } else if (Character.isSurrogate(c)) {
        if (Character.isLowSurrogate(c) || i + 1 == at + length || !Character.isLowSurrogate(chars[i + 1])) throw invalid();
        int code = Character.toCodePoint(c, chars[++i]);
        put(0xf0 | code >> 18);
        put(0x80 | code >> 12 & 0x3f);
        put(0x80 | code >> 6 & 0x3f);
        put(0x80 | code & 0x3f);
      } else {
        put(0xe0 | c >> 12);
        put(0x80 | c >> 6 & 0x3f);
        put(0x80 | c & 0x3f);
      }
    }
    put('"');
  }

  private void escaped(char c) {
    switch (c) {
      case 0 -> throw new SqlError("22P05", "unsupported Unicode escape sequence");
      case '"', '\\' -> { put('\\'); put(c); }
      case '\b' -> put("\\b");
      case '\f' -> put("\\f");
      case '\n' -> put("\\n");
      case '\r' -> put("\\r");
      case '\t' -> put("\\t");
      default -> put(String.format("\\u%04x", (int) c));
    }
  }

  private void put(int b) {
    if (n == out.length) out = Arrays.copyOf(out, 2 * n + 16);
    out[n++] = (byte) b;
  }

  private void put(String ascii) { for (int i = 0; i < ascii.length(); i++) put(ascii.charAt(i)); }

  private void put(byte[] bytes, int from, int length) {
    if (n + length > out.length) out = Arrays.copyOf(out, 2 * (n + length));
    System.arraycopy(bytes, from, out, n, length);
    n += length;
  }
}
