package tailgate.circuit;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.*;
import org.apache.commons.lang3.SerializationUtils;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.streaming.state.*;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import tailgate.state.State;
import tailgate.state.StateIds;

/**
 * Runs ticks of a circuit directly over its state stores, in the thread of the caller: without a
 * streaming query, jobs and shuffles.
 *
 * <p>The operators, edges, state and its versions are those of the engine. This class replaces
 * {@link Stages}, which uses RDDs: it opens each store at the version of the log, runs the parts of
 * {@link Tick} in order, and moves rows between levels to their partitions, in a random order, as a
 * shuffle may do.
 *
 * <p>A tick enters the log only when the caller says so; until then running it again is as after a lost attempt.
 */
public final class CircuitDriver {
  private final Circuit circuit;
  private final String path;
  private final int partitions;
  private final Random random;
  private final Configuration hadoop;
  private final StateStoreConf conf;
  private final Map<List<Integer>, RocksDBStateStoreProvider> stores = new HashMap<>();
  private Circuit running;
  private StateIds ids, next;
  private List<Sent> statistics = List.of();
  private final Map<Integer, Map<Long, Long>> held = new TreeMap<>();  // per node and partition

  /** @param path folder of the state; @param ids what {@link #ids} said of the last tick there, empty for no state */
  public CircuitDriver(SparkSession session, Circuit circuit, String path, int partitions, String ids, long seed) {
    this.circuit = circuit;
    this.path = path;
    this.partitions = partitions;
    this.random = new Random(seed);
    this.ids = StateIds.parse(ids, partitions);
    var classic = (org.apache.spark.sql.classic.SparkSession) session;
    classic.streams().stateStoreCoordinator();  // the stores tell it of their snapshots
    var state = classic.sessionState();
    this.hadoop = state.newHadoopConf();
    this.hadoop.set("sql.streaming.runId", new UUID(0, 1).toString());
    this.conf = new StateStoreConf(state.conf(), scala.collection.immutable.Map$.MODULE$.empty());
  }

  /**
   * Runs a tick that does not enter the log yet.
   *
   * @param records of each: key, value (their lengths and bytes, -1 for NULL), channel, partition, offset
   * @return of each changed relation, with an int for their number before: its id, the length of its Arrow stream, that stream
   */
  public byte[] tick(byte[] records, long time) {
    if (running == null) running = SerializationUtils.clone(circuit);
    List<InternalRow> batch = rows(records);
    List<Sent> sent = partitions == 1 ? whole(batch, time) : levels(batch, time);
    next = ids.after(sent.stream().filter(s -> s.kind() == Sent.STATE).map(Sent::committed).toList());
    statistics = sent.stream().filter(s -> s.kind() == Sent.STATISTICS).toList();
    return bytes(sent.stream().filter(s -> s.kind() == Node.Edge.RELATION).toList());
  }

  /** The last tick enters the log. */
  public void commit() {
    ids = next;
    for (Sent s : statistics)
      held.computeIfAbsent(s.to(), n -> new TreeMap<>())
          .put(s.n(), java.nio.ByteBuffer.wrap(s.bytes()).getLong(Long.BYTES * Statistics.ENTRIES));
  }

  /** The operators that hold state. */
  public int[] held() {
    return held.entrySet().stream()
        .filter(e -> e.getValue().values().stream().anyMatch(n -> n != 0))
        .mapToInt(Map.Entry::getKey).toArray();
  }

  /** The ids of the state after the last tick in the log. */
  public String ids() { return ids.toString(); }

  /** Does Spark's background work: uploads snapshots to the folder of the state, and removes old versions. */
  public void maintain() { stores.values().forEach(RocksDBStateStoreProvider::doMaintenance); }

  /** Discards everything but the files, like the end of the process. */
  public void restart() {
    stores.values().forEach(RocksDBStateStoreProvider::close);
    stores.clear();
    running = null;
  }

  /** CPU seconds of this process. */
  public static double cpu() {
    return ((com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
  }

  private List<Sent> whole(List<InternalRow> batch, long time) {
    return in(0, 0, state -> Tick.all(running, state, time, path + "/results", batch.iterator()));
  }

  private List<Sent> levels(List<InternalRow> batch, long time) {
    List<InternalRow> sent = Tick.sources(running, time, partitions, batch.iterator());
    for (int level = 0; level < Stages.levels(running, ids); level++) {
      List<List<InternalRow>> placed = exchange(sent);
      sent = new ArrayList<>();
      for (int p = 0; p < partitions; p++) {
        int l = level, here = p;
        sent.addAll(in(l, p, state -> Tick.level(running, state, time, l, here, partitions, placed.get(here).iterator())));
      }
    }
    List<Sent> results = new ArrayList<>();
    for (List<InternalRow> placed : exchange(sent)) results.addAll(Tick.results(running, path + "/results", placed.iterator()));
    return results;
  }

  private List<List<InternalRow>> exchange(List<InternalRow> sent) {
    List<List<InternalRow>> placed = new ArrayList<>();
    for (int p = 0; p < partitions; p++) placed.add(new ArrayList<>());
    for (InternalRow row : sent) placed.get(Math.floorMod(Sent.place(row), partitions)).add(row);
    placed.forEach(rows -> Collections.shuffle(rows, random));
    return placed;
  }

  /** Applies a function to a partition of a store at the version of the log. A failure leaves the store unchanged. */
  private <T> T in(int level, int partition, java.util.function.Function<State, T> use) {
    StateIds.Store at = ids.store(level);
    RocksDBStateStoreProvider provider = stores.computeIfAbsent(List.of(level, partition), this::open);
    StateStore store = provider.getStore(at.version(), at.ids() == null ? Option.empty() : Option.apply(at.ids()[partition]), false, false);
    try {
      return use.apply(new State(store));
    } finally {
      if (!store.hasCommitted()) store.abort();
    }
  }

  private RocksDBStateStoreProvider open(List<Integer> place) {
    StateStoreProviderId id =
        new StateStoreProviderId(new StateStoreId(path, place.get(0), place.get(1),
        StateStoreId.DEFAULT_STORE_NAME()), new UUID(0, 1));
    return (RocksDBStateStoreProvider) StateStoreProvider$.MODULE$.createAndInit(id, Stages.BYTES,
        Stages.BYTES, new NoPrefixKeyStateEncoderSpec(Stages.BYTES), false, conf,
        hadoop, false, Option.empty());
  }

  private static List<InternalRow> rows(byte[] records) {
    List<InternalRow> rows = new ArrayList<>();
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(records))) {
      while (in.available() > 0) {
        byte[] key = bytes(in), value = bytes(in), channel = bytes(in);
        rows.add(new GenericInternalRow(new Object[] {key, value, UTF8String.fromBytes(channel), in.readInt(), in.readLong(), 0L, 0}));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return rows;
  }

  private static byte[] bytes(DataInputStream in) throws IOException {
    int length = in.readInt();
    return length < 0 ? null : in.readNBytes(length);
  }

  private static byte[] bytes(List<Sent> relations) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeInt(relations.size());
      for (Sent s : relations) {
        out.writeInt(s.to());
        out.writeInt(s.bytes().length);
        out.write(s.bytes());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }
}
