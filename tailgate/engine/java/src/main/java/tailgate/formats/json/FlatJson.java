package tailgate.formats.json;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.functions.numeric.Numbers;

/**
 * Reads the usual messages of {@link JsonColumnsFormat} several times as fast as a general parser: an
 * object whose members are numbers without an exponent, text without escapes, true, false and null.
 *
 * <p>It returns null for every other message, also for those that are not JSON or do not fit the
 * columns: the caller then uses a general parser, whose result or error counts. If it returns values,
 * or throws the error of an invalid date or timestamp, so does the general parser.
 */
final class FlatJson {
  private static final int DIGITS_MAX = 18;  // of a number that fits a long
  private static final int END = -1, UNKNOWN = -1;  // no byte of UTF-8 is -1
  private static final byte[] TRUE = ascii("true"), FALSE = ascii("false"), NULL = ascii("null");
  private final byte[][] names;
  private final DataType[] types;
  private final boolean[] jsonb;
  private byte[] in;
  private int at;

  FlatJson(StructType columns, boolean[] jsonb) {
    this.names = Arrays.stream(columns.fieldNames()).map(name -> name.getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new);
    this.types = Arrays.stream(columns.fields()).map(StructField::dataType).toArray(DataType[]::new);
    this.jsonb = jsonb;
  }

  private static byte[] ascii(String text) { return text.getBytes(StandardCharsets.US_ASCII); }

  /** Returns the values of the columns, or null if this is not such a message. The bytes must be UTF-8. */
  Object[] values(byte[] message) {
    in = message;
    at = 0;
    Object[] values = new Object[names.length];
    if (!taken('{')) return null;
    int column = UNKNOWN;
    boolean ended = taken('}');
    while (!ended) {
      if (!taken('"')) return null;
      int from = at, to = endOfText();
      if (to == END || !taken(':')) return null;
      column = column(from, to, column + 1);
      if (!value(column, values)) return null;
      ended = taken('}');
      if (!ended && !taken(',')) return null;
    }
    return next() == END ? values : null;
  }

  /** Skips blanks. Returns the next byte, or END. */
  private int next() {
    while (at < in.length && (in[at] == ' ' || in[at] == '\n' || in[at] == '\t' || in[at] == '\r')) at++;
    return at < in.length ? in[at] : END;
  }

  private boolean taken(char expected) {
    if (next() != expected) return false;
    at++;
    return true;
  }

  /** Moves behind the quote that ends a text without escapes. Returns the position of the quote, or END. */
  private int endOfText() {
    for (; at < in.length; at++) {
      byte b = in[at];
      if (b == '"') return at++;
      if (b == '\\' || b >= 0 && b < ' ') return END;
    }
    return END;
  }

  /** Returns the column of this name, or UNKNOWN. Usually it is the expected one, the one after the last. */
  private int column(int from, int to, int expected) {
    if (expected < names.length && isName(expected, from, to)) return expected;
    for (int i = 0; i < names.length; i++) if (isName(i, from, to)) return i;
    return UNKNOWN;
  }

  private boolean isName(int column, int from, int to) { return Arrays.equals(names[column], 0, names[column].length, in, from, to); }

  /** Reads a value into its column, unless that is unknown. Returns whether it could. */
  private boolean value(int column, Object[] values) {
    DataType type = column == UNKNOWN ? null : types[column];
    if (column != UNKNOWN && jsonb[column]) return false;
    int first = next();
    if (first == '"') {
      int from = ++at, to = endOfText();
      if (to == END) return false;
      if (type == null) return true;
      UTF8String text = UTF8String.fromBytes(Arrays.copyOfRange(in, from, to));
      Object value = type instanceof StringType ? text : JsonColumnsFormat.time(text, type);
      if (value == null) return false;
      values[column] = value;
      return true;
    }
    if (first == '-' || first >= '0' && first <= '9') return number(column, type, values);
    Object value;
    if (literal(NULL)) value = null;
    else if (type != null && type != DataTypes.BooleanType) return false;
    else if (literal(TRUE)) value = true;
    else if (literal(FALSE)) value = false;
    else return false;
    if (type != null) values[column] = value;
    return true;
  }

  private boolean literal(byte[] word) {
    if (at + word.length > in.length || !Arrays.equals(word, 0, word.length, in, at, at + word.length)) return false;
    at += word.length;
    return true;
  }

  private boolean number(int column, DataType type, Object[] values) {
    int from = at, point = END;
    boolean negative = in[at] == '-';
    if (negative) at++;
    int first = at;
    long value = 0;
    for (; at < in.length; at++) {
      byte b = in[at];
      if (b >= '0' && b <= '9') value = 10 * value + b - '0';
      else if (b == '.' && point == END) point = at;
      else break;
    }
    int whole = (point == END ? at : point) - first, fraction = point == END ? 0 : at - point - 1;
    boolean isJson = whole > 0 && (whole == 1 || in[first] != '0') && (point == END || fraction > 0);
    if (!isJson || whole + fraction > DIGITS_MAX || at < in.length && (in[at] == 'e' || in[at] == 'E')) return false;
    if (type == null) return true;
    Object read = number(type, negative ? -value : value, fraction, point == END, from);
    if (read == null) return false;
    values[column] = read;
    return true;
  }

  /** Returns a number that was read as an integer and the number of its digits after the point, or null. */
  private Object number(DataType type, long value, int fraction, boolean isWhole, int from) {
    if (type == DataTypes.LongType) return isWhole ? value : null;
    if (type == DataTypes.IntegerType) return isWhole && value == (int) value ? (int) value : null;
    if (type instanceof DecimalType d) return Numbers.shortDecimal(value, fraction, d.precision(), d.scale());
    if (type instanceof IntegralType || !(type instanceof NumericType)) return null;
    return JsonColumnsFormat.floating(UTF8String.fromBytes(Arrays.copyOfRange(in, from, at)), type);
  }
}
