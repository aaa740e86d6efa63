package tailgate;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.*;
import tailgate.Rows.Bytes;

/**
 * One aggregate of one group, as something that can be added and taken away again without a trace.
 *
 * <p>Totals are exact: whole numbers and decimals as whole numbers of any size, floating point as {@link ExactSum}. So what was retracted is gone, and the result does
 * not depend on the order of arrival. A total of no values is NULL, but for counts.
 *
 * <p>The families: {@link Counts}, {@link Sums}, {@link Bits}, {@link Moments}; with values that are kept in order: {@link First}, {@link Collected}; and {@link Once} for DISTINCT.
 */
abstract class Total {
  abstract void add(InternalRow row, long weight);

  /** Adds what has changed. `values` is where the values of the group are kept in order, for those who need it. */
  abstract void merge(Total change, Values values);

  /** Whether nothing is left, kept values aside. */
  abstract boolean isZero();

  /** Catalyst's form of the result, or null. Throws SqlError if the type cannot hold it. `rows`: of the group. */
  abstract Object result(long rows, Values values);

  void write(DataOutput out) throws IOException {}

  void read(DataInput in) throws IOException {}

  static Total of(Call call, StructType row) { return of(call, row, false); }

  /** `appendOnly`: no row of the input ever goes. */
  static Total of(Call call, StructType row, boolean appendOnly) {
    Total total = call.distinct && !call.is("min", "max") && !Collected.is(call) ? new Once(call, row) : plain(call, row, appendOnly);
    return call.filter < 0 ? total : new Filtered(total, call.filter);
  }

  /** Without its DISTINCT and FILTER. */
  static Total plain(Call call, StructType row, boolean appendOnly) {
    if (Collected.is(call)) return new Collected(call, row);
    return switch (call.function) {
      case "count" -> Counts.of(call);
      case "sum", "avg" -> Sums.of(call, row);
      case "bool_and", "bool_or", "every" -> new Bits.Truth(call, row);
      case "bit_and", "bit_or", "bit_xor" -> new Bits.Whole(call, row);
      case "min", "max", "min_by", "max_by", "earliest_by_offset", "latest_by_offset" -> First.of(call, row, appendOnly);
      default -> Moments.of(call, row);
    };
  }

  static IllegalArgumentException none(Call call) { return new IllegalArgumentException("no function " + call.function + " that gives " + call.result.catalogString()); }

  /** Only rows for which a column is true. */
  private static final class Filtered extends Total {
    private final Total of;
    private final int filter;

    Filtered(Total of, int filter) {
      this.of = of;
      this.filter = filter;
    }

    @Override void add(InternalRow row, long weight) { if (!row.isNullAt(filter) && row.getBoolean(filter)) of.add(row, weight); }

    @Override void merge(Total change, Values values) { of.merge(((Filtered) change).of, values); }

    @Override boolean isZero() { return of.isZero(); }

    @Override Object result(long rows, Values values) { return of.result(rows, values); }

    @Override void write(DataOutput out) throws IOException { of.write(out); }

    @Override void read(DataInput in) throws IOException { of.read(in); }
  }

  /** A total whose values are kept; of a change, the values that changed. */
  abstract static class Keeping extends Total {
    final Map<Bytes, Long> changes = new HashMap<>();

    void change(byte[] value, long weight) { changes.merge(new Bytes(value), weight, Long::sum); }
  }
}
