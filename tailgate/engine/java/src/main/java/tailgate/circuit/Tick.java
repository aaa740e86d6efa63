package tailgate.circuit;

import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.circuit.Node.Edge;
import tailgate.circuit.Node.Source;
import tailgate.errors.SparkErrors;
import tailgate.errors.SqlError;
import tailgate.functions.Try;
import tailgate.rows.Change;
import tailgate.rows.RowSink;
import tailgate.sources.KafkaRecord;
import tailgate.sources.SourceStalled;
import tailgate.state.State;

/**
 * One partition's part of one tick.
 *
 * <p>With a single partition, {@link #all} runs the whole tick. With more, {@link #sources} runs
 * where the batch is read, {@link #level} once per level and {@link #results} at the end.
 * Changes ({@link SentBlocks}) and other messages ({@link Sent}) travel between them, partitioned by node and key.
 */
public final class Tick {
  // entries of a forgotten operator to remove per tick and store: about 5 ms
  private static final int FORGET_MAX = 2000;
  private static final long WAITING_MAX = 32L << 20;  // bytes of waiting changes at which an operator is run early
  private static final int BATCH_ROWS = 4096, BATCH_BYTES = 4 << 20;  // changes of a node's output at which they are sent

  private final Circuit circuit;
  public final State state;
  /** The time of the tick in ms. */
  public final long time;
  private final int partition, partitions;
  private long due = Long.MAX_VALUE;
  private final boolean exchanged;
  /** Whether the tick reads a single record. Groups that it leaves as they are then remove and add their row ({@link Operator#repeats}). */
  public final boolean single;
  private final Pending[] pending;  // changes to process, per operator; null if none have arrived
  private final State.Input[] inputs;  // per operator
  private final TreeMap<Integer, Net> relations = new TreeMap<>();
  private int netOf;  // the relation that `net` belongs to
  private Net net;  // the one that received the last change
  private final long[] held;  // bytes of waiting changes, per operator
  private final long[] orders;  // the highest order of the waiting changes, per operator
  private final long[][] done;  // per operator, laid out as in Statistics
  private long inside;  // nanoseconds spent in operators that ran inside the current one
  private Operator[] looping;  // the loop of the operator that runs, or null
  private final List<Sent> notes = new ArrayList<>();  // counts and state ids for the driver
  private final List<InternalRow> onward = new ArrayList<>();  // for other partitions or later levels
  private final SentBlocks blocks;
  private final Map<Place, Long> newest = new HashMap<>();  // per partition of a channel: the newest time of its records
  private long order;  // of the changes that are sent
  private final Map<Integer, long[]> counts = new TreeMap<>();  // per source: records, dead letters
  private final Map<Node, Batch> batches = new LinkedHashMap<>();  // the changes that wait to be sent, by the node that has emitted them
  private final List<Change> rows = new ArrayList<>();  // the rows of one record
  private final RowSink copies = (row, weight, order) -> rows.add(new Change(row.copy(), weight, order));
  private static final int FAILURES_MAX = 100;  // messages of a partition's tick; rows of further ones are not counted
  private final List<Exception> caught = Try.caught();  // by expressions that continue with NULL
  private final Map<Failure, Long> failures = new LinkedHashMap<>();
  private final TreeMap<Integer, Long> took = new TreeMap<>();  // nanoseconds by step, see Sent.TOOK

  /** Rows that failed in an edge, or records in the key or the value, with the same message. */
  private record Failure(int to, int port, String message) {}

  /** Changes of a node's output, and the bytes of their rows. */
  private static final class Batch {
    final List<Change> changes = new ArrayList<>();
    int bytes;
  }

  /** A partition of a channel. */
  private record Place(String channel, int partition) {}

  private UnsafeProjection errors;  // created on first use: that takes as long as a hundred rows

  private Tick(Circuit circuit, State state, long time, int partition, int partitions, boolean exchanged) {
    this(circuit, state, time, partition, partitions, exchanged, false);
  }

  private Tick(Circuit circuit, State state, long time, int partition, int partitions, boolean exchanged, boolean single) {
    this.circuit = circuit;
    this.state = state;
    this.time = time;
    this.partition = partition;
    this.partitions = partitions;
    this.exchanged = exchanged;
    this.blocks = new SentBlocks(partitions, onward);
    this.single = single;
    this.held = new long[circuit.order.length];
    this.orders = new long[circuit.order.length];
    this.done = new long[circuit.order.length][Statistics.WIDTH];
    this.pending = new Pending[circuit.order.length];
    this.inputs = new State.Input[circuit.order.length];
    caught.clear();
  }

