package tailgate;

import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.Node.Edge;
import tailgate.Node.Source;
import tailgate.errors.SparkErrors;
import tailgate.errors.SqlError;

/**
 * One partition's part of one tick.
 *
 * <p>With one partition it is all of it: {@link #all}. With more, {@link #sources} runs where the batch is read, {@link #level} once per level, {@link #results} at the
 * end, and {@link Sent} rows travel between them, placed by node and key.
 */
final class Tick {
  private static final int FORGET_MAX = 2000;          // entries of a forgotten operator removed per tick and store: about 5 ms
  private static final long WAITING_MAX = 32L << 20;    // bytes that wait for an operator before it is run
  private static final int OVERHEAD = 64;               // bytes of a change, besides the row

  /** A row and how many copies of it came or went. */
  record Change(UnsafeRow row, long weight) {}

  private final Circuit circuit;
  final State state;
  /** The tick's, in milliseconds. */
  final long time;
  private final int partition, partitions;
  private long due = Long.MAX_VALUE;
  private final boolean exchanged;
  private final List<List<List<Change>>> waiting = new ArrayList<>();            // per operator and port
  private final TreeMap<Integer, Net> relations = new TreeMap<>();
  private final long[] held;                                                       // bytes that wait, per operator
  private final long[][] done;                                                     // per operator, as Statistics counts
  private long inside;                                                             // nanoseconds of operators within the one that runs
  private final List<Sent> notes = new ArrayList<>();                            // counts and state ids on their way to the driver
  private final List<InternalRow> onward = new ArrayList<>();                    // what goes to other partitions or later levels
  private final Map<Integer, long[]> counts = new TreeMap<>();                   // per source: records, dead letters
  private final List<Change> rows = new ArrayList<>();                           // of one record
  private UnsafeProjection errors;                                               // made when there is one: it takes as long as a hundred rows

  private Tick(Circuit circuit, State state, long time, int partition, int partitions, boolean exchanged) {
    this.circuit = circuit;
    this.state = state;
    this.time = time;
    this.partition = partition;
    this.partitions = partitions;
    this.exchanged = exchanged;
    this.held = new long[circuit.order.length];
    this.done = new long[circuit.order.length][Statistics.WIDTH];
    for (Operator o : circuit.order) {
      List<List<Change>> ports = new ArrayList<>();
      for (int i = 0; i < o.inputs; i++) ports.add(new ArrayList<>());
      waiting.add(ports);
    }
  }

  /** The whole circuit, in the only partition. */
  static List<Sent> all(Circuit circuit, State state, long time, String results, Iterator<InternalRow> batch) {
    Tick tick = new Tick(circuit, state, time, 0, 1, false);
    batch.forEachRemaining(tick::record);
    for (Operator o : circuit.order) tick.run(o);
    tick.finish(0);
    tick.count();
    tick.arrow(results);
    return tick.notes;
  }

  /** Kafka's rows to changes on their way to the first operators. */
  static List<InternalRow> sources(Circuit circuit, long time, int partitions, Iterator<InternalRow> batch) {
    Tick tick = new Tick(circuit, null, time, 0, partitions, true);
    batch.forEachRemaining(tick::record);
    tick.count();
    for (Sent note : tick.notes) tick.onward.add(note.row());
    return tick.onward;
  }

  /** The operators of one level: changes in, changes out. */
  static List<InternalRow> level(Circuit circuit, State state, long time, int level, int partition, int partitions, Iterator<InternalRow> changes) {
    Tick tick = new Tick(circuit, state, time, partition, partitions, true);
    while (changes.hasNext()) {
      InternalRow c = changes.next();
      Operator to = Sent.kind(c) < 0 ? null : (Operator) circuit.nodes.get(Sent.to(c));
      if (to != null && to.level == level) tick.waiting.get(to.index).get(Sent.kind(c)).add(new Change(Rows.row(Sent.bytes(c), to.ports()[Sent.kind(c)].length()), Sent.n(c)));
      else tick.onward.add(c.copy());
    }
    for (Operator o : circuit.order) if (o.level == level) tick.run(o);
    tick.finish(level);
    for (Sent note : tick.notes) tick.onward.add(note.row());
    return tick.onward;
  }

  /** Changes of relations to Arrow. All changes of a relation are in one partition. */
  static List<Sent> results(Circuit circuit, String results, Iterator<InternalRow> changes) {
    Tick tick = new Tick(circuit, null, 0, 0, 1, false);
    while (changes.hasNext()) {
      InternalRow c = changes.next();
      if (Sent.kind(c) == Edge.RELATION) tick.add(Sent.to(c), Sent.bytes(c), Sent.n(c));
      else tick.notes.add(Sent.of(c));
    }
    tick.arrow(results);
    return tick.notes;
  }

