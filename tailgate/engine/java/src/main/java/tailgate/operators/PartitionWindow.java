package tailgate.operators;

import java.util.*;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.*;
import tailgate.aggregates.Accumulator;
import tailgate.aggregates.AggregateCall;
import tailgate.rows.SortKey;
import tailgate.aggregates.GroupValues;
import tailgate.aggregates.OrderedAccumulator;
import tailgate.errors.SqlError;
import tailgate.operators.WindowCall.Bound;
import tailgate.operators.WindowCall.Edge;
import tailgate.operators.WindowCall.Exclude;
import tailgate.operators.WindowCall.Mode;
import tailgate.rows.SortKeyCodec;

/**
 * Computes one window function over the rows of one partition, in memory. The accumulator of an aggregate
 * slides with the frame: rows that leave the frame are subtracted, which is exact.
 *
 * <p>Source: PostgreSQL 15, src/backend/executor/nodeWindowAgg.c, utils/adt/windowfuncs.c.
 */
final class PartitionWindow {
  /** A row, and the encoding of its sort columns. */
  record Placed(InternalRow row, byte[] sorted) {}

  private final StructType row;
  private final WindowCall window;
  private final AggregateCall call;
  private final Supplier<Accumulator> totals;  // null for a function that is not an aggregate
  private final SortKeyCodec key, startKey, endKey;
  private List<Placed> rows;
  private int n;
  private int[] peers, until;    // for each row: its first peer, and the first row after its peers
  private int[] group, starts;   // for each row the number of its peer group; for each group its first row

  PartitionWindow(StructType row, SortKey[] keys, WindowCall window) {
    this.row = row;
    this.window = window;
    AggregateCall call = window.call;
    // takes values in frame order: the row number is appended as a column to sort by
    if (window.isAggregate() && OrderedAccumulator.is(call, row)) {
      StructType placed = row.add("place", DataTypes.LongType);
      call = new AggregateCall(call.function, call.columns, call.result, false, call.filter,
          new SortKey[] {new SortKey(row.length(), false, false)}, call.fraction);
      totals = Accumulator.factory(call, placed, false);
    } else totals = window.isAggregate() ? Accumulator.factory(call, row, false) : null;
    this.call = call;
    boolean range = window.mode == Mode.RANGE && window.key >= 0;
    this.key = range ? order(row, keys, window.key) : null;
    this.startKey = range && window.start.isOffset() ? order(row, keys, window.start.column()) : null;
    this.endKey = range && window.end.isOffset() ? order(row, keys, window.end.column()) : null;
  }

  private static SortKeyCodec order(StructType row, SortKey[] keys, int column) {
    return new SortKeyCodec(row, new SortKey(column, keys[0].descending(), keys[0].nullsFirst()));
  }

  /**
   * Returns the results for the rows from index `from` on; the others are null. A failed result is
   * an SqlError.
   */
  Object[] over(List<Placed> rows, int from) {
    this.rows = rows;
    this.n = rows.size();
    group();
    Object[] out = new Object[n];
    if (window.isAggregate()) aggregate(out, from);
    else
      for (int i = from; i < n; i++)
        try {
          out[i] = value(i);
        } catch (SqlError e) {
          out[i] = e;
        }
    return out;
  }

  private void group() {
    peers = new int[n];
    until = new int[n];
    group = new int[n];
    starts = new int[n];
    int groups = 0;
    for (int i = 0; i < n; i++) {
      if (i == 0 || !Arrays.equals(rows.get(i).sorted, rows.get(i - 1).sorted)) starts[groups++] = i;
      group[i] = groups - 1;
      peers[i] = starts[groups - 1];
    }
    for (int i = n - 1; i >= 0; i--) until[i] = i + 1 < n && group[i + 1] == group[i] ? until[i + 1] : i + 1;
    starts = Arrays.copyOf(starts, groups);
  }

  // ---- functions of the partition ---------------------------------------------------------------

  private Object value(int i) {
    return switch (call.function) {
      case "row_number" -> (long) i + 1;
      case "rank" -> (long) peers[i] + 1;
      case "dense_rank" -> (long) group[i] + 1;
      case "percent_rank" -> n > 1 ? (double) peers[i] / (n - 1) : 0.0;
      case "cume_dist" -> (double) until[i] / n;
      case "ntile" -> bucket(i);
      case "lag", "lead" -> beside(i);
      default -> framed(i);
    };
  }

  private Object bucket(int i) {
    InternalRow first = rows.get(0).row;
    if (first.isNullAt(call.columns[0])) return null;
    int buckets = first.getInt(call.columns[0]);
    if (buckets <= 0) throw new SqlError("22014", "argument of ntile must be greater than zero");
    int size = n / buckets, more = n % buckets, large = more * (size + 1);
    return i < large ? i / (size + 1) + 1 : (i - large) / size + more + 1;
  }

  private Object beside(int i) {
    long offset = 1;
    if (call.columns.length > 1) {
      if (rows.get(i).row.isNullAt(call.columns[1])) return null;
      offset = rows.get(i).row.getInt(call.columns[1]);
    }
    long at = call.is("lag") ? i - offset : i + offset;
    if (at >= 0 && at < n) return argument(0, (int) at);
    return call.columns.length > 2 ? argument(2, i) : null;
  }

  private Object argument(int argument, int i) {
    int column = call.columns[argument];
    return rows.get(i).row.get(column, row.apply(column).dataType());
  }