  /** Runs the whole circuit in the only partition. */
  public static List<Sent> all(Circuit circuit, State state, long time, String results, Iterator<InternalRow> batch) {
    return all(circuit, state, time, results, batch, false);
  }

  /** Runs the whole circuit in the only partition. `single`: whether the batch is a single record. */
  static List<Sent> all(Circuit circuit, State state, long time, String results, Iterator<InternalRow> batch, boolean single) {
    Tick tick = new Tick(circuit, state, time, 0, 1, false, single);
    tick.records(batch);
    for (Operator o : circuit.order) {
      long began = System.nanoTime();
      tick.run(o);
      tick.took(o.level, began);
      for (int relation : circuit.completed[o.index]) tick.arrow(relation, results);
    }
    tick.finish(0);
    tick.count();
    tick.note();
    tick.arrow(results);
    return tick.notes;
  }

  /** Converts Kafka's rows to changes for the first operators. */
  public static List<InternalRow> sources(Circuit circuit, long time, int partitions, Iterator<InternalRow> batch) {
    Tick tick = new Tick(circuit, null, time, 0, partitions, true);
    tick.records(batch);
    tick.count();
    return tick.onward();
  }

  /** Runs the operators of one level on its incoming changes. Returns the outgoing changes. */
  static List<InternalRow> level(Circuit circuit, State state, long time, int level, int partition,
      int partitions, Iterator<InternalRow> changes) {
    Tick tick = new Tick(circuit, state, time, partition, partitions, true);
    while (changes.hasNext()) {
      InternalRow c = changes.next();
      if (Sent.kind(c) == Sent.BLOCK && Sent.to(c) == level) SentBlocks.forEach(c, tick::arrive);
      else tick.onward.add(c.copy());
    }
    long began = System.nanoTime();
    for (Operator o : circuit.order) if (o.level == level) tick.run(o);
    tick.took(level, began);
    tick.finish(level);
    return tick.onward();
  }

  /** Returns all that the task sends. */
  private List<InternalRow> onward() {
    note();
    blocks.flush();
    for (Sent note : notes) onward.add(note.row());
    return onward;
  }

  /** Encodes the changes of relations as Arrow. All changes of a relation are in one partition. */
  public static List<Sent> results(Circuit circuit, String results, Iterator<InternalRow> changes) {
    Tick tick = new Tick(circuit, null, 0, 0, 1, false);
    while (changes.hasNext()) {
      InternalRow c = changes.next();
      if (Sent.kind(c) == Sent.BLOCK) SentBlocks.forEach(c, (port, relation, row, weight, order) -> tick.add(relation, row, weight));
      else tick.notes.add(Sent.of(c));
    }
    tick.arrow(results);
    return tick.notes;
  }

  // ---- records ----------------------------------------------------------------------------------

  /** Processes a record. It takes effect as a whole or not at all. */
  private void record(InternalRow kafka) {
    String channel = kafka.getUTF8String(KafkaRecord.TOPIC).toString();
    if (channel.startsWith(TopicBackfill.PIECE)) {
      piece(channel.substring(TopicBackfill.PIECE.length()), kafka.getLong(KafkaRecord.OFFSET));
      return;
    }
    if (channel.startsWith(Circuit.FORGET)) {
      forget(Integer.parseInt(channel.substring(Circuit.FORGET.length())), kafka);
      return;
    }
    List<Source> sources = circuit.channels.get(channel);
    if (sources == null) return;
    long at = kafka.isNullAt(KafkaRecord.TIMESTAMP) ? 0 : kafka.getLong(KafkaRecord.TIMESTAMP) / 1000;
    order = newest.merge(new Place(channel, kafka.getInt(KafkaRecord.PARTITION)), at, Math::max);
    boolean again = again(kafka);
    Set<Integer> except = again ? ids(KafkaRecord.header(kafka, Circuit.EXCEPT)) : Set.of();
    for (Source source : sources) {
      long[] count = counts.computeIfAbsent(source.id, s -> new long[Sent.COUNTS]);
      if (!again) {
        count[0]++;
        count[2] += KafkaRecord.size(kafka, KafkaRecord.KEY) + KafkaRecord.size(kafka, KafkaRecord.VALUE);
        if (!kafka.isNullAt(KafkaRecord.TIMESTAMP)) count[3] = Math.max(count[3], kafka.getLong(KafkaRecord.TIMESTAMP) / 1000);
      }
      try {
        enter(source, kafka, except);
        if (again) dead(source, kafka, null);
      } catch (SourceStalled | OperatorFailed e) {  // an operator may run early, while a record is processed
        throw e;
      } catch (UncheckedIOException e) {
        throw new SourceStalled(source.channel, e.getCause().getMessage());
      } catch (RuntimeException e) {
        SqlError error = SparkErrors.of(e);
        if (!again) {
          count[1]++;
          failed(source.id, error.inKey() ? Sent.KEY : Sent.VALUE, error);
        }
        failed(source, kafka, error, except);
      }
    }
  }

