package tailgate.formats;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.functions.text.BoundedMatcher;
import tailgate.functions.text.Utf8;

/**
 * A text as the groups of a regular expression. A text without a match becomes a dead letter, as
 * does a text whose search takes too long.
 */
final class RegexFormat extends Format {
  private static final long serialVersionUID = 1;
  // Characters read in a search: 10 ms for a short message, and in proportion to a long one.
  private static final long READS = 1_000_000;
  private static final long READS_PER_CHARACTER = 100;
  private final Pattern pattern;

  RegexFormat(String expression) { pattern = Pattern.compile(expression); }

  @Override public DataType type() {
    StructType type = new StructType();
    for (int i = 0; i < pattern.matcher("").groupCount(); i++) type = type.add("c" + i, "string");
    return type;
  }

  @Override public Object decode(byte[] bytes) {
    String text = Utf8.text(bytes).toString();
    Matcher m = BoundedMatcher.matcher(pattern, text, READS + READS_PER_CHARACTER * text.length());
    if (!BoundedMatcher.find(m, 0)) throw malformed("the text does not match the regular expression");
    Object[] groups = new Object[m.groupCount()];
    for (int i = 0; i < groups.length; i++) groups[i] = UTF8String.fromString(m.group(i + 1));
    return new GenericInternalRow(groups);
  }
}
