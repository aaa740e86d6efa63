package tailgate.functions.time;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import tailgate.errors.SqlError;

/** An interval. Its parts have separate signs and do not carry over into each other. */
public record Interval(int months, int days, long micros) {
  public static Interval of(InternalRow row) { return new Interval(row.getInt(0), row.getInt(1), row.getLong(2)); }

  /** Returns an interval. Throws 22008 if a part is out of range. */
  public static Interval of(long months, long days, long micros) {
    if (months != (int) months || days != (int) days) throw outOfRange();
    return new Interval((int) months, (int) days, micros);
  }

  /** Returns the stored form: a struct of months, days and microseconds. */
  public InternalRow row() { return new GenericInternalRow(new Object[] {months, days, micros}); }

  public static SqlError outOfRange() { return new SqlError("22008", "interval out of range"); }
}