  // ---- records -----------------------------------------------------------------------------------------------------------------

  /** A record enters whole or not at all. */
  private void record(InternalRow kafka) {
    String channel = kafka.getUTF8String(Circuit.TOPIC).toString();
    if (channel.startsWith(History.PIECE)) {
      piece(channel.substring(History.PIECE.length()), kafka.getLong(Circuit.OFFSET));
      return;
    }
    if (channel.startsWith(Circuit.FORGET)) {
      forget(Integer.parseInt(channel.substring(Circuit.FORGET.length())), kafka);
      return;
    }
    List<Source> sources = circuit.channels.get(channel);
    if (sources == null) return;
    boolean again = again(kafka);
    Set<Integer> except = again ? ids(header(kafka, Circuit.EXCEPT)) : Set.of();
    for (Source source : sources) {
      long[] count = counts.computeIfAbsent(source.id, s -> new long[Sent.COUNTS]);
      if (!again) {
        count[0]++;
        count[2] += size(kafka, Circuit.KEY) + size(kafka, Circuit.VALUE);
        if (!kafka.isNullAt(Circuit.TIMESTAMP)) count[3] = Math.max(count[3], kafka.getLong(Circuit.TIMESTAMP) / 1000);
      }
      try {
        enter(source, kafka, except);
        if (again) dead(source, kafka, null);
      } catch (SourceStalled | OperatorFailed e) {  // an operator may run while a record enters: drain
        throw e;
      } catch (UncheckedIOException e) {
        throw new SourceStalled(source.channel, e.getCause().getMessage());
      } catch (RuntimeException e) {
        if (!again) count[1]++;
        failed(source, kafka, SparkErrors.of(e), except);
      }
    }
  }

  /** `except`: the operators and relations that the rows are not for. */
  private void enter(Source source, InternalRow kafka, Set<Integer> except) {
    rows.clear();
    source.rows(kafka, rows);
    for (Change c : rows) for (Edge edge : source.out) if (except.isEmpty() || !except.contains(edge.to)) send(edge, c.row, c.weight);
  }

  private static Set<Integer> ids(String listed) {
    if (listed == null) return Set.of();
    Set<Integer> ids = new HashSet<>();
    for (String id : listed.split(",")) ids.add(Integer.valueOf(id));
    return ids;
  }

  /** Ends a dead letter, whether or not its source is read: the operator that keeps it gets the deletion of its key. */
  private void forget(int keeper, InternalRow kafka) {
    if (!(circuit.nodes.get(keeper) instanceof Upsert upsert)) return;
    StructType port = upsert.ports()[0];
    Object[] values = new Object[port.length()];
    values[0] = UTF8String.fromBytes(kafka.getBinary(Circuit.KEY));
    values[1] = kafka.getInt(Circuit.PARTITION);
    values[2] = kafka.getLong(Circuit.OFFSET);
    values[port.length() - 2] = true;
    Edge edge = new Edge(null, keeper, 0);
    edge.index = upsert.index;
    arrive(edge, UnsafeProjection.create(port).apply(new GenericInternalRow(values)), 1);
  }

  /** Records that were decoded beside the ticks; those that could not be are tried again here, where it is decided what becomes of them. */
  private void piece(String channel, long number) {
    List<Source> sources = circuit.channels.get(channel);
    if (sources == null) return;
    History.Piece piece = History.piece(number);
    for (Source source : sources) {
      long[] count = counts.computeIfAbsent(source.id, s -> new long[Sent.COUNTS]);
      count[0] += piece.records;
      count[2] += piece.bytes;
      count[3] = Math.max(count[3], piece.newest);
      for (Change c : piece.rows.get(source.id)) for (Edge edge : source.out) send(edge, c.row, c.weight);
    }
    piece.failed.forEach(this::record);
  }

  private void failed(Source source, InternalRow kafka, SqlError error, Set<Integer> except) {
    switch (source.onError) {
      case "fail" -> throw new SourceStalled(source.channel, "partition " + kafka.getInt(Circuit.PARTITION) + ", offset " + kafka.getLong(Circuit.OFFSET) + ": " + error.getMessage(), true);
      case "null" -> {
        GenericInternalRow without = new GenericInternalRow(new Object[] {kafka.isNullAt(Circuit.KEY) ? null : kafka.getBinary(Circuit.KEY), null, kafka.getUTF8String(Circuit.TOPIC),
            kafka.getInt(Circuit.PARTITION), kafka.getLong(Circuit.OFFSET), kafka.getLong(Circuit.TIMESTAMP), 0, headers(kafka)});
        try {
          enter(source, without, except);
          if (again(kafka)) dead(source, kafka, null);
        } catch (SqlError e) {  // of the key
          dead(source, kafka, e);
        }
      }
      default -> dead(source, kafka, error);
    }
  }

