package tailgate.sources;

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Wakes the loop when there is new data, so that it need not poll.
 *
 * <p>Any thread may ring; only the loop's thread waits. Rings are hints. A superfluous one costs a
 * look at Kafka's offsets. A lost one only delays a batch until the wait times out. A ring says
 * whether there is new data, or only that it is time to look again.
 *
 * <p>Kafka rings through a long poll: a consumer at the end of the topics has a fetch open, which
 * returns when a record arrives. The consumer seeks to the new end <i>before</i> it rings, and
 * fetches again only after the ring was heard. Any record that the woken batch misses is after that
 * end and rings again. A busy topic costs one fetch and one look at its end per batch. The end is
 * requested over a second connection: a broker answers the requests of a connection in order, and
 * on the first one the next fetch is already pending.
 */
final class Doorbell {
  // how long the broker holds a fetch without records; less than any request timeout
  private static final int FETCH_WAIT_MS = 5000;
  private static final long RETRY_MS = 1000;       // pause after an error of the broker
  private long rings, heard;
  private boolean news;

  synchronized void ring(boolean news) {
    rings++;
    this.news |= news;
    notifyAll();
  }

  /** Waits up to `millis` ms for a ring since the last call. Returns whether there is new data. */
  synchronized boolean await(long millis) throws InterruptedException {
    long end = System.nanoTime() + millis * 1_000_000;
    for (long left = millis; rings == heard && left > 0; left = (end - System.nanoTime() + 999_999) / 1_000_000) wait(left);
    heard = rings;
    boolean had = news;
    news = false;
    notifyAll();
    return had;
  }

  /**
   * Rings when one of the topics has new records, until closed. `options` are settings of Kafka's
   * consumer.
   */
  AutoCloseable watch(String bootstrap, List<String> topics, Map<String, String> options) {
    Watch watch = new Watch(bootstrap, topics, options);
    watch.thread.start();
    return watch;
  }

  private final class Watch implements Runnable, AutoCloseable {
    final Thread thread = new Thread(this, "tailgate-doorbell");
    private final List<String> topics;
    private final KafkaConsumer<byte[], byte[]> fetches, ends;
    private volatile boolean closed;

    Watch(String bootstrap, List<String> topics, Map<String, String> options) {
      this.topics = topics;
      this.fetches = consumer(bootstrap, options);
      this.ends = consumer(bootstrap, options);
      thread.setDaemon(true);
    }

    /**
     * Returns a consumer that reads only committed records. A record of an open transaction must
     * ring when it is committed, not when it is written.
     */
    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, Map<String, String> options) {
      Map<String, Object> all = new HashMap<>(Map.of(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed"));
      all.putAll(options);
      all.putAll(Map.of(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap, ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false, ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false,
          // one batch of records: only its existence matters
          ConsumerConfig.FETCH_MAX_BYTES_CONFIG, 1, ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 1,
          ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, FETCH_WAIT_MS));
      return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Override public void run() {
      try {
        while (!closed) {
          try {
            rounds(partitions());
          } catch (WakeupException e) {
            return;
          } catch (RuntimeException e) {  // no broker or no topic: meanwhile the clock starts batches
            Thread.sleep(RETRY_MS);
          }
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } finally {
        fetches.close(Duration.ZERO);  // otherwise close waits for the open fetch
        ends.close(Duration.ZERO);
      }
    }

    private Set<TopicPartition> partitions() {
      Set<TopicPartition> partitions = new HashSet<>();
      for (String topic : topics) for (PartitionInfo p : ends.partitionsFor(topic)) partitions.add(new TopicPartition(topic, p.partition()));
      return partitions;
    }

    /** Fetches and rings until a topic has new partitions. */
    private void rounds(Set<TopicPartition> partitions) throws InterruptedException {
      fetches.assign(partitions);
      while (!closed) {
        ends.endOffsets(partitions).forEach(fetches::seek);
        ring(true);
        untilHeard();
        while (!closed && fetches.poll(Duration.ofMillis(FETCH_WAIT_MS)).isEmpty()) if (!partitions().equals(partitions)) return;
      }
    }

    private void untilHeard() throws InterruptedException {
      synchronized (Doorbell.this) { while (rings != heard && !closed) Doorbell.this.wait(); }
    }

    @Override public void close() throws InterruptedException {
      closed = true;
      synchronized (Doorbell.this) { Doorbell.this.notifyAll(); }
      fetches.wakeup();
      thread.join(RETRY_MS);
    }
  }
}
