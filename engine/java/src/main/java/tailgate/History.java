package tailgate;

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
import tailgate.Node.Source;
import tailgate.Tick.Change;

/**
 * The old records of a topic for a fill, fetched and decoded beside the ticks, so that a tick has only the operators' work left.
 *
 * <pre>   broker ──► decode ──► piece n in memory ──┐
 *   driver: next() ─► n ─► inbox: `$piece/channel`, n ─► tick takes the rows of piece n</pre>
 *
 * <p>One thread, two pieces ahead at most. A piece is kept until the next one is asked for, because a tick that fails is run again. It needs no other safety: after a crash of the
 * process the fill begins anew, on a channel of another name, and what names an old piece reaches nobody. A record that cannot be decoded goes into its piece as it is, and
 * the tick decides what becomes of it.
 */
public final class History implements AutoCloseable {
  /** Begins the channel of a record that stands for the piece whose number is its offset; the channel of its records follows. */
  static final String PIECE = "$piece/";

  private static final int BYTES_MAX = 16 << 20;                      // of keys and values in one piece
  private static final int POLL_RECORDS_MAX = 5_000;
  private static final Duration SILENCE = Duration.ofSeconds(10);     // a fetch that brings nothing for so long has lost its broker
  private static final Duration POLL = Duration.ofMillis(500);
  private static final Map<Long, Piece> PIECES = new ConcurrentHashMap<>();
  private static final AtomicLong NUMBERS = new AtomicLong();

  /** Where a row of a piece is from. */
  private record Place(int partition, long offset) {}

  /**
   * Some records. `rows`: of the sources, by node, and where each is from; `failed`: records, in Kafka's columns, that some source could not decode; `at`: the next offset of each
   * partition.
   */
  public static final class Piece {
    final Map<Integer, List<Change>> rows = new TreeMap<>();
    private final Map<Integer, List<Place>> places = new TreeMap<>();
    final List<InternalRow> failed = new ArrayList<>();
    private final long number = NUMBERS.incrementAndGet();
    final Map<String, Long> at = new TreeMap<>();
    long records, bytes, newest;    // of those that were decoded
    private long size;

    public long number() { return number; }

    /** How many, those that failed included. */
    public long records() { return records + failed.size(); }

    public Map<String, Long> at() { return at; }

    /** Leaves out records of a partition, those that could not be decoded too. */
    public void exclude(int partition, Collection<Number> offsets) {
      Set<Long> out = offsets.stream().map(Number::longValue).collect(Collectors.toSet());
      rows.forEach((source, of) -> {
        List<Place> from = places.get(source);
        List<Change> kept = new ArrayList<>(of.size());
        List<Place> still = new ArrayList<>(of.size());
        for (int i = 0; i < of.size(); i++)
          if (from.get(i).partition != partition || !out.contains(from.get(i).offset)) {
            kept.add(of.get(i));
            still.add(from.get(i));
          }
        rows.put(source, kept);
        places.put(source, still);
      });
      failed.removeIf(r -> r.getInt(Circuit.PARTITION) == partition && out.contains(r.getLong(Circuit.OFFSET)));
    }
  }

  private final List<Source> sources;
  private final UTF8String channel;
  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Map<TopicPartition, Long> end = new HashMap<>();
  private final Thread thread = new Thread(this::read, "tailgate-history");
  private final BlockingQueue<Object> pieces = new SynchronousQueue<>();  // pieces; at the end an exception or this
  private volatile int wanted = 1;
  private volatile boolean closed;
  private Piece taken;