  private static org.apache.spark.sql.catalyst.util.ArrayData headers(InternalRow kafka) {
    return kafka.numFields() <= Circuit.HEADERS || kafka.isNullAt(Circuit.HEADERS) ? null : kafka.getArray(Circuit.HEADERS);
  }

  private static int size(InternalRow kafka, int column) { return kafka.isNullAt(column) ? 0 : kafka.getBinary(column).length; }

  /** The last header of this name, of a record from the inbox; null if there is none. */
  private static String header(InternalRow kafka, String name) {
    var all = headers(kafka);
    for (int i = all == null ? -1 : all.numElements() - 1; i >= 0; i--) {
      InternalRow one = all.getStruct(i, 2);
      if (one.getUTF8String(0).toString().equals(name)) return new String(one.getBinary(1), java.nio.charset.StandardCharsets.US_ASCII);
    }
    return null;
  }

  /** Whether it is a dead letter that is retried. */
  private static boolean again(InternalRow kafka) { return kafka.getUTF8String(Circuit.TOPIC).toString().startsWith(Circuit.RETRY); }

  /** A dead letter; without an error, the end of one. Of those that come again the headers tell how often, and since when and why it is one. */
  private void dead(Source source, InternalRow kafka, SqlError error) {
    boolean again = again(kafka);
    String tried = again ? header(kafka, Circuit.ATTEMPTS) : null, begun = again ? header(kafka, Circuit.SINCE) : null;
    int attempts = tried == null ? 1 : Integer.parseInt(tried);
    long since = begun == null ? time : Long.parseLong(begun);
    boolean backfill = again ? "true".equals(header(kafka, Circuit.BACKFILL)) : source.channel.startsWith(Circuit.FILL);
    InternalRow row = new GenericInternalRow(new Object[] {kafka.getUTF8String(Circuit.TOPIC), kafka.getInt(Circuit.PARTITION), kafka.getLong(Circuit.OFFSET),
        kafka.getLong(Circuit.TIMESTAMP), kafka.isNullAt(Circuit.KEY) ? null : kafka.getBinary(Circuit.KEY),
        kafka.isNullAt(Circuit.VALUE) ? null : kafka.getBinary(Circuit.VALUE), error == null ? null : UTF8String.fromString(error.getMessage()), attempts, since * 1000, backfill});
    for (Edge edge : source.dead) send(edge, row, 1);
  }

  private void count() {
    counts.forEach((source, n) -> notes.add(new Sent(Sent.COUNT, source, ByteBuffer.allocate(24).putLong(n[1]).putLong(n[2]).putLong(n[3]).array(), n[0])));
  }

  // ---- operators ---------------------------------------------------------------------------------------------------------------

  private void run(Operator operator) {
    List<List<Change>> input = waiting.set(operator.index, null);
    boolean here = operator.always() && Math.floorMod(Sent.place(operator.id, State.NONE), partitions) == partition;
    if (here || operator.everywhere() || input.stream().anyMatch(port -> !port.isEmpty())) timed(operator, input);
  }

  /** Runs it; what it takes includes the filters and projections behind it, not the operators that are drained meanwhile. */
  private void timed(Operator operator, List<List<Change>> input) {
    long[] did = done[operator.index];
    for (int i = 0; i < input.size(); i++) {
      did[Statistics.IN] += input.get(i).size();
      state.received(operator.id, i, input.get(i));
    }
    long outside = inside, began = System.nanoTime();
    inside = 0;
    try {
      operator.run(this, input);
    } catch (RuntimeException | StackOverflowError | AssertionError | LinkageError e) {
      throw OperatorFailed.of(operator, e);
    }
    long took = System.nanoTime() - began;
    did[Statistics.NANOS] += took - inside;
    inside = outside + took;
  }

  /** What the operators of a level did, and what they hold; those that did nothing tell it once. */
  private void tell(int level) {
    boolean first = circuit.told.add((long) level << 32 | partition);
    for (Operator o : circuit.order) {
      long[] did = done[o.index];
      if ((exchanged && o.level != level) || !(first || did[Statistics.NANOS] > 0)) continue;
      System.arraycopy(state.sized(o.id), 0, did, Statistics.ENTRIES, Statistics.WIDTH - Statistics.ENTRIES);
      notes.add(new Sent(Sent.STATISTICS, o.id, Statistics.bytes(did), partition));
    }
  }

