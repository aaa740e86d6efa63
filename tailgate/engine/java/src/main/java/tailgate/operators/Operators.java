package tailgate.operators;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;
import tailgate.aggregates.AggregateCall;
import tailgate.circuit.Operator;
import tailgate.rows.SortKey;

/** The constructors of all operators, for Python: one for each node class of `engine.plan.circuit.graph`. */
public final class Operators {
  private Operators() {}

  /**
   * Creates an upsert. `first` is the original number of columns (see EvolvingRowCodec); all of
   * them, unless columns were added.
   */
  public static Operator upsert(StructType row, int[] key, int first) { return new Upsert(row, key, first); }

  /** Creates an upsert of the change events of a table with a key. */
  public static Operator cdcUpsert(StructType row, int[] key, int first) { return new CdcUpsert(row, key, first); }

  /** Creates an operator for the change events of a table without a key. */
  public static Operator cdcBag(StructType row, int first) { return new CdcBag(row, first); }

  /**
   * Creates a join.
   *
   * @param kind inner, left, right, full, semi or anti
   * @param nullSafe for each key column, whether NULL equals NULL
   * @param condition a filter over an empty relation of the left columns, then the right ones; or
   * null
   */
  public static Operator join(String kind, StructType left, int[] leftKey, StructType right,
      int[] rightKey, boolean[] nullSafe, boolean[] appendOnly, boolean[] unique,
      Dataset<Row> condition) {
    return Join.of(kind, left, leftKey, right, rightKey, nullSafe, appendOnly, unique, condition);
  }

  /**
   * Creates a join of a stream with the rows that a table has when the rows of the stream arrive.
   *
   * @param left whether rows without a match are emitted with NULLs
   * @param filling whether live changes wait for the end of the fill
   */
  public static Operator arrivalJoin(boolean left, StructType stream, int[] streamKey, StructType table, int[] tableKey, boolean filling) {
    return new ArrivalJoin(left, stream, streamKey, table, tableKey, filling);
  }

  /**
   * Creates a join of two streams by key and time.
   *
   * @param kind inner, left, right or full
   * @param before the distance in µs by which a match on the right may be earlier than the row of the left
   * @param after the distance in µs by which it may be later
   * @param grace the time in µs for which rows may be late
   * @param eager whether rows without a match are emitted when they arrive
   * @param filling whether rows wait for the end of the fill
   */
  public static Operator withinJoin(String kind, StructType left, int[] leftKey, int leftTime, StructType right,
      int[] rightKey, int rightTime, long before, long after, long grace, boolean eager, boolean filling) {
    return new WithinJoin(kind, left, leftKey, leftTime, right, rightKey, rightTime, before, after, grace, eager, filling);
  }

  /**
   * Creates an operator that drops rows of windows that are closed. The output row is the first `width` columns.
   *
   * @param time the column with the time of a row
   * @param end the column with the end of its window
   * @param grace the time in µs after the end for which rows may be late
   * @param last whether rows are emitted when their window closes
   * @param filling whether rows wait for the end of the fill
   */
  public static Operator closing(StructType row, int width, int time, int end, long grace, boolean last, boolean filling) {
    return new Closing(row, width, time, end, grace, last, filling);
  }

  /**
   * Creates an operator that merges the rows of a key to sessions, and drops rows of sessions that are closed. The output row is the
   * first `width` columns.
   *
   * @param time the column with the time of a row
   * @param start the column with the start of its window, which is replaced with that of its session
   * @param end the column with the end of its window, which is replaced, too
   * @param grace the time in µs after the end for which rows may be late
   * @param last whether rows are emitted when their session closes
   * @param filling whether rows wait for the end of the fill
   */
  public static Operator sessions(StructType row, int width, int[] key, int time, int start, int end, long grace, boolean last,
      boolean filling) {
    return new Sessions(row, width, key, time, start, end, grace, last, filling);
  }

  /** Creates a temporal filter. Input: `row`, then from and until, bigint. */
  public static Operator temporalFilter(StructType row) { return new TemporalFilter(row); }

  /** Creates an INTERSECT or EXCEPT, with `all` for bags. */
  public static Operator setOperation(StructType row, boolean except, boolean all) { return new SetOperation(row, except, all); }

  /**
   * Creates the fixpoint of a recursive query.
   *
   * @param row the columns of the query, then the round, int, then sort keys of columns
   * @param width the number of columns of the query
   * @param keys the columns, without the round, that say which rows of a UNION are equal; empty if those of the query do
   * @param all whether it is a UNION ALL
   * @param limit the number of the last round
   * @param name the name of the query, for errors
   */
  public static Operator fixpoint(StructType row, int width, int[] keys, boolean all, int limit, String name) {
    return new Fixpoint(row, width, keys, all, limit, name);
  }

  /**
   * Creates an aggregation.
   *
   * @param appendOnly whether no row of the input is ever deleted
   * @param end the column from which the retention of groups is counted, or -1
   * @param retention the time in µs after which a group is released
   */
  public static Operator reduce(StructType row, int[] group, AggregateCall[] calls, boolean appendOnly, int end, long retention) {
    return new Reduce(row, group, calls, appendOnly, end, retention);
  }

  /**
   * Creates a limit per partition: the first `count` rows (all if negative) after `offset`. The
   * output row is the first `width` columns.
   */
  public static Operator topK(StructType row, int width, int[] partition, int[] order,
      boolean[] descending, boolean[] nullsFirst, long count, long offset, boolean ties,
      boolean appendOnly) {
    return new TopK(row, width, partition, SortKey.of(order, descending, nullsFirst), count, offset, ties, appendOnly);
  }

  /**
   * Creates an operator that adds the results of window functions to each row, its first `width`
   * columns.
   */
  public static Operator window(StructType row, int width, int[] partition, int[] order,
      boolean[] descending, boolean[] nullsFirst, WindowCall[] calls) {
    return new Window(row, width, partition, SortKey.of(order, descending, nullsFirst), calls);
  }
}
