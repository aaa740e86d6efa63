package tailgate;

import java.io.Serializable;

/**
 * A window function over a row's partition, or an aggregate over a frame of it.
 *
 * <p>A frame reaches from one bound to another one, among the rows counted one by one (rows), by groups of rows that are equal in order (groups), or by values (range). Offsets of rows and groups are
 * numbers; those of range are columns that hold, for each row, the value up to which its frame reaches, beside the `key` that it is compared with.
 */
public final class WindowCall implements Serializable {
  private static final long serialVersionUID = 1;

  enum Mode { ROWS, RANGE, GROUPS }

  enum Edge { UNBOUNDED_PRECEDING, PRECEDING, CURRENT_ROW, FOLLOWING, UNBOUNDED_FOLLOWING }

  enum Exclude { NO_OTHERS, CURRENT_ROW, GROUP, TIES }

  /** `offset`: of rows and groups; `column`: of range. */
  record Bound(Edge edge, long offset, int column) implements Serializable {
    boolean isOffset() { return edge == Edge.PRECEDING || edge == Edge.FOLLOWING; }
  }

  final Call call;
  final Mode mode;
  final Bound start, end;
  final Exclude exclude;
  final int key;

  private WindowCall(Call call, Mode mode, Bound start, Bound end, Exclude exclude, int key) {
    this.call = call;
    this.mode = mode;
    this.start = start;
    this.end = end;
    this.exclude = exclude;
    this.key = key;
  }

  /** Whether it sees nothing behind the last row that is equal in order to its own. */
  boolean looksBack() {
    if (call.is("row_number", "rank", "dense_rank")) return true;
    return !call.is("percent_rank", "cume_dist", "ntile", "lag", "lead") && end.edge.compareTo(Edge.CURRENT_ROW) <= 0;
  }

  boolean isAggregate() { return !call.is("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"); }

  // ---- for py4j -------------------------------------------------------------------------------------------------------------

  /** Modes, bounds and exclusions by PostgreSQL's words. */
  public static WindowCall of(Call call, String mode, String start, long startOffset, int startColumn, String end, long endOffset, int endColumn, String exclude, int key) {
    return new WindowCall(call, Mode.valueOf(name(mode)), new Bound(Edge.valueOf(name(start)), startOffset, startColumn), new Bound(Edge.valueOf(name(end)), endOffset, endColumn),
        Exclude.valueOf(name(exclude)), key);
  }

  private static String name(String words) { return words.toUpperCase(java.util.Locale.ROOT).replace(' ', '_'); }
}
