package tailgate;

import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** Set-returning functions, as arrays of the rows that they give. Called by generated code ({@link Functions}). NULL in, NULL out. */
public final class Sets {
  private static final int SERIES_MAX = 10_000_000, WINDOWS_MAX = 100_000;

  private Sets() {}

  /** jsonb_array_elements: canonical texts. */
  public static ArrayData elements(UTF8String json) { return new GenericArrayData(elements(json.getBytes(), false)); }

  /** jsonb_array_elements_text: strings without quotes, NULL for null. */
  public static ArrayData elementsText(UTF8String json) { return new GenericArrayData(elements(json.getBytes(), true)); }

  /** jsonb_object_keys. */
  public static ArrayData keys(UTF8String json) {
    List<Object> keys = new ArrayList<>();
    byte[] b = object(json, "jsonb_object_keys", true);
    for (int[] pair : pairs(b)) keys.add(JsonbText.text(b, pair[0]));
    return new GenericArrayData(keys.toArray());
  }

  /** jsonb_each: (key, value). */
  public static ArrayData each(UTF8String json) { return each(object(json, "jsonb_each", false), false); }

  /** jsonb_each_text: (key, value without quotes, NULL for null). */
  public static ArrayData eachText(UTF8String json) { return each(object(json, "jsonb_each_text", false), true); }

  /** generate_series of microseconds since the epoch: the step is added again and again, so months end where the last one did. */
  public static ArrayData times(long from, long to, int months, int days, long micros) {
    long forward = (months * 30L + days) * 86_400_000_000L + micros;
    if (forward == 0) throw new SqlError("22023", "step size cannot equal zero");
    List<Object> times = new ArrayList<>();
    for (long at = from; forward > 0 ? at <= to : at >= to; at = later(at, months, days, micros)) {
      if (times.size() == SERIES_MAX) throw new SqlError("54000", "generate_series gives more than " + SERIES_MAX + " rows");
      times.add(at);
    }
    return new GenericArrayData(times.toArray());
  }

  /** The windows of a size that hold a time, one every so often, as (window_start, window_end); both in microseconds, aligned to 1970-01-01. */
  public static ArrayData windows(long at, long every, long size) {
    if (every <= 0 || size <= 0) throw new SqlError("22023", "windows must have a size and a distance greater than zero");
    if (size / every > WINDOWS_MAX) throw new SqlError("54000", "a time lies in more than " + WINDOWS_MAX + " windows");
    List<Object> windows = new ArrayList<>();
    for (long start = (Math.floorDiv(at - size, every) + 1) * every; start <= at; start += every) windows.add(new GenericInternalRow(new Object[] {start, start + size}));
    return new GenericArrayData(windows.toArray());
  }

  private static long later(long at, int months, int days, long micros) {
    if (months == 0) return Math.addExact(at, days * 86_400_000_000L + micros);
    LocalDateTime day = LocalDateTime.ofEpochSecond(Math.floorDiv(at, 1_000_000L), (int) Math.floorMod(at, 1_000_000L) * 1000, ZoneOffset.UTC).plusMonths(months).plusDays(days);
    return ChronoUnit.MICROS.between(LocalDateTime.ofEpochSecond(0, 0, ZoneOffset.UTC), day) + micros;
  }

  private static Object[] elements(byte[] b, boolean text) {
    if (b[0] != '[') throw new SqlError("22023", "cannot extract elements from " + (b[0] == '{' ? "an object" : "a scalar"));
    List<Object> found = new ArrayList<>();
    for (int i = 1; b[i] != ']'; i = JsonbText.next(b, i)) found.add(text ? JsonbText.text(b, i) : JsonbText.slice(b, i));
    return found.toArray();
  }

  private static ArrayData each(byte[] b, boolean text) {
    List<Object> found = new ArrayList<>();
    for (int[] pair : pairs(b)) found.add(new GenericInternalRow(new Object[] {JsonbText.text(b, pair[0]), text ? JsonbText.text(b, pair[1]) : JsonbText.slice(b, pair[1])}));
    return new GenericArrayData(found.toArray());
  }

  private static byte[] object(UTF8String json, String function, boolean keys) {
    byte[] b = json.getBytes();
    if (b[0] == '{') return b;
    if (!keys) throw new SqlError("22023", "cannot call " + function + " on a non-object");
    throw new SqlError("22023", "cannot call " + function + " on " + (b[0] == '[' ? "an array" : "a scalar"));
  }

  /** Where each key and its value begin. */
  private static List<int[]> pairs(byte[] b) {
    List<int[]> pairs = new ArrayList<>();
    for (int i = 1; b[i] != '}';) {
      int value = JsonbText.end(b, i) + 2;  // ": "
      pairs.add(new int[] {i, value});
      i = JsonbText.next(b, value);
    }
    return pairs;
  }
}
