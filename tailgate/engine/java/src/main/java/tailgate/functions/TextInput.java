package tailgate.functions;

import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/** White space and syntax errors, which the input functions of all types handle alike. */
public final class TextInput {
  private TextInput() {}

  /** Removes white space at both ends. */
  public static String trimmed(UTF8String text) {
    String s = text.toString();
    int begin = 0;
    int end = s.length();
    while (begin < end && isSpace(s.charAt(begin))) begin++;
    while (end > begin && isSpace(s.charAt(end - 1))) end--;
    return s.substring(begin, end);
  }

  /** Returns whether C's isspace() accepts a character. */
  public static boolean isSpace(char c) { return c == ' ' || c >= '\t' && c <= '\r'; }

  /** Returns 22P02, for text that is not a value of a type. */
  public static SqlError invalid(String type, UTF8String text) {
    return new SqlError("22P02", "invalid input syntax for type " + type + ": \"" + text + "\"");
  }
}
