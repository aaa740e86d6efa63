package tailgate;

import java.util.*;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * One line of comma-separated values. A field in double quotes may hold the delimiter, line ends and, doubled, quotes. With a header, a line before it names the
 * columns in the order of this record. Source: RFC 4180; PostgreSQL 15, COPY, "CSV Format".
 */
final class CsvFormat extends Format {
  private static final long serialVersionUID = 1;
  private final int columns;
  private final char delimiter;
  private final List<String> header;
  private final boolean nulls;

  CsvFormat(int columns, char delimiter, String[] header, boolean nulls) {
    this.columns = columns;
    this.delimiter = delimiter;
    this.header = List.of(header);
    this.nulls = nulls;
  }

  @Override DataType type() {
    StructType type = new StructType();
    for (int i = 0; i < columns; i++) type = type.add("c" + i, "string");
    return type;
  }

  @Override Object decode(byte[] bytes) {
    List<List<String>> lines = lines(Utf8.text(bytes).toString());
    if (lines.size() != (header.isEmpty() ? 1 : 2)) throw new SqlError("22P04", "a record of " + lines.size() + " lines");
    List<String> line = lines.get(lines.size() - 1), names = header.isEmpty() ? null : lines.get(0);
    if (line.size() != (names == null ? columns : names.size())) throw new SqlError("22P04", line.size() + " fields, not " + (names == null ? columns : names.size()));
    Object[] values = new Object[columns];
    for (int i = 0; i < columns; i++) {
      int at = names == null ? i : names.indexOf(header.get(i));
      if (at < 0) throw new SqlError("22P04", "the header has no column \"" + header.get(i) + "\"");
      values[i] = line.get(at) == null ? null : UTF8String.fromString(line.get(at));
    }
    return new GenericInternalRow(values);
  }

  private List<List<String>> lines(String text) {
    List<List<String>> lines = new ArrayList<>();
    List<String> line = new ArrayList<>();
    for (int i = 0; ; ) {
      StringBuilder field = new StringBuilder();
      boolean quoted = i < text.length() && text.charAt(i) == '"';
      if (quoted) {
        for (i++; ; i++) {
          if (i >= text.length()) throw new SqlError("22P04", "unterminated CSV quoted field");
          char c = text.charAt(i);
          if (c == '"' && (i + 1 >= text.length() || text.charAt(i + 1) != '"')) break;
          if (c == '"') i++;
          field.append(c);
        }
        i++;
        if (i < text.length() && text.charAt(i) != delimiter && !end(text.charAt(i))) throw new SqlError("22P04", "text behind a CSV quoted field");
      } else while (i < text.length() && text.charAt(i) != delimiter && !end(text.charAt(i))) field.append(text.charAt(i++));
      line.add(nulls && !quoted && field.length() == 0 ? null : field.toString());
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

  private static boolean end(char c) { return c == '\n' || c == '\r'; }
}
