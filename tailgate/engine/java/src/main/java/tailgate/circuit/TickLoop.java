package tailgate.circuit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.*;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.LogManager;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.*;
import org.apache.spark.util.UninterruptibleThread;
import tailgate.sources.InboxSource;
import tailgate.sources.KafkaFeed;
import tailgate.sources.KafkaReader;
import tailgate.sources.RecordAges;
import tailgate.state.Snapshots;

/**
 * The JVM's part of the tick loop: the inputs, and the ticks. With one partition and a local master
 * a tick runs in this thread, otherwise it is a Spark job.
 *
 * <pre>   driver                                        this thread
 *   'W'  ────────────────────────────────────►  waits for a reason, fixes the end of each input
 *   'N'  ◄── names of inputs that failed ─────
 *   takes the boundary
 *   'T'  ── time, state path, state ids ──────►  reads all inputs up to their ends
 *   'R'  ◄── ends, result ────────────────────  or 'X': {@link #failure} returns the exception
 *   appends the log entry
 *   'C'  ────────────────────────────────────►  the inputs continue behind their ends</pre>
 *
 * <p>The driver's log is the only record of the positions of the inputs. A tick that is not
 * committed by 'C' has no effect here: the next one begins at the same positions. The driver adds
 * and removes inputs by calls, only between two ticks; the wait for a reason may run meanwhile.
 *
 * <p>The thread listens at a Unix socket for one connection. Results therefore reach the driver by
 * one copy; Py4J would encode them as Base64.
 */
public final class TickLoop implements AutoCloseable {
  private static final long SETTLE_MS = 10;  // between the arrivals of records by several readers
  private static final ObjectMapper JSON = new ObjectMapper();
  private final SparkSession session;
  private final String folder;
  private final Input inbox;
  private final List<Input> readers = new CopyOnWriteArrayList<>();
  // channels of which a tick reads one record while few wait
  private volatile Set<String> singleStreams = Set.of(), singleTables = Set.of();
  private final Queue<Input> removed = new ArrayDeque<>();
  private final Map<String, Throwable> failures = new ConcurrentHashMap<>();
  private final ServerSocketChannel server;
  private final long intervalNanos;
  private long began, ended;  // when the last tick started, and was committed
  private boolean hurries;  // whether the next tick reads a single record that waits
  // as Spark's tasks: required by its Kafka readers
  private final Thread thread = new UninterruptibleThread(this::serve, "tailgate-ticks");
  private volatile boolean closed, woken;
  private volatile Circuit circuit;

  /** One input of the ticks: a stream, and the positions between which the next tick reads it. */
  static final class Input {
    final String name;
    final MicroBatchStream stream;
    private final Set<String> known = new HashSet<>();  // topics of the reader that this one replaces, without an answer until now
    private final Map<String, List<RecordAges.Unread>> before = new HashMap<>();  // what that one has answered to `unread`
    volatile Offset start, end;

    /** `replaced`: the reader of the same name until now, or null. */
    Input(String name, MicroBatchStream stream, String start, Input replaced) throws IOException {
      this.name = name;
      this.stream = stream;
      this.start = this.end = stream.deserializeOffset(start);
      if (replaced == null) return;
      JSON.readTree(replaced.end.json()).fieldNames().forEachRemaining(known::add);
      before.putAll(replaced.unread());
    }

    /**
     * Fixes the end of the next tick. Returns whether there is something to read.
     *
     * <p>A tick that is repeated reads the same range as before. It would otherwise grow with every
     * attempt, without limit while the disk is full.
     */
    boolean look() {
      if (moved()) return true;
      Offset newest = stream instanceof SupportsAdmissionControl limited
          ? limited.latestOffset(start, limited.getDefaultReadLimit()) : stream.latestOffset();
      end = newest == null ? start : newest;
      return moved();
    }

    boolean moved() { return !end.equals(start); }

    /** Sets the channels of streams and of tables of which a tick reads one record while few wait. A rate limit excludes it. */
    void single(Set<String> streams, Set<String> tables) {
      if (stream instanceof KafkaFeed feed) feed.single(topics(streams), topics(tables));
    }

    private Set<String> topics(Set<String> channels) {
      Set<String> topics = new HashSet<>();
      for (String channel : channels) if (channel.startsWith(name + "/")) topics.add(channel.substring(name.length() + 1));
      return topics;
    }

    boolean hasSingleTopics() { return stream instanceof KafkaFeed feed && feed.hasSingleTopics(); }

    /** Returns the single record that the next tick reads, or null. */
    KafkaFeed.Single single() { return moved() ? KafkaFeed.single(end) : null; }

    /** Leaves the records of the next tick for a later one. */
    void leave() { end = start; }

    /** Counts a tick of a single record of another reader. */
    void ticked() { if (stream instanceof KafkaFeed feed) feed.ticked(); }

