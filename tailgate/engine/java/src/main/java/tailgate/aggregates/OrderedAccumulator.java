package tailgate.aggregates;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.json.Jsonb;
import tailgate.functions.json.JsonbTree;
import tailgate.functions.numeric.General;
import tailgate.functions.range.RangeAggregates;
import tailgate.rows.OrderedCodec;
import tailgate.rows.Rows.Bytes;
import tailgate.rows.SortKeyCodec;

/**
 * Aggregates that are a function of all values in order: array_agg, string_agg, JSON, mode,
 * percentiles, those of ranges, the counts of each value, and sums, averages and variances with
 * DISTINCT of general numerics, of which equal ones have several stored forms.
 *
 * <p>The values are kept sorted, and the result is recomputed from all of them for each changed
 * group: the cost is the size of the group.
 *
 * <p>If only the first or last values, or the first one of equal values, are needed (`limit`, `unique`) and no value is ever
 * removed, only these are kept.
 *
 * <p>The order is that of the call's ORDER BY and then that of the values themselves, so the result
 * depends on the values only. With DISTINCT each value is used once.
 */
public final class OrderedAccumulator extends Accumulator.Keeping {
  private static final int BYTES_MAX = 1 << 28;  // limit of one result; PostgreSQL's own limit is four times that
  private static final int COUNTS_MAX = 1000;  // values that ksqldb_counts has, as ksqlDB's HISTOGRAM
  private static final Set<String> NAMES = Set.of("string_agg", "array_agg", "jsonb_agg", "ksqldb_counts",
      "jsonb_object_agg", "json_agg", "json_object_agg", "mode", "percentile_cont",
      "percentile_disc", "range_agg", "range_intersect_agg");
  private final AggregateCall call;
  private final SortKeyCodec order, values;
  private final DataType type;
  private final int limit;
  private final boolean unique;
  private final boolean isTotal;  // a sum, an average or a variance
  private final boolean hasForms;  // DISTINCT of values of which equal ones have several stored forms: the first one counts

  OrderedAccumulator(AggregateCall call, StructType row, boolean appendOnly) {
    this.call = call;
    this.limit = appendOnly ? call.limit : 0;
    this.unique = appendOnly && call.unique;
    this.type = call.columns.length > 0 ? call.type(row, 0) : null;
    this.order = new SortKeyCodec(row, call.order);
    this.isTotal = !NAMES.contains(call.function);
    this.hasForms = call.distinct && type != null && type.sameType(General.TYPE);
    boolean isCompared = call.distinct && !hasForms;
    this.values = isCompared ? new SortKeyCodec(row, SortKeyCodec.ascending(call.columns)) : SortKeyCodec.exact(row, call.columns);
    boolean fits = switch (call.function) {
      case "array_agg" -> call.result instanceof ArrayType a && a.elementType().equals(type);
      case "mode", "percentile_disc" -> call.result.sameType(type);
      case "range_agg", "range_intersect_agg" -> type == DataTypes.BinaryType && call.result.equals(type);
      case "percentile_cont" -> type == DataTypes.DoubleType && call.result == DataTypes.DoubleType;
      case "string_agg" ->
          type.equals(call.result) && (type instanceof StringType || type == DataTypes.BinaryType)
              && call.type(row, 1).equals(type);
      case "jsonb_object_agg", "json_object_agg" ->
          call.result instanceof StringType && type instanceof StringType
              && call.type(row, 1) instanceof StringType;
      default -> isTotal || call.result instanceof StringType && type instanceof StringType;
    };
    if (!fits) throw none(call);
  }

  private boolean ignoresNulls() {
    return isTotal
        || call.is("string_agg", "ksqldb_counts", "mode", "percentile_cont", "percentile_disc", "range_agg", "range_intersect_agg");
  }

  public static boolean is(AggregateCall call, StructType row) {
    return NAMES.contains(call.function) || call.distinct && GeneralTotals.fits(call, row);
  }

  @Override public void add(InternalRow row, long weight) {
    if (row.isNullAt(call.columns[0]) && ignoresNulls()) return;
    byte[] first = order.encode(row), then = values.encode(row), both = Arrays.copyOf(first, first.length + then.length);
    System.arraycopy(then, 0, both, first.length, then.length);
    change(both, weight);
  }

  @Override public void merge(Accumulator change, GroupValues kept) {
    ((OrderedAccumulator) change).changes.forEach((value, weight) -> {
      if (weight != 0) kept.weigh(value.bytes, weight);
    });
    if (limit != 0 || unique) cut(kept);
  }

