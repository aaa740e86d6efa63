package tailgate.operators;

import java.io.Serializable;
import tailgate.aggregates.AggregateCall;

/**
 * A window function over the partition of a row, or an aggregate over a frame of it.
 *
 * <p>A frame extends between two bounds, counted in rows (rows), in groups of peers (groups), or by
 * values (range). Offsets of rows and groups are numbers. Offsets of range are columns that hold,
 * for each row, the value at which its frame begins or ends; `key` is the column compared with it.
 */
public final class WindowCall implements Serializable {
  private static final long serialVersionUID = 1;

  enum Mode { ROWS, RANGE, GROUPS }

  public enum Edge { UNBOUNDED_PRECEDING, PRECEDING, CURRENT_ROW, FOLLOWING, UNBOUNDED_FOLLOWING }

  enum Exclude { NO_OTHERS, CURRENT_ROW, GROUP, TIES }

  /** `offset` is used for rows and groups, `column` for range. */
  record Bound(Edge edge, long offset, int column) implements Serializable {
    boolean isOffset() { return edge == Edge.PRECEDING || edge == Edge.FOLLOWING; }
  }

  final AggregateCall call;
  final Mode mode;
  final Bound start, end;
  final Exclude exclude;
  final int key;

  private WindowCall(AggregateCall call, Mode mode, Bound start, Bound end, Exclude exclude, int key) {
    this.call = call;
    this.mode = mode;
    this.start = start;
    this.end = end;
    this.exclude = exclude;
    this.key = key;
  }

  /** Returns whether the function depends on no row after the last peer of its row. */
  boolean looksBack() {
    if (call.is("row_number", "rank", "dense_rank")) return true;
    return !call.is("percent_rank", "cume_dist", "ntile", "lag", "lead") && end.edge.compareTo(Edge.CURRENT_ROW) <= 0;
  }

  boolean isAggregate() {
    return !call.is("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile",
        "lag", "lead", "first_value", "last_value", "nth_value");
  }

  // ---- for py4j ---------------------------------------------------------------------------------

  /** Creates a call. Modes, bounds and exclusions are PostgreSQL's keywords. */
  public static WindowCall of(AggregateCall call, String mode, String start, long startOffset,
      int startColumn, String end, long endOffset, int endColumn, String exclude, int key) {
    return new WindowCall(call, Mode.valueOf(name(mode)),
        new Bound(Edge.valueOf(name(start)), startOffset, startColumn),
        new Bound(Edge.valueOf(name(end)), endOffset, endColumn),
        Exclude.valueOf(name(exclude)), key);
  }

  private static String name(String words) { return words.toUpperCase(java.util.Locale.ROOT).replace(' ', '_'); }
}
