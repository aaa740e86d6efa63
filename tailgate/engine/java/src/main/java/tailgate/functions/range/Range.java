package tailgate.functions.range;

import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.FieldInput;
import tailgate.functions.TextInput;

/** A range. An empty one has no bounds. {@code tailgate/values/ranges/forms.py} describes the stored form. */
record Range(RangeType type, Bound lower, Bound upper) {
  private static final String EMPTY = "empty";
  private static final String ENDS = ",)]";  // of the text of a bound

  static Range empty(RangeType type) { return new Range(type, null, null); }

  /** Returns the range of a text. Raises 22P02. */
  static Range read(UTF8String text, RangeType type) {
    FieldInput input = new FieldInput("range", text);
    if (input.accept(EMPTY)) {
      input.end();
      return empty(type);
    }
    char opening = input.expect("[(");
    UTF8String lower = input.field(ENDS);
    input.expect(",");
    UTF8String upper = input.field(ENDS);
    char closing = input.expect(")]");
    input.end();
    return of(type, lower, opening == '[', upper, closing == ']');
  }

  /** Returns the range between the texts of two bounds, null for infinite ones. */
  static Range of(RangeType type, UTF8String low, boolean withLow, UTF8String high, boolean withHigh) {
    Bound lower = low == null ? Bound.INFINITE_LOWER : type.bound(low, withLow ? Bound.INCLUSIVE : Bound.EXCLUSIVE_LOWER);
    Bound upper = high == null ? Bound.INFINITE_UPPER : type.bound(high, withHigh ? Bound.INCLUSIVE : Bound.EXCLUSIVE_UPPER);
    return between(type, lower, upper);
  }

  /** Returns the canonical range between two bounds. */
  static Range between(RangeType type, Bound low, Bound high) {
    Bound lower = low;
    Bound upper = high;
    if (areEmpty(lower, upper)) return empty(type);
    if (type.isDiscrete()) {
      if (!lower.isInclusive()) lower = type.next(lower, Bound.INCLUSIVE);
      if (upper.isInclusive()) upper = type.next(upper, Bound.EXCLUSIVE_UPPER);
      if (areEmpty(lower, upper)) return empty(type);
    }
    return new Range(type, lower, upper);
  }

  private static boolean areEmpty(Bound lower, Bound upper) {
    if (lower.isInfinite() || upper.isInfinite()) return false;
    int order = lower.compareValue(upper);
    if (order > 0) throw new SqlError("22000", "range lower bound must be less than or equal to range upper bound");
    return order == 0 && !(lower.isInclusive() && upper.isInclusive());
  }

  boolean isEmpty() { return lower == null; }

  String text() {
    if (isEmpty()) return EMPTY;
    return (lower.isInclusive() ? "[" : "(") + quoted(type.text(lower)) + "," + quoted(type.text(upper))
        + (upper.isInclusive() ? "]" : ")");
  }

  private static String quoted(UTF8String bound) {
    if (bound == null) return "";
    String text = bound.toString();
    return text.chars().anyMatch(c -> TextInput.isSpace((char) c)) ? '"' + text + '"' : text;
  }

  static Range decode(byte[] form) {
    RangeType type = RangeType.of(form[0]);
    int size = Bound.NO_SCALE.length;
    int end = type.width > 0 ? form.length : form.length - 2 * size;
    if (end == 1) return empty(type);
    int middle = type.end(form, 1);
    byte[] low = Arrays.copyOfRange(form, 1, middle);
    byte[] high = Arrays.copyOfRange(form, middle, end);
    if (type.width > 0) return new Range(type, new Bound(low, Bound.NO_SCALE), new Bound(high, Bound.NO_SCALE));
    return new Range(type, new Bound(low, Arrays.copyOfRange(form, end, end + size)),
        new Bound(high, Arrays.copyOfRange(form, end + size, form.length)));
  }

  byte[] encode() {
    byte[] low = isEmpty() ? new byte[0] : lower.key();
    byte[] high = isEmpty() ? new byte[0] : upper.key();
    int size = type.width > 0 ? 0 : Bound.NO_SCALE.length;
    int end = 1 + low.length + high.length;
    byte[] form = new byte[end + 2 * size];
    form[0] = type.tag;
    System.arraycopy(low, 0, form, 1, low.length);
    System.arraycopy(high, 0, form, 1 + low.length, high.length);
    if (size > 0 && !isEmpty()) {
      System.arraycopy(lower.scale(), 0, form, end, size);
      System.arraycopy(upper.scale(), 0, form, end + size, size);
    }
    return form;
  }

  // ---- two ranges that are not empty --------------------------------------------------------------

  boolean overlaps(Range other) { return lower.compareTo(other.upper) <= 0 && other.lower.compareTo(upper) <= 0; }

  boolean isAdjacent(Range other) { return touch(upper, other.lower) || touch(other.upper, lower); }

  boolean isBefore(Range other) { return upper.compareTo(other.lower) < 0; }

  /** Returns the smallest range that contains both. */
  Range merged(Range other) {
    Bound low = lower.compareTo(other.lower) < 0 ? lower : other.lower;
    return between(type, low, upper.compareTo(other.upper) > 0 ? upper : other.upper);
  }

  /** Returns the values that two overlapping ranges have in common. */
  Range intersection(Range other) {
    Bound low = lower.compareTo(other.lower) >= 0 ? lower : other.lower;
    return between(type, low, upper.compareTo(other.upper) <= 0 ? upper : other.upper);
  }

  private static boolean touch(Bound upper, Bound lower) {
    return !upper.isInfinite() && !lower.isInfinite() && upper.compareValue(lower) == 0 && upper.isInclusive() != lower.isInclusive();
  }
}
