package tailgate.sources;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads change topics and their transaction topic ahead of the ticks, in a background thread, and
 * determines how far a tick may read ({@link Transactions}).
 */
final class TransactionScan implements AutoCloseable {
  static final long BYTES_MAX = 256L << 20;  // limit of a transaction that is kept whole: a tick holds it in memory
  private static final int WAITING_MAX = 500_000;    // runs of records of all partitions together, about 100 bytes each
  private static final int WAITING_MIN = 1_000;      // minimum per partition
  // wait for the missing part of a transaction: Kafka Connect reports its position this often, so
  // it may be silent for that long
  private static final long WAIT_MS = 60_000;
  // remembered transactions, whose copies are recognised, also after a restart
  private static final int REMEMBERED_MAX = 10_000;
  private static final long POLL_MS = 500;
  private static final long FIRST_MS = 20;  // while a partition is unanswered
  // interval of requests for the ends of partitions, which also detect a broker that is down
  private static final long PROBE_MS = 2_000;
  private static final Duration ANSWER = Duration.ofSeconds(3);
  private static final String METADATA_MS = "10000"; // delay until added partitions are seen
  private static final long WARN_MS = 10_000;        // between two warnings

  private final String topic;
  private final TransactionBlock marks;
  private final Map<String, TransactionBlock> blocks = new HashMap<>();
  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Transactions transactions;
  private final RecordTimes times;
  private final Runnable look;
  private final Set<TopicPartition> partitions = new LinkedHashSet<>();
  private final Unanswered unanswered;
  private volatile Map<TopicPartition, Long> ends = Map.of();
  private final Thread thread = new Thread(this::run, "tailgate-transactions");
  private final String reader;
  private long letIn, warned = monotonic() - WARN_MS;
  private String last;
  private volatile boolean closed;
  private RuntimeException failure;

