package tailgate.functions.range;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Locale;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.numeric.General;
import tailgate.functions.numeric.NumberInput;
import tailgate.functions.time.TimeInput;
import tailgate.functions.time.TimeOutput;

/** A range type: how the bounds of its ranges are stored. {@code tailgate/values/ranges/forms.py} describes the form. */
enum RangeType {
  INT4RANGE('i', 4), INT8RANGE('l', 8), NUMRANGE('n', 0), DATERANGE('d', 4), TSRANGE('t', 8), TSTZRANGE('z', 8);

  private static final int POSITIVE = 0x80;  // the heads of numerics from zero on
  private static final int MINUS_INFINITY = 0x02;
  private static final int LAST_DAY = 2_145_042_905;  // 5874897-12-31
  private static final int INFINITE_DAY = Integer.MAX_VALUE;

  final byte tag;
  final int width;  // bytes of a value, or 0 if it is a numeric

  RangeType(char tag, int width) {
    this.tag = (byte) tag;
    this.width = width;
  }

  static RangeType of(byte tag) {
    for (RangeType type : values()) if (type.tag == tag) return type;
    throw new IllegalArgumentException("range type " + tag);
  }

  /** Returns the type of the ranges of a multirange, from the first byte of its stored form. */
  static RangeType ofMultirange(byte tag) { return of((byte) Character.toLowerCase(tag)); }

  byte multirangeTag() { return (byte) Character.toUpperCase(tag); }

  static RangeType of(UTF8String name) { return valueOf(name.toString().toUpperCase(Locale.ROOT)); }

  boolean isDiscrete() { return this == INT4RANGE || this == INT8RANGE || this == DATERANGE; }

  /** Returns the bound with the value of a text. */
  Bound bound(UTF8String text, byte side) {
    if (this == NUMRANGE) return numeric(NumberInput.toGeneral(text).encoded(), side);
    return bound(number(text), side);
  }

  private long number(UTF8String text) {
    return switch (this) {
      case INT4RANGE -> NumberInput.toInt4(text);
      case INT8RANGE -> NumberInput.toInt8(text);
      case DATERANGE -> TimeInput.toDate(text);
      case TSRANGE -> TimeInput.toTimestamp(text);
      default -> TimeInput.toTimestamptz(text);
    };
  }

  private Bound bound(long number, byte side) {
    ByteBuffer key = ByteBuffer.allocate(width + 2).put(Bound.FINITE);
    if (width == Integer.BYTES) key.putInt((int) number ^ Integer.MIN_VALUE);
    else key.putLong(number ^ Long.MIN_VALUE);
    return new Bound(key.put(side).array(), Bound.NO_SCALE);
  }

  private static Bound numeric(byte[] form, byte side) {
    int head = form[0] & 0xFF;
    int size = form.length - Bound.NO_SCALE.length;
    int end = head >= POSITIVE || head == MINUS_INFINITY ? 1 : 0;
    byte[] key = new byte[1 + size + end + 1];
    key[0] = Bound.FINITE;
    System.arraycopy(form, 0, key, 1, size);
    if (head == MINUS_INFINITY) key[1 + size] = (byte) 0xFF;
    key[key.length - 1] = side;
    return new Bound(key, Arrays.copyOfRange(form, size, form.length));
  }

  private long number(Bound bound) {
    ByteBuffer key = ByteBuffer.wrap(bound.key(), 1, width);
    return width == Integer.BYTES ? key.getInt() ^ Integer.MIN_VALUE : key.getLong() ^ Long.MIN_VALUE;
  }

  /** Returns the text of the value of a bound, or null if it is infinite. */
  UTF8String text(Bound bound) {
    if (bound.isInfinite()) return null;
    return UTF8String.fromString(switch (this) {
      case NUMRANGE -> number(bound.key(), bound.scale()).text();
      case DATERANGE -> TimeOutput.date((int) number(bound));
      case TSRANGE -> TimeOutput.timestamp(number(bound), " ", "");
      case TSTZRANGE -> TimeOutput.timestamp(number(bound), " ", "+00");
      default -> Long.toString(number(bound));
    });
  }

  private static General number(byte[] key, byte[] scale) {
    int head = key[1] & 0xFF;
    int size = key.length - 2 - (head >= POSITIVE || head == MINUS_INFINITY ? 1 : 0);
    byte[] form = Arrays.copyOfRange(key, 1, 1 + size + scale.length);
    System.arraycopy(scale, 0, form, size, scale.length);
    return General.decoded(form);
  }

  /** Returns where a bound ends that starts at a place of a stored form. */
  int end(byte[] form, int start) {
    if (form[start] != Bound.FINITE) return start + 1;
    if (width > 0) return start + width + 2;
    int head = form[start + 1] & 0xFF;
    boolean hasLongHead = head == 0x03 || head == 0x7F || head == 0x81 || head == 0xFD;  // 3 bytes of an exponent follow
    int at = start + (hasLongHead ? 5 : 2);
    byte last = head >= POSITIVE ? 0 : (byte) 0xFF;
    while (form[at] != last) at++;
    return at + 2;
  }

  /** Returns the bound with the next value of a discrete type, or the bound itself if it is infinite. */
  Bound next(Bound bound, byte side) {
    if (bound.isInfinite()) return bound;
    long number = number(bound);
    if (this == DATERANGE && Math.abs(number) == INFINITE_DAY) return bound;
    if (this == DATERANGE && number == LAST_DAY) throw new SqlError("22008", "date out of range");
    if (this == INT4RANGE && number == Integer.MAX_VALUE) throw new SqlError("22003", "integer out of range");
    if (this == INT8RANGE && number == Long.MAX_VALUE) throw new SqlError("22003", "bigint out of range");
    return bound(number + 1, side);
  }
}
