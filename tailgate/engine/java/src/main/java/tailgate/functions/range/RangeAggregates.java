package tailgate.functions.range;

import java.util.ArrayList;
import java.util.List;

/** range_agg and range_intersect_agg of one or more ranges or multiranges in stored form, in an order that depends on them only. */
public final class RangeAggregates {
  private RangeAggregates() {}

  /** Returns the multirange of all values. */
  public static byte[] union(List<byte[]> forms) {
    List<Range> ranges = new ArrayList<>();
    for (byte[] form : forms) ranges.addAll(Multirange.decode(form).ranges());
    return Multirange.of(Multirange.decode(forms.get(0)).type(), ranges).encode();
  }

  /** Returns the values that all have in common, as a range or a multirange. */
  public static byte[] intersection(List<byte[]> forms) {
    Multirange common = forms.stream().map(Multirange::decode).reduce(Multirange::intersection).orElseThrow();
    return Multirange.isMultirange(forms.get(0)) ? common.encode() : common.hull().encode();
  }
}