  /**
   * Starts the scan.
   *
   * @param reader prefix of the channels of its topics
   * @param said {"topic", "marks": format of its messages, "changes": {topic: {"collection",
   * "block": format}}}, see {@link TransactionBlock}
   * @param times those of sources that take them from a column
   * @param at the offset at which to continue each partition
   * @param look called when a tick may have something to read
   */
  TransactionScan(
      String reader, JsonNode said, Map<String, Object> options, RecordTimes times, Map<TopicPartition, Long> at, Runnable look) {
    this.reader = reader;
    this.times = times;
    this.look = look;
    topic = said.get("topic").textValue();
    marks = new TransactionBlock(said.get("marks"));
    Map<String, String> collections = new TreeMap<>();
    for (var e : said.get("changes").properties()) {
      blocks.put(e.getKey(), new TransactionBlock(e.getValue().get("block")));
      collections.put(e.getKey(), e.getValue().get("collection").textValue());
    }
    transactions = new Transactions(collections,
        new Transactions.Limits(Math.max(WAITING_MIN, WAITING_MAX / Math.max(1, at.size())),
        BYTES_MAX, WAIT_MS, REMEMBERED_MAX));
    Map<String, Object> all = new HashMap<>(options);
    all.putAll(Map.of(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed",
        ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
        ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false,
        ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest", ConsumerConfig.METADATA_MAX_AGE_CONFIG, METADATA_MS));
    all.remove(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG);  // this consumer may wait for the broker's default
    consumer = new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    partitions.addAll(at.keySet());
    unanswered = new Unanswered(at);
    at.forEach(transactions::partition);
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * Advances by about `rows` records and returns the resulting offset of each partition. Throws the
   * error that ended the background thread.
   */
  synchronized Map<TopicPartition, Long> enter(long rows) {
    if (failure != null) throw failure;
    Map<TopicPartition, Long> at = transactions.enter(rows);
    for (String warning : transactions.warnings()) {
      letIn++;
      last = warning;
    }
    return at;
  }

  /** Returns the oldest records ({@link RecordAges#oldest}) that have been admitted and that no committed tick has read. */
  synchronized Map<String, RecordAges.Oldest> admitted() { return transactions.admitted(); }

  /** Returns the oldest records that no committed tick has read ({@link RecordAges#unread}). */
  synchronized Map<String, List<RecordAges.Unread>> unread() { return transactions.unread(); }

  /** Returns the topics that may have records although none was read ({@link Unanswered}). */
  Set<String> unanswered() { return unanswered.topics(); }

  /** Returns the ends of the partitions, as the broker has said last. */
  Map<TopicPartition, Long> ends() { return ends; }

  /** Returns the number of records that are read and not admitted. */
  synchronized int waiting() { return transactions.waiting(); }

  /** Records that a tick with all admitted records is durable. */
  synchronized void committed() { transactions.committed(); }

  /**
   * Returns the number of incomplete transactions admitted since the last call, and the last of
   * them. Returns null if there were none or the last warning is recent.
   */
  synchronized String warning() {
    long now = monotonic();
    if (letIn == 0 || now - warned < WARN_MS) return null;
    String message = letIn + (letIn == 1 ? " transaction is" : " transactions are") + " not kept whole, the last: " + last;
    warned = now;
    letIn = 0;
    return message;
  }

  // ---- the thread -------------------------------------------------------------------------------

  private void run() {
    try {
      seek();
      long probed = monotonic() - PROBE_MS;
      while (!closed) {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(unanswered().isEmpty() ? POLL_MS : FIRST_MS));
        boolean news = take(records);
        unanswered.polled(consumer, ANSWER);
        long now = monotonic();
        if (now - probed >= PROBE_MS) {
          probe();
          probed = now;
          synchronized (this) { news |= transactions.waits(); }
        }
        if (news) look.run();
        synchronized (this) {
          Map<Boolean, List<TopicPartition>> full = new HashMap<>();
          for (TopicPartition p : partitions) full.computeIfAbsent(transactions.full(p), f -> new ArrayList<>()).add(p);
          consumer.pause(full.getOrDefault(true, List.of()));
          consumer.resume(full.getOrDefault(false, List.of()));
        }
      }
    } catch (WakeupException | InterruptException e) {
      return;
    } catch (RuntimeException e) {
      synchronized (this) { failure = e; }
      look.run();
    } finally {
      consumer.close(Duration.ZERO);
    }
  }

  /**
   * Seeks to the start offsets. Some earlier messages of the transaction topic are read as well, to
   * learn which transactions have been admitted.
   */
  private void seek() {
    Map<TopicPartition, Long> at;
    synchronized (this) { at = transactions.enter(0); }
    consumer.assign(partitions);
    Map<TopicPartition, Long> first = consumer.beginningOffsets(partitions, ANSWER);
    for (TopicPartition p : partitions)
      consumer.seek(p, !p.topic().equals(topic) ? at.get(p)
          : Math.max(first.get(p), at.get(p) - 2L * REMEMBERED_MAX));
  }

  /** Processes records. Returns whether a tick may have something to read. */
  private boolean take(ConsumerRecords<byte[], byte[]> records) {
    long now = monotonic(), arrival = System.currentTimeMillis();
    for (TopicPartition p : records.partitions()) {
      TransactionBlock block = p.topic().equals(topic) ? marks : blocks.get(p.topic());
      for (ConsumerRecord<byte[], byte[]> r : records.records(p)) {
        try {
          if (block == marks) {
            TransactionBlock.Mark mark = block.mark(r.value());
            synchronized (this) {
              transactions.mark(p, r.offset(), r.timestamp(), now, mark == null ? null : mark.id(),
                  mark == null ? null : mark.counts());
            }
          } else {
            TransactionBlock.Change change = block.change(r.value());
            int bytes = Math.max(r.serializedKeySize(), 0) + Math.max(r.serializedValueSize(), 0);
            Map<String, RecordAges.Oldest> ages = new HashMap<>();
            InternalRow row = KafkaFeed.row(UTF8String.fromString(p.topic()), r);
            times.merge(ages, p.topic(), r.timestamp(), times.of(p.topic(), row, r.timestamp()), arrival);
            synchronized (this) {
              transactions.change(p, r.offset(), bytes, r.timestamp(), now,
                  change == null ? null : change.id(), change == null ? 0 : change.order(), ages);
            }
          }
        } catch (UncheckedIOException e) {  // the registry does not answer
          throw new SourceStalled(reader + "/" + p.topic(), e.getCause().getMessage());
        }
      }
    }
    synchronized (this) {
      for (TopicPartition p : partitions) if (!p.topic().equals(topic)) transactions.read(p, consumer.position(p));
      return transactions.news();
    }
  }

  /** Records which partitions have been read to their ends, and adds new partitions. */
  private void probe() {
    Set<TopicPartition> there = new LinkedHashSet<>();
    for (TopicPartition p : partitions) there.add(p);
    for (String t : blocks.keySet())
      for (PartitionInfo p : consumer.partitionsFor(t, ANSWER))
        there.add(new TopicPartition(t, p.partition()));
    for (PartitionInfo p : consumer.partitionsFor(topic, ANSWER)) there.add(new TopicPartition(topic, p.partition()));
    if (there.size() > partitions.size()) {
      Set<TopicPartition> come = new LinkedHashSet<>(there);
      come.removeAll(partitions);
      Map<TopicPartition, Long> first = consumer.beginningOffsets(come, ANSWER);
      synchronized (this) {
        partitions.addAll(come);
        first.forEach(transactions::partition);
      }
      consumer.assign(partitions);
      first.forEach(consumer::seek);
    }
    ends = consumer.endOffsets(partitions, ANSWER);
    long wall = System.currentTimeMillis(), now = monotonic();
    synchronized (this) { ends.forEach((p, end) -> { if (consumer.position(p, ANSWER) >= end) transactions.caughtUp(p, wall, now); }); }
  }

  /** Returns a time in milliseconds by a clock that is never set. */
  private static long monotonic() { return System.nanoTime() / 1_000_000; }

  @Override public void close() {
    closed = true;
    consumer.wakeup();
  }
}
