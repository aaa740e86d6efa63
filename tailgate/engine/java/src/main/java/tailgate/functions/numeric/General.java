package tailgate.functions.numeric;

import java.io.ByteArrayOutputStream;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;
import tailgate.errors.SqlError;

/**
 * A number of any size with a display scale, NaN or an infinity: PostgreSQL's numeric.
 *
 * <p>The stored form is a struct of an unscaled value of 38 digits and the display scale or, if that
 * is too little, of the sortable bytes that {@code tailgate/lake/sortable.py} describes. Each number
 * with its display scale has one stored form. Generated code passes objects between nested calls, and
 * makes a stored form only of the last result ({@link tailgate.functions.Functions}).
 */
public final class General implements Serializable {
  private static final long serialVersionUID = 1;

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
  // The bytes of the stored form of a small number, as Spark writes them: null bits, fields, and the unscaled value.
  private static final int NULL_BITS = 8;
  private static final int UNSCALED_OFFSET = NULL_BITS + 8 * FIELDS;
  private static final int UNSCALED_BYTES = 16;

  public static final General NAN = new General(0, 0, null, HEAD_NAN);
  public static final General INFINITY = new General(0, 0, null, HEAD_INFINITY);
  public static final General MINUS_INFINITY = new General(0, 0, null, HEAD_MINUS_INFINITY);
  static final General ZERO = small(0, 0);

  private final long units;  // the unscaled value of a small number: one whose unscaled value is a long
  private final int scale;  // the display scale of a small number
  private final BigDecimal large;  // another number, whose scale is the display scale, or null
  private final int head;  // the first sortable byte of NaN or an infinity, 0 for a number

  private General(long units, int scale, BigDecimal large, int head) {
    this.units = units;
    this.scale = scale;
    this.large = large;
    this.head = head;
  }

  /** Returns a number with an unscaled value and a display scale from 0 to SCALE_MAX. */
  static General small(long units, int scale) { return new General(units, scale, null, 0); }

  /** Returns a number with its scale as display scale. Throws 22003 if it has too many digits. */
  public static General of(BigDecimal value) {
    int precision = value.precision();
    if (precision <= Decimal.MAX_LONG_DIGITS() && value.scale() >= 0) {
      return small(value.scaleByPowerOfTen(value.scale()).longValue(), value.scale());
    }
    if (value.signum() != 0 && (long) precision - value.scale() > DIGITS_MAX) throw overflow();
    return new General(0, 0, value, 0);
  }

  /** Returns a decimal with its scale as display scale. */
  static General of(Decimal value) {
    if (value.precision() > Decimal.MAX_LONG_DIGITS()) return of(value.toJavaBigDecimal());
    return small(value.toUnscaledLong(), value.scale());
  }

  static SqlError overflow() { return new SqlError("22003", "value overflows numeric format"); }

  /** Returns whether the number is `units` and `scale`. */
  public boolean isSmall() { return large == null && head == 0; }

  public long units() { return units; }

  public int scale() { return scale; }

  /** Returns the number, whose scale is the display scale; null for NaN and infinities. */
  public BigDecimal value() { return isSmall() ? BigDecimal.valueOf(units, scale) : large; }

  public boolean isFinite() { return head == 0; }

  public boolean isNan() { return head == HEAD_NAN; }

  boolean isInfinite() { return head != 0 && head != HEAD_NAN; }

  /** Returns whether both are infinities with one sign, or both NaN. */
  boolean isSameSpecial(General other) { return head == other.head; }

  /** Returns the sign as -1, 0 or 1; 1 for NaN. */
  public int signum() {
    if (head != 0) return head == HEAD_MINUS_INFINITY ? -1 : 1;
    return large == null ? Long.signum(units) : large.signum();
  }

  /** Compares values; NaN is above all others. */
  int compareValue(General other) {
    if (isSmall() && other.isSmall() && scale == other.scale) return Long.compare(units, other.units);
    if (isFinite() && other.isFinite()) return value().compareTo(other.value());
    return Integer.compare(rank(), other.rank());
  }

