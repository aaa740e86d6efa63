package tailgate.functions.time;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import tailgate.errors.SqlError;

/**
 * Set-returning functions of timestamps, whose result is an array of the rows.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL.
 */
public final class TimeSeries {
  private static final int SERIES_MAX = 10_000_000;  // rows of one call of generate_series()
  private static final int WINDOWS_MAX = 100_000;  // windows that contain one timestamp

  private TimeSeries() {}

  /**
   * Computes generate_series() of timestamps in microseconds; each row is the previous one plus the
   * step.
   */
  public static ArrayData series(long from, long to, int months, int days, long micros) {
    long stepSize = (months * 30L + days) * TimeUnits.DAY + micros;  // only its sign matters
    if (stepSize == 0) throw SqlError.invalidParameter("step size cannot equal zero");
    Interval step = new Interval(months, days, micros);
    List<Object> series = new ArrayList<>();
    for (long at = from; stepSize > 0 ? at <= to : at >= to; at = Timestamps.plus(at, step, 1)) {
      if (series.size() == SERIES_MAX) {
        throw new SqlError("54000", "generate_series gives more than " + SERIES_MAX + " rows");
      }
      series.add(at);
    }
    return new GenericArrayData(series.toArray());
  }

  /**
   * Returns the windows that contain a timestamp, as (window_start, window_end). Windows begin at
   * multiples of {@code interval} since 1970-01-01 and last for {@code size}, in microseconds.
   */
  public static ArrayData windows(long timestamp, long interval, long size) {
    if (interval <= 0 || size <= 0) {
      throw SqlError.invalidParameter("the size and interval of windows must be greater than zero");
    }
    if (Timestamps.isInfinite(timestamp)) throw Timestamps.outOfRange("timestamp out of range");
    if (size / interval > WINDOWS_MAX) {
      throw new SqlError("54000", "more than " + WINDOWS_MAX + " windows contain one timestamp");
    }
    List<Object> windows = new ArrayList<>();
    long first = (Math.floorDiv(timestamp - size, interval) + 1) * interval;
    for (long start = first; start <= timestamp; start += interval) {
      windows.add(new GenericInternalRow(new Object[] {start, start + size}));
    }
    return new GenericArrayData(windows.toArray());
  }
}
