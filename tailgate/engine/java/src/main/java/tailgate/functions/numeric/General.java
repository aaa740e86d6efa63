package tailgate.functions.numeric;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import tailgate.errors.SqlError;

/**
 * A number of any size with a display scale, NaN or an infinity: PostgreSQL's numeric.
 *
 * <p>The stored form is a struct of an unscaled value of 38 digits and the display scale or, if that
 * is too little, of the sortable bytes that {@code tailgate/lake/sortable.py} describes. Each number
 * with its display scale has one stored form.
 *
 * @param value the number, whose scale is the display scale; null for NaN and infinities
 * @param head the first sortable byte of NaN or an infinity, 0 for a number
 */
public record General(BigDecimal value, int head) {
  /** The stored form. */
  public static final DataType TYPE = DataType.fromDDL("struct<u:decimal(38,0),s:smallint,x:binary>");

  public static final int FIELDS = 3;  // of the stored form

  /** The sort key: the value with KEY_SCALE digits, rounded down, and the sortable bytes if it is another one. */
  static final DataType KEY = DataType.fromDDL("struct<f1:decimal(38,0),f2:binary>");

  static final int DIGITS_MAX = 131_072;  // before the decimal point
  static final int SCALE_MAX = 16_383;

  private static final int UNSCALED = 0;
  private static final int SCALE = 1;
  private static final int BYTES = 2;
  private static final int UNSCALED_DIGITS = 38;
  private static final int KEY_SCALE = 20;
  private static final int KEY_DIGITS = 17;  // before the decimal point
  private static final BigDecimal KEY_LIMIT = BigDecimal.ONE.scaleByPowerOfTen(KEY_DIGITS + KEY_SCALE).setScale(0);
  private static final byte[] NONE = {};
  // Heads of the sortable bytes. That of most numbers is the exponent plus BIAS.
  private static final int HEAD_MINUS_INFINITY = 0x02;
  private static final int HEAD_ZERO = 0x80;
  private static final int HEAD_SMALL = 0x81;
  private static final int HEAD_LARGE = 0xFD;
  private static final int HEAD_INFINITY = 0xFE;
  private static final int HEAD_NAN = 0xFF;
  private static final int SMALLEST = -40;  // exponents that are part of the head
  private static final int LARGEST = 82;
  private static final int BIAS = 0x82 - SMALLEST;
  private static final int LONG_BIAS = 1 << 23;
  private static final int COMPLEMENT = 0xFF;

  public static final General NAN = new General(null, HEAD_NAN);
  public static final General INFINITY = new General(null, HEAD_INFINITY);
  public static final General MINUS_INFINITY = new General(null, HEAD_MINUS_INFINITY);
  static final General ZERO = new General(BigDecimal.ZERO, 0);

  /** Returns a number with its scale as display scale. Throws 22003 if it has too many digits. */
  public static General of(BigDecimal value) {
    if (value.signum() != 0 && (long) value.precision() - value.scale() > DIGITS_MAX) throw overflow();
    return new General(value, 0);
  }

  static SqlError overflow() { return new SqlError("22003", "value overflows numeric format"); }

  public boolean isFinite() { return value != null; }

  public boolean isNan() { return head == HEAD_NAN; }

  boolean isInfinite() { return value == null && head != HEAD_NAN; }

  /** Returns the sign as -1, 0 or 1; 1 for NaN. */
  public int signum() { return value != null ? value.signum() : head == HEAD_MINUS_INFINITY ? -1 : 1; }

  /** Compares values; NaN is above all others. */
  int compareValue(General other) {
    if (value != null && other.value != null) return value.compareTo(other.value);
    return Integer.compare(rank(), other.rank());
  }

  private int rank() { return value != null ? HEAD_ZERO : head; }

  // ---- stored form ------------------------------------------------------------------------------

  /** Returns the number with a stored form. */
  public static General of(InternalRow row) {
    if (!row.isNullAt(BYTES)) return decoded(row.getBinary(BYTES));
    BigDecimal unscaled = row.getDecimal(UNSCALED, UNSCALED_DIGITS, 0).toJavaBigDecimal();
    return new General(unscaled.scaleByPowerOfTen(-row.getShort(SCALE)), 0);
  }

  /** Returns the stored form. */
  public InternalRow row() {
    GenericInternalRow row = new GenericInternalRow(FIELDS);
    if (value == null || value.precision() > UNSCALED_DIGITS) {
      row.update(BYTES, encoded());
    } else {
      row.update(UNSCALED, Decimal.apply(value.scaleByPowerOfTen(value.scale()), UNSCALED_DIGITS, 0));
      row.update(SCALE, (short) value.scale());
    }
    return row;
  }