  private int rank() { return isFinite() ? HEAD_ZERO : head; }

  // ---- stored form ------------------------------------------------------------------------------

  /** Returns the number with a stored form. */
  public static General of(InternalRow row) {
    if (!row.isNullAt(BYTES)) return decoded(row.getBinary(BYTES));
    int scale = row.getShort(SCALE);
    if (!(row instanceof UnsafeRow stored)) {
      return of(row.getDecimal(UNSCALED, UNSCALED_DIGITS, 0).toJavaBigDecimal().scaleByPowerOfTen(-scale));
    }
    long place = stored.getLong(UNSCALED);
    int size = (int) place;
    if (size > Long.BYTES) return of(new BigDecimal(new BigInteger(stored.getBinary(UNSCALED)), scale));
    long offset = stored.getBaseOffset() + (place >> Integer.SIZE);
    long units = Platform.getByte(stored.getBaseObject(), offset);
    for (int i = 1; i < size; i++) units = units << Byte.SIZE | Platform.getByte(stored.getBaseObject(), offset + i) & 0xFF;
    return small(units, scale);
  }

  /** Returns the stored form. */
  public InternalRow row() {
    if (isSmall()) return smallRow();
    GenericInternalRow row = new GenericInternalRow(FIELDS);
    if (large == null || large.precision() > UNSCALED_DIGITS) {
      row.update(BYTES, encoded());
    } else {
      row.update(UNSCALED, Decimal.apply(large.scaleByPowerOfTen(large.scale()), UNSCALED_DIGITS, 0));
      row.update(SCALE, (short) large.scale());
    }
    return row;
  }

  /** Returns the stored form of a number; called by generated code. */
  public static InternalRow stored(General number) { return number.row(); }

  /** Returns the bytes that Spark would write, so that generated code copies them. */
  private UnsafeRow smallRow() {
    byte[] bytes = new byte[UNSCALED_OFFSET + UNSCALED_BYTES];
    int size = (Long.SIZE - Long.numberOfLeadingZeros(units < 0 ? ~units : units)) / Byte.SIZE + 1;
    long fields = Platform.BYTE_ARRAY_OFFSET + NULL_BITS;
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET, 1L << BYTES);
    Platform.putLong(bytes, fields, (long) UNSCALED_OFFSET << Integer.SIZE | size);
    Platform.putShort(bytes, fields + 8 * SCALE, (short) scale);
    long rest = units;
    for (int i = UNSCALED_OFFSET + size - 1; i >= UNSCALED_OFFSET; i--) {
      bytes[i] = (byte) rest;
      rest >>= Byte.SIZE;
    }
    UnsafeRow row = new UnsafeRow(FIELDS);
    row.pointTo(bytes, bytes.length);
    return row;
  }

  /** Returns the sort key; see KEY. */
  InternalRow key() {
    BigDecimal rounded = signum() < 0 ? KEY_LIMIT.negate() : KEY_LIMIT;
    boolean isSame = false;
    BigDecimal value = value();
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
  public String text() { return isFinite() ? value().toPlainString() : isNan() ? "NaN" : signum() < 0 ? "-Infinity" : "Infinity"; }

  private static byte[] withoutScale(byte[] bytes) { return Arrays.copyOf(bytes, bytes.length - 2); }

  // ---- sortable bytes ---------------------------------------------------------------------------

  /** Returns the sortable bytes with the display scale. */
  public byte[] encoded() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    BigDecimal value = value();
    if (value == null || value.signum() == 0) {
      out.write(value == null ? head : HEAD_ZERO);
    } else {
      writeDigits(value, out);
    }
    int displayed = value == null ? 0 : value.scale();
    out.write(displayed >> 8);
    out.write(displayed);
    return out.toByteArray();
  }

  private static void writeDigits(BigDecimal value, ByteArrayOutputStream out) {
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
    if (head == HEAD_ZERO) return small(0, scale);
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
    return of(negative ? number.negate() : number);
  }
}
