package tailgate.circuit;

import java.io.Serializable;
import java.util.*;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.function.Function;
import org.apache.commons.lang3.SerializationUtils;
import org.apache.spark.HashPartitioner;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkThrowable;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.ShuffledRDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.UnsafeRowSerializer;
import org.apache.spark.sql.execution.streaming.state.*;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import org.apache.spark.util.SerializableConfiguration$;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import tailgate.sources.SourceStalled;
import tailgate.state.DurableFiles;
import tailgate.state.Snapshots;
import tailgate.state.State;
import tailgate.state.StateIds;
import tailgate.state.StateLost;

/**
 * Runs a tick: in the calling thread with one partition, otherwise as a job with a stage per level
 * and exchanges between.
 *
 * <pre>   1: parts ─► store 0, all operators ─► driver
 *   n: batch ─► sources ═exchange═► store 0, level 0 ═exchange═► store 1, level 1 … ═exchange═► results ─► driver</pre>
 *
 * <p>Catalyst is not involved: the planning of one DataFrame exchange takes longer than an ordinary
 * tick.
 */
final class Stages {
  static final StructType BYTES = new StructType().add("bytes", "binary", false);
  private static final String SQL_SETTINGS = "spark.sql";
  // folder below the state folder, for changes that are too large to send
  private static final String RESULTS = "/results";
  private final Circuit circuit;
  final SparkContext context;
  final Opening opening;
  private final Map<String, String> settings;
  private Broadcast<byte[]> shipped;  // the serialized circuit, created for the first job
  private Circuit own;  // for ticks in the loop's thread, null after one that failed

  Stages(Circuit circuit, org.apache.spark.sql.SparkSession session) {
    this.circuit = circuit;
    SparkSession classic = (SparkSession) session;
    this.context = classic.sparkContext();
    this.opening = Opening.of(classic);
    this.own = circuit;
    this.settings = new HashMap<>(CollectionConverters.asJava(classic.sessionState().conf().getAllConfs()));
    this.settings.keySet().removeIf(name -> !name.startsWith(SQL_SETTINGS));
  }

  /** Returns the serialized circuit. Spark would estimate the size of an object with all that it refers to, even the session: 1 s. */
  private synchronized Broadcast<byte[]> shipped() {
    if (shipped == null) shipped = context.broadcast(SerializationUtils.serialize(circuit), tag(byte[].class));
    return shipped;
  }

  /** Returns the properties of tasks: those of the thread and the settings of the session, which tasks look up. */
  Properties properties() {
    Properties all = new Properties();
    all.putAll(context.getLocalProperties());
    all.putAll(settings);
    return all;
  }

  /** Has a compiled copy of the circuit ready in this process. */
  void warm() {
    new Borrower(circuit.id, shipped()).with(copy -> {
      copy.compile(null);
      return copy;
    });
  }

  /**
   * Runs a tick with one partition in the calling thread, without a job. A tick that has nothing for the
   * circuit, or a circuit without operators, leaves the state as it is and does not open it.
   */
  TickResult run(List<TickInput.Part> parts, String statePath, long time, String stateIds, boolean single) {
    StateIds ids = StateIds.parse(stateIds, 1);
    Circuit used = own != null ? own : copy();
    own = null;
    List<Sent> sent;
    try {
      sent = LocalTask.run(context, properties(), () -> {
        try (TickInput.Rows rows = new TickInput.Rows(parts)) {
          if (!rows.skip(used::reads) && used.rests()) return List.of();
          if (used.isStateless()) return Tick.all(used, null, time, statePath + RESULTS, rows, single);
          return opening.use(storeId(statePath, 0, 0), ids.store(0),
              store -> Tick.all(used, new State(store), time, statePath + RESULTS, rows, single));
        }
      });
    } catch (Exception | Error e) {
      circuit.failed = true;
      if (e instanceof Error error) throw error;
      throw recognised((Exception) e, time);
    }
    own = used;
    return result(sent, ids, statePath);
  }

  /** Returns a copy of the circuit without the remains of a tick that failed. */
  private Circuit copy() {
    Circuit copy = SerializationUtils.clone(circuit);
    copy.reported.clear();
    return copy;
  }

  /** Runs a tick as a job; with one partition, as a job of a single task. */
  TickResult run(RDD<InternalRow> batch, String statePath, long time, String stateIds, int partitions) {
    StateIds ids = StateIds.parse(stateIds, partitions);
    List<Sent> sent;
    try {
      sent = collected(partitions == 1 ? whole(batch, statePath, time, ids) : levels(batch, statePath, time, ids, partitions));
    } catch (Exception e) {
      throw recognised(e, time);
    }
    return result(sent, ids, statePath);
  }