    boolean hasSingle() { return stream instanceof KafkaFeed feed && feed.hasSingle(); }

    /** Returns the ranges that the next tick reads. */
    List<TickInput.Part> parts() {
      if (!moved()) return List.of();
      String prefix = name.isEmpty() ? "" : name + "/";
      PartitionReaderFactory factory = stream.createReaderFactory();
      List<TickInput.Part> parts = new ArrayList<>();
      for (InputPartition p : stream.planInputPartitions(start, end)) parts.add(new TickInput.Part(prefix, factory, p));
      return parts;
    }

    /** Returns the oldest fetched records by topic, up to the end of the tick; none if the stream does not know them. */
    Map<String, RecordAges.Oldest> oldest() { return stream instanceof RecordAges ages ? ages.oldest(end) : Map.of(); }

    /** Returns the records of {@link TickLoop#unread}. Those of the replaced reader are valid until this one has an answer. */
    synchronized Map<String, List<RecordAges.Unread>> unread() {
      Map<String, List<RecordAges.Unread>> unread = new HashMap<>();
      if (!(stream instanceof RecordAges ages)) return unread;
      Set<String> unanswered = ages.unanswered();
      known.retainAll(unanswered);  // an answered topic is unanswered again after the loss of a connection
      for (String topic : unanswered)
        if (!known.contains(topic)) unread.put(topic, null);
        else before.forEach((of, records) -> { if (of.equals(topic) || of.startsWith(topic + "#")) unread.put(of, records); });
      unread.putAll(ages.unread());
      return unread;
    }

    /** Returns how many offsets of each topic are between the position of the newest committed tick and the end that is known. */
    Map<String, Long> behind() throws IOException {
      Map<String, Long> behind = new HashMap<>();
      if (!(stream instanceof RecordAges ages)) return behind;
      JsonNode at = JSON.readTree(start.json());
      ages.ends().forEach((p, end) -> {
        JsonNode position = at.path(p.topic()).path(Integer.toString(p.partition()));
        if (position.isNumber()) behind.merge(p.topic(), Math.max(0, end - position.longValue()), Long::sum);
      });
      return behind;
    }

    void commit() {
      if (!moved()) return;
      stream.commit(end);
      start = end;
    }

    void stop() {
      try {
        stream.stop();
      } catch (RuntimeException e) {
        LogManager.getLogger(TickLoop.class).warn("closing the reader {}", name, e);
      }
    }
  }

  /**
   * Listens at this socket.
   *
   * @param consumed the entry behind which the inbox is read
   * @param intervalMillis shortest time between the starts of two ticks without a write
   */
  public TickLoop(
      org.apache.spark.sql.SparkSession session, String socket, String folder, long consumed, long clockMillis, long intervalMillis)
      throws IOException {
    this.session = (SparkSession) session;
    this.folder = folder;
    this.intervalNanos = TimeUnit.MILLISECONDS.toNanos(intervalMillis);
    this.began = this.ended = System.nanoTime() - intervalNanos;
    this.inbox = new Input("", InboxSource.stream(folder, consumed, clockMillis), "[" + consumed + ",0]", null);
    server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(UnixDomainSocketAddress.of(socket));
    thread.setDaemon(true);
    thread.start();
  }

  // ---- calls of the driver, between two ticks ---------------------------------------------------

  /** Runs this circuit from the next tick on. */
  public void use(Circuit circuit) { this.circuit = circuit; }

  /**
   * Adds a reader of Kafka, which replaces that of the same name.
   *
   * @param offsets JSON: topic, partition, and the next offset to read
   */
  public void add(String name, KafkaReader reader, String offsets) throws IOException {
    SparkSession.setActiveSession(session);
    Input replaced = readers.stream().filter(other -> other.name.equals(name)).findFirst().orElse(null);
    Input input = new Input(name, reader.stream(folder, session.sparkContext().isLocal()), offsets, replaced);
    input.single(singleStreams, singleTables);
    remove(name);
    readers.add(input);
    InboxSource.look(folder);
  }

  /** Sets the channels of streams and of tables of which a tick reads one record while few wait ({@link KafkaFeed#single}). */
  public void single(List<String> streams, List<String> tables) {
    singleStreams = Set.copyOf(streams);
    singleTables = Set.copyOf(tables);
    for (Input reader : readers) reader.single(singleStreams, singleTables);
  }

  /** Removes a reader. It is closed when this loop's thread no longer uses it. */
  public void remove(String name) {
    for (Input input : readers)
      if (input.name.equals(name)) {
        readers.remove(input);
        synchronized (removed) { removed.add(input); }
      }
    InboxSource.look(folder);
  }

  /** Ends the wait for a reason. */
  public void wake() {
    woken = true;
    InboxSource.look(folder);
  }