  /** The records of [begin, end) of each partition, decoded as the sources of the channel say. `options`: Kafka's own of a consumer. */
  public History(Circuit circuit, String channel, String brokers, String topic, Map<String, Number> begin, Map<String, Number> end, Map<String, String> options) {
    this.sources = circuit.channels.getOrDefault(channel, List.of()).stream().map(SerializationUtils::clone).toList();
    this.channel = UTF8String.fromString(channel);
    Map<String, Object> all = new HashMap<>(options);
    all.putAll(Map.of(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, brokers, ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false, ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false,
        ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed", ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none", ConsumerConfig.MAX_POLL_RECORDS_CONFIG, POLL_RECORDS_MAX));
    consumer = new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    end.forEach((p, offset) -> {
      if (begin.get(p).longValue() < offset.longValue()) this.end.put(new TopicPartition(topic, Integer.parseInt(p)), offset.longValue());
    });
    consumer.assign(this.end.keySet());
    this.end.keySet().forEach(p -> consumer.seek(p, begin.get(Integer.toString(p.partition())).longValue()));
    thread.setDaemon(true);
    thread.start();
  }

  /** The next piece, of about so many rows; null if there is none yet after so long, or none any more: {@link #ended}. Forgets the one before. Throws what the broker says. */
  public Piece next(int rows, long millis) throws InterruptedException {
    forget();
    wanted = rows;
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

  /** The piece with this number. */
  static Piece piece(long number) {
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

  // ---- the thread -------------------------------------------------------------------------------------------------------------

  private void read() {
    try (consumer) {
      try {
        for (Piece piece = piece(); piece != null && !closed; piece = piece()) pieces.put(piece);
        if (!closed) pieces.put(this);
      } catch (org.apache.kafka.common.errors.InterruptException e) {
        Thread.currentThread().interrupt();
      } catch (RuntimeException e) {
        pieces.put(e);
      }
    } catch (InterruptedException | org.apache.kafka.common.errors.InterruptException e) {
      Thread.currentThread().interrupt();  // closed
    }
  }

  private Piece piece() {
    Piece piece = new Piece();
    for (Source s : sources) {
      piece.rows.put(s.id, new ArrayList<>());
      piece.places.put(s.id, new ArrayList<>());
    }
    long heard = System.nanoTime();
    while (!end.isEmpty() && piece.records() < wanted && piece.size < BYTES_MAX) {
      ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
      for (ConsumerRecord<byte[], byte[]> r : records) if (r.offset() < end.getOrDefault(new TopicPartition(r.topic(), r.partition()), 0L)) add(piece, r);
      Map<TopicPartition, Long> before = Map.copyOf(end);
      end.entrySet().removeIf(e -> consumer.position(e.getKey()) >= e.getValue());  // what is left before the end may be no record: a marker of a transaction
      before.keySet().forEach(p -> piece.at.put(Integer.toString(p.partition()), consumer.position(p)));
      if (end.size() < before.size()) consumer.assign(end.keySet());
      if (!records.isEmpty()) heard = System.nanoTime();
      else if (System.nanoTime() - heard > SILENCE.toNanos())
        throw new org.apache.kafka.common.errors.TimeoutException("nothing came for " + SILENCE.toSeconds() + " s from " + end.keySet().stream().map(Object::toString).collect(Collectors.joining(", ")));
    }
    return piece.records() == 0 && end.isEmpty() ? null : piece;
  }

  private void add(Piece piece, ConsumerRecord<byte[], byte[]> record) {
    long size = Math.max(0, record.serializedKeySize()) + Math.max(0, record.serializedValueSize());
    piece.size += size;
    InternalRow row = new GenericInternalRow(new Object[] {record.key(), record.value(), channel, record.partition(), record.offset(), record.timestamp() * 1000, 0, headers(record)});
    List<List<Change>> changes = new ArrayList<>(sources.size());
    try {
      for (Source source : sources) {
        List<Change> of = new ArrayList<>(1);
        source.rows(row, of);
        changes.add(of);
      }
    } catch (RuntimeException e) {
      piece.failed.add(row);
      return;
    }
    Place place = new Place(record.partition(), record.offset());
    for (int i = 0; i < changes.size(); i++) {
      piece.rows.get(sources.get(i).id).addAll(changes.get(i));
      for (int n = changes.get(i).size(); n > 0; n--) piece.places.get(sources.get(i).id).add(place);
    }
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
