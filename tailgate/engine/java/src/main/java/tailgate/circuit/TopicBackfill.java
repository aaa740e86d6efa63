package tailgate.circuit;

import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.apache.commons.lang3.SerializationUtils;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.circuit.Node.Source;
import tailgate.rows.RowBuffer;
import tailgate.sources.Decoder;
import tailgate.sources.FetchedRows;
import tailgate.sources.InboxSource;
import tailgate.sources.KafkaRecord;

/**
 * The old records of a topic for a fill. They are fetched and decoded outside of ticks, which
 * leaves only the work of the operators to the ticks.
 *
 * <pre>   broker ──► decode ──► piece n in memory ──┐
 *   driver: next() ─► n ─► inbox: `$piece/channel`, n ─► tick reads the rows of piece n</pre>
 *
 * <p>One thread prepares at most two pieces ahead. A piece is kept until the next one is requested,
 * because a failed tick is repeated. After a crash of the process the fill restarts on another
 * channel, so records that refer to old pieces have no receiver. A record that cannot be decoded is
 * kept in its piece as it is, and the tick applies the source's error policy. If tasks run in other
 * processes, they receive all records of a piece as they are, and decode them.
 */
public final class TopicBackfill implements AutoCloseable {
  /**
   * Prefix of the channel of a record that refers to a piece; the channel of the piece's records
   * follows. The offset of the record is the number of the piece.
   */
  public static final String PIECE = "$piece/";

  private static final int BYTES_MAX = 16 << 20;                      // limit of the keys and values in one piece
  private static final int POLL_RECORDS_MAX = 5_000;
  // without records for this time, the broker is considered lost
  private static final Duration SILENCE = Duration.ofSeconds(10);
  private static final Duration POLL = Duration.ofMillis(500);
  private static final Map<Long, Piece> PIECES = new ConcurrentHashMap<>();
  private static final AtomicLong NUMBERS = new AtomicLong();

  /** The rows of a source node in a piece, and the record that each comes from. */
  private static final class Rows {
    private static final int FIRST = 1024;
    private final RowBuffer rows = new RowBuffer();
    private int[] partitions = new int[FIRST];
    private long[] offsets = new long[FIRST];
    private int placed;  // number of rows with a record

    /** Assigns a record to the rows that were added last. */
    void place(int partition, long offset) {
      if (rows.size() > partitions.length) {
        partitions = Arrays.copyOf(partitions, 2 * rows.size());
        offsets = Arrays.copyOf(offsets, 2 * rows.size());
      }
      for (; placed < rows.size(); placed++) {
        partitions[placed] = partition;
        offsets[placed] = offset;
      }
    }

    /** Removes the rows without a record. */
    void unplaced() { rows.truncate(placed); }

    void exclude(int partition, Set<Long> excluded) {
      placed = 0;
      rows.retain(i -> {
        if (partitions[i] == partition && excluded.contains(offsets[i])) return false;
        partitions[placed] = partitions[i];
        offsets[placed++] = offsets[i];
        return true;
      });
    }
  }

  /**
   * Some records. `rows`: the decoded ones by source node; `raw`: records, in Kafka's columns, that
   * the tick decodes; `at`: the next offset of each partition.
   */
  public static final class Piece {
    private final Map<Integer, Rows> rows = new TreeMap<>();
    public final List<InternalRow> raw = new ArrayList<>();
    private final long number = NUMBERS.incrementAndGet();
    final Map<String, Long> at = new TreeMap<>();
    public long records, bytes, newest;    // of the decoded records
    private long size;

    public long number() { return number; }

    /** Returns the number of records. */
    public long records() { return records + raw.size(); }

    public Map<String, Long> at() { return at; }

    /** Returns the rows of a source node. */
    public RowBuffer rows(int source) { return rows.get(source).rows; }

    /** Attaches all records to an entry of the inbox, for tasks in other processes. */
    public void attach(String inbox, long entry) {
      Map<Integer, List<InternalRow>> byPartition = new TreeMap<>();
      for (InternalRow row : raw) byPartition.computeIfAbsent(row.getInt(KafkaRecord.PARTITION), p -> new ArrayList<>()).add(row);
      InboxSource.attach(inbox, entry, byPartition.values().stream().map(FetchedRows::new).toList());
    }

    /** Excludes records of a partition. */
    public void exclude(int partition, Collection<Number> offsets) {
      Set<Long> out = offsets.stream().map(Number::longValue).collect(Collectors.toSet());
      rows.values().forEach(r -> r.exclude(partition, out));
      raw.removeIf(r -> r.getInt(KafkaRecord.PARTITION) == partition && out.contains(r.getLong(KafkaRecord.OFFSET)));
    }
  }

  private final List<Source> sources;
  private final boolean decodes;
  private final UTF8String channel;
  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Map<TopicPartition, Long> end = new HashMap<>();
  private final Map<Integer, Long> newestOf = new HashMap<>();  // by partition: the newest time of the records so far
  private final Thread thread = new Thread(this::read, "tailgate-history");
  // pieces; at the end an exception, or this object
  private final BlockingQueue<Object> pieces = new SynchronousQueue<>();
  private volatile int pieceRows = 1;
  private volatile boolean closed;
  private Piece taken;

