package tailgate.sources;

import java.time.Duration;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;

/**
 * The partitions of a consumer that may have records although none was fetched: no fetch was answered since the consumer began, or
 * since it lost a connection. A client whose connection is restored earlier may have written records meanwhile.
 */
final class Unanswered {
  private static final String CLOSED = "connection-close-total";  // of Kafka's metrics of the consumer; a failed attempt counts, too
  // the following are used by the consumer's thread
  private final Map<TopicPartition, Long> starts = new HashMap<>();
  private Map<TopicPartition, Long> ends;  // of the partitions in `starts`; null before the broker was asked
  private Metric closed;
  private double lost;  // the number of connections that are known to be lost
  private volatile Set<String> topics;

  /** `starts`: the offset at which the consumer begins to read each partition. */
  Unanswered(Map<TopicPartition, Long> starts) {
    this.starts.putAll(starts);
    topics = names();
  }

  /**
   * Forgets the partitions that have brought a record, or that had none when the broker was asked, and adds all after the loss of a
   * connection. Call it after each poll, when the records can be seen. `answer`: limit of the wait for the broker.
   */
  void polled(Consumer<?, ?> consumer, Duration answer) {
    double count = connectionsLost(consumer);
    if (count > lost) {
      lost = count;
      consumer.assignment().forEach(p -> starts.put(p, consumer.position(p)));
      ends = null;
      topics = names();
    }
    if (topics.isEmpty()) return;
    if (ends == null) ends = consumer.endOffsets(starts.keySet(), answer);
    starts.entrySet().removeIf(p -> consumer.position(p.getKey()) > p.getValue() || ends.get(p.getKey()) <= p.getValue());
    topics = names();
  }

  private double connectionsLost(Consumer<?, ?> consumer) {
    if (closed == null)
      closed = consumer.metrics().values().stream().filter(m -> m.metricName().name().equals(CLOSED)).findFirst().orElseThrow();
    return (double) closed.metricValue();
  }

  /** Returns the topics with such a partition. Safe from any thread. */
  Set<String> topics() { return topics; }

  private Set<String> names() { return starts.keySet().stream().map(TopicPartition::topic).collect(Collectors.toUnmodifiableSet()); }
}
