package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;

/**
 * General numerics: numbers of any size with a display scale each, NaN and infinities.
 *
 * <p>The stored form is a struct of an unscaled value of 38 digits and the display scale or, if that
 * is too little, of the sortable bytes that {@code tailgate/lake/sortable.py} describes.
 */
public final class GeneralNumerics {
  /** The stored form. */
  public static final DataType TYPE = DataType.fromDDL("struct<u:decimal(38,0),s:smallint,x:binary>");

  private static final int UNSCALED = 0;
  private static final int SCALE = 1;
  private static final int BYTES = 2;
  private static final int UNSCALED_DIGITS = 38;
  // Heads of the sortable bytes. That of most numbers is the exponent plus BIAS.
  private static final int MINUS_INFINITY = 0x02;
  private static final int ZERO = 0x80;
  private static final int SMALL = 0x81;
  private static final int LARGE = 0xFD;
  private static final int INFINITY = 0xFE;
  private static final int NAN = 0xFF;
  private static final int BIAS = 0xAA;
  private static final int LONG_BIAS = 1 << 23;
  private static final int COMPLEMENT = 0xFF;

  private GeneralNumerics() {}

  /** Returns a value as decimal(precision, scale). Throws 22003 if it is too large, NaN or infinite. */
  public static Decimal toFixed(InternalRow value, int precision, int scale) {
    BigDecimal number;
    if (value.isNullAt(BYTES)) {
      BigInteger unscaled = value.getDecimal(UNSCALED, UNSCALED_DIGITS, 0).toJavaBigDecimal().unscaledValue();
      number = new BigDecimal(unscaled, value.getShort(SCALE));
    } else {
      number = decoded(value.getBinary(BYTES));
      if (number == null) throw Numbers.fieldOverflow();
    }
    return (Decimal) Numbers.of(number, DataTypes.createDecimalType(precision, scale));
  }

  /** Returns the number of sortable bytes with its display scale; null for NaN and infinities. */
  static BigDecimal decoded(byte[] bytes) {
    int head = bytes[0] & 0xFF;
    if (head == MINUS_INFINITY || head == INFINITY || head == NAN) return null;
    int end = bytes.length - 2;
    int scale = (bytes[end] & 0xFF) << 8 | bytes[end + 1] & 0xFF;
    if (head == ZERO) return BigDecimal.valueOf(0, scale);
    boolean negative = head < ZERO;
    int complement = negative ? COMPLEMENT : 0;
    if (negative) {
      head = 0x100 - head;
      end--;
    }
    int begin = 1;
    int exponent = head - BIAS;
    if (head == SMALL || head == LARGE) {
      exponent = -LONG_BIAS;
      for (; begin <= 3; begin++) exponent += ((bytes[begin] & 0xFF) ^ complement) << 8 * (3 - begin);
    }
    StringBuilder digits = new StringBuilder(2 * (end - begin));
    for (int i = begin; i < end; i++) {
      int digit = ((bytes[i] & 0xFF) ^ complement) - 1;
      digits.append((char) ('0' + digit / 10)).append((char) ('0' + digit % 10));
    }
    BigInteger unscaled = new BigInteger(digits.toString());
    BigDecimal number = new BigDecimal(unscaled, digits.length() - 2 * exponent).setScale(scale);
    return negative ? number.negate() : number;
  }
}
