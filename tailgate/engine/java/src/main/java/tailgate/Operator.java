package tailgate;

import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * A stateful step of a circuit: it receives changes at its ports and emits the resulting changes.
 *
 * <p>The sum of an operator's output is a function of the sum of its input. It does not depend on
 * the order of the input or its division into ticks. Weights may be negative for a while: a view
 * that is being filled receives live changes before the history that they change.
 */
public abstract class Operator extends Node {
  private static final long serialVersionUID = 1;
  /** Index in {@link Circuit#order}. */
  int index;
  /** Number of operators on the longest path above this one. */
  int level;

  /** Number of ports. */
  int inputs;

  /** Returns the columns of each port. */
  abstract StructType[] ports();

  /** Returns the columns of the output. */
  abstract StructType output();

  /**
   * Returns the key by which a change is partitioned: all changes of a key are in one partition.
   */
  abstract byte[] key(int port, UnsafeRow row);

  /** Returns whether a change goes to all partitions, whatever its key. */
  boolean everywhere(int port, UnsafeRow row) { return false; }

  /**
   * Returns whether the operator also runs in ticks without input, in the partition of its empty
   * key.
   */
  boolean always() { return false; }

  /** Returns whether the operator runs in every tick and partition. */
  boolean everywhere() { return false; }

  /** Processes changes, by port. Emits results with {@link Tick#emit} and {@link Tick#fail}. */
  abstract void run(Tick tick, List<List<Tick.Change>> input);

  // ---- for py4j ---------------------------------------------------------------------------------

  /**
   * Creates an upsert. `first` is the original number of columns (see Growing); all of them, unless
   * columns were added.
   */
  public static Operator upsert(StructType row, int[] key, int first) { return new Upsert(row, key, first); }

  static Operator upsert(StructType row, int[] key) { return new Upsert(row, key, row.length()); }

  public static Operator captured(StructType row, int[] key, int first) { return new Captured(row, key, first); }

  public static Operator capturedBag(StructType row, int first) { return new CapturedBag(row, first); }

  /**
   * Creates a join.
   *
   * @param kind inner, left, right, full, semi or anti
   * @param nullSafe for each key column, whether NULL equals NULL
   * @param condition a filter over an empty relation of the left columns, then the right ones; or
   * null
   */
  public static Operator join(String kind, StructType left, int[] leftKey, StructType right, int[] rightKey, boolean[] nullSafe, boolean[] appendOnly, boolean[] unique,
      Dataset<Row> condition) {
    return Join.of(kind, left, leftKey, right, rightKey, nullSafe, appendOnly, unique, condition);
  }

  /** Creates a temporal filter. Input: `row`, then from and until, bigint. */
  public static Operator timer(StructType row) { return new Timer(row); }

  /** Creates an INTERSECT or EXCEPT, with `all` for bags. */
  public static Operator setOperation(StructType row, boolean except, boolean all) { return new SetOperation(row, except, all); }

  /** Creates an aggregation. `appendOnly`: no row of the input is ever deleted. */
  public static Operator reduce(StructType row, int[] group, Call[] calls, boolean appendOnly) { return new Reduce(row, group, calls, appendOnly); }

  /** Creates an aggregation whose functions have one column each, or none: -1. */
  static Operator reduce(StructType row, int[] group, String[] functions, int[] columns, StructType results) {
    if (functions.length != columns.length || functions.length != results.length()) throw new IllegalArgumentException("as many functions as columns and results");
    Call[] calls = new Call[functions.length];
    for (int i = 0; i < calls.length; i++)
      calls[i] = new Call(functions[i], columns[i] < 0 ? new int[0] : new int[] {columns[i]}, results.apply(i).dataType(), false, -1, new Call.SortKey[0], 0);
    return new Reduce(row, group, calls, false);
  }

  /**
   * Creates a limit per partition: the first `count` rows (all if negative) after `offset`. The
   * output row is the first `width` columns.
   */
  public static Operator topK(StructType row, int width, int[] partition, int[] order, boolean[] descending, boolean[] nullsFirst, long count, long offset, boolean ties,
      boolean appendOnly) {
    return new TopK(row, width, partition, Call.keys(order, descending, nullsFirst), count, offset, ties, appendOnly);
  }

  /**
   * Creates an operator that adds the results of window functions to each row, its first `shown`
   * columns.
   */
  public static Operator recompute(StructType row, int shown, int[] partition, int[] order, boolean[] descending, boolean[] nullsFirst, WindowCall[] calls) {
    return new Recompute(row, shown, partition, Call.keys(order, descending, nullsFirst), calls);
  }
}
