package tailgate.sources;

import java.io.UncheckedIOException;
import java.util.*;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import tailgate.rows.Steps;
import tailgate.sources.RecordAges.Oldest;

/**
 * The times of records that sources take from a column, in place of Kafka's time. Records are
 * decoded for it when they are fetched. Used by one thread, that of the feed.
 */
final class RecordTimes {
  // After a failed request to a registry, Kafka's time is used for this long: a request may take seconds.
  private static final long RETRY_NANOS = 10_000_000_000L;

  /** The time of the records of one source, and its name behind that of the topic ({@link RecordAges#oldest}). */
  private record Column(String name, Decoder decoder, Steps steps) {
    /** Returns the time in milliseconds, or `otherwise` if the record cannot be decoded, or has none. */
    long of(InternalRow record, long otherwise) {
      long[] time = {otherwise};
      try {
        decoder.decode(record, Decoder.HISTORY, 0, (row, weight) -> {
          UnsafeRow out = steps.apply(row);
          if (out != null && !out.isNullAt(0)) time[0] = out.getLong(0);
        });
      } catch (UncheckedIOException e) {
        throw e;
      } catch (RuntimeException e) {
        return otherwise;  // the tick reports it
      }
      return time[0];
    }
  }

  private final Map<String, List<Column>> columns = new HashMap<>();  // by topic
  private long retry = System.nanoTime();

  /** Adds a source. `shape`: the steps from a decoded record to the time, a bigint in milliseconds. */
  void add(String topic, String source, Decoder decoder, Dataset<Row> shape) {
    columns.computeIfAbsent(topic, t -> new ArrayList<>()).add(new Column(topic + "#" + source, decoder, new Steps(shape)));
  }

  /** Returns the time of a record for each source of its topic that takes it from a column; null if there is none. */
  long[] of(String topic, InternalRow record, long time) {
    List<Column> all = columns.get(topic);
    if (all == null) return null;
    long[] times = new long[all.size()];
    Arrays.fill(times, time);
    try {
      for (int i = 0; i < times.length && System.nanoTime() - retry >= 0; i++) times[i] = all.get(i).of(record, time);
    } catch (UncheckedIOException e) {
      retry = System.nanoTime() + RETRY_NANOS;
    }
    return times;
  }

  /** Adds a record to the oldest ones. `time`: Kafka's, negative if it has none. `times`: those of {@link #of}. */
  void merge(Map<String, Oldest> oldest, String topic, long time, long[] times, long arrival) {
    merge(oldest, topic, time, arrival);
    for (int i = 0; times != null && i < times.length; i++) merge(oldest, columns.get(topic).get(i).name, times[i], arrival);
  }

  private static void merge(Map<String, Oldest> oldest, String name, long time, long arrival) {
    if (time >= 0) oldest.merge(name, new Oldest(time, arrival), (one, other) -> one.time() <= other.time() ? one : other);
  }
}