  /** Removes the values that are not needed: those that are equal to an earlier one, after the first, or before the last. */
  private void cut(GroupValues kept) {
    Deque<Value> needed = new ArrayDeque<>();
    List<Value> others = new ArrayList<>();
    Set<Bytes> seen = new HashSet<>();
    long n = 0;
    try (GroupValues.Walk walk = kept.walk()) {
      while (walk.next()) {
        Value value = new Value(walk.value().clone(), walk.weight());
        if (limit > 0 && n >= limit || unique && !seen.add(new Bytes(valuesOf(value.bytes)))) {
          others.add(value);
          continue;
        }
        needed.add(value);
        n += times(value);
        while (limit < 0 && n - times(needed.element()) >= -limit) {
          n -= times(needed.element());
          others.add(needed.remove());
        }
      }
    }
    for (Value value : others) kept.weigh(value.bytes, -value.weight);
  }

  private record Value(byte[] bytes, long weight) {}

  private long times(Value value) { return call.distinct || unique ? 1 : value.weight; }

  /** Returns a kept value without its place in the order. */
  private byte[] valuesOf(byte[] value) {
    OrderedCodec.Reader in = new OrderedCodec.Reader(value);
    order.decode(in);
    return Arrays.copyOfRange(value, in.at(), value.length);
  }

  /** Returns true: the values are not part of the accumulator. */
  @Override public boolean isZero() { return true; }

  @Override public Object result(long rows, GroupValues kept) {
    return switch (call.function) {
      case "array_agg" -> {
        List<Object> elements = list(kept);
        yield elements.isEmpty() ? null : new GenericArrayData(elements.toArray());
      }
      case "mode" -> mode(kept);
      case "ksqldb_counts" -> counts(kept);
      case "percentile_disc" -> {
        long n = count(kept);
        yield n == 0 ? null : at(kept, Math.max(0, (long) Math.ceil(call.fraction * n) - 1), 1)[0];
      }
      case "percentile_cont" -> {
        long n = count(kept);
        yield n == 0 ? null : between(kept, call.fraction * (n - 1));
      }
      case "range_agg", "range_intersect_agg" -> {
        List<byte[]> forms = forms(kept);
        yield forms.isEmpty() ? null : call.is("range_agg") ? RangeAggregates.union(forms) : RangeAggregates.intersection(forms);
      }
      default -> isTotal ? total(rows, kept) : text(kept);
    };
  }

  /** Returns the sum, average or variance of the first stored form of each value. */
  private Object total(long rows, GroupValues kept) {
    GeneralTotals totals = new GeneralTotals(new AggregateCall(call.function, new int[] {0}, call.result, false, -1, call.order, 0));
    each(kept, (value, times) -> {
      totals.add(new GenericInternalRow(value), 1);
      return true;
    });
    return totals.result(rows, kept);
  }

  private interface Each {
    /** Returns whether to continue. */
    boolean take(Object[] values, long times);
  }

  private void each(GroupValues kept, Each each) {
    byte[] place = null;  // of the last value
    try (GroupValues.Walk walk = kept.walk()) {
      while (walk.next()) {
        if (walk.weight() <= 0 || place != null && SortKeyCodec.begins(walk.value(), place)) continue;
        OrderedCodec.Reader in = new OrderedCodec.Reader(walk.value());
        order.decode(in);
        if (hasForms) place = Arrays.copyOf(walk.value(), in.at());
        if (!each.take(values.decode(in), call.distinct ? 1 : walk.weight())) return;
      }
    }
  }

  /** Returns the number of each of the first values as an object. */
  private UTF8String counts(GroupValues kept) {
    Map<String, Object> counts = new TreeMap<>(JsonbTree.KEY_ORDER);
    each(kept, (v, times) -> {
      counts.put(v[0].toString(), new JsonbTree.JsonNumber(Long.toString(times)));
      return counts.size() < COUNTS_MAX;
    });
    return counts.isEmpty() ? null : JsonbTree.text(counts);
  }

  private long count(GroupValues kept) {
    long[] n = {0};
    each(kept, (v, times) -> {
      n[0] += times;
      return true;
    });
    return n[0];
  }

