package tailgate.functions.range;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;

/**
 * Functions of multiranges, which are their stored form ({@link Multirange}). They take ranges in place of multiranges of one range.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL. {@code
 * tailgate/sql/compute/multiranges.py} computes the same and names the source.
 */
public final class MultirangeFunctions {
  private MultirangeFunctions() {}

  // ---- text and ranges --------------------------------------------------------------------------

  public static byte[] textToInt4multirange(UTF8String text) { return read(text, RangeType.INT4RANGE); }

  public static byte[] textToInt8multirange(UTF8String text) { return read(text, RangeType.INT8RANGE); }

  public static byte[] textToNummultirange(UTF8String text) { return read(text, RangeType.NUMRANGE); }

  public static byte[] textToDatemultirange(UTF8String text) { return read(text, RangeType.DATERANGE); }

  public static byte[] textToTsmultirange(UTF8String text) { return read(text, RangeType.TSRANGE); }

  public static byte[] textToTstzmultirange(UTF8String text) { return read(text, RangeType.TSTZRANGE); }

  private static byte[] read(UTF8String text, RangeType type) { return Multirange.read(text, type).encode(); }

  public static UTF8String multirangeToText(byte[] form) {
    List<String> texts = new ArrayList<>();
    for (Range range : Multirange.decode(form).ranges()) texts.add(range.text());
    return UTF8String.fromString("{" + String.join(",", texts) + "}");
  }

  /** Returns the bytes by which multiranges of numerics are compared. */
  public static byte[] multirangeKey(byte[] form) { return Arrays.copyOf(form, Multirange.keyLength(form)); }

  public static byte[] multirange(UTF8String name, ArrayData ranges) {
    List<Range> list = new ArrayList<>();
    for (int i = 0; i < ranges.numElements(); i++) {
      if (ranges.isNullAt(i)) throw new SqlError("22004", "multirange values cannot contain null members");
      list.add(Range.decode(ranges.getBinary(i)));
    }
    return Multirange.of(RangeType.of(name), list).encode();
  }

  public static byte[] rangeToMultirange(byte[] form) { return Multirange.decode(form).encode(); }

  public static byte[] rangeOfMultirange(byte[] form) { return Multirange.hull(form).encode(); }

  @Returns("array<binary>")
  public static ArrayData multirangeRanges(byte[] form) {
    return new GenericArrayData(Multirange.decode(form).ranges().stream().map(Range::encode).toArray());
  }

  // ---- comparison -------------------------------------------------------------------------------

  public static boolean multirangeContainsElement(byte[] form, UTF8String text) {
    Multirange multirange = Multirange.decode(form);
    return multirange.contains(multirange.type().bound(text, Bound.INCLUSIVE));
  }

  public static boolean multirangeContains(byte[] form, byte[] other) {
    return Multirange.decode(other).difference(Multirange.decode(form)).ranges().isEmpty();
  }

  public static boolean multirangeOverlaps(byte[] form, byte[] other) {
    return !Multirange.decode(form).intersection(Multirange.decode(other)).ranges().isEmpty();
  }

  // ---- arithmetic -------------------------------------------------------------------------------

  public static byte[] multirangeUnion(byte[] form, byte[] other) {
    return Multirange.decode(form).union(Multirange.decode(other)).encode();
  }

  public static byte[] multirangeIntersect(byte[] form, byte[] other) {
    return Multirange.decode(form).intersection(Multirange.decode(other)).encode();
  }

  public static byte[] multirangeMinus(byte[] form, byte[] other) {
    return Multirange.decode(form).difference(Multirange.decode(other)).encode();
  }
}
