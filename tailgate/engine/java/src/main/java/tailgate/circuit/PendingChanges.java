package tailgate.circuit;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import tailgate.rows.Change;

/** Copies of the changes, in a list per port. */
final class PendingChanges implements Pending {
  private static final int OVERHEAD = 64;  // overhead of a change in bytes, in addition to the row
  private final Operator operator;
  private final List<List<Change>> ports = new ArrayList<>();

  PendingChanges(Operator operator) {
    this.operator = operator;
    for (int i = 0; i < operator.inputs; i++) ports.add(new ArrayList<>());
  }

  @Override public int add(int port, UnsafeRow row, long weight, long order) {
    ports.get(port).add(new Change(row.copy(), weight, order));
    return row.getSizeInBytes() + OVERHEAD;
  }

  @Override public void run(Tick tick) { operator.run(tick, ports); }
}
