package tailgate;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Arrays of text, as text and joined. The twin of sql/compute/arrays.py and of what casts.py says of arrays.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class ArrayTexts {
  private ArrayTexts() {}

  public static UTF8String arrayToString(ArrayData items, UTF8String separator) { return joined(items, separator, null); }

  public static UTF8String arrayToStringNull(ArrayData items, UTF8String separator, UTF8String none) { return joined(items, separator, none); }

  private static UTF8String joined(ArrayData items, UTF8String separator, UTF8String none) {
    List<UTF8String> found = new ArrayList<>();
    for (int i = 0; i < items.numElements(); i++) {
      if (!items.isNullAt(i)) found.add(items.getUTF8String(i));
      else if (none != null) found.add(none);
    }
    return UTF8String.concatWs(separator, found.toArray(new UTF8String[0]));
  }

  /** An array's text, of its elements' texts. */
  public static UTF8String arrayToText(ArrayData items) {
    StringBuilder out = new StringBuilder("{");
    for (int i = 0; i < items.numElements(); i++) out.append(i > 0 ? "," : "").append(items.isNullAt(i) ? "NULL" : element(items.getUTF8String(i).toString()));
    return Strings.text(out.append('}').toString());
  }

  private static String element(String s) {
    boolean quoted = s.isEmpty() || s.equalsIgnoreCase("null") || s.chars().anyMatch(c -> "{}\",\\".indexOf(c) >= 0 || c == ' ' || c >= '\t' && c <= '\r');
    return quoted ? '"' + s.replace("\\", "\\\\").replace("\"", "\\\"") + '"' : s;
  }

  /** The elements' texts of an array's text, of one dimension. */
  @Functions.Returns("array<string>")
  public static ArrayData textToElements(UTF8String text) {
    String s = TextInput.trimmed(text);
    if (!s.startsWith("{") || !s.endsWith("}")) throw malformed(text);
    String inner = s.substring(1, s.length() - 1);
    List<String> found = new ArrayList<>();
    if (inner.isBlank()) return Strings.list(found);
    for (int at = 0; ; at++) {
      StringBuilder part = new StringBuilder();
      boolean quoted = false;
      int kept = 0;  // of the part, what may not be stripped
      for (; at < inner.length() && inner.charAt(at) != ','; at++) {
        char c = inner.charAt(at);
        if (TextInput.space(c) && (quoted || part.isEmpty())) continue;
        if (quoted || c == '"' && !part.isEmpty()) throw malformed(text);
        if (c == '"') {
          quoted = true;
          for (at++; at < inner.length() && inner.charAt(at) != '"'; at++) {
            if (inner.charAt(at) == '\\') at++;
            if (at < inner.length()) part.append(inner.charAt(at));
          }
          if (at >= inner.length()) throw malformed(text);
        } else if (c == '\\') {
          if (++at < inner.length()) part.append(inner.charAt(at));
          kept = part.length();
        } else if (c == '{' || c == '}') throw new SqlError("0A000", "arrays of more than one dimension are not supported");
        else part.append(c);
      }
      String item = quoted ? part.toString() : part.substring(0, kept) + part.substring(kept).stripTrailing();
      if (!quoted && item.isEmpty()) throw malformed(text);
      found.add(!quoted && item.toUpperCase(Locale.ROOT).equals("NULL") ? null : item);
      if (at >= inner.length()) return Strings.list(found);
    }
  }

  private static SqlError malformed(UTF8String text) { return new SqlError("22P02", "malformed array literal: \"" + text + "\""); }
}
