package tailgate.sources;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A stream of Kafka records that are fetched while ticks run. A thread polls the consumer; a tick
 * reads the fetched records, and its ends are the positions directly after that.
 *
 * <pre>   broker ──poll──► queue, bounded ──► latestOffset(): as much as a tick may have
 *                       └─ring─► the loop        commit(): the records of the committed tick go</pre>
 *
 * <p>A tick reads one record of certain topics while few of them wait ({@link SingleRecords}).
 *
 * <p>Records stay in the queue until the tick that read them is committed, so a tick can be
 * repeated. Only committed records are read; aborted ones and the markers of transactions advance
 * the positions. Tasks of this process read the queue; those of other processes receive the records
 * with their description ({@link FetchedRows}).
 */
public final class KafkaFeed implements MicroBatchStream, SupportsAdmissionControl, RecordAges {
  private static final ObjectMapper JSON = new ObjectMapper();
  // limits of a tick: 0.5 s of work, so that a source that catches up delays others little
  static final int TICK_RECORDS_MAX = Integer.getInteger("tailgate.tick.rows", 50_000);  // engine.runtime.spark.jvm
  private static final long TICK_BYTES_MAX = 32L << 20;
  // limits of the queue, after which nothing is polled: two ticks, so that the next one need not wait
  private static final int QUEUE_RECORDS_MAX = 2 * TICK_RECORDS_MAX;
  private static final long QUEUE_BYTES_MAX = 2 * TICK_BYTES_MAX;
  // limit of all queues of this process; a feed with an empty queue may always poll once
  private static final long QUEUES_BYTES_MAX = 128L << 20;
  private static final AtomicLong QUEUES_BYTES = new AtomicLong();
  private static final long ROOM_MS = 50;  // longest wait for room, which other feeds do not announce
  // A poll takes all records that the consumer has, unless a fetch brings more. If it leaves some, the next request asks for
  // the other partitions only; the broker waits up to 500 ms for a record of these, and no other request is sent meanwhile.
  private static final int POLL_RECORDS_MAX = TICK_RECORDS_MAX;
  private static final int FETCH_BYTES_MAX = 16 << 20;  // limit of the consumer besides the queue, compressed
  private static final int RECORD_BYTES = 250;  // overhead of a record in memory
  private static final Duration POLL = Duration.ofMillis(500);
  private static final Duration FIRST = Duration.ofMillis(20);  // while a partition is unanswered
  private static final Duration NEWEST = Duration.ofMillis(2);  // of the second of two polls
  // At an ordinary rate records are polled just before the next tick, so that it has the newest ones and a poll returns several.
  // Two polls are needed then: the consumer has sent a request before the pause, whose answer has older records only.
  private static final long LEAD_NANOS = 4_000_000;  // before the tick
  private static final long PAUSE_MIN_NANOS = LEAD_NANOS + 2_000_000;  // until the tick has begun, which sets the time of the next
  private static final long PAUSE_MAX_NANOS = 25_000_000;
  private static final int PAUSE_RECORDS_MAX = 1_000;  // after a poll with more records the next one follows at once
  // interval of requests that detect a broker that is down, a deleted topic, and new partitions
  private static final long PROBE_MS = 2_000;
  private static final Duration ANSWER = Duration.ofSeconds(3);
  // between two attempts to connect to a broker that was down, whose new records no freshness lag counts meanwhile
  private static final String RECONNECT_MS = "100";
  private static final String METADATA_MS = "10000";  // delay until added partitions are seen
  private static final Map<Long, List<InternalRow>> PLANNED = new ConcurrentHashMap<>();
  private static final AtomicLong NUMBERS = new AtomicLong();

  /**
   * A record, or null for offsets without a record; the next offset of its partition; Kafka's time,
   * the times in columns ({@link RecordTimes}), and the arrival.
   */
  private record Fetched(TopicPartition partition, InternalRow row, long bytes, long next, long time, long[] times, long arrival) {}

  /** The only record of a tick: its time, whether it is that of a table, and when it arrived; times in milliseconds. */
  public record Single(long time, boolean isTable, long arrival) {}

