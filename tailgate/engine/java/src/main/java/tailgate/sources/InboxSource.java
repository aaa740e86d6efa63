package tailgate.sources;

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A stream of the records in the inbox, and of the clock, with Kafka's columns.
 *
 * <p>It is the first input of a tick ({@link TickLoop}). Its newest offset is two numbers in memory:
 * the last durable entry of the inbox, and the clock. The clock advances when new data arrives or
 * its period has passed. A tick starts when either number has changed. The loop asks the inputs one
 * after the other, so while this one waits ({@link Doorbell}) none of them polls. The period is
 * measured by the monotonic clock, so changes of the wall clock do not affect how often ticks start.
 *
 * <pre>   writer: entry n durable ──► advance(folder, n) ──ring──┐
 *           Kafka: a new record ─────────────────────ring──┼──► latestOffset() returns ──► Kafka's latestOffset() ──► tick
 *           a period without either ───────────────────────┘</pre>
 *
 * <p>An entry is a file named by its number, from 1 without gaps. It is complete before `advance`
 * names it and never changes, so a tick can be repeated. Its owner removes it when the log no longer
 * needs it. An entry is a sequence of records, big-endian: topic, key and value, each as a length (4
 * bytes, -1 for NULL) and bytes; then partition (4), offset (8) and milliseconds (8), which become
 * Kafka's columns of these names; then the length of all headers, and the name and value of each
 * header with their lengths.
 *
 * <p>Records that the driver has fetched for an entry ({@link #attach}) are read by other tasks.
 *
 * <p>Every tick in which the clock advanced has one row of the topic {@link #CLOCK} with the time.
 * Shared storage that is not a mounted folder is not supported.
 */
public final class InboxSource {
  /** Topic of the row that holds the time of a batch. No Kafka topic can have this name. */
  public static final String CLOCK = "$clock";

  // minimum pause before a tick that only the clock causes: events close together share one
  private static final long DUE_MS = 200;
  private static final String TABLE = "$table/";  // prefix of the channels of tables
  private static final int BUFFER_BYTES = 1 << 16, FIXED_BYTES = 4 + 8 + 8;  // partition, offset, milliseconds
  private static final long CLOCK_MS = 10_000;  // until a stream sets it

  private static final Map<String, Inbox> INBOXES = new ConcurrentHashMap<>();
  static LongSupplier wall = System::currentTimeMillis;  // set by tests

  /** The inbox in one folder. */
  private static final class Inbox {
    final AtomicLong newest = new AtomicLong();
    final Doorbell doorbell = new Doorbell();
    volatile long period = CLOCK_MS;
    volatile Set<String> tables;
    final NavigableMap<Long, List<FetchedRows>> attached = new ConcurrentSkipListMap<>();  // by entry
    volatile long due = Long.MAX_VALUE;
    volatile long nextTick = System.nanoTime();
  }

  private static Inbox inbox(String folder) { return INBOXES.computeIfAbsent(Path.of(folder).toAbsolutePath().normalize().toString(), f -> new Inbox()); }

  /** Records that all entries up to this one are durable. Called by the writer of the entries. */
  public static void advance(String folder, long entry) {
    Inbox inbox = inbox(folder);
    inbox.newest.accumulateAndGet(entry, Math::max);
    inbox.doorbell.ring(true);
  }

  /** Adds records to an entry, before its writer reports it, until a tick with it is committed. They are lost with this process. */
  public static void attach(String folder, long entry, List<FetchedRows> records) { inbox(folder).attached.put(entry, records); }

  /** Starts a tick now, even without records. */
  public static void ring(String folder) { inbox(folder).doorbell.ring(true); }

  /** Lets the loop check whether a reader has new records; a tick starts only if so. */
  public static void look(String folder) { inbox(folder).doorbell.ring(false); }

  /**
   * Waits up to this many nanoseconds, or until a condition holds, which each ring checks, or until
   * there is an entry after an offset, unless that is null.
   */
  public static void pause(String folder, Offset after, long nanos, BooleanSupplier ended) {
    Inbox inbox = inbox(folder);
    inbox.doorbell.pause(nanos, () -> after != null && inbox.newest.get() > ((At) after).entry || ended.getAsBoolean());
  }

  /**
   * Sets the period of the clock in ms: a second while something depends on time, otherwise ten.
   */
  public static void clock(String folder, long millis) {
    inbox(folder).period = millis;
    inbox(folder).doorbell.ring(false);
  }

  /** Sets the value of the JVM's nanosecond clock before which records of Kafka start no tick. */
  public static void nextTick(String folder, long nanos) { inbox(folder).nextTick = nanos; }

  static long nextTick(String folder) { return inbox(folder).nextTick; }

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

  /** An offset of the stream: the last entry read, and the clock. */
  private static final class At extends Offset {
    final long entry, clock;
    At(long entry, long clock) { this.entry = entry; this.clock = clock; }
    @Override public String json() { return "[" + entry + "," + clock + "]"; }
    @Override public boolean equals(Object other) { return other instanceof At at && at.entry == entry && at.clock == clock; }
    @Override public int hashCode() { return Long.hashCode(31 * entry + clock); }
    static At parse(String json) {
      String[] numbers = json.substring(1, json.length() - 1).split(",");
      return new At(Long.parseLong(numbers[0].trim()), Long.parseLong(numbers[1].trim()));
    }
  }

  /**
   * Returns the stream of the entries after `start`.
   *
   * @param clockMillis the period of the clock
   */
  public static MicroBatchStream stream(String folder, long start, long clockMillis) { return new Entering(folder, start, clockMillis); }

  // ---- the stream, in the driver ----------------------------------------------------------------

  private static final class Entering implements MicroBatchStream {
    private final String folder;
    private final long start;
    private final Inbox inbox;
    private At last = new At(0, 0);
    private long moved = System.nanoTime();

    Entering(String folder, long start, long clockMillis) {
      this.folder = folder;
      this.start = start;
      inbox = inbox(folder);
      inbox.period = clockMillis;
      // the folder is not listed: an entry counts when its writer has reported it as durable
      inbox.newest.accumulateAndGet(start, Math::max);
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
     * Plans a partition for the entries, even if there are none, because temporal filters read the clock,
     * and the partitions of attached records.
     */
    @Override public InputPartition[] planInputPartitions(Offset from, Offset to) {
      long after = ((At) from).entry, last = ((At) to).entry;
      List<InputPartition> parts = new ArrayList<>(List.of(new Range(folder, after, last, ((At) to).clock)));
      inbox.attached.subMap(after, false, last, true).values().forEach(parts::addAll);
      return parts.toArray(InputPartition[]::new);
    }
    @Override public PartitionReaderFactory createReaderFactory() { return new Opens(inbox.tables); }

    /** Removes attached records. The log determines which entries are still needed. */
    @Override public void commit(Offset end) { inbox.attached.headMap(((At) end).entry, true).clear(); }

    @Override public void stop() {}
  }

  // ---- the rows, in a task ----------------------------------------------------------------------

  /** The entries (after, to] and the time of a batch. */
  private record Range(String folder, long after, long to, long clock) implements InputPartition {}

  private record Opens(Set<String> tables) implements PartitionReaderFactory {
    @Override public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return partition instanceof FetchedRows fetched ? fetched.reader() : new Reader((Range) partition, tables);
    }
  }

  private static final class Reader implements PartitionReader<InternalRow> {
    private final Range range;
    private final Set<String> tables;
    private long entry;
    private DataInputStream in;
    private boolean clockSent;
    private InternalRow row;

    Reader(Range range, Set<String> tables) {
      this.range = range;
      this.entry = range.after;
      this.tables = tables;
    }

    @Override public boolean next() throws IOException {
      if (!clockSent) {
        clockSent = true;
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
