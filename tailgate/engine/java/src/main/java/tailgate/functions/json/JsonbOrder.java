package tailgate.functions.json;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.functions.json.JsonbTree.JsonNumber;

/**
 * A jsonb as bytes whose unsigned order is PostgreSQL's order of jsonb. Equal values have equal
 * bytes. {@code tailgate/values/strings/jsonb.py} computes the same.
 *
 * <p>A value begins with its kind: null, string, number, boolean, array or object, in this order.
 * Strings end with a zero byte, which jsonb cannot contain. Arrays and objects begin with their
 * number of elements. An empty array at the top level comes before all other values, because
 * PostgreSQL stores a scalar as an array with one element. A number is its sign (negative, zero,
 * positive), the power of ten and the digits; the latter two are complemented if it is negative.
 *
 * <p>Source: PostgreSQL 15, src/backend/utils/adt/jsonb_util.c, compareJsonbContainers().
 */
public final class JsonbOrder {
  private static final int EMPTY = 0;
  private static final int NULL = 1;
  private static final int STRING = 2;
  private static final int NUMBER = 3;
  private static final int BOOLEAN = 4;
  private static final int ARRAY = 5;
  private static final int OBJECT = 6;

  private JsonbOrder() {}

  public static byte[] jsonbOrder(UTF8String json) {
    Object value = JsonbTree.read(json);
    if (value instanceof List<?> l && l.isEmpty()) return new byte[] {EMPTY};
    ByteArrayOutputStream out = new ByteArrayOutputStream(json.numBytes() + 8);
    write(value, out);
    return out.toByteArray();
  }

  private static void write(Object value, ByteArrayOutputStream out) {
    if (value instanceof Map<?, ?> map) {
      out.write(OBJECT);
      writeInt(map.size(), out);
      for (var member : map.entrySet()) {
        writeText((String) member.getKey(), out);
        write(member.getValue(), out);
      }
    } else if (value instanceof List<?> list) {
      out.write(ARRAY);
      writeInt(list.size(), out);
      for (Object element : list) write(element, out);
    } else if (value instanceof String s) {
      out.write(STRING);
      writeText(s, out);
    } else if (value instanceof JsonNumber n) {
      out.write(NUMBER);
      writeNumber(n.value(), out);
    } else if (value instanceof Boolean b) {
      out.write(BOOLEAN);
      out.write(b ? 1 : 0);
    } else {
      out.write(NULL);
    }
  }

  private static void writeText(String s, ByteArrayOutputStream out) {
    out.writeBytes(s.getBytes(StandardCharsets.UTF_8));
    out.write(0);
  }

  private static void writeInt(int value, ByteArrayOutputStream out) {
    for (int shift = 24; shift >= 0; shift -= 8) out.write(value >> shift);
  }

  private static void writeNumber(BigDecimal value, ByteArrayOutputStream out) {
    out.write(1 + value.signum());
    if (value.signum() == 0) return;
    BigDecimal shortest = value.stripTrailingZeros();
    String digits = shortest.unscaledValue().abs().toString();
    ByteArrayOutputStream magnitude = new ByteArrayOutputStream(digits.length() + 5);
    writeInt(digits.length() - shortest.scale() ^ 1 << 31, magnitude);
    writeText(digits, magnitude);
    for (byte b : magnitude.toByteArray()) out.write(value.signum() < 0 ? ~b : b);
  }
}
