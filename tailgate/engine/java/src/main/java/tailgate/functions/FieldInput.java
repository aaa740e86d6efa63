package tailgate.functions;

import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * Reads the text of a row, range or multirange, whose fields may have parts in quotes. {@code tailgate/values/codec/texts.py}
 * reads the same.
 */
public final class FieldInput {
  private final String kind;
  private final String text;
  private int at = 0;

  /** {@code kind}: record, range or multirange, for the error. Blanks before the text have no meaning. */
  public FieldInput(String kind, UTF8String text) {
    this.kind = kind;
    this.text = text.toString();
    skipBlanks();
  }

  /** Consumes a word, in capital or small letters, or nothing. Returns whether it is there. */
  public boolean accept(String word) {
    boolean isThere = text.regionMatches(true, at, word, 0, word.length());
    if (isThere) at += word.length();
    return isThere;
  }

  /** Consumes one of some characters. */
  public char expect(String characters) {
    if (!isAt(characters)) throw malformed();
    return text.charAt(at++);
  }

  /** Consumes the characters before one of {@code ends}. Returns them without quotes and backslashes, or null if there are none. */
  public UTF8String field(String ends) {
    StringBuilder field = new StringBuilder();
    int begin = at;
    boolean quoted = false;
    while (quoted || !isAt(ends)) {
      char c = next();
      if (c == '\\') {
        field.append(next());
      } else if (c != '"') {
        field.append(c);
      } else if (quoted && isAt("\"")) {
        field.append(next());
      } else {
        quoted = !quoted;
      }
    }
    return at == begin ? null : UTF8String.fromString(field.toString());
  }

  /** Consumes a range: the characters from an opening bracket to the closing one, which is not in quotes. Returns them as they are. */
  public UTF8String bracketed() {
    int begin = at;
    expect("[(");
    boolean quoted = false;
    while (quoted || !isAt(")]")) {
      char c = next();
      if (c == '\\') {
        skipBlanks();
        next();
      } else if (c == '"') {
        quoted = !quoted;
      }
    }
    at++;
    return UTF8String.fromString(text.substring(begin, at));
  }

  /** Checks that only blanks follow. */
  public void end() {
    skipBlanks();
    if (at < text.length()) throw malformed();
  }

  private char next() {
    if (at == text.length()) throw malformed();
    return text.charAt(at++);
  }

  private boolean isAt(String characters) { return at < text.length() && characters.indexOf(text.charAt(at)) >= 0; }

  public void skipBlanks() {
    while (at < text.length() && TextInput.isSpace(text.charAt(at))) at++;
  }

  private SqlError malformed() { return new SqlError("22P02", "malformed " + kind + " literal: \"" + text + "\""); }
}
