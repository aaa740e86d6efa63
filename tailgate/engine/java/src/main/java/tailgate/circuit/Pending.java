package tailgate.circuit;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import tailgate.rows.Change;

/** The changes of one tick that wait for an operator: in lists ({@link PendingChanges}), or already summed. */
public interface Pending {
  /** Adds a {@link Change}. The caller may reuse the row. Returns the bytes of memory that the change takes. */
  int add(int port, UnsafeRow row, long weight, long order);

  /** Processes the changes. Emits results with {@link Tick#emit} and {@link Tick#fail}. */
  void run(Tick tick);
}
