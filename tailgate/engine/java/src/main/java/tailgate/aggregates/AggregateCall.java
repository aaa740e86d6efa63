package tailgate.aggregates;

import java.io.Serializable;
import org.apache.spark.sql.types.*;
import tailgate.rows.SortKey;

/**
 * A call of an aggregate or window function over columns of a row, and its result type.
 *
 * <p>`filter`: ordinal of a boolean column, or -1; rows for which it is not true do not count.
 * `distinct`: equal values count once. `order`: the sort order of the values, before that of the
 * values themselves. `fraction`: the argument of a percentile. `limit`: how many of the first values an array needs to
 * have; negative: of the last ones; 0: all. `unique`: whether it needs only the first one of equal values.
 */
public final class AggregateCall implements Serializable {
  private static final long serialVersionUID = 1;
  public final String function;
  public final int[] columns;
  public final DataType result;
  final boolean distinct;
  public final int filter;
  final SortKey[] order;
  public final double fraction;
  final int limit;
  final boolean unique;

  public AggregateCall(String function, int[] columns, DataType result, boolean distinct, int filter, SortKey[] order, double fraction) {
    this(function, columns, result, distinct, filter, order, fraction, 0, false);
  }

  public AggregateCall(String function, int[] columns, DataType result, boolean distinct, int filter, SortKey[] order, double fraction,
      int limit, boolean unique) {
    this.function = function;
    this.columns = columns.clone();
    this.result = result;
    this.distinct = distinct;
    this.filter = filter;
    this.order = order.clone();
    this.fraction = fraction;
    this.limit = limit;
    this.unique = unique;
  }

  public boolean is(String... names) {
    for (String name : names) if (function.equals(name)) return true;
    return false;
  }

  /** Returns the type of an argument for rows of this schema. */
  DataType type(StructType row, int argument) {
    if (argument >= columns.length) throw new IllegalArgumentException(function + " lacks an argument");
    return row.apply(columns[argument]).dataType();
  }

  // ---- for py4j ---------------------------------------------------------------------------------

  public static AggregateCall of(String function, int[] columns, StructType result,
      boolean distinct, int filter, int[] order, boolean[] descending, boolean[] nullsFirst,
      double fraction, int limit, boolean unique) {
    return new AggregateCall(function, columns, result.apply(0).dataType(), distinct, filter,
        SortKey.of(order, descending, nullsFirst), fraction, limit, unique);
  }
}