  private void finish(int store) {
    tell(store);
    for (int node : circuit.forgotten) if (state.forget(node, FORGET_MAX)) notes.add(new Sent(Sent.REMAINS, node, State.NONE, 0));
    if (due != Long.MAX_VALUE) notes.add(new Sent(Sent.DUE, 0, State.NONE, due));
    notes.add(new Sent(Sent.STATE, store, state.commit(time).getBytes(java.nio.charset.StandardCharsets.US_ASCII), partition));
  }

  /** A change of the output of an operator. The row may be reused afterwards. */
  void emit(Operator from, InternalRow row, long weight) {
    if (weight == 0) return;
    done[from.index][Statistics.OUT]++;
    for (Edge edge : from.out) send(edge, row, weight);
  }

  /** Says that an operator has something to do at a later time, without input. */
  void due(long millis) { due = Math.min(due, millis); }

  /** An error of an operator's output. */
  void fail(Operator from, SqlError error, long weight) { fail(from.errors, error, weight); }

  private void fail(int[] targets, SqlError error, long weight) {
    if (weight == 0 || targets.length == 0) return;
    if (errors == null) errors = UnsafeProjection.create(Circuit.ERROR);
    UnsafeRow row = errors.apply(new GenericInternalRow(new Object[] {UTF8String.fromString(error.sqlstate()), UTF8String.fromString(error.getMessage())}));
    for (int relation : targets) relation(relation, row, weight);
  }

  private void send(Edge edge, InternalRow row, long weight) {
    UnsafeRow shaped = null;
    List<UnsafeRow> several = List.of();
    try {
      if (edge.linear.expands) several = edge.linear.all(row);
      else shaped = edge.linear.apply(row);
    } catch (RuntimeException e) {
      fail(edge.errors, edge.linear.error(e), weight);
      return;
    } catch (StackOverflowError e) {
      fail(edge.errors, SqlError.tooDeep(), weight);
      return;
    }
    if (shaped != null) arrive(edge, shaped, weight);
    for (UnsafeRow one : several) arrive(edge, one, weight);
  }

  private void arrive(Edge edge, UnsafeRow shaped, long weight) {
    if (edge.port == Edge.RELATION) relation(edge.to, shaped, weight);
    else if (exchanged) exchange(edge, circuit.order[edge.index], shaped, weight);
    else {
      waiting.get(edge.index).get(edge.port).add(new Change(shaped.copy(), weight));
      if ((held[edge.index] += shaped.getSizeInBytes() + OVERHEAD) > WAITING_MAX) drain(circuit.order[edge.index]);
    }
  }

  /** Runs an operator before its inputs have ended, because much waits for it: what it emits in all does not depend on how its input was cut. */
  private void drain(Operator operator) {
    List<List<Change>> input = waiting.get(operator.index), next = new ArrayList<>();
    for (int i = 0; i < input.size(); i++) next.add(new ArrayList<>());
    waiting.set(operator.index, next);
    held[operator.index] = 0;
    timed(operator, input);
  }

  private void exchange(Edge edge, Operator to, UnsafeRow shaped, long weight) {
    Sent sent = new Sent(edge.port, edge.to, Rows.bytes(shaped), weight);
    try {
      if (to.everywhere(edge.port, shaped)) for (int p = 0; p < partitions; p++) onward.add(sent.row(p));
      else onward.add(sent.row(to.key(edge.port, shaped)));
    } catch (RuntimeException e) {
      throw OperatorFailed.of(to, e);
    }
  }

  /** Whether a key of an operator is this partition's. */
  boolean here(int operator, byte[] key) { return partitions == 1 || Math.floorMod(Sent.place(operator, key), partitions) == partition; }

  // ---- relations ---------------------------------------------------------------------------------------------------------------

  private void relation(int relation, UnsafeRow row, long weight) {
    if (exchanged) onward.add(new Sent(Edge.RELATION, relation, Rows.bytes(row), weight).row());
    else add(relation, Rows.bytes(row), weight);
  }

  private void add(int relation, byte[] row, long weight) {
    relations.computeIfAbsent(relation, r -> new Net(circuit.relations.get(r), Net.MEMORY_MAX)).add(row, weight);
  }

  private void arrow(String results) {
    relations.forEach((relation, net) -> {
      try {
        Sent sent = net.sent(relation, results);
        if (sent != null) notes.add(sent);
      } catch (RuntimeException e) {
        throw OperatorFailed.of(relation, e);
      }
    });
  }
}