  private List<Object> list(GroupValues kept) {
    List<Object> elements = new ArrayList<>();
    long[] size = {0};
    each(kept, (v, times) -> {
      size[0] = Math.addExact(size[0], times * (v[0] instanceof UTF8String s ? s.numBytes() : v[0] instanceof byte[] b ? b.length : 16));
      check(size[0]);
      for (long i = 0; i < times; i++) elements.add(v[0]);
      return true;
    });
    return elements;
  }

  /** Returns the values in stored form, each once. */
  private List<byte[]> forms(GroupValues kept) {
    List<byte[]> forms = new ArrayList<>();
    long[] size = {0};
    each(kept, (v, times) -> {
      byte[] form = (byte[]) v[0];
      size[0] += form.length;
      check(size[0]);
      return forms.add(form);
    });
    return forms;
  }

  /**
   * Returns the most frequent value. Values that compare equal count together, even with different
   * representations: 0.0 and -0.0, or 1 and 1.0 in jsonb.
   */
  private Object mode(GroupValues kept) {
    Object best = null;
    long most = 0, times = 0;
    byte[] place = null;
    try (GroupValues.Walk walk = kept.walk()) {
      while (walk.next()) {
        if (walk.weight() <= 0) continue;
        OrderedCodec.Reader in = new OrderedCodec.Reader(walk.value());
        order.decode(in);
        if (place == null || !SortKeyCodec.begins(walk.value(), place)) {
          place = Arrays.copyOf(walk.value(), in.at());
          times = 0;
        }
        times += call.distinct ? 1 : walk.weight();
        if (times <= most) continue;
        most = times;
        best = values.decode(in)[0];
      }
    }
    return best;
  }

  /**
   * Returns `count` values from a position on, counted from 0. After the end the last value is
   * repeated.
   */
  private Object[] at(GroupValues kept, long place, int count) {
    Object[] elements = new Object[count];
    long[] seen = {0};
    each(kept, (v, times) -> {
      for (int i = 0; i < count; i++) if (place + i >= seen[0]) elements[i] = v[0];
      return (seen[0] += times) < place + count;
    });
    return elements;
  }

  private Double between(GroupValues kept, double place) {
    long low = (long) Math.floor(place);
    Object[] both = at(kept, low, 2);
    double a = (Double) both[0], b = (Double) both[1];
    return low == Math.ceil(place) ? a : a + (place - low) * (b - a);
  }

  private static void check(long bytes) {
    if (bytes > BYTES_MAX) throw new SqlError("54000", "result of an aggregate exceeds " + BYTES_MAX + " bytes");
  }

  // ---- text and JSON ----------------------------------------------------------------------------

  private static final byte[] NULL = "null".getBytes(StandardCharsets.US_ASCII),
      COMMA = ", ".getBytes(StandardCharsets.US_ASCII),
      COLON = ": ".getBytes(StandardCharsets.US_ASCII),
      BLANK_COLON = " : ".getBytes(StandardCharsets.US_ASCII);

  private Object text(GroupValues kept) {
    boolean object = call.is("jsonb_object_agg", "json_object_agg"), json = !call.is("string_agg");
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    boolean[] any = {false};
    boolean typed = call.is("json_object_agg");  // the members as they are, with PostgreSQL's blanks
    if (json) out.write(object ? '{' : '[');
    if (typed) out.write(' ');
    each(kept, (v, times) -> {
      if (object && v[0] == null) throw new SqlError("22023", "field name must not be null");
      for (long i = 0; i < times; i++) {
        if (json) {
          if (any[0]) out.writeBytes(COMMA);
          if (object) {
            out.writeBytes(Jsonb.quoted(v[0].toString()));
            out.writeBytes(typed ? BLANK_COLON : COLON);
          }
          Object value = v[object ? 1 : 0];
          out.writeBytes(value == null ? NULL : bytes(value));
        } else {
          if (any[0] && v[1] != null) out.writeBytes(bytes(v[1]));
          out.writeBytes(bytes(v[0]));
        }
        any[0] = true;
        check(out.size());
      }
      return true;
    });
    if (!any[0]) return null;
    if (typed) out.write(' ');
    if (json) out.write(object ? '}' : ']');
    byte[] bytes = object && !typed ? Jsonb.canonical(out.toByteArray()) : out.toByteArray();
    return type == DataTypes.BinaryType ? bytes : UTF8String.fromBytes(bytes);
  }

  private static byte[] bytes(Object value) { return value instanceof UTF8String s ? s.getBytes() : (byte[]) value; }
}
