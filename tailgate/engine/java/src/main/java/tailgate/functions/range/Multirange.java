package tailgate.functions.range;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.functions.FieldInput;

/**
 * Ranges in ascending order, none empty, that neither overlap nor meet. {@code tailgate/values/ranges/multiranges.py} describes the
 * stored form.
 */
record Multirange(RangeType type, List<Range> ranges) {
  private static final int COUNT = Integer.BYTES;  // of the number of ranges
  private static final Comparator<Range> ORDER = Comparator.comparing(Range::lower).thenComparing(Range::upper);

  /** Returns the multirange of the values in ranges of any order. */
  static Multirange of(RangeType type, List<Range> ranges) {
    List<Range> sorted = new ArrayList<>(ranges);
    sorted.removeIf(Range::isEmpty);
    sorted.sort(ORDER);
    List<Range> merged = new ArrayList<>();
    for (Range range : sorted) {
      int last = merged.size() - 1;
      if (last >= 0 && (merged.get(last).overlaps(range) || merged.get(last).isAdjacent(range))) {
        merged.set(last, merged.get(last).merged(range));
      } else {
        merged.add(range);
      }
    }
    return new Multirange(type, merged);
  }

  /** Returns the multirange of a text. Raises 22P02. */
  static Multirange read(UTF8String text, RangeType type) {
    FieldInput input = new FieldInput("multirange", text);
    List<Range> ranges = new ArrayList<>();
    input.expect("{");
    input.skipBlanks();
    if (!input.accept("}")) {
      do {
        input.skipBlanks();
        if (!input.accept("empty")) ranges.add(Range.read(input.bracketed(), type));
        input.skipBlanks();
      } while (input.expect(",}") == ',');
    }
    input.end();
    return of(type, ranges);
  }

  // ---- the stored form --------------------------------------------------------------------------

  static boolean isMultirange(byte[] form) { return Character.isUpperCase(form[0]); }

  /** Returns the multirange of a stored form, which may be that of a range. */
  static Multirange decode(byte[] form) {
    if (!isMultirange(form)) {
      Range range = Range.decode(form);
      return new Multirange(range.type(), range.isEmpty() ? List.of() : List.of(range));
    }
    RangeType type = RangeType.ofMultirange(form[0]);
    int end = keyLength(form);
    int scale = end;
    int at = 1;
    List<Bound> bounds = new ArrayList<>();
    while (at < end) {
      int next = type.end(form, at);
      byte[] key = Arrays.copyOfRange(form, at, next);
      bounds.add(new Bound(key, type.width > 0 ? Bound.NO_SCALE : Arrays.copyOfRange(form, scale, scale + Bound.NO_SCALE.length)));
      scale += Bound.NO_SCALE.length;
      at = next;
    }
    List<Range> ranges = new ArrayList<>();
    for (int i = 0; i < bounds.size(); i += 2) ranges.add(new Range(type, bounds.get(i), bounds.get(i + 1)));
    return new Multirange(type, ranges);
  }

  byte[] encode() {
    ByteArrayOutputStream form = new ByteArrayOutputStream();
    form.write(type.multirangeTag());
    for (Range range : ranges) {
      form.writeBytes(range.lower().key());
      form.writeBytes(range.upper().key());
    }
    if (type.width == 0) {
      for (Range range : ranges) {
        form.writeBytes(range.lower().scale());
        form.writeBytes(range.upper().scale());
      }
      form.writeBytes(ByteBuffer.allocate(COUNT).putInt(ranges.size()).array());
    }
    return form.toByteArray();
  }

  /** Returns the length of the bounds of a stored form with the type, after which display scales may follow. */
  static int keyLength(byte[] form) {
    if (RangeType.ofMultirange(form[0]).width > 0) return form.length;
    int count = ByteBuffer.wrap(form).getInt(form.length - COUNT);
    return form.length - COUNT - 2 * Bound.NO_SCALE.length * count;
  }

  /** Returns the smallest range that contains a multirange, or the range of a stored form of a range. */
  static Range hull(byte[] form) { return isMultirange(form) ? decode(form).hull() : Range.decode(form); }

  Range hull() {
    if (ranges.isEmpty()) return Range.empty(type);
    return new Range(type, ranges.get(0).lower(), ranges.get(ranges.size() - 1).upper());
  }

  // ---- operations -------------------------------------------------------------------------------

  boolean contains(Bound point) {
    return ranges.stream().anyMatch(range -> range.lower().compareTo(point) <= 0 && point.compareTo(range.upper()) <= 0);
  }

  Multirange union(Multirange other) {
    List<Range> all = new ArrayList<>(ranges);
    all.addAll(other.ranges);
    return of(type, all);
  }

  Multirange intersection(Multirange other) {
    List<Range> common = new ArrayList<>();
    int i = 0;
    int j = 0;
    while (i < ranges.size() && j < other.ranges.size()) {
      Range a = ranges.get(i);
      Range b = other.ranges.get(j);
      if (a.overlaps(b)) common.add(a.intersection(b));
      if (b.upper().compareTo(a.upper()) <= 0) j++;
      else i++;
    }
    return new Multirange(type, common);
  }

  Multirange difference(Multirange other) { return intersection(other.complement()); }

  /** Returns the values that are not in the multirange. */
  private Multirange complement() {
    List<Range> gaps = new ArrayList<>();
    Bound lower = Bound.INFINITE_LOWER;
    for (Range range : ranges) {
      if (!range.lower().isInfinite()) gaps.add(new Range(type, lower, range.lower().inverted(Bound.EXCLUSIVE_UPPER)));
      lower = range.upper().inverted(Bound.EXCLUSIVE_LOWER);
    }
    if (ranges.isEmpty() || !hull().upper().isInfinite()) gaps.add(new Range(type, lower, Bound.INFINITE_UPPER));
    return new Multirange(type, gaps);
  }
}
