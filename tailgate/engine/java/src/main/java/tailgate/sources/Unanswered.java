package tailgate.sources;

import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** The partitions of a consumer of which no fetch was answered yet: they may have records although none was fetched. */
final class Unanswered {
  private final Map<TopicPartition, Long> starts = new HashMap<>();  // used by the consumer's thread
  private volatile Set<String> topics;

  /** `starts`: the offset at which the consumer begins to read each partition. */
  Unanswered(Map<TopicPartition, Long> starts) {
    this.starts.putAll(starts);
    topics = names();
  }

  /** Forgets the partitions that have brought a record, or that have none. Call it after each poll, when the records can be seen. */
  void polled(KafkaConsumer<?, ?> consumer) {
    if (topics.isEmpty()) return;
    starts.entrySet().removeIf(p -> consumer.position(p.getKey()) > p.getValue() || consumer.currentLag(p.getKey()).orElse(1) == 0);
    topics = names();
  }

  /** Returns the topics with such a partition. Safe from any thread. */
  Set<String> topics() { return topics; }

  private Set<String> names() { return starts.keySet().stream().map(TopicPartition::topic).collect(Collectors.toUnmodifiableSet()); }
}