  /** Decodes a record and sends its rows, except to the operators and relations in `except`. */
  private void enter(Source source, InternalRow kafka, Set<Integer> except) {
    rows.clear();
    source.rows(kafka, time, order, copies);
    for (Change c : rows)
      if (except.isEmpty()) send(source, c.row(), c.weight());
      else for (Edge edge : source.out) if (!except.contains(edge.to)) send(edge, c.row(), c.weight());
  }

  private static Set<Integer> ids(String listed) {
    if (listed == null) return Set.of();
    Set<Integer> ids = new HashSet<>();
    for (String id : listed.split(",")) ids.add(Integer.valueOf(id));
    return ids;
  }

  /**
   * Deletes a dead letter, whether or not its source is read: sends the deletion of its key to the
   * operator that keeps it.
   */
  private void forget(int keeper, InternalRow kafka) {
    if (!(circuit.nodes.get(keeper) instanceof Operator operator)) return;
    UnsafeRow deletion = operator.deletion(
        UTF8String.fromBytes(kafka.getBinary(KafkaRecord.KEY)), kafka.getInt(KafkaRecord.PARTITION), kafka.getLong(KafkaRecord.OFFSET));
    if (deletion == null) return;
    Edge edge = new Edge(null, keeper, 0);
    edge.index = operator.index;
    arrive(edge, deletion, 1);
  }

  /**
   * Processes a piece of a fill, decoded outside of ticks. Records that could not be decoded are
   * decoded again here, where `onError` is applied.
   */
  private void piece(String channel, long number) {
    List<Source> sources = circuit.channels.get(channel);
    if (sources == null) return;
    TopicBackfill.Piece piece = TopicBackfill.piece(number);
    for (Source source : sources) {
      long[] count = counts.computeIfAbsent(source.id, s -> new long[Sent.COUNTS]);
      count[0] += piece.records;
      count[2] += piece.bytes;
      count[3] = Math.max(count[3], piece.newest);
      piece.rows(source.id).forEach((row, weight, order) -> {
        this.order = order;
        send(source, row, weight);
      });
    }
    piece.raw.forEach(this::record);
  }

  private void failed(Source source, InternalRow kafka, SqlError error, Set<Integer> except) {
    switch (source.onError) {
      case "fail" ->
          throw new SourceStalled(source.channel,
              "partition " + kafka.getInt(KafkaRecord.PARTITION) + ", offset "
              + kafka.getLong(KafkaRecord.OFFSET) + ": " + error.getMessage(), true);
      case "null" -> {
        GenericInternalRow without =
            new GenericInternalRow(new Object[] {kafka.isNullAt(KafkaRecord.KEY) ? null
            : kafka.getBinary(KafkaRecord.KEY), null, kafka.getUTF8String(KafkaRecord.TOPIC),
            kafka.getInt(KafkaRecord.PARTITION), kafka.getLong(KafkaRecord.OFFSET), kafka.getLong(KafkaRecord.TIMESTAMP), 0,
            KafkaRecord.headers(kafka)});
        try {
          enter(source, without, except);
          if (again(kafka)) dead(source, kafka, null);
        } catch (SqlError e) {  // the key cannot be decoded either
          dead(source, kafka, e);
        }
      }
      default -> dead(source, kafka, error);
    }
  }

  /** Returns whether the record is a dead letter that is retried. */
  private static boolean again(InternalRow kafka) { return kafka.getUTF8String(KafkaRecord.TOPIC).toString().startsWith(Circuit.RETRY); }

