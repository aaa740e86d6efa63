package tailgate.functions.text;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.functions.FieldInput;
import tailgate.functions.Returns;

/**
 * Functions of text arrays, and the text form of arrays.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/text/arrays.py} and {@code tailgate/sql/compute/casts.py} compute the same.
 */
public final class TextArrays {
  private TextArrays() {}

  public static UTF8String arrayToString(ArrayData items, UTF8String separator) {
    return joined(items, separator, null);
  }

  public static UTF8String arrayToStringNull(ArrayData items, UTF8String separator, UTF8String nullText) {
    return joined(items, separator, nullText);
  }

  /** Joins the items; a NULL becomes {@code nullText}, or is skipped if that is null. */
  private static UTF8String joined(ArrayData items, UTF8String separator, UTF8String nullText) {
    List<UTF8String> texts = new ArrayList<>();
    for (int i = 0; i < items.numElements(); i++) {
      if (!items.isNullAt(i)) texts.add(items.getUTF8String(i));
      else if (nullText != null) texts.add(nullText);
    }
    return UTF8String.concatWs(separator, texts.toArray(new UTF8String[0]));
  }

  /** Returns the text of an array, from the texts of its elements. */
  public static UTF8String arrayToText(ArrayData items) {
    StringBuilder result = new StringBuilder("{");
    for (int i = 0; i < items.numElements(); i++) {
      if (i > 0) result.append(',');
      result.append(items.isNullAt(i) ? "NULL" : element(items.getUTF8String(i).toString()));
    }
    return UTF8String.fromString(result.append('}').toString());
  }

  /** Returns the text of a row, from the texts of its fields. */
  public static UTF8String rowToText(ArrayData fields) {
    StringBuilder result = new StringBuilder("(");
    for (int i = 0; i < fields.numElements(); i++) {
      if (i > 0) result.append(',');
      if (!fields.isNullAt(i)) result.append(field(fields.getUTF8String(i).toString()));
    }
    return UTF8String.fromString(result.append(')').toString());
  }

  private static String field(String s) {
    boolean needsQuotes = s.isEmpty() || s.chars().anyMatch(c -> "(),\"\\".indexOf(c) >= 0 || c == ' ' || c >= '\t' && c <= '\r');
    return needsQuotes ? '"' + s.replace("\\", "\\\\").replace("\"", "\"\"") + '"' : s;
  }

  /** Returns the texts of the fields of a row, from the row's text. */
  @Returns("array<string>")
  public static ArrayData textToFields(UTF8String text, int width) {
    UTF8String[] fields = new UTF8String[width];
    FieldInput input = new FieldInput("record", text);
    input.expect("(");
    for (int n = 0; n < width; n++) {
      if (n > 0) input.expect(",");
      fields[n] = input.field(",)");
    }
    input.expect(")");
    input.end();
    return new GenericArrayData(fields);
  }

  /** Returns an element in quotes, if it needs them. */
  static String element(String s) {
    boolean needsQuotes = s.isEmpty() || s.equalsIgnoreCase("null")
        || s.chars().anyMatch(c -> "{}\",\\".indexOf(c) >= 0 || c == ' ' || c >= '\t' && c <= '\r');
    return needsQuotes ? '"' + s.replace("\\", "\\\\").replace("\"", "\\\"") + '"' : s;
  }

  /** Returns the texts of the elements of an array of one dimension from 1, from the array's text. */
  @Returns("array<string>")
  public static ArrayData textToElements(UTF8String text) { return ArrayDimensions.textList(text); }
}