  /** The next offset of each partition, how many entries of the queue come before, and the single record, or null. */
  private static final class At extends Offset {
    final SortedMap<TopicPartition, Long> next = new TreeMap<>(ORDER);
    final int entries;
    final Single single;

    At(Map<TopicPartition, Long> next, int entries, Single single) {
      this.next.putAll(next);
      this.entries = entries;
      this.single = single;
    }

    @Override public String json() {
      ObjectNode all = JSON.createObjectNode();
      next.forEach((p, offset) -> all.withObjectProperty(p.topic()).put(Integer.toString(p.partition()), offset));
      return all.toString();
    }

    @Override public boolean equals(Object other) { return other instanceof At at && at.next.equals(next); }
    @Override public int hashCode() { return next.hashCode(); }
  }

  private static final Comparator<TopicPartition> ORDER =
      Comparator.comparing(TopicPartition::topic).thenComparingInt(TopicPartition::partition);

  private final String inbox;
  private final boolean local;
  private final Map<String, Object> settings;
  private final Set<String> topics;
  private final RecordTimes times;
  private final Thread thread = new Thread(this::run, "tailgate-feed");
  private final Map<TopicPartition, Long> fetched = new HashMap<>();  // positions after the last poll; used by the thread
  private volatile Unanswered unanswered = new Unanswered(Map.of());
  private volatile Map<TopicPartition, Long> ends = Map.of();  // at the last probe
  // the following are guarded by this object
  private final ArrayDeque<Fetched> queue = new ArrayDeque<>();
  private final SingleRecords singles = new SingleRecords();
  private final List<Long> planned = new ArrayList<>();  // the numbers of the parts of the tick that is not committed
  private Map<TopicPartition, Long> committed;  // positions before the queue
  private final Map<TopicPartition, Long> queued = new HashMap<>();  // positions after the queue
  private At next = new At(Map.of(), 0, null);  // the end that is fixed for the next tick
  private KafkaConsumer<byte[], byte[]> consumer;
  private long queuedBytes;
  private RuntimeException failure;
  private boolean crowded;  // whether so many records waited for the last tick that they are fetched just before each tick
  private boolean closed;

  /**
   * Describes a feed. It starts when the loop gives the position.
   *
   * @param settings those of the consumer
   * @param times those of sources that take them from a column
   * @param inbox the folder whose doorbell starts ticks
   * @param local whether all tasks run in this process
   */
  KafkaFeed(Collection<String> topics, Map<String, Object> settings, RecordTimes times, String inbox, boolean local) {
    this.topics = Set.copyOf(topics);
    this.times = times;
    this.local = local;
    this.inbox = inbox;
    this.settings = new HashMap<>(settings);
    this.settings.putAll(Map.of(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false, ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false,
        ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none", ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed",
        ConsumerConfig.MAX_POLL_RECORDS_CONFIG, POLL_RECORDS_MAX, ConsumerConfig.FETCH_MAX_BYTES_CONFIG, FETCH_BYTES_MAX,
        ConsumerConfig.METADATA_MAX_AGE_CONFIG, METADATA_MS, ConsumerConfig.RECONNECT_BACKOFF_MAX_MS_CONFIG, RECONNECT_MS));
    this.settings.remove(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG);  // no tick waits for a fetch
    thread.setDaemon(true);
  }

  @Override public synchronized int waiting() { return queue.size(); }

  /** Sets the topics of streams and of tables of which a tick reads one record while few wait. */
  public synchronized void single(Set<String> streams, Set<String> tables) { singles.set(streams, tables); }

  /** Returns whether the next tick reads a single record, for which it need not wait. */
  public synchronized boolean hasSingle() { return singles.allow(countSingles()); }

  /** Returns whether there are topics of which a tick reads one record while few wait. */
  public synchronized boolean hasSingleTopics() { return !singles.none(); }

  /** Returns the single record to which a tick with this end is limited, or null. */
  public static Single single(Offset end) { return end instanceof At at ? at.single : null; }

  /** Counts a tick of a single record of another reader, with which this one shares the limit of such ticks. */
  public synchronized void ticked() { singles.ticked(1); }