  /**
   * Emits a dead letter, or without an error, the deletion of one. The headers of a retried letter
   * hold its number of attempts, its time and whether a backfill produced it.
   */
  private void dead(Source source, InternalRow kafka, SqlError error) {
    boolean again = again(kafka);
    String tried = again ? KafkaRecord.header(kafka, Circuit.ATTEMPTS) : null;
    String first = again ? KafkaRecord.header(kafka, Circuit.SINCE) : null;
    int attempts = tried == null ? 1 : Integer.parseInt(tried);
    long since = first == null ? time : Long.parseLong(first);
    boolean backfill = again ? "true".equals(KafkaRecord.header(kafka, Circuit.BACKFILL)) : source.channel.startsWith(Circuit.FILL);
    InternalRow row = new GenericInternalRow(
        new Object[] {kafka.getUTF8String(KafkaRecord.TOPIC), kafka.getInt(KafkaRecord.PARTITION),
        kafka.getLong(KafkaRecord.OFFSET),
        kafka.getLong(KafkaRecord.TIMESTAMP), kafka.isNullAt(KafkaRecord.KEY) ? null : kafka.getBinary(KafkaRecord.KEY),
        kafka.isNullAt(KafkaRecord.VALUE) ? null : kafka.getBinary(KafkaRecord.VALUE),
            error == null ? null : UTF8String.fromString(error.getMessage()), attempts,
            since * 1000, backfill});
    for (Edge edge : source.dead) send(edge, row, 1);
  }

  private void failed(int to, int port, SqlError error) {
    Failure failure = new Failure(to, port, error.getMessage());
    if (failures.size() < FAILURES_MAX || failures.containsKey(failure)) failures.merge(failure, 1L, Long::sum);
  }

  /** Reports the errors that expressions of an edge have replaced with NULL. */
  private void failed(Edge edge) {
    for (Exception e : caught) failed(edge.to, edge.port, SparkErrors.of(e));
    caught.clear();
  }

  private void records(Iterator<InternalRow> batch) {
    long began = System.nanoTime();
    batch.forEachRemaining(this::record);
    for (Node source : List.copyOf(batches.keySet())) flush(source);
    took(Sent.DECODING, began);
  }

  private void took(int step, long began) { took.merge(step, System.nanoTime() - began, Long::sum); }

  private void note() {
    took.forEach((step, nanos) -> notes.add(new Sent(Sent.TOOK, step, State.NONE, nanos)));
    failures.forEach((f, rows) -> notes.add(new Sent(Sent.FAILURE, f.to(), f.message().getBytes(StandardCharsets.UTF_8), rows, f.port())));
  }

  private void count() {
    counts.forEach((source, n) ->
        notes.add(new Sent(Sent.COUNT, source,
        ByteBuffer.allocate(24).putLong(n[1]).putLong(n[2]).putLong(n[3]).array(), n[0])));
  }

  // ---- operators --------------------------------------------------------------------------------

  /** Runs an operator if it has to. The operators of a loop run together, when it is the turn of the first. */
  private void run(Operator operator) {
    if (operator.loop == null) once(operator);
    else if (operator.loop[0] == operator) {
      do for (Operator o : operator.loop) once(o); while (Arrays.stream(operator.loop).anyMatch(o -> pending[o.index] != null));
    }
  }

  private void once(Operator operator) {
    boolean here = operator.always() && Math.floorMod(Sent.place(operator.id, State.NONE), partitions) == partition;
    if (here || operator.everywhere() || pending[operator.index] != null) timed(operator);
  }

  /**
   * Runs an operator on its pending changes and measures its time. The time includes the filters and
   * projections after it and the arrival of its output at other operators, but not these operators if
   * they are run early meanwhile.
   */
  private void timed(Operator operator) {
    Pending changes = pending[operator.index] == null ? operator.pending() : pending[operator.index];
    pending[operator.index] = null;
    held[operator.index] = 0;
    long[] did = done[operator.index];
    long outside = inside, began = System.nanoTime(), before = order;
    Operator[] around = looping;
    looping = operator.loop;
    inside = 0;
    order = orders[operator.index];
    orders[operator.index] = 0;
    try {
      changes.run(this);
      flush(operator);
    } catch (RuntimeException | StackOverflowError | AssertionError | LinkageError e) {
      throw OperatorFailed.of(operator, e);
    }
    order = before;
    looping = around;
    long took = System.nanoTime() - began;
    did[Statistics.NANOS] += took - inside;
    inside = outside + took;
  }

