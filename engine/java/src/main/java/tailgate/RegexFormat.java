package tailgate;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** A line of text as the groups of an expression that is found in it; one without a match is a dead letter, as is one in which the search does not end soon. */
final class RegexFormat extends Format {
  private static final long serialVersionUID = 1;
  private static final long STEPS = 1_000_000, STEPS_PER_CHARACTER = 100;  // looked at in one message: 10 ms and what a long one needs
  private final Pattern pattern;

  RegexFormat(String expression) { pattern = Pattern.compile(expression); }

  @Override DataType type() {
    StructType type = new StructType();
    for (int i = 0; i < pattern.matcher("").groupCount(); i++) type = type.add("c" + i, "string");
    return type;
  }

  @Override Object decode(byte[] bytes) {
    String text = Utf8.text(bytes).toString();
    Matcher m = Patterns.matcher(pattern, text, STEPS + STEPS_PER_CHARACTER * text.length());
    if (!Patterns.find(m, 0)) throw new SqlError("22P02", "the text does not match the regular expression");
    Object[] groups = new Object[m.groupCount()];
    for (int i = 0; i < groups.length; i++) groups[i] = UTF8String.fromString(m.group(i + 1));
    return new GenericInternalRow(groups);
  }
}