  /** Returns how many records wait that may each have a tick; {@link SingleRecords#most} if all records share one. */
  private int countSingles() {
    if (singles.none()) return 0;
    int count = 0;
    long now = System.currentTimeMillis();
    for (Fetched f : queue) {
      if (f.row == null) continue;
      if (!singles.waits(f.partition.topic(), now - f.arrival)) return SingleRecords.most();
      if (singles.has(f.partition.topic()) && ++count == SingleRecords.most()) break;
    }
    return count;
  }

  @Override public Set<String> unanswered() { return unanswered.topics(); }

  /** Returns the size of the queues of all feeds. */
  public static long queuedBytes() { return QUEUES_BYTES.get(); }

  // ---- the thread -------------------------------------------------------------------------------

  private void run() {
    KafkaConsumer<byte[], byte[]> opened = null;
    try {
      opened = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
      synchronized (this) { consumer = opened; }
      opened.assign(fetched.keySet());
      fetched.forEach(opened::seek);
      poll(opened);
    } catch (WakeupException | InterruptedException | InterruptException e) {
      fail(new IllegalStateException("the feed is closed", e));
    } catch (RuntimeException e) {
      fail(e);
    } catch (Throwable e) {  // a feed that ended without a failure would stop its sources silently
      fail(new IllegalStateException(e));
    } finally {
      if (opened != null) opened.close(Duration.ZERO);  // otherwise it waits for the open fetch
    }
  }

  private void poll(KafkaConsumer<byte[], byte[]> consumer) throws InterruptedException {
    long probed = System.nanoTime();
    boolean paused = false;
    while (!isClosed()) {
      ConsumerRecords<byte[], byte[]> records = consumer.poll(unanswered().isEmpty() ? POLL : FIRST);
      int count = records.count();
      List<Fetched> news = news(consumer, records);
      if (paused && count > 0) {
        records = consumer.poll(NEWEST);
        count += records.count();
        news.addAll(news(consumer, records));
      }
      if (!news.isEmpty()) {
        add(news);
        InboxSource.look(inbox);
      }
      unanswered.polled(consumer, ANSWER);
      if (System.nanoTime() - probed > PROBE_MS * 1_000_000) {
        probe(consumer);
        probed = System.nanoTime();
      }
      paused = count > 0 && count < PAUSE_RECORDS_MAX && !fetchesAtOnce();
      if (paused) pause();
    }
  }

  private synchronized boolean fetchesAtOnce() { return !crowded && singles.fetchesAtOnce(); }

  private void pause() throws InterruptedException {
    TimeUnit.NANOSECONDS.sleep(PAUSE_MIN_NANOS);
    long left = InboxSource.nextTick(inbox) - LEAD_NANOS - System.nanoTime();
    TimeUnit.NANOSECONDS.sleep(Math.min(left, PAUSE_MAX_NANOS));
  }

  private void fail(RuntimeException e) {
    synchronized (this) { failure = e; }
    InboxSource.look(inbox);
  }

  private synchronized boolean isClosed() { return closed; }

  /** Returns the records of a poll, and the positions that have advanced without a record. */
  private List<Fetched> news(KafkaConsumer<byte[], byte[]> consumer, ConsumerRecords<byte[], byte[]> records) {
    List<Fetched> news = new ArrayList<>(records.count());
    long now = System.currentTimeMillis();
    for (TopicPartition p : records.partitions()) {
      UTF8String topic = UTF8String.fromString(p.topic());
      for (ConsumerRecord<byte[], byte[]> r : records.records(p)) {
        InternalRow row = row(topic, r);
        news.add(new Fetched(p, row, bytes(r), r.offset() + 1, r.timestamp(), times.of(p.topic(), row, r.timestamp()), now));
        fetched.put(p, r.offset() + 1);
      }
    }
    for (TopicPartition p : consumer.assignment()) {
      long position = consumer.position(p);
      if (position > fetched.put(p, position)) news.add(new Fetched(p, null, RECORD_BYTES, position, -1, null, now));
    }
    return news;
  }

  /** Adds to the queue when it has room. */
  private synchronized void add(List<Fetched> news) throws InterruptedException {
    while (!closed && isFull()) wait(ROOM_MS);
    if (closed) return;
    queue.addAll(singles.none() ? news : merged(news));
    queued.putAll(fetched);
    hold(news.stream().mapToLong(Fetched::bytes).sum());
  }

