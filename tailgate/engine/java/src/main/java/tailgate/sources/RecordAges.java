package tailgate.sources;

import java.util.Map;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** A stream that knows the ages of the records that no committed tick has read. */
public interface RecordAges {
  /** The oldest record of a topic: Kafka's time of the record, and the time when it arrived here; both in milliseconds. */
  record Oldest(long time, long arrival) {}

  /** Returns the older of two records; `one` may be null. */
  static Oldest older(Oldest one, Oldest other) { return one == null || other.time() < one.time() ? other : one; }

  /**
   * Returns the oldest fetched record of each topic that has one. Safe from any thread.
   *
   * @param end the end of a tick, which limits the records; null for no limit
   */
  Map<String, Oldest> oldest(Offset end);
}
