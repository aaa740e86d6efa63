package tailgate.sources;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.circuit.Circuit;

/**
 * A stream of the records in the inbox, and of the clock, with Kafka's columns.
 *
 * <p>It comes first in a union with the Kafka stream: `inbox.union(kafka)`. Its newest offset is
 * two numbers in memory: the last durable entry of the inbox, and the clock. The clock advances
 * when new data arrives or its period has passed. A batch starts when either number has changed.
 * Spark asks the sources one after the other, so while this one waits ({@link Doorbell}) none of
 * them polls. The period is measured by the monotonic clock, so changes of the wall clock do not
 * affect how often batches start.
 *
 * <pre>   writer: entry n durable ──► advance(folder, n) ──ring──┐
 *           Kafka: a new record ─────────────────────ring──┼──► latestOffset() returns ──► Kafka's latestOffset() ──► batch = tick
 *           a period without either ───────────────────────┘</pre>
 *
 * <p>An entry is a file named by its number, from 1 without gaps. It is complete before `advance`
 * names it and never changes, so a batch can be read again. Its owner removes it when the log no
 * longer needs it. An entry is a sequence of records, big-endian: topic, key and value, each as a
 * length (4 bytes, -1 for NULL) and bytes; then partition (4), offset (8) and milliseconds (8),
 * which become Kafka's columns of these names; then the length of all headers, and the name and
 * value of each header with their lengths.
 *
 * <p>Every batch in which the clock advanced has one row of the topic {@link #CLOCK} with the time.
 * A repeated batch has the same time. The time is known before the batch runs: it is the second
 * number in this source's line of the checkpoint's `offsets/<batch>`, which is `[entry, clock]`.
 *
 * <p>Options: `path`, the folder; `start`, the last entry that a new checkpoint skips (0); `clock`,
 * the period in ms (10000, {@link #clock} changes it); `watch`, JSON, the topics whose records
 * ring: `[{"bootstrap": "…", "topics": ["…"], "options": {settings of the consumer}}]`. Shared
 * storage that is not a mounted folder is not supported.
 */
public final class InboxSource implements TableProvider, DataSourceRegister {
  /** Topic of the row that holds the time of a batch. No Kafka topic can have this name. */
  public static final String CLOCK = "$clock";

  // minimum pause before a tick that only the clock causes: events close together share one
  private static final long DUE_MS = 200;
  private static final String TABLE = "$table/";  // prefix of the channels of tables
  private static final int BUFFER_BYTES = 1 << 16, FIXED_BYTES = 4 + 8 + 8;  // partition, offset, milliseconds
  private static final long CLOCK_MS = 10_000;  // an empty tick costs 70-100 ms of CPU

  private static final StructType ROW = new StructType().add("key", "binary").add("value", "binary").add("topic", "string").add("partition", "int")
      .add("offset", "long").add("timestamp", "timestamp").add("timestampType", "int")
      .add("headers", Circuit.HEADERS_TYPE);
  private static final Map<String, Inbox> INBOXES = new ConcurrentHashMap<>();
  static LongSupplier wall = System::currentTimeMillis;  // set by tests

  /** The inbox in one folder. */
  private static final class Inbox {
    final AtomicLong newest = new AtomicLong();
    final Doorbell doorbell = new Doorbell();
    volatile long period = CLOCK_MS;
    volatile Set<String> tables;
    volatile long due = Long.MAX_VALUE;
  }

  private static Inbox inbox(String folder) { return INBOXES.computeIfAbsent(Path.of(folder).toAbsolutePath().normalize().toString(), f -> new Inbox()); }

  /** Records that all entries up to this one are durable. Called by the writer of the entries. */
  public static void advance(String folder, long entry) {
    Inbox inbox = inbox(folder);
    inbox.newest.accumulateAndGet(entry, Math::max);
    inbox.doorbell.ring(true);
  }

  /** Starts a batch now, even without records. */
  public static void ring(String folder) { inbox(folder).doorbell.ring(true); }

  /** Checks whether a reader has new records, and starts a batch only if so. */
  static void look(String folder) { inbox(folder).doorbell.ring(false); }