  /** Returns the sort key; see KEY. */
  InternalRow key() {
    BigDecimal rounded = signum() < 0 ? KEY_LIMIT.negate() : KEY_LIMIT;
    boolean isSame = false;
    if (value != null && value.precision() - value.scale() <= KEY_DIGITS) {
      BigDecimal scaled = value.setScale(KEY_SCALE, RoundingMode.FLOOR);
      isSame = value.scale() <= KEY_SCALE || scaled.compareTo(value) == 0;
      rounded = scaled.scaleByPowerOfTen(KEY_SCALE);
    }
    GenericInternalRow key = new GenericInternalRow(2);
    key.update(0, Decimal.apply(rounded, UNSCALED_DIGITS, 0));
    key.update(1, isSame ? NONE : withoutScale(encoded()));
    return key;
  }

  /** Returns the text as PostgreSQL prints it. */
  public String text() { return value != null ? value.toPlainString() : isNan() ? "NaN" : signum() < 0 ? "-Infinity" : "Infinity"; }

  private static byte[] withoutScale(byte[] bytes) { return Arrays.copyOf(bytes, bytes.length - 2); }

  // ---- sortable bytes ---------------------------------------------------------------------------

  /** Returns the sortable bytes with the display scale. */
  public byte[] encoded() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    if (value == null || value.signum() == 0) {
      out.write(value == null ? head : HEAD_ZERO);
    } else {
      writeDigits(out);
    }
    int scale = value == null ? 0 : value.scale();
    out.write(scale >> 8);
    out.write(scale);
    return out.toByteArray();
  }

  private void writeDigits(ByteArrayOutputStream out) {
    boolean negative = value.signum() < 0;
    int complement = negative ? COMPLEMENT : 0;
    String digits = value.unscaledValue().abs().toString();
    int point = digits.length() - value.scale();  // digits before the decimal point, below zero if 0.0…
    int first = Math.floorMod(point, 2) == 0 ? 0 : -1;  // a zero before the digits
    int exponent = Math.floorDiv(point + 1, 2);
    int end = digits.length();
    while (digits.charAt(end - 1) == '0') end--;
    int begin = exponent >= SMALLEST && exponent <= LARGEST ? exponent + BIAS : exponent > 0 ? HEAD_LARGE : HEAD_SMALL;
    out.write(negative ? 0x100 - begin : begin);
    if (begin == HEAD_LARGE || begin == HEAD_SMALL) {
      for (int shift = 16; shift >= 0; shift -= 8) out.write((exponent + LONG_BIAS) >> shift ^ complement);
    }
    for (int i = first; i < end; i += 2) out.write(10 * digit(digits, i) + digit(digits, i + 1) + 1 ^ complement);
    if (negative) out.write(COMPLEMENT);
  }

  private static int digit(String digits, int at) { return at < 0 || at >= digits.length() ? 0 : digits.charAt(at) - '0'; }

  /** Returns the number with these sortable bytes. */
  public static General decoded(byte[] bytes) {
    int head = bytes[0] & 0xFF;
    if (head == HEAD_NAN) return NAN;
    if (head == HEAD_INFINITY) return INFINITY;
    if (head == HEAD_MINUS_INFINITY) return MINUS_INFINITY;
    int end = bytes.length - 2;
    int scale = (bytes[end] & 0xFF) << 8 | bytes[end + 1] & 0xFF;
    if (head == HEAD_ZERO) return new General(BigDecimal.valueOf(0, scale), 0);
    boolean negative = head < HEAD_ZERO;
    int complement = negative ? COMPLEMENT : 0;
    if (negative) {
      head = 0x100 - head;
      end--;
    }
    int begin = 1;
    int exponent = head - BIAS;
    if (head == HEAD_SMALL || head == HEAD_LARGE) {
      exponent = -LONG_BIAS;
      for (; begin <= 3; begin++) exponent += ((bytes[begin] & 0xFF) ^ complement) << 8 * (3 - begin);
    }
    StringBuilder digits = new StringBuilder(2 * (end - begin));
    for (int i = begin; i < end; i++) {
      int digit = ((bytes[i] & 0xFF) ^ complement) - 1;
      digits.append((char) ('0' + digit / 10)).append((char) ('0' + digit % 10));
    }
    BigDecimal number = new BigDecimal(new BigInteger(digits.toString()), digits.length() - 2 * exponent).setScale(scale);
    return new General(negative ? number.negate() : number, 0);
  }
}