  /**
   * Returns the oldest fetched records that no committed tick has read ({@link RecordAges#unread}), null for a topic that may have
   * records although none was fetched ({@link RecordAges#unanswered}), and the entry of the inbox up to which the next tick reads, as
   * JSON: `{"inbox": number, "readers": {reader: {topic: [[ms, position], …]}}}`. Any thread may call it.
   */
  public String unread() throws IOException {
    ObjectNode all = JSON.createObjectNode();
    all.set("inbox", JSON.readTree(inbox.end.json()).get(0));
    ObjectNode readers = all.putObject("readers");
    for (Input reader : this.readers) {
      ObjectNode topics = readers.putObject(reader.name);
      reader.unread().forEach((topic, records) -> {
        if (records == null) topics.putNull(topic);
        else for (RecordAges.Unread of : records) topics.withArrayProperty(topic).addArray().add(of.time()).add(of.position());
      });
    }
    return JSON.writeValueAsString(all);
  }

  /**
   * Returns how many records of each channel no committed tick has read, as JSON: `{channel: number}`. Offsets without a record count,
   * too, and records that the broker has got since its last answer do not. Any thread may call it.
   */
  public String behind() throws IOException {
    Map<String, Long> behind = new HashMap<>();
    for (Input reader : readers)
      reader.behind().forEach((topic, records) -> behind.put(reader.name + "/" + topic, records));
    return JSON.writeValueAsString(behind);
  }

  /**
   * Returns what this process holds in memory, as JSON: `{"read_ahead_records": …,
   * "read_ahead_bytes": …, "rocksdb_bytes": …}`. Any thread may call it.
   */
  public String held() throws IOException {
    int records = readers.stream().mapToInt(reader -> reader.stream instanceof RecordAges ages ? ages.waiting() : 0).sum();
    return JSON.writeValueAsString(JSON.createObjectNode().put("read_ahead_records", records)
        .put("read_ahead_bytes", KafkaReader.queuedBytes()).put("rocksdb_bytes", Snapshots.memory()));
  }

  /** Returns and forgets the exception of the reader that failed, or of the last tick (""). */
  public Throwable failure(String name) { return failures.remove(name); }

  /** Ends the loop. A tick that still runs has no effect; its job is cancelled. */
  @Override public void close() throws IOException {
    closed = true;
    server.close();
    session.sparkContext().cancelJobGroup(folder);
    InboxSource.look(folder);
  }

  // ---- the thread -------------------------------------------------------------------------------

