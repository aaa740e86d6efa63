package tailgate;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.JsonbTree.Number_;

/**
 * A jsonb as bytes whose unsigned order is PostgreSQL's order of jsonb; equal values have equal bytes. The twin of sql/compute/jsonborder.py.
 *
 * <p>A value begins with its kind: null, string, number, boolean, array, object, in this order. Strings end with a zero, which jsonb cannot hold. Arrays and objects have their number of elements
 * before them; an empty array at the top is below all, for scalars are stored as arrays of one. Numbers: below zero, zero, above; then the power of ten and the digits, complemented below zero.
 *
 * <p>Source: PostgreSQL 15, src/backend/utils/adt/jsonb_util.c compareJsonbContainers().
 */
public final class JsonbOrder {
  private static final int EMPTY = 0, NULL = 1, STRING = 2, NUMBER = 3, BOOLEAN = 4, ARRAY = 5, OBJECT = 6;

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
      whole(map.size(), out);
      for (var e : map.entrySet()) {
        text((String) e.getKey(), out);
        write(e.getValue(), out);
      }
    } else if (value instanceof List<?> list) {
      out.write(ARRAY);
      whole(list.size(), out);
      for (Object element : list) write(element, out);
    } else if (value instanceof String s) {
      out.write(STRING);
      text(s, out);
    } else if (value instanceof Number_ n) {
      out.write(NUMBER);
      number(n.value(), out);
    } else if (value instanceof Boolean b) {
      out.write(BOOLEAN);
      out.write(b ? 1 : 0);
    } else out.write(NULL);
  }

  private static void text(String s, ByteArrayOutputStream out) {
    out.writeBytes(s.getBytes(StandardCharsets.UTF_8));
    out.write(0);
  }

  private static void whole(int value, ByteArrayOutputStream out) {
    for (int shift = 24; shift >= 0; shift -= 8) out.write(value >> shift);
  }

  private static void number(BigDecimal value, ByteArrayOutputStream out) {
    out.write(1 + value.signum());
    if (value.signum() == 0) return;
    BigDecimal shortest = value.stripTrailingZeros();
    String digits = shortest.unscaledValue().abs().toString();
    ByteArrayOutputStream made = new ByteArrayOutputStream(digits.length() + 5);
    whole(digits.length() - shortest.scale() ^ 1 << 31, made);
    text(digits, made);
    for (byte b : made.toByteArray()) out.write(value.signum() < 0 ? ~b : b);
  }
}