  /**
   * Sets the period of the clock in ms: a second while something depends on time, otherwise ten.
   */
  public static void clock(String folder, long millis) {
    inbox(folder).period = millis;
    inbox(folder).doorbell.ring(false);
  }

  /** Sets the time in ms at which the circuit needs a tick. A later call replaces it. */
  public static void due(String folder, long millis) {
    inbox(folder).due = millis;
    inbox(folder).doorbell.ring(false);
  }

  /**
   * Sets the channels of tables that the circuit reads. Records of other tables, which only the
   * driver needs, are skipped. Without a call, none are skipped.
   */
  public static void tables(String folder, List<String> channels) { inbox(folder).tables = Set.copyOf(channels); }

  // ---- the table --------------------------------------------------------------------------------

  @Override public String shortName() { return "tailgate-inbox"; }
  @Override public StructType inferSchema(CaseInsensitiveStringMap options) { return ROW; }
  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) { return new Entries(); }

  private static final class Entries implements SupportsRead {
    @Override public String name() { return "tailgate-inbox"; }
    @Override public StructType schema() { return ROW; }
    @Override public Set<TableCapability> capabilities() { return Set.of(TableCapability.MICRO_BATCH_READ); }
    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return () -> new Scan() {
        @Override public StructType readSchema() { return ROW; }
        @Override public MicroBatchStream toMicroBatchStream(String checkpoint) { return new Entering(options); }
      };
    }
  }

  /** An offset of the stream: the last entry read, and the clock. */
  private static final class At extends Offset {
    final long entry, clock;
    At(long entry, long clock) { this.entry = entry; this.clock = clock; }
    @Override public String json() { return "[" + entry + "," + clock + "]"; }
    static At parse(String json) {
      String[] numbers = json.substring(1, json.length() - 1).split(",");
      return new At(Long.parseLong(numbers[0].trim()), Long.parseLong(numbers[1].trim()));
    }
  }

  // ---- the stream, in the driver ----------------------------------------------------------------

  private static final class Entering implements MicroBatchStream {
    private final String folder;
    private final long start;
    private final Inbox inbox;
    private final List<AutoCloseable> watches = new ArrayList<>();
    private At last = new At(0, 0);
    private long moved = System.nanoTime();

    Entering(CaseInsensitiveStringMap options) {
      folder = Objects.requireNonNull(options.get("path"), "path");
      start = options.getLong("start", 0);
      inbox = inbox(folder);
      if (options.containsKey("clock")) inbox.period = options.getLong("clock", CLOCK_MS);
      // the folder is not listed: an entry counts when its writer has reported it as durable
      inbox.newest.accumulateAndGet(start, Math::max);
      if (options.containsKey("watch")) watch(options.get("watch"));
    }

    private void watch(String json) {
      try {
        for (JsonNode w : new ObjectMapper().readTree(json)) {
          List<String> topics = new ArrayList<>();
          for (JsonNode t : w.get("topics")) topics.add(t.textValue());
          Map<String, String> of = new HashMap<>();
          if (w.has("options")) for (var e : w.get("options").properties()) of.put(e.getKey(), e.getValue().asText());
          watches.add(inbox.doorbell.watch(w.get("bootstrap").textValue(), topics, of));
        }
      } catch (JsonProcessingException e) {
        throw new IllegalArgumentException("watch: " + json, e);
      }
    }

    @Override public Offset initialOffset() { return new At(start, 0); }

    /**
     * Restores the clock. Time never goes back, even if the machine's clock was set back meanwhile.
     */
    @Override public Offset deserializeOffset(String json) {
      At at = At.parse(json);
      if (at.clock > last.clock) last = at;
      return at;
    }

    /** Waits for a reason to start a batch, at the latest until the clock must advance. */
    @Override public Offset latestOffset() {
      long due = Math.min(last.clock + inbox.period, Math.max(last.clock + DUE_MS, inbox.due));
      boolean news;
      try {
        news = inbox.doorbell.await(Math.min(due - wall.getAsLong(), inbox.period - stood()));
      } catch (InterruptedException e) {
        throw new UncheckedIOException(new InterruptedIOException());  // Spark treats this as a stop, not as a failure
      }
      long newest = inbox.newest.get(), now = wall.getAsLong();
      if (news || newest > last.entry || now >= due || stood() >= inbox.period) {
        last = new At(newest, Math.max(now, last.clock + 1));
        moved = System.nanoTime();
      }
      return last;
    }

    /** Returns for how many ms the clock has not advanced. */
    private long stood() { return (System.nanoTime() - moved) / 1_000_000; }

    /**
     * Plans one partition, even without entries: a batch that only advances the clock is a tick and
     * commits state.
     */
    @Override public InputPartition[] planInputPartitions(Offset from, Offset to) {
      return new InputPartition[] {new Range(folder, ((At) from).entry, ((At) to).entry, ((At) to).clock)};
    }
    @Override public PartitionReaderFactory createReaderFactory() { return new Opens(); }

    /**
     * Called while the next batch is prepared. Rings so that Kafka is checked again, because a
     * limit on Kafka's batches may have left records that rang before. The ring does not advance
     * the clock, since most of these checks find nothing and would otherwise start a batch. No
     * entries are removed here: the log, not Spark's checkpoint, determines which entries are still
     * needed.
     */
    @Override public void commit(Offset end) { inbox.doorbell.ring(false); }

    @Override public void stop() {
      try {
        for (AutoCloseable w : watches) w.close();
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }
  }

  // ---- the rows, in a task ----------------------------------------------------------------------

  /** The entries (after, to] and the time of a batch. */
  private record Range(String folder, long after, long to, long clock) implements InputPartition {}

  private static final class Opens implements PartitionReaderFactory {
    @Override public PartitionReader<InternalRow> createReader(InputPartition partition) { return new Reader((Range) partition); }
  }

  private static final class Reader implements PartitionReader<InternalRow> {
    private final Range range;
    private final Set<String> tables;
    private long entry;
    private DataInputStream in;
    private boolean told;
    private InternalRow row;

    Reader(Range range) {
      this.range = range;
      this.entry = range.after;
      this.tables = inbox(range.folder).tables;
    }

    @Override public boolean next() throws IOException {
      if (!told) {
        told = true;
        row = row(null, null, CLOCK.getBytes(StandardCharsets.UTF_8), 0, range.clock, range.clock, null);
        return true;
      }
      while (true) {
        while (in == null || in.available() == 0) {
          close();
          if (entry == range.to) return false;
          in = new DataInputStream(new BufferedInputStream(Files.newInputStream(Path.of(range.folder, Long.toString(++entry))), BUFFER_BYTES));
        }
        byte[] topic = bytes();
        if (passedOver(new String(topic, StandardCharsets.UTF_8))) {
          skip();
          skip();
          in.skipNBytes(FIXED_BYTES);
          skip();
          continue;
        }
        byte[] key = bytes(), value = bytes();
        row = row(key, value, topic, in.readInt(), in.readLong(), in.readLong(), headers(bytes()));
        return true;
      }
    }

    private boolean passedOver(String topic) { return tables != null && topic.startsWith(TABLE) && !tables.contains(topic); }

    private void skip() throws IOException { in.skipNBytes(Math.max(0, in.readInt())); }

    private static ArrayData headers(byte[] bytes) throws IOException {
      if (bytes == null) return null;
      List<Object> all = new ArrayList<>();
      DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
      while (in.available() > 0) all.add(new GenericInternalRow(new Object[] {UTF8String.fromBytes(bytes(in)), bytes(in)}));
      return new GenericArrayData(all.toArray());
    }

    private static byte[] bytes(DataInputStream in) throws IOException {
      int length = in.readInt();
      return length < 0 ? null : in.readNBytes(length);
    }

    private byte[] bytes() throws IOException { return bytes(in); }

    private static InternalRow row(byte[] key, byte[] value, byte[] topic, int partition, long offset, long millis, ArrayData headers) {
      return new GenericInternalRow(new Object[] {key, value, UTF8String.fromBytes(topic), partition, offset, millis * 1000, 0, headers});
    }

    @Override public InternalRow get() { return row; }
    @Override public void close() throws IOException {
      if (in != null) in.close();
      in = null;
    }
  }
}