  /**
   * Collects the results as `collect` does, but without Spark's two scans of the closure's class
   * file: saves 3 ms of CPU per tick.
   */
  private List<Sent> collected(JavaRDD<Sent> sent) {
    int n = sent.getNumPartitions();
    Object[] all = new Object[n];
    List<Object> partitions = java.util.stream.IntStream.range(0, n).<Object>mapToObj(i -> i).toList();
    context.dagScheduler().runJob(sent.rdd(), new Collecting(), CollectionConverters.asScala(partitions).toSeq(), context.getCallSite(),
        new scala.runtime.AbstractFunction2<Object, ArrayList<Sent>, scala.runtime.BoxedUnit>() {
          @Override public scala.runtime.BoxedUnit apply(Object partition, ArrayList<Sent> rows) {
            synchronized (all) {
              all[(Integer) partition] = rows;
            }
            return scala.runtime.BoxedUnit.UNIT;
          }
        }, properties());
    List<Sent> results = new ArrayList<>();
    synchronized (all) {
      for (Object rows : all) for (Object row : (List<?>) rows) results.add((Sent) row);
    }
    return results;
  }

  private static final class Collecting extends scala.runtime.AbstractFunction2<TaskContext, Iterator<Sent>, ArrayList<Sent>>
      implements Serializable {
    private static final long serialVersionUID = 1;

    @Override public ArrayList<Sent> apply(TaskContext task, Iterator<Sent> rows) {
      ArrayList<Sent> all = new ArrayList<>();
      while (rows.hasNext()) all.add(rows.next());
      return all;
    }
  }

  private JavaRDD<Sent> whole(RDD<InternalRow> batch, String statePath, long time, StateIds ids) {
    RDD<InternalRow> one = batch.getNumPartitions() == 1 ? batch : batch.coalesce(1, false, Option.empty(), null);
    Whole tick = new Whole(circuit.id, shipped(), time, statePath + RESULTS);
    return new Stage<>(one, tick, statePath, 0, ids.store(0), opening, tag(Sent.class)).toJavaRDD();
  }

  private JavaRDD<Sent> levels(RDD<InternalRow> batch, String statePath, long time, StateIds ids, int partitions) {
    Borrower circuits = new Borrower(circuit.id, shipped());
    String results = statePath + RESULTS;
    JavaRDD<InternalRow> sent =
        batch.toJavaRDD().mapPartitions(rows -> circuits.with(c -> Tick.sources(c, time, partitions, rows)).iterator());
    for (int level = 0; level < levels(circuit, ids); level++) {
      RDD<InternalRow> placed = exchange(sent, partitions).rdd();
      Level step = new Level(circuit.id, shipped(), time, level, partitions);
      sent = new Stage<>(placed, step, statePath, level, ids.store(level), opening, tag(InternalRow.class)).toJavaRDD();
    }
    return exchange(sent, partitions).mapPartitions(rows -> circuits.with(c -> Tick.results(c, results, rows)).iterator());
  }

  /**
   * Returns the number of levels that a tick runs, including those that only have state to forget.
   */
  static int levels(Circuit circuit, StateIds ids) {
    if (circuit.forgotten.isEmpty()) return circuit.levels;
    return Math.max(circuit.levels, ids.stores().stream().mapToInt(s -> s + 1).max().orElse(0));
  }

  private static JavaRDD<InternalRow> exchange(JavaRDD<InternalRow> sent, int partitions) {
    RDD<Tuple2<Integer, InternalRow>> placed = sent.mapToPair(row -> new Tuple2<>(Sent.place(row), row)).rdd();
    HashPartitioner hash = new HashPartitioner(partitions);
    ClassTag<InternalRow> row = tag(InternalRow.class);
    return new ShuffledRDD<Integer, InternalRow, InternalRow>(placed, hash, tag(Integer.class), row, row)
        .setSerializer(new UnsafeRowSerializer(Sent.WIDTH, null)).toJavaRDD().map(Tuple2::_2);
  }

