package tailgate.sources;

import static org.junit.jupiter.api.Assertions.*;

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

class UnansweredTest {
  private static final TopicPartition EVENTS = new TopicPartition("events", 0), ORDERS = new TopicPartition("orders", 0);
  private static final Map<TopicPartition, Long> STARTS = Map.of(EVENTS, 5L, ORDERS, 7L);

  /** A consumer of both topics, whose ends are the positions until a test sets them. */
  private static final class Client extends MockConsumer<byte[], byte[]> {
    double lost;

    Client() {
      super(OffsetResetStrategy.NONE);
      assign(STARTS.keySet());
      STARTS.forEach(this::seek);
      updateEndOffsets(STARTS);
    }

    @Override public Map<MetricName, ? extends Metric> metrics() {
      MetricName name = new MetricName("connection-close-total", "consumer-metrics", "", Map.of());
      return Map.of(name, new Metric() {
        @Override public MetricName metricName() { return name; }
        @Override public Object metricValue() { return lost; }
      });
    }
  }

  private final Client client = new Client();
  private final Unanswered unanswered = new Unanswered(STARTS);

  private Set<String> polled() {
    unanswered.polled(client, Duration.ZERO);
    return unanswered.topics();
  }

  @Test void aPartitionIsAnsweredByARecordOrWithoutOne() {
    assertEquals(Set.of("events", "orders"), unanswered.topics());
    client.updateEndOffsets(Map.of(ORDERS, 8L));
    assertEquals(Set.of("orders"), polled());
    client.updateEndOffsets(Map.of(ORDERS, 7L));
    assertEquals(Set.of("orders"), polled(), "the broker is asked once");
    client.seek(ORDERS, 8);
    assertEquals(Set.of(), polled());
  }

  @Test void aLostConnectionMakesAllPartitionsUnanswered() {
    assertEquals(Set.of(), polled());
    client.updateEndOffsets(Map.of(EVENTS, 6L));
    assertEquals(Set.of(), polled(), "the fetch that waits brings the record");
    client.lost++;
    assertEquals(Set.of("events"), polled());
    client.seek(EVENTS, 6);
    assertEquals(Set.of(), polled());
  }
}
