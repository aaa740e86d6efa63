package tailgate.operators;

import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.*;
import scala.jdk.javaapi.CollectionConverters;
import tailgate.rows.SortKey;
import tailgate.circuit.Tick;
import tailgate.errors.SqlError;
import tailgate.rows.Rows;
import tailgate.rows.Rows.Bytes;
import tailgate.state.State;

/**
 * Δω(A) = ω(A_new) - ω(A_old), of the partitions that ΔA touches
 *
 * <p>Emits each row with the results of window functions ({@link WindowCall}). Peers are ordered by
 * their values. A row for which a function fails is an error.
 *
 * <p>State: the partition's rows in order ({@link Partitioned}). Cost: the partition, computed
 * before and after the changes. If no function looks ahead, only rows from the first changed one on
 * are compared and emitted.
 */
final class Window extends Partitioned {
  private static final long serialVersionUID = 1;
  private final int shown;
  private final WindowCall[] calls;
  private final SortKey[] keys;
  private final boolean looksBack;
  private transient UnsafeProjection projection;

  /** `shown`: number of columns at the start of the input that are the row. */
  Window(StructType row, int shown, int[] partition, SortKey[] keys, WindowCall[] calls) {
    super(row, row.length(), partition, keys);
    this.shown = shown;
    this.keys = keys.clone();
    this.calls = calls.clone();
    this.looksBack = Arrays.stream(calls).allMatch(WindowCall::looksBack);
    for (WindowCall call : calls) new PartitionWindow(row, keys, call);  // rejects functions that cannot be computed
  }

  @Override public StructType output() {
    StructType out = first(shown);
    for (WindowCall call : calls) out = out.add(call.call.function, call.call.result);
    return out;
  }

  @Override public void run(Tick tick, byte[] partition, Map<Bytes, Long> changes) {
    byte[] from = null;
    if (looksBack)
      for (Bytes place : changes.keySet()) {
        byte[] begin = Arrays.copyOf(place.bytes, sorted(place.bytes));
        if (from == null || Arrays.compareUnsigned(begin, from) < 0) from = begin;
      }
    Map<Bytes, Long> rows = new LinkedHashMap<>();
    Map<SqlError, Long> errors = new HashMap<>();
    compute(tick.state, partition, from, -1, rows, errors);
    changes.forEach((place, weight) -> tick.state.weigh(id, ROWS, partition, place.bytes, weight));
    compute(tick.state, partition, from, 1, rows, errors);
    int width = output().length();
    rows.forEach((row, weight) -> {
      if (weight != 0) tick.emit(this, Rows.row(row.bytes, width), weight);
    });
    errors.forEach((error, weight) -> tick.fail(this, error, weight));
  }

  /** Adds the results for the partition's rows from a place on, each with this weight. */
  private void compute(State state, byte[] partition, byte[] from, long weight, Map<Bytes, Long> out, Map<SqlError, Long> errors) {
    List<PartitionWindow.Placed> rows = new ArrayList<>();
    int first = -1;
    try (State.Entries entries = state.entries(id, ROWS, partition)) {
      while (entries.next()) {
        long copies = State.weight(entries.value());
        if (copies <= 0) continue;
        byte[] place = entries.row();
        if (first < 0 && (from == null || Arrays.compareUnsigned(place, from) >= 0)) first = rows.size();
        byte[] sorted = Arrays.copyOf(place, sorted(place));
        InternalRow row = row(place);
        for (long i = 0; i < copies; i++) rows.add(new PartitionWindow.Placed(row, sorted));
      }
    }
    if (first < 0) return;
    Object[][] results = new Object[calls.length][];
    for (int c = 0; c < calls.length; c++) results[c] = new PartitionWindow(row, keys, calls[c]).over(rows, first);
    if (projection == null) projection = projection(output());
    for (int i = first; i < rows.size(); i++) {
      Object[] values = new Object[shown + calls.length];
      SqlError failed = null;
      for (int c = 0; c < shown; c++) values[c] = rows.get(i).row().get(c, row.apply(c).dataType());
      for (int c = 0; c < calls.length; c++) {
        values[shown + c] = results[c][i];
        if (failed == null && results[c][i] instanceof SqlError e) failed = e;
      }
      if (failed == null) out.merge(new Bytes(Rows.bytes(projection.apply(new GenericInternalRow(values)))), weight, Long::sum);
      else count(errors, failed, weight);
    }
  }

  /** Adds to the weight of an error. Errors are equal if SQLSTATE and message are. */
  private static void count(Map<SqlError, Long> errors, SqlError error, long weight) {
    for (var e : errors.entrySet())
      if (e.getKey().sqlstate().equals(error.sqlstate()) && e.getKey().getMessage().equals(error.getMessage())) {
        e.setValue(e.getValue() + weight);
        return;
      }
    errors.put(error, weight);
  }

  private static UnsafeProjection projection(StructType schema) {
    List<Expression> columns = new ArrayList<>();
    for (int i = 0; i < schema.length(); i++) columns.add(new BoundReference(i, schema.apply(i).dataType(), true));
    return UnsafeProjection.create(CollectionConverters.asScala(columns).toSeq());
  }
}