  private TickResult result(List<Sent> sent, StateIds ids, String statePath) {
    List<Sent> relations = new ArrayList<>(), repeated = new ArrayList<>(), statistics = new ArrayList<>();
    List<StateIds.Committed> committed = new ArrayList<>();
    Map<String, Long> counters = new TreeMap<>();
    Map<Integer, Long> released = new TreeMap<>(), took = new TreeMap<>();
    List<TickResult.Failure> failures = new ArrayList<>();
    long due = Long.MAX_VALUE;
    int lineage = 0;
    Set<Integer> forgotten = new TreeSet<>(circuit.forgotten);
    for (Sent s : sent)
      switch (s.kind()) {
        case Node.Edge.RELATION, Sent.FILE -> relations.add(s);
        case Sent.REPEATED -> repeated.add(s);
        case Sent.STATE -> {
          committed.add(s.committed());
          lineage = Math.max(lineage, (int) s.order());
        }
        case Sent.REMAINS -> forgotten.remove(s.to());
        case Sent.STATISTICS -> statistics.add(s);
        case Sent.FAILURE -> failures.add(s.failure());
        case Sent.LATE -> counters.merge(s.to() + ".late_rows", s.n(), Long::sum);
        case Sent.RELEASED -> circuit.relationsBelow(s.to(), relation -> released.merge(relation, s.n(), Math::max));
        case Sent.TOOK -> took.merge(s.to(), s.n(), Math::max);
        case Sent.DUE -> due = Math.min(due, s.n());
        case Sent.COUNT -> {
          counters.merge(s.to() + ".records", s.n(), Long::sum);
          java.nio.ByteBuffer counts = java.nio.ByteBuffer.wrap(s.bytes());
          counters.merge(s.to() + ".dead_letters", counts.getLong(), Long::sum);
          counters.merge(s.to() + ".bytes", counts.getLong(), Long::sum);
          counters.merge(s.to() + ".last_message", counts.getLong(), Math::max);
        }
        default -> throw new IllegalStateException(s.toString());
      }
    if (!committed.isEmpty()) Snapshots.returned(lineage);
    Statistics.of(statePath).add(circuit, statistics);
    relations.sort(Comparator.comparingInt(Sent::to));
    int[] removed = forgotten.stream().mapToInt(i -> i).toArray();
    String after = ids.after(committed).toString();
    return new TickResult(relations, repeated, after, counters, removed, due, statistics, released, failures, took);
  }

  static <T> ClassTag<T> tag(Class<T> type) { return scala.reflect.ClassTag$.MODULE$.apply(type); }

  /**
   * Returns the exception of a task if the caller can handle it, otherwise the failure of the job.
   */
  private static RuntimeException recognised(Exception failure, long time) {
    for (Throwable e = failure; e != null; e = e.getCause()) {
      if (e instanceof StateLost lost) return lost;
      if (e instanceof SourceStalled stalled) return stalled;
      if (e instanceof OperatorFailed failed) return failed;
    }
    return failure instanceof RuntimeException r ? r : new IllegalStateException("tick at " + time, failure);
  }

  // ---- in tasks ---------------------------------------------------------------------------------

  /**
   * Compiled circuits, kept between ticks. Generated projections are expensive to create and not
   * thread safe, so each task borrows a circuit.
   */
  private static class Borrower implements Serializable {
    private static final long serialVersionUID = 1;
    // circuits of this process to keep: an old one is not used after its tick
    private static final int CIRCUITS_MAX = 4;
    private static final Map<String, Deque<Circuit>> IDLE = new LinkedHashMap<>() {
      private static final long serialVersionUID = 1;

      @Override protected boolean removeEldestEntry(Map.Entry<String, Deque<Circuit>> eldest) { return size() > CIRCUITS_MAX; }
    };
    private final String id;
    private final Broadcast<byte[]> shipped;

    Borrower(String id, Broadcast<byte[]> shipped) {
      this.id = id;
      this.shipped = shipped;
    }

    /** Applies a function to a circuit. A circuit is not reused if the function fails. */
    <T> T with(Function<Circuit, T> use) {
      Deque<Circuit> idle;
      synchronized (IDLE) {
        idle = IDLE.computeIfAbsent(id, i -> new ConcurrentLinkedDeque<>());
      }
      Circuit circuit = Optional.ofNullable(idle.poll()).orElseGet(() -> SerializationUtils.deserialize(shipped.value()));
      T result = use.apply(circuit);
      idle.push(circuit);
      return result;
    }
  }

  /** The work of a stage on its partition of the store. */
  private abstract static class Use<T> implements Serializable {
    private static final long serialVersionUID = 1;
    private final Borrower circuits;

    Use(String id, Broadcast<byte[]> shipped) { circuits = new Borrower(id, shipped); }

    abstract List<T> run(Circuit circuit, State state, java.util.Iterator<InternalRow> input);

    List<T> apply(StateStore store, java.util.Iterator<InternalRow> input) { return circuits.with(c -> run(c, new State(store), input)); }
  }

  private static final class Whole extends Use<Sent> {
    private static final long serialVersionUID = 1;
    private final long time;
    private final String results;

    Whole(String id, Broadcast<byte[]> shipped, long time, String results) {
      super(id, shipped);
      this.time = time;
      this.results = results;
    }

    @Override List<Sent> run(Circuit circuit, State state, java.util.Iterator<InternalRow> input) {
      return Tick.all(circuit, state, time, results, input);
    }
  }

  private static final class Level extends Use<InternalRow> {
    private static final long serialVersionUID = 1;
    private final long time;
    private final int level, partitions;

