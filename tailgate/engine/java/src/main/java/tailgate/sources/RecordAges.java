package tailgate.sources;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** A stream that knows the ages of the records that no committed tick has read. */
public interface RecordAges {
  /** The oldest record: its time, and the time when it arrived here; both in milliseconds. */
  record Oldest(long time, long arrival) {}

  /**
   * Returns the oldest fetched record of each topic that has one, by Kafka's times, and for each
   * source whose records have their times in a column, under "topic#source". Safe from any thread.
   *
   * @param end the end of a tick, which limits the records; null for no limit
   */
  Map<String, Oldest> oldest(Offset end);

  /** Returns the topics that may have records although none was fetched ({@link Unanswered}). Safe from any thread. */
  Set<String> unanswered();

  /** Returns whether the next tick reads all fetched records. Safe from any thread. */
  boolean fitsTick();

  /** Returns the number of records that are fetched and that no committed tick has read. Safe from any thread. */
  int waiting();
}
