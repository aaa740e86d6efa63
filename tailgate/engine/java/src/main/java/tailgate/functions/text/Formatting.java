package tailgate.functions.text;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.numeric.NumberInput;

/**
 * Function format(), with the conversions {@code %[position$][-][width]type}.
 *
 * <p>{@code tailgate/sql/compute/text/formatting.py} computes the same and names the source.
 */
public final class Formatting {
  private static final Pattern CONVERSION = Pattern.compile(
      "%(?:(?<position>[0-9]+)\\$)?(?<left>-+)?"
          + "(?:(?<width>[0-9]+)|(?<star>\\*)(?:(?<at>[0-9]+)(?<end>\\$)?)?)?(?<type>.?)",
      Pattern.DOTALL);

  private Formatting() {}

  public static UTF8String format(UTF8String pattern, ArrayData arguments) {
    String p = pattern.toString();
    StringBuilder result = new StringBuilder();
    int at = 0;
    int nextArgument = 0;
    int start;
    while ((start = p.indexOf('%', at)) >= 0) {
      result.append(p, at, start);
      if (p.startsWith("%%", start)) {
        result.append('%');
        at = start + 2;
        continue;
      }
      Matcher m = CONVERSION.matcher(p).region(start, p.length());
      if (!m.lookingAt()) throw new IllegalStateException(p);
      at = m.end();
      int position = number(m.group("position"), nextArgument + 1);
      int widthPosition = number(m.group("at"), nextArgument + 1);
      int width = number(m.group("width"), 0);
      check(m, position, widthPosition);
      if (m.group("star") != null) {
        UTF8String argument = argument(arguments, widthPosition - 1);
        width = argument == null ? 0 : NumberInput.toInt4(argument);
        nextArgument = widthPosition;
      }
      int index = m.group("position") != null ? position - 1 : nextArgument;
      String converted = converted(argument(arguments, index), m.group("type").charAt(0));
      result.append(padded(converted, width, m.group("left") != null));
      nextArgument = index + 1;
    }
    return UTF8String.fromString(result.append(p, at, p.length()).toString());
  }

  /** Throws 22023 unless the syntax of a conversion is right. */
  private static void check(Matcher m, int position, int widthPosition) {
    String type = m.group("type");
    boolean ended = m.group("end") != null;
    if (position == 0) throw SqlError.invalidParameter("format specifies argument 0, but arguments are numbered from 1");
    if (m.group("at") != null && !ended && !type.isEmpty()) {
      throw SqlError.invalidParameter("width argument position must be ended by \"$\"");
    }
    if (widthPosition == 0 && ended) {
      throw SqlError.invalidParameter("format specifies argument 0, but arguments are numbered from 1");
    }
    if (type.isEmpty()) throw SqlError.invalidParameter("unterminated format() type specifier");
    if ("sIL".indexOf(type.charAt(0)) < 0) {
      throw SqlError.invalidParameter("unrecognized format() type specifier \"" + type + "\"");
    }
  }

  /** Returns the number of these digits, or a default if there are none. Throws 22003. */
  private static int number(String digits, int otherwise) {
    if (digits == null) return otherwise;
    try {
      return Integer.parseInt(digits);
    } catch (NumberFormatException e) {
      throw outOfRange();
    }
  }

  private static SqlError outOfRange() { return new SqlError("22003", "number is out of range"); }

  private static UTF8String argument(ArrayData arguments, int index) {
    if (index >= arguments.numElements()) throw SqlError.invalidParameter("too few arguments for format()");
    return arguments.isNullAt(index) ? null : arguments.getUTF8String(index);
  }

  private static String converted(UTF8String value, char type) {
    if (value == null && type == 'I') {
      throw new SqlError("22004", "null values cannot be formatted as an SQL identifier");
    }
    if (value == null) return type == 'L' ? "NULL" : "";
    String text = value.toString();
    return type == 'I' ? Strings.quotedIdent(text) : type == 'L' ? Strings.quotedLiteral(text) : text;
  }

  /** Returns the text with blanks up to a width; the text comes first if the width is negative. */
  private static String padded(String text, int width, boolean left) {
    if (width == Integer.MIN_VALUE) throw outOfRange();
    int length = text.codePointCount(0, text.length());
    String blanks = " ".repeat(Math.max(Strings.checkedLength(Math.abs(width)) - length, 0));
    return left || width < 0 ? text + blanks : blanks + text;
  }
}