    Level(String id, Broadcast<byte[]> shipped, long time, int level, int partitions) {
      super(id, shipped);
      this.time = time;
      this.level = level;
      this.partitions = partitions;
    }

    @Override List<InternalRow> run(Circuit circuit, State state, java.util.Iterator<InternalRow> input) {
      return Tick.level(circuit, state, time, level, TaskContext.getPartitionId(), partitions, input);
    }
  }

  static StateStoreProviderId storeId(String path, int store, int partition) {
    return new StateStoreProviderId(new StateStoreId(path, store, partition, StateStoreId.DEFAULT_STORE_NAME()), new UUID(0, 1));
  }

  /** The settings with which all stores are opened. */
  static final class Opening implements Serializable {
    private static final long serialVersionUID = 1;
    private static final String CANNOT_LOAD = "CANNOT_LOAD_STATE_STORE";
    private static final Map<SparkSession, Opening> ALL = Collections.synchronizedMap(new WeakHashMap<>());
    private final StateStoreConf conf;
    private final Broadcast<SerializableConfiguration> hadoop;
    private final transient StateStoreCoordinatorRef coordinator;

    /** Returns the settings of this session, which do not change. */
    static Opening of(SparkSession session) { return ALL.computeIfAbsent(session, Opening::new); }

    private Opening(SparkSession session) {
      conf = Snapshots.conf(session.sessionState().conf());
      hadoop = SerializableConfiguration$.MODULE$.broadcast(session.sparkContext(), session.sessionState().newHadoopConf());
      coordinator = session.streams().stateStoreCoordinator();
    }

    /** Opens a store at this version and uses it. Throws {@link StateLost} if Spark cannot load it. */
    <T> List<T> use(StateStoreProviderId id, StateIds.Store at, Function<StateStore, List<T>> use) {
      return DurableFiles.durably(() -> use.apply(open(id, at)));
    }

    /** Opens a store at this version, up to the end of the task. Throws {@link StateLost} if Spark cannot load it. */
    StateStore open(StateStoreProviderId id, StateIds.Store at) {
      DurableFiles.keep(id.storeId().checkpointRootLocation());
      int partition = id.storeId().partitionId();
      Option<String> version = at.ids() == null ? Option.empty() : Option.apply(at.ids()[partition]);
      try {
        return StateStore$.MODULE$.get(id, BYTES, BYTES, new NoPrefixKeyStateEncoderSpec(BYTES), at.version(), version, Option.empty(),
            false, conf, hadoop.value().value(), false);
      } catch (RuntimeException | Error e) {
        throw e;
      } catch (Exception e) {
        String condition = e instanceof SparkThrowable s ? s.getCondition() : null;
        if (condition != null && condition.startsWith(CANNOT_LOAD)) throw new StateLost(e.getMessage(), e);
        throw sneaky(e);
      }
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> RuntimeException sneaky(Throwable e) throws E { throw (E) e; }
  }

  /**
   * A stage over a state store, which is opened at exactly the version that the ids name. It
   * replaces Spark's StateStoreRDD, which sends Hadoop's configuration for each stage of each tick:
   * 6 ms of CPU.
   */
  private static final class Stage<U> extends RDD<U> {
    private static final long serialVersionUID = 1;
    private final RDD<InternalRow> rows;
    private final Use<U> use;
    private final String path;
    private final int store;
    private final StateIds.Store at;
    private final Opening opening;
    private transient List<List<String>> places;  // of the partitions, in the driver

    Stage(RDD<InternalRow> rows, Use<U> use, String path, int store, StateIds.Store at, Opening opening, ClassTag<U> out) {
      super(rows, out);
      this.rows = rows;
      this.use = use;
      this.path = path;
      this.store = store;
      this.at = at;
      this.opening = opening;
    }

    @Override public Partition[] getPartitions() { return rows.partitions(); }

    /** Returns the executor that last opened the store and still has it in memory, and perhaps idle ones. */
    @Override public scala.collection.immutable.Seq<String> getPreferredLocations(Partition split) {
      if (places == null) {
        List<String> open = new ArrayList<>();
        for (Partition p : rows.partitions()) {
          Option<String> at = opening.coordinator.getLocation(id(p));
          open.add(at.isEmpty() ? null : at.get());
        }
        places = Placement.of(open, Placement.executors());
      }
      return CollectionConverters.asScala(places.get(split.index())).toSeq();
    }

    private StateStoreProviderId id(Partition split) { return storeId(path, store, split.index()); }

    @Override public Iterator<U> compute(Partition split, TaskContext context) {
      java.util.Iterator<InternalRow> input = CollectionConverters.asJava(rows.iterator(split, context));
      return CollectionConverters.asScala(opening.use(id(split), at, store -> use.apply(store, input)).iterator());
    }
  }
}