  /**
   * Reports the work and the state size of a level's operators. Idle operators are reported once.
   */
  private void report(int level) {
    boolean first = circuit.reported.add((long) level << 32 | partition);
    for (Operator o : circuit.order) {
      long[] did = done[o.index];
      if ((exchanged && o.level != level) || !(first || did[Statistics.NANOS] > 0)) continue;
      System.arraycopy(state.sized(o.id), 0, did, Statistics.ENTRIES, Statistics.WIDTH - Statistics.ENTRIES);
      notes.add(new Sent(Sent.STATISTICS, o.id, Statistics.bytes(did), partition));
    }
  }

  private void finish(int store) {
    report(store);
    for (int node : circuit.forgotten) if (state.forget(node, FORGET_MAX)) notes.add(new Sent(Sent.REMAINS, node, State.NONE, 0));
    if (due != Long.MAX_VALUE) notes.add(new Sent(Sent.DUE, 0, State.NONE, due));
    if (state == null) return;
    long began = System.nanoTime();
    byte[] version = state.commit(time).getBytes(StandardCharsets.US_ASCII);
    took(Sent.COMMITTING, began);
    notes.add(new Sent(Sent.STATE, store, version, partition, state.lineage()));
  }

  /** Emits a change of an operator's output. The caller may reuse the row afterwards. */
  public void emit(Operator from, InternalRow row, long weight) {
    if (weight == 0) return;
    done[from.index][Statistics.OUT]++;
    for (Edge edge : from.direct) send(edge, row, weight);
    if (!from.batched.isEmpty()) hold(from, from.batch.of(row), weight);
  }

  /** Gives the order of a change to those that are emitted from now on; by default it is the highest of the operator's input. */
  public void at(Change change) { at(change.order()); }

  /** Gives an order to the changes that are emitted from now on. */
  public void at(long order) { this.order = order; }

  /** Replaces the changes that wait for an operator, which runs again in this tick if they are not null. */
  public void waiting(Operator operator, Pending changes) { pending[operator.index] = changes; }

  /** Counts late rows that an operator has dropped. */
  public void late(Operator operator, long rows) { if (rows > 0) notes.add(new Sent(Sent.LATE, operator.id, State.NONE, rows)); }

  /** Reports that an operator has retracted the groups of all windows that end at or before a time in ms. */
  public void released(Operator operator, long until) { notes.add(new Sent(Sent.RELEASED, operator.id, State.NONE, until)); }

  /** Requests a tick at a later time, for an operator that must act without input. */
  public void due(long millis) { due = Math.min(due, millis); }

  /** Emits an error of an operator's output. */
  public void fail(Operator from, SqlError error, long weight) { fail(from.errors, error, weight); }

  private void fail(int[] targets, SqlError error, long weight) {
    if (weight == 0 || targets.length == 0) return;
    if (errors == null) errors = UnsafeProjection.create(Circuit.ERROR);
    UnsafeRow row = errors.apply(
        new GenericInternalRow(new Object[] {UTF8String.fromString(error.sqlstate()),
        UTF8String.fromString(error.getMessage())}));
    for (int relation : targets) relation(relation, row, weight);
  }

  /** Sends a change of a source's output. */
  private void send(Source from, UnsafeRow row, long weight) {
    for (Edge edge : from.direct) send(edge, row, weight);
    if (!from.batched.isEmpty()) hold(from, row, weight);
  }

  private void hold(Node from, UnsafeRow row, long weight) {
    Batch batch = batches.computeIfAbsent(from, n -> new Batch());
    batch.changes.add(new Change(row.copy(), weight, order));
    batch.bytes += row.getSizeInBytes();
    if (batch.changes.size() >= BATCH_ROWS || batch.bytes >= BATCH_BYTES) flush(from);
  }

  /**
   * Sends the changes that a node has emitted, edge by edge. With many edges this is faster than change by change: the code of an
   * edge and the groups of its operator stay in the processor's cache.
   */
  private void flush(Node from) {
    Batch batch = batches.remove(from);
    if (batch == null) return;
    long before = order;
    for (Edge edge : from.batched)
      for (Change change : batch.changes) {
        order = change.order();
        send(edge, change.row(), change.weight());
      }
    order = before;
  }

