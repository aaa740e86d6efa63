package tailgate.functions.range;

import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * Functions of ranges, which are their stored form ({@link Range}). Bounds are texts. Functions that depend on the lowest and highest
 * bound only take multiranges, too.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/ranges.py} computes the same and names the source.
 */
public final class RangeFunctions {
  private RangeFunctions() {}

  // ---- text -------------------------------------------------------------------------------------

  public static byte[] textToInt4range(UTF8String text) { return read(text, RangeType.INT4RANGE); }

  public static byte[] textToInt8range(UTF8String text) { return read(text, RangeType.INT8RANGE); }

  public static byte[] textToNumrange(UTF8String text) { return read(text, RangeType.NUMRANGE); }

  public static byte[] textToDaterange(UTF8String text) { return read(text, RangeType.DATERANGE); }

  public static byte[] textToTsrange(UTF8String text) { return read(text, RangeType.TSRANGE); }

  public static byte[] textToTstzrange(UTF8String text) { return read(text, RangeType.TSTZRANGE); }

  private static byte[] read(UTF8String text, RangeType type) { return Range.read(text, type).encode(); }

  public static UTF8String rangeToText(byte[] form) { return UTF8String.fromString(Range.decode(form).text()); }

  // ---- bounds -----------------------------------------------------------------------------------

  public static byte[] range(UTF8String name, ArrayData bounds, ArrayData flags) {
    if (flags.isNullAt(0)) throw new SqlError("22000", "range constructor flags argument must not be null");
    String brackets = flags.getUTF8String(0).toString();
    if (!brackets.matches("[\\[(][\\])]")) throw new SqlError("42601", "invalid range bound flags");
    UTF8String lower = bounds.isNullAt(0) ? null : bounds.getUTF8String(0);
    UTF8String upper = bounds.isNullAt(1) ? null : bounds.getUTF8String(1);
    return Range.of(RangeType.of(name), lower, brackets.startsWith("["), upper, brackets.endsWith("]")).encode();
  }

  public static UTF8String rangeLower(byte[] form) {
    Range range = Multirange.hull(form);
    return range.isEmpty() ? null : range.type().text(range.lower());
  }

  public static UTF8String rangeUpper(byte[] form) {
    Range range = Multirange.hull(form);
    return range.isEmpty() ? null : range.type().text(range.upper());
  }

  public static boolean rangeIsEmpty(byte[] form) { return Multirange.hull(form).isEmpty(); }

  public static boolean rangeLowerInc(byte[] form) {
    Range range = Multirange.hull(form);
    return !range.isEmpty() && range.lower().isInclusive();
  }

  public static boolean rangeUpperInc(byte[] form) {
    Range range = Multirange.hull(form);
    return !range.isEmpty() && range.upper().isInclusive();
  }

  public static boolean rangeLowerInf(byte[] form) {
    Range range = Multirange.hull(form);
    return !range.isEmpty() && range.lower().isInfinite();
  }

  public static boolean rangeUpperInf(byte[] form) {
    Range range = Multirange.hull(form);
    return !range.isEmpty() && range.upper().isInfinite();
  }

  // ---- comparison -------------------------------------------------------------------------------

  public static boolean rangeContainsElement(byte[] form, UTF8String text) {
    Range range = Range.decode(form);
    Bound point = range.type().bound(text, Bound.INCLUSIVE);
    return !range.isEmpty() && range.lower().compareTo(point) <= 0 && point.compareTo(range.upper()) <= 0;
  }

  public static boolean rangeContains(byte[] form, byte[] other) {
    Range a = Range.decode(form);
    Range b = Range.decode(other);
    if (a.isEmpty() || b.isEmpty()) return b.isEmpty();
    return a.lower().compareTo(b.lower()) <= 0 && a.upper().compareTo(b.upper()) >= 0;
  }

  public static boolean rangeOverlaps(byte[] form, byte[] other) {
    Range a = Range.decode(form);
    Range b = Range.decode(other);
    return !a.isEmpty() && !b.isEmpty() && a.overlaps(b);
  }

  public static boolean rangeAdjacent(byte[] form, byte[] other) {
    Range a = Multirange.hull(form);
    Range b = Multirange.hull(other);
    return !a.isEmpty() && !b.isEmpty() && a.isAdjacent(b);
  }

  public static boolean rangeBefore(byte[] form, byte[] other) {
    Range a = Multirange.hull(form);
    Range b = Multirange.hull(other);
    return !a.isEmpty() && !b.isEmpty() && a.isBefore(b);
  }

  public static boolean rangeOverleft(byte[] form, byte[] other) {
    Range a = Multirange.hull(form);
    Range b = Multirange.hull(other);
    return !a.isEmpty() && !b.isEmpty() && a.upper().compareTo(b.upper()) <= 0;
  }

  public static boolean rangeOverright(byte[] form, byte[] other) {
    Range a = Multirange.hull(form);
    Range b = Multirange.hull(other);
    return !a.isEmpty() && !b.isEmpty() && a.lower().compareTo(b.lower()) >= 0;
  }

  // ---- arithmetic -------------------------------------------------------------------------------

  public static byte[] rangeUnion(byte[] form, byte[] other) {
    Range a = Range.decode(form);
    Range b = Range.decode(other);
    if (!a.isEmpty() && !b.isEmpty() && !a.overlaps(b) && !a.isAdjacent(b)) {
      throw new SqlError("22000", "result of range union would not be contiguous");
    }
    return rangeMerge(form, other);
  }

  public static byte[] rangeMerge(byte[] form, byte[] other) {
    Range a = Range.decode(form);
    Range b = Range.decode(other);
    if (a.isEmpty() || b.isEmpty()) return a.isEmpty() ? other : form;
    return a.merged(b).encode();
  }

  public static byte[] rangeIntersect(byte[] form, byte[] other) {
    Range a = Range.decode(form);
    Range b = Range.decode(other);
    if (a.isEmpty() || b.isEmpty() || !a.overlaps(b)) return Range.empty(a.type()).encode();
    return a.intersection(b).encode();
  }

  public static byte[] rangeMinus(byte[] form, byte[] other) {
    Range a = Range.decode(form);
    Range b = Range.decode(other);
    if (a.isEmpty() || b.isEmpty() || !a.overlaps(b)) return form;
    boolean beginsInside = a.lower().compareTo(b.lower()) >= 0;
    boolean endsInside = a.upper().compareTo(b.upper()) <= 0;
    if (beginsInside && endsInside) return Range.empty(a.type()).encode();
    if (!beginsInside && !endsInside) throw new SqlError("22000", "result of range difference would not be contiguous");
    if (endsInside) return Range.between(a.type(), a.lower(), b.lower().inverted(Bound.EXCLUSIVE_UPPER)).encode();
    return Range.between(a.type(), b.upper().inverted(Bound.EXCLUSIVE_LOWER), a.upper()).encode();
  }
}
