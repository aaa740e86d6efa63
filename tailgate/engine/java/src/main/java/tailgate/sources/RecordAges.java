package tailgate.sources;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** A stream that knows the ages of the records that no committed tick has read. */
public interface RecordAges {
  /** The oldest record: its time, and the time when it arrived here; both in milliseconds. */
  record Oldest(long time, long arrival) {}

  /**
   * The oldest of some records that are not read: its time in milliseconds, and the position behind all of them. A position in a topic
   * is the sum of the next offsets of its partitions.
   */
  record Unread(long time, long position) {}

  /**
   * Returns the oldest fetched record of each topic that has one, by Kafka's times, and for each
   * source whose records have their times in a column, under "topic#source". Safe from any thread.
   *
   * @param end the end of a tick, which limits the records
   */
  Map<String, Oldest> oldest(Offset end);

  /**
   * Returns the oldest records that no committed tick has read, by the same names: of those before the end that is fixed for the next
   * tick, and of those after it. Safe from any thread.
   */
  Map<String, List<Unread>> unread();

  /** Returns the topics that may have records although none was fetched ({@link Unanswered}). Safe from any thread. */
  Set<String> unanswered();

  /** Returns the newest known end of each partition, as the broker has said or as it was read. Safe from any thread. */
  Map<TopicPartition, Long> ends();

  /** Returns the number of records that are fetched and that no committed tick has read. Safe from any thread. */
  int waiting();

  /** Adds the oldest of some records, all of which are before an end: the next offset of each partition. */
  static void add(Map<String, List<Unread>> unread, Map<String, Oldest> oldest, Map<TopicPartition, Long> end) {
    if (oldest.isEmpty()) return;
    Map<String, Long> positions = new HashMap<>();
    end.forEach((p, offset) -> positions.merge(p.topic(), offset, Long::sum));
    oldest.forEach((name, record) -> {
      int topic = name.indexOf('#');  // which no name of a topic contains
      long position = positions.get(topic < 0 ? name : name.substring(0, topic));
      unread.computeIfAbsent(name, n -> new ArrayList<>(2)).add(new Unread(record.time(), position));
    });
  }
}
