package tailgate.rows;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/** A row and the change in its number of copies. */
public record Change(UnsafeRow row, long weight) {}
