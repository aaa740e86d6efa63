package tailgate.formats;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.text.Utf8;

/**
 * One line of comma-separated values. A field in double quotes may contain the delimiter, line
 * breaks, and quotes if they are doubled. A header line before it names the columns in the
 * message's order.
 *
 * <p>Source: RFC 4180; PostgreSQL 15, COPY, "CSV Format".
 */
final class CsvFormat extends Format {
  private static final long serialVersionUID = 1;
  private final int columns;
  private final char delimiter;
  private final List<String> header;
  private final boolean emptyIsNull;

  CsvFormat(int columns, char delimiter, String[] header, boolean emptyIsNull) {
    this.columns = columns;
    this.delimiter = delimiter;
    this.header = List.of(header);
    this.emptyIsNull = emptyIsNull;
  }

  @Override public DataType type() {
    StructType type = new StructType();
    for (int i = 0; i < columns; i++) type = type.add("c" + i, "string");
    return type;
  }

  @Override public Object decode(byte[] bytes) {
    List<List<String>> lines = lines(Utf8.text(bytes).toString());
    int expectedLines = header.isEmpty() ? 1 : 2;
    if (lines.size() != expectedLines) {
      throw malformedCsv("the message has " + lines.size() + " lines, expected " + expectedLines);
    }
    List<String> line = lines.get(lines.size() - 1);
    List<String> names = header.isEmpty() ? null : lines.get(0);
    int expectedFields = names == null ? columns : names.size();
    if (line.size() != expectedFields) {
      throw malformedCsv("the line has " + line.size() + " fields, expected " + expectedFields);
    }
    Object[] values = new Object[columns];
    for (int i = 0; i < columns; i++) {
      int index = names == null ? i : names.indexOf(header.get(i));
      if (index < 0) throw malformedCsv("the header has no column \"" + header.get(i) + "\"");
      values[i] = UTF8String.fromString(line.get(index));
    }
    return new GenericInternalRow(values);
  }

  private static SqlError malformedCsv(String reason) { return new SqlError("22P04", reason); }

  /** Returns the fields of each line; null is NULL. */
  private List<List<String>> lines(String text) {
    List<List<String>> lines = new ArrayList<>();
    List<String> line = new ArrayList<>();
    for (int i = 0; ; ) {
      StringBuilder field = new StringBuilder();
      boolean quoted = i < text.length() && text.charAt(i) == '"';
      i = quoted ? readQuoted(text, i, field) : readUnquoted(text, i, field);
      line.add(emptyIsNull && !quoted && field.isEmpty() ? null : field.toString());
      if (i < text.length() && text.charAt(i) == delimiter) {
        i++;
        continue;
      }
      lines.add(line);
      line = new ArrayList<>();
      if (i < text.length() && text.charAt(i) == '\r') i++;
      if (i < text.length() && text.charAt(i) == '\n') i++;
      if (i >= text.length()) return lines;
    }
  }

  /** Reads a field from its opening quote on and returns the index after it. */
  private int readQuoted(String text, int start, StringBuilder field) {
    int i = start + 1;
    for (; ; i++) {
      if (i >= text.length()) throw malformedCsv("unterminated CSV quoted field");
      char c = text.charAt(i);
      if (c == '"' && (i + 1 >= text.length() || text.charAt(i + 1) != '"')) break;
      if (c == '"') i++;
      field.append(c);
    }
    i++;
    if (i < text.length() && !endsField(text.charAt(i))) throw malformedCsv("text after a CSV quoted field");
    return i;
  }

  private int readUnquoted(String text, int start, StringBuilder field) {
    int i = start;
    while (i < text.length() && !endsField(text.charAt(i))) field.append(text.charAt(i++));
    return i;
  }

  private boolean endsField(char c) { return c == delimiter || c == '\n' || c == '\r'; }
}