  // ---- frames -----------------------------------------------------------------------------------

  private Object framed(int i) {
    long position = 0;
    if (call.is("nth_value")) {
      if (rows.get(i).row.isNullAt(call.columns[1])) return null;
      position = rows.get(i).row.getInt(call.columns[1]);
      if (position <= 0) throw new SqlError("22016", "argument of nth_value must be greater than zero");
      position--;
    }
    int start = start(i), end = Math.max(end(i), start);
    int[] out = excluded(i, start, end);  // two ranges to exclude
    int[] seen = {start, out[0], out[1], out[2], out[3], end};
    if (call.is("last_value")) {
      for (int s = 4; s >= 0; s -= 2) if (seen[s + 1] > seen[s]) return argument(0, seen[s + 1] - 1);
      return null;
    }
    for (int s = 0; s < 6; s += 2) {
      int length = seen[s + 1] - seen[s];
      if (position < length) return argument(0, seen[s] + (int) position);
      position -= length;
    }
    return null;
  }

  /** Returns the two ranges within the frame, in order, that EXCLUDE removes. */
  private int[] excluded(int i, int start, int end) {
    int a = peers[i], b = until[i];
    int[] ranges = switch (window.exclude) {
      case NO_OTHERS -> new int[] {end, end, end, end};
      case CURRENT_ROW -> new int[] {i, i + 1, end, end};
      case GROUP -> new int[] {a, b, end, end};
      case TIES -> new int[] {a, i, i + 1, b};
    };
    for (int r = 0; r < 4; r++) ranges[r] = Math.min(Math.max(ranges[r], start), end);
    return ranges;
  }

  private int start(int i) {
    return switch (window.start.edge()) {
      case UNBOUNDED_PRECEDING -> 0;
      case CURRENT_ROW -> window.mode == Mode.ROWS ? i : peers[i];
      case UNBOUNDED_FOLLOWING -> n;
      default -> switch (window.mode) {
        case ROWS -> clamp(i + signed(window.start));
        case GROUPS -> groupStart(group[i] + signed(window.start));
        case RANGE -> search(startKey.encode(rows.get(i).row), false);
      };
    };
  }

  /** Returns the first row after the frame. */
  private int end(int i) {
    return switch (window.end.edge()) {
      case UNBOUNDED_PRECEDING -> 0;
      case CURRENT_ROW -> window.mode == Mode.ROWS ? i + 1 : until[i];
      case UNBOUNDED_FOLLOWING -> n;
      default -> switch (window.mode) {
        case ROWS -> clamp(i + 1 + signed(window.end));
        case GROUPS -> groupStart(group[i] + 1 + signed(window.end));
        case RANGE -> search(endKey.encode(rows.get(i).row), true);
      };
    };
  }

  private static long signed(Bound bound) { return bound.edge() == Edge.PRECEDING ? -bound.offset() : bound.offset(); }

  private int clamp(long place) { return (int) Math.max(0, Math.min(n, place)); }

  private int groupStart(long number) { return number <= 0 ? 0 : number >= starts.length ? n : starts[(int) number]; }

  /** Returns the first row whose key is not less than a bound or, with `behind`, is greater. */
  private int search(byte[] bound, boolean behind) {
    int low = 0, high = n;
    while (low < high) {
      int middle = low + high >>> 1, order = Arrays.compareUnsigned(key.encode(rows.get(middle).row), bound);
      if (order < 0 || behind && order == 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // ---- aggregates -------------------------------------------------------------------------------

  private Accumulator total;
  private GroupValues.InMemory kept;
  private int low, high;  // the range of rows in the total

  private void aggregate(Object[] out, int from) {
    begin(0);
    int lastStart = -1, lastEnd = -1;
    for (int i = from; i < n; i++) {
      int start = start(i), end = Math.max(end(i), start);
      if (window.exclude == Exclude.NO_OTHERS && start == lastStart && end == lastEnd) {
        out[i] = out[i - 1];
        continue;
      }
      move(start, end);
      int[] hidden = excluded(i, start, end);
      long count = end - start;
      for (int r = 0; r < 4; r += 2)
        for (int j = hidden[r]; j < hidden[r + 1]; j++, count--) add(j, -1);
      try {
        out[i] = total.result(count, kept);
      } catch (SqlError e) {
        out[i] = e;
      }
      for (int r = 0; r < 4; r += 2) for (int j = hidden[r]; j < hidden[r + 1]; j++) add(j, 1);
      lastStart = start;
      lastEnd = end;
    }
  }

  private void begin(int at) {
    total = totals.get();
    kept = new GroupValues.InMemory();
    low = high = at;
  }

  private void move(int start, int end) {
    if (start < low || start > high || end < low) begin(start);
    while (high < end) add(high++, 1);
    while (high > end) add(--high, -1);
    while (low < start) add(low++, -1);
  }

  private void add(int i, long weight) {
    InternalRow seen = rows.get(i).row;
    if (call != window.call) {
      Object[] values = new Object[row.length() + 1];
      for (int c = 0; c < row.length(); c++) values[c] = seen.get(c, row.apply(c).dataType());
      values[row.length()] = (long) i;
      seen = new GenericInternalRow(values);
    }
    Accumulator change = totals.get();
    change.add(seen, weight);
    total.merge(change, kept);
  }
}
