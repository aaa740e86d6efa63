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
 * One aggregate of one group. Values can be added and exactly removed again.
 *
 * <p>Totals are exact: integers and decimals are stored as integers of any size, floating point as
 * {@link ExactSum}. Retracted values leave no trace, and the result does not depend on the order of
 * arrival. A total of no values is NULL, except for counts.
 *
 * <p>The implementations: {@link Counts}, {@link Sums}, {@link Bits}, {@link Moments}; with stored
 * values: {@link First}, {@link Collected}; and {@link Once} for DISTINCT.
 */
abstract class Total {
  abstract void add(InternalRow row, long weight);

  /** Adds a change. `values` holds the values of the group in order, for totals that need them. */
  abstract void merge(Total change, Values values);

  /** Returns whether nothing is left, apart from stored values. */
  abstract boolean isZero();

  /**
   * Returns the result in Catalyst's form, or null. `rows` is the number of rows of the group.
   * Throws SqlError if the type cannot hold the result.
   */
  abstract Object result(long rows, Values values);

  void write(DataOutput out) throws IOException {}

  void read(DataInput in) throws IOException {}

  static Total of(Call call, StructType row) { return of(call, row, false); }

  /** Creates the total for a call. `appendOnly`: no row of the input is ever deleted. */
  static Total of(Call call, StructType row, boolean appendOnly) {
    Total total = call.distinct && !call.is("min", "max") && !Collected.is(call) ? new Once(call, row) : plain(call, row, appendOnly);
    return call.filter < 0 ? total : new Filtered(total, call.filter);
  }

  /** Creates the total for a call, ignoring its DISTINCT and FILTER. */
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

  /** A total with FILTER: uses only rows for which a column is true. */
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

  /** A total with stored values. That of a change holds the changed values. */
  abstract static class Keeping extends Total {
    final Map<Bytes, Long> changes = new HashMap<>();

    void change(byte[] value, long weight) { changes.merge(new Bytes(value), weight, Long::sum); }
  }
}
