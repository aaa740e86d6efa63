package tailgate.functions.range;

import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.TextInput;

/** Reads the text of a range. {@code tailgate/values/ranges/codec.py} reads the same. */
final class RangeInput {
  private static final String EMPTY = "empty";

  private final String text;
  private int at = 0;

  RangeInput(String text) { this.text = text; }

  Range read(RangeType type) {
    skipBlanks();
    if (text.regionMatches(true, at, EMPTY, 0, EMPTY.length())) {
      at += EMPTY.length();
      end();
      return Range.empty(type);
    }
    char opening = next();
    if (opening != '[' && opening != '(') throw malformed();
    UTF8String lower = bound();
    if (next() != ',') throw malformed();
    UTF8String upper = bound();
    char closing = next();
    if (closing == ',') throw malformed();
    end();
    return Range.of(type, lower, opening == '[', upper, closing == ']');
  }

  /** Returns the text of a bound without quotes and backslashes, or null if there is none. */
  private UTF8String bound() {
    StringBuilder bound = new StringBuilder();
    int begin = at;
    boolean quoted = false;
    while (quoted || at == text.length() || ",)]".indexOf(text.charAt(at)) < 0) {
      char c = next();
      if (c == '\\') {
        bound.append(next());
      } else if (c != '"') {
        bound.append(c);
      } else if (quoted && at < text.length() && text.charAt(at) == '"') {
        bound.append(next());
      } else {
        quoted = !quoted;
      }
    }
    return at == begin ? null : UTF8String.fromString(bound.toString());
  }

  private char next() {
    if (at == text.length()) throw malformed();
    return text.charAt(at++);
  }

  private void end() {
    skipBlanks();
    if (at < text.length()) throw malformed();
  }

  private void skipBlanks() {
    while (at < text.length() && TextInput.isSpace(text.charAt(at))) at++;
  }

  private SqlError malformed() { return new SqlError("22P02", "malformed range literal: \"" + text + "\""); }
}