  private void send(Edge edge, InternalRow row, long weight) {
    UnsafeRow shaped = null;
    List<UnsafeRow> several = List.of();
    try {
      if (edge.linear.expands) several = edge.linear.all(row);
      else shaped = edge.linear.apply(row);
    } catch (Exception e) {  // Spark throws checked exceptions, too
      fail(edge.errors, edge.linear.error(e), weight);
      return;
    } catch (StackOverflowError e) {
      fail(edge.errors, SqlError.tooDeep(), weight);
      return;
    } finally {
      if (!caught.isEmpty()) failed(edge);
    }
    if (shaped != null) arrive(edge, shaped, weight);
    for (UnsafeRow one : several) arrive(edge, one, weight);
  }

  private void arrive(Edge edge, UnsafeRow shaped, long weight) {
    if (edge.port == Edge.RELATION) relation(edge.to, shaped, weight);
    else if (exchanged && !edge.inLoop) exchange(edge, circuit.order[edge.index], shaped, weight);
    else arrive(circuit.order[edge.index], edge.port, shaped, weight, order);
  }

  /**
   * Adds a change to those that wait for an operator. If they need much memory, the operator runs
   * early: its total output does not depend on how its input is split. An ordered operator is not run
   * early: the inputs limit the size of a tick. Nor is one of the loop that runs, which may be in the middle of its changes.
   */
  private void arrive(Operator operator, int port, UnsafeRow row, long weight, long order) {
    int i = operator.index;
    if (inputs[i] == null) inputs[i] = state.input(operator.id);
    orders[i] = Math.max(orders[i], order);
    done[i][Statistics.IN]++;
    inputs[i].received(port, row, weight);
    try {
      if (pending[i] == null) pending[i] = operator.pending();
      held[i] += pending[i].add(port, row, weight, order);
    } catch (RuntimeException | StackOverflowError | AssertionError | LinkageError e) {
      throw OperatorFailed.of(operator, e);
    }
    if (held[i] > WAITING_MAX && !operator.ordered() && (operator.loop == null || operator.loop != looping)) timed(operator);
  }

  /** A change that another task has sent. */
  private void arrive(int port, int to, UnsafeRow row, long weight, long order) {
    arrive((Operator) circuit.nodes.get(to), port, row, weight, order);
  }

  private void exchange(Edge edge, Operator to, UnsafeRow shaped, long weight) {
    try {
      if (to.loop != null) exchange(edge, to, Sent.place(to.loop[0].id, State.NONE), shaped, weight);
      else if (to.everywhere(edge.port, shaped)) for (int p = 0; p < partitions; p++) exchange(edge, to, p, shaped, weight);
      else exchange(edge, to, Sent.place(edge.to, to.key(edge.port, shaped)), shaped, weight);
    } catch (RuntimeException e) {
      throw OperatorFailed.of(to, e);
    }
  }

  private void exchange(Edge edge, Operator to, int place, UnsafeRow row, long weight) {
    blocks.add(to.level, place, edge.port, edge.to, row, weight, order);
  }

  /** Returns whether a key of an operator belongs to this partition. */
  public boolean here(int operator, byte[] key) {
    return partitions == 1 || Math.floorMod(Sent.place(operator, key), partitions) == partition;
  }

  // ---- relations --------------------------------------------------------------------------------

  private void relation(int relation, UnsafeRow row, long weight) {
    if (exchanged) blocks.add(SentBlocks.RELATIONS, Sent.place(relation, State.NONE), Edge.RELATION, relation, row, weight, 0);
    else add(relation, row, weight);
  }

  private void add(int relation, UnsafeRow row, long weight) {
    if (net == null || netOf != relation) {
      net = relations.computeIfAbsent(relation, r -> new Net(circuit.form(r), Net.MEMORY_MAX));
      netOf = relation;
    }
    net.add(row, weight);
  }

  /** Encodes the changes of the relations that remain. */
  private void arrow(String results) { for (int relation : List.copyOf(relations.keySet())) arrow(relation, results); }

  /** Encodes the changes of a relation, which receives no more of them, and releases their memory. */
  private void arrow(int relation, String results) {
    Net changes = relations.remove(relation);
    if (changes == null) return;
    net = null;
    try {
      Sent sent = changes.sent(relation, results);
      if (sent != null) notes.add(sent);
      Sent repeated = single && circuit.repeating.contains(relation) ? changes.repeated(relation) : null;
      if (repeated != null) notes.add(repeated);
    } catch (RuntimeException e) {
      throw OperatorFailed.of(relation, e);
    }
  }
}
