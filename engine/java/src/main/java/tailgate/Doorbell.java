package tailgate;

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * What the trigger waits for, instead of asking every 10 ms.
 *
 * <p>Anyone rings; one thread, the query's, waits. Rings are hints: one too many costs a look at Kafka's offsets, and a lost one is made good when the clock
 * next moves, because the wait has an end. A ring says whether there is news, or only that it is time to look again.
 *
 * <p>Kafka rings by its own long poll: a consumer stands at the end of the topics, and its fetch returns when a record comes. It goes to the new end <i>before</i>
 * it rings and fetches again only after the ring was heard. So whatever the woken batch may miss lies after that end and rings again, and a topic under load
 * costs one fetch and one look at its end per batch. The end is asked for on a second connection: a broker answers one request of a connection at a time, and
 * on the first the next fetch is already waiting.
 */
final class Doorbell {
  private static final int FETCH_WAIT_MS = 5000;   // how long the broker holds a fetch that finds nothing; less than any request timeout
  private static final long RETRY_MS = 1000;       // after an error of the broker
  private long rings, heard;
  private boolean news;

  synchronized void ring(boolean news) {
    rings++;
    this.news |= news;
    notifyAll();
  }

  /** Waits for a ring since the last call, for some milliseconds at most; returns whether it had news. */
  synchronized boolean await(long millis) throws InterruptedException {
    long end = System.nanoTime() + millis * 1_000_000;
    for (long left = millis; rings == heard && left > 0; left = (end - System.nanoTime() + 999_999) / 1_000_000) wait(left);
    heard = rings;
    boolean had = news;
    news = false;
    notifyAll();
    return had;
  }

  /** Rings when one of the topics has new records, until closed. `options` are Kafka's own of a consumer. */
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

    /** Committed records only: a record of an open transaction would ring when nobody may read it, and not when everybody may. */
    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, Map<String, String> options) {
      Map<String, Object> all = new HashMap<>(Map.of(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed"));
      all.putAll(options);
      all.putAll(Map.of(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap, ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false, ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false,
          ConsumerConfig.FETCH_MAX_BYTES_CONFIG, 1, ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 1,  // one batch of records: only that there is one matters
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
          } catch (RuntimeException e) {  // no broker, no topic: the clock starts batches meanwhile
            Thread.sleep(RETRY_MS);
          }
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } finally {
        fetches.close(Duration.ZERO);  // else it waits for the fetch that the broker holds
        ends.close(Duration.ZERO);
      }
    }

    private Set<TopicPartition> partitions() {
      Set<TopicPartition> partitions = new HashSet<>();
      for (String topic : topics) for (PartitionInfo p : ends.partitionsFor(topic)) partitions.add(new TopicPartition(topic, p.partition()));
      return partitions;
    }

    /** Returns when a topic has got partitions. */
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
