package tailgate;

import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * A stateful step of a circuit: takes changes at its ports, emits the changes that they cause.
 *
 * <p>What an operator has emitted in all is a function of the sum of its input, never of its order or of how it was cut into ticks. Weights may be below zero for a
 * while: a view that is being filled sees live changes before the history they change.
 */
public abstract class Operator extends Node {
  private static final long serialVersionUID = 1;
  /** Place in the order of running. */
  int index;
  /** Length of the longest path of operators above. */
  int level;

  /** How many ports there are. */
  int inputs;

  /** The columns at each port. */
  abstract StructType[] ports();

  /** The columns that it emits. */
  abstract StructType output();

  /** What places a change: all changes of one key meet in one partition. */
  abstract byte[] key(int port, UnsafeRow row);

  /** Whether a change goes to all partitions, wherever its key would place it. */
  boolean everywhere(int port, UnsafeRow row) { return false; }

  /** Whether it runs in a tick without input, in the partition of its empty key. */
  boolean always() { return false; }

  /** Whether it runs in every tick, in every partition. */
  boolean everywhere() { return false; }

  /** Changes in, by port; out through {@link Tick#emit} and {@link Tick#fail}. */
  abstract void run(Tick tick, List<List<Tick.Change>> input);

  // ---- for py4j -------------------------------------------------------------------------------------------------------------

  /** `first`: how many of its columns the row had at first (Growing); all, unless it got more. */
  public static Operator upsert(StructType row, int[] key, int first) { return new Upsert(row, key, first); }

  static Operator upsert(StructType row, int[] key) { return new Upsert(row, key, row.length()); }

  public static Operator captured(StructType row, int[] key, int first) { return new Captured(row, key, first); }

  public static Operator capturedBag(StructType row, int first) { return new CapturedBag(row, first); }

  /**
   * @param kind inner, left, right, full, semi or anti
   * @param nullSafe of each key column, whether NULL equals NULL
   * @param condition a filter over an empty relation of the left's columns, then the right's; null for none
   */
  public static Operator join(String kind, StructType left, int[] leftKey, StructType right, int[] rightKey, boolean[] nullSafe, boolean[] appendOnly, boolean[] unique,
      Dataset<Row> condition) {
    return Join.of(kind, left, leftKey, right, rightKey, nullSafe, appendOnly, unique, condition);
  }

  /** Input: `row`, then from and until, bigint. */
  public static Operator timer(StructType row) { return new Timer(row); }

  /** INTERSECT, or EXCEPT; `all`: of bags. */
  public static Operator setOperation(StructType row, boolean except, boolean all) { return new SetOperation(row, except, all); }

  /** `appendOnly`: no row of the input ever goes. */
  public static Operator reduce(StructType row, int[] group, Call[] calls, boolean appendOnly) { return new Reduce(row, group, calls, appendOnly); }

  /** Functions of one column each, or of none: -1. */
  static Operator reduce(StructType row, int[] group, String[] functions, int[] columns, StructType results) {
    if (functions.length != columns.length || functions.length != results.length()) throw new IllegalArgumentException("as many functions as columns and results");
    Call[] calls = new Call[functions.length];
    for (int i = 0; i < calls.length; i++)
      calls[i] = new Call(functions[i], columns[i] < 0 ? new int[0] : new int[] {columns[i]}, results.apply(i).dataType(), false, -1, new Call.SortKey[0], 0);
    return new Reduce(row, group, calls, false);
  }

  /** Of each partition the first `count` rows (below zero: all) after `offset`; the row is the first `width` columns. */
  public static Operator topK(StructType row, int width, int[] partition, int[] order, boolean[] descending, boolean[] nullsFirst, long count, long offset, boolean ties,
      boolean appendOnly) {
    return new TopK(row, width, partition, Call.keys(order, descending, nullsFirst), count, offset, ties, appendOnly);
  }

  /** Each row, the first `shown` columns, with what window functions say of it. */
  public static Operator recompute(StructType row, int shown, int[] partition, int[] order, boolean[] descending, boolean[] nullsFirst, WindowCall[] calls) {
    return new Recompute(row, shown, partition, Call.keys(order, descending, nullsFirst), calls);
  }
}
