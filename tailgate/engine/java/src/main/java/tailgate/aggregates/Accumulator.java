package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.*;
import tailgate.rows.Rows.Bytes;

/**
 * One aggregate of one group. Values can be added and exactly removed again.
 *
 * <p>Accumulators are exact: integers and decimals are stored as integers of any size, floating point as
 * {@link ExactSum}. Retracted values leave no trace, and the result does not depend on the order of
 * arrival. The result of no values is NULL, except for counts.
 *
 * <p>The implementations: {@link Counts}, {@link Sums}, {@link Bits}, {@link BitStringTotals},
 * {@link Moments}, {@link HighWatermark}, {@link FirstTime}; with stored
 * values: {@link ExtremeAccumulator}, {@link OrderedAccumulator}; and {@link DistinctAccumulator}
 * for DISTINCT.
 */
public abstract class Accumulator {
  public abstract void add(InternalRow row, long weight);

  /** Adds a change with its order ({@link tailgate.rows.Change}). */
  public void add(InternalRow row, long weight, long order) { add(row, weight); }

  /** Adds a change. `values` holds the values of the group in order, for accumulators that need them. */
  public abstract void merge(Accumulator change, GroupValues values);

  /** Returns whether nothing is left, apart from stored values. */
  public abstract boolean isZero();

  /** Returns whether the accumulator of a change holds each changed value. */
  public boolean keepsValues() { return false; }

  /** Returns whether a group with this aggregate stays when its last row leaves. */
  public boolean keepsGroup() { return false; }

  /**
   * Returns the result in Catalyst's form, or null. `rows` is the number of rows of the group.
   * Throws SqlError if the type cannot hold the result.
   */
  public abstract Object result(long rows, GroupValues values);

  public void write(DataOutput out) throws IOException {}

  public void read(DataInput in) throws IOException {}

  /**
   * Returns a factory of the accumulators of a call: a tick needs two for each changed group. Rejects a call that cannot be computed.
   *
   * @param appendOnly no row of the input is ever deleted
   */
  public static Supplier<Accumulator> factory(AggregateCall call, StructType row, boolean appendOnly) {
    boolean isDistinct = call.distinct && !call.is("min", "max") && !OrderedAccumulator.is(call, row);
    Supplier<Accumulator> factory = isDistinct ? DistinctAccumulator.factory(call, row) : plain(call, row, appendOnly);
    factory.get();
    return call.filter < 0 ? factory : () -> new Filtered(factory.get(), call.filter);
  }

  /** Returns the factory for a call, ignoring its DISTINCT and FILTER. */
  static Supplier<Accumulator> plain(AggregateCall call, StructType row, boolean appendOnly) {
    if (OrderedAccumulator.is(call, row)) return () -> new OrderedAccumulator(call, row, appendOnly);
    if (GeneralTotals.fits(call, row)) return () -> new GeneralTotals(call);
    return switch (call.function) {
      case "count" -> Counts.factory(call);
      case "sum", "avg" -> Sums.factory(call, row);
      case "bool_and", "bool_or", "every" -> () -> new Bits.Truth(call, row);
      case "bit_and", "bit_or", "bit_xor" ->
          call.type(row, 0) == DataTypes.StringType ? () -> new BitStringTotals(call) : () -> new Bits.Whole(call, row);
      case "min", "max", "min_by", "max_by", "earliest_by_offset", "latest_by_offset" -> ExtremeAccumulator.extremes(call, row, appendOnly);
      case "ksqldb_high_watermark" -> () -> new HighWatermark(call);
      case "ksqldb_first_time" -> () -> new FirstTime(call);
      default -> () -> Moments.of(call, row);
    };
  }

  static IllegalArgumentException none(AggregateCall call) {
    return new IllegalArgumentException("no function " + call.function + " that gives "
        + call.result.catalogString());
  }

  /** An accumulator with FILTER: uses only rows for which a column is true. */
  private static final class Filtered extends Accumulator {
    private final Accumulator of;
    private final int filter;

    Filtered(Accumulator of, int filter) {
      this.of = of;
      this.filter = filter;
    }

    @Override public void add(InternalRow row, long weight) { if (!row.isNullAt(filter) && row.getBoolean(filter)) of.add(row, weight); }

    @Override public void merge(Accumulator change, GroupValues values) { of.merge(((Filtered) change).of, values); }

    @Override public boolean isZero() { return of.isZero(); }

    @Override public boolean keepsValues() { return of.keepsValues(); }

    @Override public Object result(long rows, GroupValues values) { return of.result(rows, values); }

    @Override public void write(DataOutput out) throws IOException { of.write(out); }

    @Override public void read(DataInput in) throws IOException { of.read(in); }
  }

  /** An accumulator with stored values. That of a change holds the changed values. */
  abstract static class Keeping extends Accumulator {
    final Map<Bytes, Long> changes = new HashMap<>();

    @Override public boolean keepsValues() { return true; }

    void change(byte[] value, long weight) { changes.merge(new Bytes(value), weight, Long::sum); }
  }
}