  /** Merges the records of partitions by their times, as a tick does; those of a partition keep their order. */
  private List<Fetched> merged(List<Fetched> news) {
    Map<TopicPartition, Long> latest = new HashMap<>();
    Map<Fetched, Long> times = new IdentityHashMap<>();
    for (Fetched f : news) times.put(f, latest.merge(f.partition, f.time, Math::max));
    List<Fetched> merged = new ArrayList<>(news);
    merged.sort(Comparator.<Fetched>comparingLong(times::get).thenComparing(f -> !singles.isTable(f.partition.topic())));
    return merged;
  }

  private boolean isFull() {
    if (queue.isEmpty()) return false;
    return queue.size() >= QUEUE_RECORDS_MAX || queuedBytes >= QUEUE_BYTES_MAX || QUEUES_BYTES.get() >= QUEUES_BYTES_MAX;
  }

  private void hold(long bytes) {
    queuedBytes += bytes;
    QUEUES_BYTES.addAndGet(bytes);
  }

  /** Returns a record in Kafka's columns ({@link KafkaRecord}). */
  static InternalRow row(UTF8String topic, ConsumerRecord<byte[], byte[]> r) {
    List<Object> headers = new ArrayList<>();
    for (Header h : r.headers()) headers.add(new GenericInternalRow(new Object[] {UTF8String.fromString(h.key()), h.value()}));
    return new GenericInternalRow(new Object[] {r.key(), r.value(), topic, r.partition(), r.offset(), r.timestamp() * 1000,
        r.timestampType().id,
        headers.isEmpty() ? null : new GenericArrayData(headers.toArray())});
  }

  private static long bytes(ConsumerRecord<byte[], byte[]> r) {
    long bytes = RECORD_BYTES + Math.max(0, r.serializedKeySize()) + Math.max(0, r.serializedValueSize());
    for (Header h : r.headers()) bytes += RECORD_BYTES + h.key().length() + (h.value() == null ? 0 : h.value().length);
    return bytes;
  }

  /** Asks the broker for the topics. New partitions are read from their first record. */
  private void probe(KafkaConsumer<byte[], byte[]> consumer) {
    Set<TopicPartition> all = new HashSet<>(consumer.assignment()), added = new HashSet<>();
    ends = consumer.endOffsets(all, ANSWER);
    for (String topic : topics)
      for (PartitionInfo p : consumer.partitionsFor(topic, ANSWER)) {
        TopicPartition partition = new TopicPartition(topic, p.partition());
        if (all.add(partition)) added.add(partition);
      }
    if (added.isEmpty()) return;
    Map<TopicPartition, Long> first = consumer.beginningOffsets(added, ANSWER);
    consumer.assign(all);
    first.forEach(consumer::seek);
    fetched.putAll(first);
    synchronized (this) {
      committed.putAll(first);
      queued.putAll(first);
    }
  }

  // ---- the stream, used by the loop's thread ----------------------------------------------------

  /** Returns a position, and starts to fetch from the first one. */
  @Override public synchronized Offset deserializeOffset(String json) {
    Map<TopicPartition, Long> at = new HashMap<>();
    try {
      for (var t : JSON.readTree(json).properties())
        for (var p : t.getValue().properties())
          at.put(new TopicPartition(t.getKey(), Integer.parseInt(p.getKey())), p.getValue().longValue());
    } catch (IOException e) {
      throw new IllegalArgumentException(json, e);
    }
    if (committed == null) {
      committed = at;
      queued.putAll(at);
      fetched.putAll(at);
      unanswered = new Unanswered(at);
      thread.start();
    }
    return new At(at, 0, null);
  }

  @Override public ReadLimit getDefaultReadLimit() { return ReadLimit.maxRows(TICK_RECORDS_MAX); }