  /**
   * Reads the records [begin, end) of each partition and decodes them for the sources of the
   * channel. `options` are settings of Kafka's consumer. `local`: whether all tasks run in this
   * process; otherwise they decode the records.
   */
  public TopicBackfill(Circuit circuit, String channel, String brokers, String topic,
      Map<String, Number> begin, Map<String, Number> end, Map<String, String> options, boolean local) {
    this.decodes = local;
    this.sources = circuit.channels.getOrDefault(channel, List.of()).stream().map(SerializationUtils::clone).toList();
    this.channel = UTF8String.fromString(channel);
    Map<String, Object> all = new HashMap<>(options);
    all.putAll(Map.of(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, brokers,
        ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
        ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false,
        ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed",
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none",
            ConsumerConfig.MAX_POLL_RECORDS_CONFIG, POLL_RECORDS_MAX));
    consumer = new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    end.forEach((p, offset) -> {
      if (begin.get(p).longValue() < offset.longValue()) this.end.put(new TopicPartition(topic, Integer.parseInt(p)), offset.longValue());
    });
    consumer.assign(this.end.keySet());
    this.end.keySet().forEach(p -> consumer.seek(p, begin.get(Integer.toString(p.partition())).longValue()));
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * Returns the next piece, of about `rows` rows, and drops the one before. Returns null if none is
   * ready within `millis` ms or all have been read ({@link #ended}). Throws the error of the
   * broker.
   */
  public Piece next(int rows, long millis) throws InterruptedException {
    forget();
    pieceRows = rows;
    Object next = closed ? null : pieces.poll(millis, TimeUnit.MILLISECONDS);
    if (next == null) return null;
    if (next instanceof Piece piece) {
      PIECES.put(piece.number, piece);
      return taken = piece;
    }
    closed = true;
    if (next instanceof RuntimeException e) throw e;
    return null;
  }

  public boolean ended() { return closed; }

  /** Returns the piece with this number. */
  public static Piece piece(long number) {
    Piece piece = PIECES.get(number);
    if (piece == null) throw new IllegalStateException("piece " + number + " of a fill is gone");
    return piece;
  }

  private void forget() {
    if (taken != null) PIECES.remove(taken.number);
    taken = null;
  }

  @Override public void close() {
    closed = true;
    forget();
    thread.interrupt();
  }

  // ---- the thread -------------------------------------------------------------------------------

  private void read() {
    try (consumer) {
      try {
        for (Piece piece = piece(); piece != null && !closed; piece = piece()) pieces.put(piece);
        if (!closed) pieces.put(this);
      } catch (org.apache.kafka.common.errors.InterruptException e) {
        Thread.interrupted();  // closed: an interrupted thread cannot close the consumer without an error in the log
      } catch (RuntimeException e) {
        pieces.put(e);
      }
    } catch (InterruptedException | org.apache.kafka.common.errors.InterruptException e) {
      Thread.currentThread().interrupt();  // closed
    }
  }

  private Piece piece() {
    Piece piece = new Piece();
    for (Source s : sources) piece.rows.put(s.id, new Rows());
    long lastAnswer = System.nanoTime();
    while (!end.isEmpty() && piece.records() < pieceRows && piece.size < BYTES_MAX) {
      ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
      for (TopicPartition partition : records.partitions()) {
        long end = this.end.getOrDefault(partition, 0L);
        for (ConsumerRecord<byte[], byte[]> r : records.records(partition)) if (r.offset() < end) add(piece, r);
      }
      Map<TopicPartition, Long> before = Map.copyOf(end);
      // the remaining offsets before the end may be transaction markers, not records
      end.entrySet().removeIf(e -> consumer.position(e.getKey()) >= e.getValue());
      before.keySet().forEach(p -> piece.at.put(Integer.toString(p.partition()), consumer.position(p)));
      if (end.size() < before.size()) consumer.assign(end.keySet());
      if (!records.isEmpty()) lastAnswer = System.nanoTime();
      else if (System.nanoTime() - lastAnswer > SILENCE.toNanos())
        throw new org.apache.kafka.common.errors.TimeoutException("nothing came for "
            + SILENCE.toSeconds() + " s from "
            + end.keySet().stream().map(Object::toString).collect(Collectors.joining(", ")));
    }
    return piece.records() == 0 && end.isEmpty() ? null : piece;
  }

  private void add(Piece piece, ConsumerRecord<byte[], byte[]> record) {
    long size = Math.max(0, record.serializedKeySize()) + Math.max(0, record.serializedValueSize());
    piece.size += size;
    InternalRow row = new GenericInternalRow(
        new Object[] {record.key(), record.value(), channel, record.partition(), record.offset(),
        record.timestamp() * 1000, 0, headers(record)});
    if (!decodes) {
      piece.raw.add(row);
      return;
    }
    long order = newestOf.merge(record.partition(), record.timestamp(), Math::max);
    try {
      for (Source source : sources) source.rows(row, Decoder.HISTORY, order, piece.rows(source.id));
    } catch (RuntimeException e) {
      piece.rows.values().forEach(Rows::unplaced);
      piece.raw.add(row);
      return;
    }
    piece.rows.values().forEach(r -> r.place(record.partition(), record.offset()));
    piece.records++;
    piece.bytes += size;
    piece.newest = Math.max(piece.newest, record.timestamp());
  }

  private static GenericArrayData headers(ConsumerRecord<byte[], byte[]> record) {
    List<Object> headers = new ArrayList<>();
    record.headers().forEach(h -> headers.add(new GenericInternalRow(new Object[] {UTF8String.fromString(h.key()), h.value()})));
    return headers.isEmpty() ? null : new GenericArrayData(headers.toArray());
  }
}
