package tailgate.rows;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * A row and the change in its number of copies.
 *
 * @param order what orders the changes of a tick for operators that need it: the time in ms of the
 * record that caused the change, or of the newest record before it in its partition
 */
public record Change(UnsafeRow row, long weight, long order) {
  public Change(UnsafeRow row, long weight) { this(row, weight, 0); }
}