  private void serve() {
    try (SocketChannel channel = server.accept()) {
      prepare();
      DataInputStream in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel)));
      for (int word; !closed && (word = in.read()) >= 0; )
        switch (word) {
          case 'W' -> write(channel, 'N', news());
          case 'T' -> tick(channel, in);
          case 'C' -> committed();
          default -> throw new IllegalStateException("not a word of the driver: " + word);
        }
    } catch (Exception e) {
      if (!closed) LogManager.getLogger(TickLoop.class).error("the tick loop ends", e);
    } finally {
      closed = true;
      stopRemoved();
      readers.forEach(Input::stop);
      inbox.stop();
    }
  }

  private void prepare() {
    SparkSession.setActiveSession(session);
    session.sparkContext().setJobGroup(folder, "ticks", false);
  }

  /**
   * Waits until there is a reason for a tick: records of Kafka after the interval, a write before
   * it, because its session waits, but after a pause as long as the last tick, so that writes of
   * many sessions share ticks. A single record that waits is a reason at once. Returns the names of
   * readers that failed, as JSON.
   */
  private byte[] news() throws IOException {
    ArrayNode failed = JSON.createArrayNode();
    long interval = began + intervalNanos, write = Math.min(interval, 2 * ended - began);
    InboxSource.pause(folder, null, write - System.nanoTime(), () -> woken || closed || hurries);
    InboxSource.pause(folder, inbox.start, interval - System.nanoTime(), () -> woken || closed || hurries);
    while (!look(failed) && !closed) {}
    woken = false;
    return JSON.writeValueAsBytes(failed);
  }

  /** Fixes the end of each input. Returns whether there is a reason for a tick. */
  private boolean look(ArrayNode failed) {
    stopRemoved();
    boolean reason = inbox.look() | woken;
    for (Input reader : readers) {
      try {
        reason |= reader.look();
      } catch (Exception e) {  // Scala throws checked exceptions without declaring them
        if (closed || !readers.remove(reader)) continue;  // it was removed meanwhile
        failures.put(reader.name, e);
        failed.add(reader.name);
        inBackground(reader::stop);
        reason = true;
      }
    }
    return chooseSingle() || reason;
  }

  /**
   * Leaves all but the first of single records of several readers, which may read one topic, for later ticks. Returns whether there is
   * one. The record waits until those have arrived that were written before it.
   */
  private boolean chooseSingle() {
    if (readers.stream().filter(Input::hasSingleTopics).limit(2).count() < 2) return false;
    List<Input> singles = readers.stream().filter(reader -> reader.single() != null).toList();
    if (singles.isEmpty()) return false;
    long arrival = singles.stream().mapToLong(reader -> reader.single().arrival()).min().getAsLong();
    long wait = Math.min(arrival + SETTLE_MS - System.currentTimeMillis(), SETTLE_MS);
    if (wait > 0) {
      InboxSource.pause(folder, null, TimeUnit.MILLISECONDS.toNanos(wait), () -> closed);
      for (Input reader : readers) {
        if (!reader.hasSingleTopics()) continue;
        if (reader.single() != null) reader.leave();
        try {
          reader.look();
        } catch (RuntimeException e) {
          continue;  // the next look reports it
        }
      }
    }
    Comparator<Input> tablesFirst = Comparator.comparing(reader -> !reader.single().isTable());
    Input first = readers.stream().filter(reader -> reader.single() != null)
        .min(Comparator.<Input>comparingLong(reader -> reader.single().time()).thenComparing(tablesFirst)).orElse(null);
    for (Input reader : readers) if (reader != first && reader.single() != null) reader.leave();
    return true;
  }

  /** Returns whether the next tick reads a single record. */
  private boolean isSingle() { return readers.stream().anyMatch(reader -> reader.single() != null); }

  private void stopRemoved() {
    List<Input> all;
    synchronized (removed) {
      all = List.copyOf(removed);
      removed.clear();
    }
    if (!all.isEmpty()) inBackground(() -> all.forEach(Input::stop));
  }

  /** Closing a client of a broker that is down takes seconds, for which no tick waits. */
  private static void inBackground(Runnable work) {
    Thread thread = new Thread(work, "tailgate-close");
    thread.setDaemon(true);
    thread.start();
  }

  private void tick(SocketChannel channel, DataInputStream in) throws IOException {
    began = System.nanoTime();
    InboxSource.nextTick(folder, began + intervalNanos);
    long time = in.readLong();
    int partitions = in.readInt();
    String statePath = text(in), stateIds = text(in);
    byte[] ends, result;
    try {
      List<TickInput.Part> parts = new ArrayList<>(inbox.parts());
      for (Input reader : readers) parts.addAll(reader.parts());
      ends = ends();
      result = result(parts, isSingle(), statePath, time, stateIds, partitions).message();
    } catch (Exception | Error e) {
      failures.put("", e);
      write(channel, ByteBuffer.wrap(new byte[] {'X'}));
      return;
    }
    write(channel, 'R', ends);
    write(channel, ByteBuffer.allocate(4).putInt(result.length).flip());
    write(channel, ByteBuffer.wrap(result));
  }

  private TickResult result(List<TickInput.Part> parts, boolean single, String statePath, long time, String stateIds, int partitions) {
    if (partitions == 1 && session.sparkContext().isLocal()) return circuit.tick(parts, session, statePath, time, stateIds, single);
    return circuit.tick(new TickInput(session.sparkContext(), parts), session, statePath, time, stateIds, partitions);
  }

  /**
   * Returns the ends of the inputs and the oldest records before them: `{"inbox": number of the entry,
   * "readers": {name: offsets}, "oldest": {channel: [time, arrival]}}`, with `"single": time` of the single record, if the tick has one.
   */
  private byte[] ends() throws IOException {
    ObjectNode all = JSON.createObjectNode();
    all.set("inbox", JSON.readTree(inbox.end.json()).get(0));
    ObjectNode of = all.putObject("readers"), oldest = all.putObject("oldest");
    for (Input reader : readers) {
      of.set(reader.name, JSON.readTree(reader.end.json()));
      if (!reader.moved()) continue;
      if (reader.single() != null) all.put("single", reader.single().time());
      String prefix = reader.name + "/";
      reader.oldest().forEach((topic, r) -> oldest.putArray(prefix + topic).add(r.time()).add(r.arrival()));
    }
    return JSON.writeValueAsBytes(all);
  }

  private void committed() {
    ended = System.nanoTime();
    boolean single = isSingle();
    for (Input reader : readers) {
      if (single && reader.single() == null) reader.ticked();
      reader.commit();
    }
    inbox.commit();
    hurries = readers.stream().anyMatch(Input::hasSingle);
    InboxSource.look(folder);  // a limit may have left records that rang before
  }

  private static String text(DataInputStream in) throws IOException {
    return new String(in.readNBytes(in.readInt()), StandardCharsets.UTF_8);
  }

  private static void write(SocketChannel channel, char word, byte[] bytes) throws IOException {
    write(channel, ByteBuffer.allocate(5 + bytes.length).put((byte) word).putInt(bytes.length).put(bytes).flip());
  }

  private static void write(SocketChannel channel, ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) channel.write(bytes);
  }
}