  /** Returns the position after the fetched records, up to the limits. Throws the exception that ended the thread. */
  @Override public synchronized Offset latestOffset(Offset start, ReadLimit limit) {
    if (failure != null) throw failure;
    long records = limit instanceof ReadMaxRows rows ? Math.min(TICK_RECORDS_MAX, rows.maxRows()) : TICK_RECORDS_MAX, bytes = 0;
    Map<TopicPartition, Long> ends = new HashMap<>(committed);
    boolean few = hasSingle();
    crowded = queue.size() >= SingleRecords.most();
    Single single = null;
    int entries = 0;
    for (Fetched f : queue) {
      bytes += f.bytes;
      if (f.row != null && (single != null || --records < 0) || bytes > TICK_BYTES_MAX && entries > 0) break;
      ends.put(f.partition, f.next);
      entries++;
      if (few && f.row != null && singles.has(f.partition.topic()))
        single = new Single(f.times == null ? f.time : f.times[0], singles.isTable(f.partition.topic()), f.arrival);
    }
    return next = new At(ends, entries, single);
  }

  /** Returns the oldest records of the queue, up to the end of a tick. Records without a time are left out. */
  @Override public synchronized Map<String, Oldest> oldest(Offset end) { return oldest(0, ((At) end).entries); }

  @Override public synchronized Map<String, List<Unread>> unread() {
    Map<String, List<Unread>> unread = new HashMap<>();
    RecordAges.add(unread, oldest(0, next.entries), next.next);
    RecordAges.add(unread, oldest(next.entries, queue.size()), queued);
    return unread;
  }

  @Override public synchronized Map<TopicPartition, Long> ends() {
    Map<TopicPartition, Long> newest = new HashMap<>(ends);
    queued.forEach((p, position) -> newest.merge(p, position, Math::max));
    return newest;
  }

  /** Returns the oldest records of these entries of the queue. */
  private Map<String, Oldest> oldest(int from, int to) {
    Map<String, Oldest> oldest = new HashMap<>();
    int i = 0;
    for (Fetched f : queue) {
      if (i == to) break;
      if (i++ >= from && f.row != null) times.merge(oldest, f.partition.topic(), f.time, f.times, f.arrival);
    }
    return oldest;
  }

  /** Plans a part for each of Kafka's partitions, in which records keep their order. */
  @Override public synchronized InputPartition[] planInputPartitions(Offset start, Offset end) {
    forget();
    Map<TopicPartition, List<InternalRow>> rows = new TreeMap<>(ORDER);
    int left = ((At) end).entries;
    for (Fetched f : queue) {
      if (left-- == 0) break;
      if (f.row != null) rows.computeIfAbsent(f.partition, p -> new ArrayList<>()).add(f.row);
    }
    List<InputPartition> parts = new ArrayList<>();
    for (List<InternalRow> part : rows.values()) {
      if (!local) {
        parts.add(new FetchedRows(part));
        continue;
      }
      long number = NUMBERS.incrementAndGet();
      PLANNED.put(number, part);
      planned.add(number);
      parts.add(new Part(number));
    }
    return parts.toArray(InputPartition[]::new);
  }

  @Override public PartitionReaderFactory createReaderFactory() { return new Opens(); }

  /** Removes the records of a tick whose log entry is durable. */
  @Override public synchronized void commit(Offset end) {
    forget();
    int records = 0;
    for (int left = ((At) end).entries; left > 0 && !queue.isEmpty(); left--) {
      Fetched f = queue.poll();
      if (f.row != null && singles.has(f.partition.topic())) records++;
      hold(-f.bytes);
    }
    committed.putAll(((At) end).next);
    singles.ticked(records);
    next = new At(committed, 0, null);
    notifyAll();
  }

  @Override public synchronized void stop() {
    closed = true;
    if (consumer != null) consumer.wakeup();
    forget();
    queue.clear();
    hold(-queuedBytes);
    notifyAll();
  }

  private void forget() {
    planned.forEach(PLANNED::remove);
    planned.clear();
  }

  @Override public Offset latestOffset() { throw new UnsupportedOperationException("without a limit"); }
  @Override public Offset initialOffset() { throw new UnsupportedOperationException("the log has the positions"); }

  // ---- the rows, in a task ----------------------------------------------------------------------

  /** Rows in the memory of this process. */
  private record Part(long number) implements InputPartition {}

  private static final class Opens implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;
    @Override public PartitionReader<InternalRow> createReader(InputPartition partition) {
      if (partition instanceof FetchedRows fetched) return fetched.reader();
      return new FetchedRows.Rows(PLANNED.get(((Part) partition).number).iterator());
    }
  }
}
