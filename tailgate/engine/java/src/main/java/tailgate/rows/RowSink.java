package tailgate.rows;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/** Receives rows with their weights and {@link Change#order}. A row is valid until the call returns. */
@FunctionalInterface
public interface RowSink {
  void add(UnsafeRow row, long weight, long order);
}
