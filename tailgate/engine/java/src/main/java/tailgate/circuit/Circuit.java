package tailgate.circuit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.util.*;
import java.util.function.BiConsumer;
import org.apache.commons.lang3.SerializationUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.types.StructType;
import tailgate.rows.Columns;
import tailgate.rows.Steps;
import tailgate.sources.Decoder;
import tailgate.state.StateIds;

/**
 * The operators of all views as one graph.
 *
 * <p>The nodes are sources, stateful operators and relations. Every edge is a chain of filters and
 * projections. A tick pushes the changes of one batch through the graph in topological order and
 * returns the net changes per relation as Arrow.
 *
 * <pre>   Kafka rows ──source──► [operator] ──edge──► [operator] ──edge──► relation ──► Arrow bytes to the driver
 *                 │             │ state                │ state
 *                 ▼             └── stores: (operator, port, key, row) → value
 *            dead letters</pre>
 *
 * <p>A change is a row and a weight: +1 inserts a copy, -1 deletes one. If an edge or operator
 * fails for a row, the row becomes a weighted error (SQLSTATE, message) of all relations below that
 * point. The error is deleted when the row is deleted.
 *
 * <p>Python builds a circuit once per version of the catalog: it adds all parts in any order and
 * then calls {@link #seal}. The caller chooses the ids of nodes and keeps them stable as long as
 * state is kept. Adding or removing nodes does not affect the state of others.
 */
public final class Circuit implements Serializable {
  private static final long serialVersionUID = 1;
  private static final ObjectMapper JSON = new ObjectMapper();
  static final StructType DEAD = new StructType().add("topic", "string").add("partition", "int").add("offset", "long")
      .add("timestamp", "timestamp").add("key", "binary").add("value", "binary").add("error", "string").add("attempts", "int")
      .add("since", "timestamp").add("backfill", "boolean");
  /**
   * Prefix of the channel on which dead letters of a source node are retried; the node's id
   * follows. Headers: {@link #ATTEMPTS}, {@link #SINCE}, {@link #BACKFILL} and, if some views
   * already have its rows, {@link #EXCEPT}.
   */
  static final String RETRY = "$retry/";
  /**
   * Prefix of the channel of dead letters to delete; the id of the operator that keeps them
   * follows. The record's key is the topic.
   */
  static final String FORGET = "$forget/";
  /** Prefix of the channels that carry the history of sources to views that are being filled. */
  static final String FILL = "$fill/";
  /**
   * Headers of a retried letter: number of attempts including this one; time in ms since which it
   * is a letter; whether a backfill produced it; ids, separated by commas, of the operators and
   * relations that must not get its rows.
   */
  static final String ATTEMPTS = "attempts", SINCE = "since", BACKFILL = "backfill", EXCEPT = "except";
  static final StructType ERROR = new StructType().add("sqlstate", "string").add("message", "string");

  public final String id = UUID.randomUUID().toString();
  final TreeMap<Integer, Node> nodes = new TreeMap<>();
  public final TreeMap<Integer, StructType> relations = new TreeMap<>();
  final TreeSet<Integer> forgotten = new TreeSet<>();
  final TreeSet<Integer> repeating = new TreeSet<>();
  /** The operators in the order in which they run: by level. */
  public Operator[] order;
  public final Map<String, List<Node.Source>> channels = new HashMap<>();
  int levels;
  /**
   * The relations of which a tick has all changes when an operator has run, by its {@link Operator#index}. Relations that only
   * sources send to are not included.
   */
  int[][] completed;
  /** Levels and partitions that have reported the size of their state. */
  final Set<Long> reported = new HashSet<>();
  private final Map<Integer, Integer> errors = new HashMap<>();
  private final List<Link> links = new ArrayList<>();
  private final List<Target> targets = new ArrayList<>();
  private transient Stages stages;
  private transient Map<Integer, ArrowChanges.Form> forms;  // of the changes of relations
  /** Whether a tick in the loop's thread has failed, which may have left something in the generated code. */
  transient volatile boolean failed;

  /** An edge that is not yet connected to its ends. */
  private record Link(int from, boolean dead, Node.Edge edge) implements Serializable {
    Place place() { return new Place(from, dead, edge.to, edge.port); }
  }

  /** A relation, as it was added. */
  private record Target(int relation, StructType row, int errors) implements Serializable {}

  // ---- building ---------------------------------------------------------------------------------

  /**
   * Adds a source: the decoder and then `shape` convert records of `channel` (the topic column) to
   * rows. If either fails, the record becomes a dead letter.
   */
  public void source(int node, String channel, Decoder decoder, Dataset<Row> shape) {
    source(node, channel, decoder, shape, "dead letter");
  }

  /**
   * Adds a source with an error policy: "dead letter", "fail" (the source stalls), or "null" (the
   * record is read as if its value were NULL).
   */
  public void source(int node, String channel, Decoder decoder, Dataset<Row> shape, String onError) {
    Steps linear = new Steps(shape);
    if (linear.expands) throw new IllegalArgumentException("source " + node + ": a record is one row");
    same("source " + node, decoder.schema(), linear.input);
    add(node, new Node.Source(channel, decoder, linear, onError));
  }

  public void operator(int node, Operator operator) { add(node, operator); }

  /**
   * Adds an edge from a source or operator to an operator's port. `shape` is over an empty relation
   * with the output columns of `from`.
   */
  public void edge(int from, Dataset<Row> shape, int to, int port) { link(from, false, shape, to, port); }

  /**
   * Adds an edge from a source's dead letters: topic string, partition int, offset bigint,
   * timestamp timestamp, key binary, value binary, error string, attempts int, since timestamp,
   * backfill boolean. A deleted letter has no error.
   */
  public void deadLetters(int source, Dataset<Row> shape, int to, int port) { link(source, true, shape, to, port); }

  /**
   * Adds a relation. `errors` is the relation (sqlstate string, message string) of its errors, or
   * 0; it need not be declared.
   */
  public void relation(int relation, StructType row, int errors) {
    building();
    targets.add(new Target(relation, row, errors));
    if (relations.put(relation, row) != null && !this.errors.containsValue(relation)) {
      throw new IllegalArgumentException("relation " + relation + " twice");
    }
    if (errors != 0) {
      this.errors.put(relation, errors);
      relations.putIfAbsent(errors, ERROR);
    }
  }

  /** Lets ticks of a single record report the rows of a relation that are removed and added again ({@link TickResult#message}). */
  public void repeats(int relation) {
    building();
    repeating.add(relation);
  }

  /** Adds an edge from a source or operator to a relation. */
  public void output(int from, Dataset<Row> shape, int relation) { link(from, false, shape, relation, Node.Edge.RELATION); }

  /**
   * Removes the state of a deleted operator in the background, a number of entries per tick, until
   * {@link TickResult#forgotten} contains it.
   */
  public void forget(int node) {
    building();
    forgotten.add(node);
  }

  /**
   * Returns a circuit that is not sealed yet, with the parts of this one except those that are removed.
   * The circuits share generated code: this one must not run any more when the other one does.
   *
   * @param removed JSON: `{"nodes": [id], "relations": [id], "links": [[from, dead, to, port]]}`, `dead`
   * being 1 for an edge from dead letters and otherwise 0. The links of removed nodes are not removed
   */
  public Circuit without(String removed) throws IOException {
    JsonNode parts = JSON.readTree(removed);
    Set<Integer> nodes = new HashSet<>(), relations = new HashSet<>();
    parts.get("nodes").forEach(id -> nodes.add(id.asInt()));
    parts.get("relations").forEach(id -> relations.add(id.asInt()));
    Set<Place> places = new HashSet<>();
    parts.get("links").forEach(l -> places.add(new Place(l.get(0).asInt(), l.get(1).asInt() == 1, l.get(2).asInt(), l.get(3).asInt())));
    Circuit from = failed ? SerializationUtils.clone(this) : this, copy = new Circuit();
    for (Target t : from.targets) if (!relations.contains(t.relation)) copy.relation(t.relation, t.row, t.errors);
    for (int relation : from.repeating) if (!relations.contains(relation)) copy.repeats(relation);
    from.nodes.forEach((id, node) -> {
      if (!nodes.contains(id)) copy.add(id, node.copy());
    });
    for (Link link : from.links) if (!places.contains(link.place())) copy.links.add(new Link(link.from, link.dead, link.edge.copy()));
    return copy;
  }

  private void add(int id, Node node) {
    building();
    node.id = id;
    if (nodes.put(id, node) != null) throw new IllegalArgumentException("node " + id + " twice");
  }

  private void link(int from, boolean dead, Dataset<Row> shape, int to, int port) {
    building();
    links.add(new Link(from, dead, new Node.Edge(new Steps(shape), to, port)));
  }

  private void building() {
    if (order != null) throw new IllegalStateException("the circuit is sealed");
  }

  // ---- sealing ----------------------------------------------------------------------------------

  /**
   * Checks that all parts fit, then computes the order and levels of operators and the error
   * relations of each edge. The circuit is immutable afterwards.
   */
  public void seal() {
    building();
    for (Link link : links) connect(link);
    for (int node : forgotten) if (nodes.containsKey(node)) throw new IllegalArgumentException("node " + node + " is in use and forgotten");
    errors.forEach((relation, id) -> same("errors of relation " + relation, ERROR, relations.get(id)));
    Map<Integer, List<Link>> incoming = new HashMap<>();
    Map<Integer, List<Loops.Arrow>> arrows = new HashMap<>();
    for (Link link : links) {
      if (link.edge.port == Node.Edge.RELATION) continue;
      incoming.computeIfAbsent(link.edge.to, n -> new ArrayList<>()).add(link);
      if (!link.dead) arrows.computeIfAbsent(link.edge.to, n -> new ArrayList<>()).add(new Loops.Arrow(link.from, link.edge.port));
    }
    List<Operator> operators = nodes.values().stream().filter(n -> n instanceof Operator).map(n -> (Operator) n).toList();
    Loops loops = new Loops(operators, arrows);
    Map<Integer, Integer> level = new HashMap<>();
    for (Node node : nodes.values()) level(node.id, loops, incoming, level, new ArrayDeque<>());
    order = operators.stream().peek(o -> o.level = level.get(o.id))
        .sorted(Comparator.<Operator>comparingInt(o -> o.level).thenComparingInt(o -> loops.of(o.id).get(0))
            .thenComparingInt(o -> loops.of(o.id).indexOf(o.id)))
        .toArray(Operator[]::new);
    for (int i = 0; i < order.length; i++) {
      order[i].index = i;
      order[i].inputs = order[i].ports().length;
      if (order[i].feedback() >= 0) {
        Operator[] loop = Arrays.copyOfRange(order, i, i + loops.of(order[i].id).size());
        for (Operator o : loop) o.loop = loop;
      }
    }
    levels = Arrays.stream(order).mapToInt(o -> o.level + 1).max().orElse(0);
    // twice, because the errors of a loop's operators also reach all relations below its head, which comes first
    for (int pass = 0; pass < 2; pass++) for (int i = order.length - 1; i >= 0; i--) reach(order[i]);
    for (Node node : nodes.values())
      if (node instanceof Node.Source source) {
        reach(source);
        channels.computeIfAbsent(source.channel, c -> new ArrayList<>()).add(source);
        channels.put(RETRY + source.id, List.of(source));
      }
    nodes.values().forEach(this::chooseBatched);
    completed = completed();
  }

  /** Returns the form of the changes of a relation. Any thread may call it. */
  synchronized ArrowChanges.Form form(int relation) {
    if (forms == null) forms = new HashMap<>();
    return forms.computeIfAbsent(relation, r -> ArrowChanges.Form.of(relations.get(r)));
  }

  private int[][] completed() {
    Map<Integer, Integer> last = new TreeMap<>();  // by relation, the index of the last operator that sends to it
    for (Operator o : order) {
      for (int relation : o.errors) last.put(relation, o.index);
      for (Node.Edge edge : o.out) {
        for (int relation : edge.errors) last.put(relation, o.index);
        if (edge.port == Node.Edge.RELATION) last.put(edge.to, o.index);
      }
    }
    List<List<Integer>> relations = new ArrayList<>();
    for (Operator o : order) relations.add(new ArrayList<>());
    last.forEach((relation, index) -> relations.get(index).add(relation));
    return relations.stream().map(ids -> ids.stream().mapToInt(id -> id).toArray()).toArray(int[][]::new);
  }

  private void connect(Link link) {
    Node from = nodes.get(link.from);
    Node.Edge edge = link.edge;
    String name = "edge from " + link.from + " to " + edge.to;
    if (from == null) throw new IllegalArgumentException(name + ": no node " + link.from);
    if (link.dead && !(from instanceof Node.Source)) throw new IllegalArgumentException(name + ": " + link.from + " is no source");
    same(name, link.dead ? DEAD : from instanceof Node.Source s ? s.shape.output : ((Operator) from).output(), edge.linear.input);
    if (edge.port == Node.Edge.RELATION) {
      if (!relations.containsKey(edge.to)) throw new IllegalArgumentException(name + ": no relation " + edge.to);
      same(name, relations.get(edge.to), edge.linear.output);
    } else {
      if (!(nodes.get(edge.to) instanceof Operator to)) throw new IllegalArgumentException(name + ": no operator " + edge.to);
      if (edge.port < 0 || edge.port >= to.ports().length) throw new IllegalArgumentException(name + ": no port " + edge.port);
      same(name, to.ports()[edge.port], edge.linear.output);
    }
    (link.dead ? ((Node.Source) from).dead : from.out).add(edge);
  }

  public static void same(String where, StructType wanted, StructType given) {
    if (given == null) return;
    boolean same = wanted.length() == given.length();
    for (int i = 0; same && i < wanted.length(); i++) same = DataTypeUtils.sameType(wanted.apply(i).dataType(), given.apply(i).dataType());
    if (!same) throw new IllegalArgumentException(where + ": " + wanted.catalogString() + " expected, not " + given.catalogString());
  }

  /**
   * Returns the level of a node: one more than the highest level above it. Sources have level -1. The operators of a loop have
   * the same level.
   */
  private int level(int node, Loops loops, Map<Integer, List<Link>> incoming, Map<Integer, Integer> levelOf, Deque<Integer> path) {
    if (nodes.get(node) instanceof Node.Source) return -1;
    Integer level = levelOf.get(node);
    if (level != null) return level;
    List<Integer> together = loops.of(node);
    if (path.contains(together.get(0))) throw new IllegalArgumentException("the circuit has a cycle: " + path);
    path.push(together.get(0));
    int highest = -1;
    for (int one : together)
      for (Link link : incoming.getOrDefault(one, List.of()))
        if (!together.contains(link.from)) highest = Math.max(highest, link.dead ? -1 : level(link.from, loops, incoming, levelOf, path));
    path.pop();
    for (int one : together) levelOf.put(one, highest + 1);
    return highest + 1;
  }

  /**
   * Computes the error relations of a node, and whether rows are repeated below it. This must be known of all nodes below it;
   * unknown relations are left out.
   */
  private void reach(Node node) {
    TreeSet<Integer> all = new TreeSet<>();
    List<Node.Edge> edges = new ArrayList<>(node.out);
    if (node instanceof Node.Source s) edges.addAll(s.dead);
    for (Node.Edge edge : edges) {
      if (edge.port != Node.Edge.RELATION) {
        Operator to = (Operator) nodes.get(edge.to);
        edge.index = to.index;
        edge.errors = to.errors == null ? new int[0] : to.errors;
        if (node instanceof Operator from) {
          from.stepwise |= to.sequential();
          from.repeats |= to.repeats;
          edge.inLoop = from.loop != null && from.loop == to.loop;
        }
      } else {
        edge.errors = errors.containsKey(edge.to) ? new int[] {errors.get(edge.to)} : new int[0];
        if (node instanceof Operator from) from.repeats |= repeating.contains(edge.to);
      }
      for (int relation : edge.errors) all.add(relation);
    }
    node.errors = all.stream().mapToInt(i -> i).toArray();
  }

  /**
   * Chooses the edges along which a node sends its output in batches, if there are several: not those to sequential operators, and
   * not those within a loop.
   */
  private void chooseBatched(Node node) {
    node.batched = node.out.stream()
        .filter(e -> !e.inLoop && (e.port == Node.Edge.RELATION || !((Operator) nodes.get(e.to)).sequential())).toList();
    if (node.batched.size() < 2) node.batched = List.of();
    node.direct = node.out.stream().filter(e -> !node.batched.contains(e)).toList();
    if (node instanceof Operator o && o.batch == null && !o.batched.isEmpty()) o.batch = Columns.first(o.output(), o.output().length());
  }

  /**
   * Prepares the circuit for ticks with this number of partitions: compiles its expressions and, if ticks
   * are jobs, ships it. Otherwise the first tick would do so, for which all views would wait.
   *
   * @param previous the circuit that this one replaces, or null: expressions of unchanged edges are
   * not compiled again
   */
  public void warm(SparkSession session, int partitions, Circuit previous) {
    if (partitions > 1 || !((org.apache.spark.sql.classic.SparkSession) session).sparkContext().isLocal()) {
      stages(session).warm();
      return;
    }
    if (previous != null) {
      Map<Place, Steps> compiled = new HashMap<>();
      previous.forEachSteps(compiled::put);
      forEachSteps((place, steps) -> {
        Steps other = compiled.remove(place);
        if (other != null) steps.reuse(other);  // no effect on steps that both circuits have
      });
    }
    compile(previous);
  }

  /** The place of steps in a circuit: on an edge, or in a source ({@link #SHAPE}). */
  private record Place(int node, boolean dead, int to, int port) {}

  private static final int SHAPE = -2;  // no port

  private void forEachSteps(BiConsumer<Place, Steps> action) {
    for (Node node : nodes.values()) {
      for (Node.Edge edge : node.out) action.accept(new Place(node.id, false, edge.to, edge.port), edge.linear);
      if (node instanceof Node.Source source) {
        action.accept(new Place(node.id, false, node.id, SHAPE), source.shape);
        for (Node.Edge edge : source.dead) action.accept(new Place(node.id, true, edge.to, edge.port), edge.linear);
      }
    }
  }

  /** Compiles the expressions of all edges, and of the operators that another circuit does not have. */
  void compile(Circuit previous) {
    forEachSteps((place, steps) -> steps.compile());
    for (Operator o : order) {
      if (previous == null || !previous.nodes.containsKey(o.id)) o.compile();
      if (o.batch != null) o.batch.compile();
    }
  }

  private Stages stages(SparkSession session) {
    if (order == null) throw new IllegalStateException("the circuit is not sealed");
    if (stages == null) stages = new Stages(this, session);
    return stages;
  }

  /** Calls an action for each relation that the output of a node reaches. */
  void relationsBelow(int node, java.util.function.IntConsumer action) {
    Set<Integer> visited = new HashSet<>(Set.of(node));
    Deque<Integer> waiting = new ArrayDeque<>(visited);
    while (!waiting.isEmpty())
      for (Node.Edge edge : nodes.get(waiting.pop()).out) {
        if (edge.port == Node.Edge.RELATION) action.accept(edge.to);
        else if (visited.add(edge.to)) waiting.push(edge.to);
      }
  }

  // ---- running ----------------------------------------------------------------------------------

  /** Returns whether a tick processes records of this channel. */
  boolean reads(String channel) {
    return channels.containsKey(channel) || channel.startsWith(TopicBackfill.PIECE) || channel.startsWith(FORGET);
  }

  /** Returns whether a tick without records would change nothing: neither the state nor a relation. */
  boolean rests() {
    boolean hasReported = order.length == 0 || reported.contains(0L);
    return hasReported && forgotten.isEmpty() && Arrays.stream(order).noneMatch(o -> o.always() || o.everywhere());
  }

  /** Returns whether no node has state, or had some that is not removed yet. */
  boolean isStateless() { return order.length == 0 && forgotten.isEmpty(); }

  /**
   * Runs one tick and returns the net changes of all relations.
   *
   * @param batch rows with Kafka's columns: key, value, topic, partition, offset, timestamp,
   * timestampType
   * @param statePath folder of the state
   * @param time the time of the tick in ms, never less than that of the tick before; used by
   * temporal filters and messages
   * @param stateIds the result of the last tick in the log, empty or null for no state. It
   * determines which state is read, so the state of a tick that is not in the log is garbage
   * @param partitions the same number as in every tick of this state
   * @throws StateLost if state that the ids name is missing or damaged
   * @throws SourceStalled if an external system that a decoder needs does not answer
   */
  public TickResult tick(Dataset<Row> batch, String statePath, long time, String stateIds, int partitions) {
    var rows = ((org.apache.spark.sql.classic.Dataset<Row>) batch).queryExecution().toRdd();
    return tick(rows, batch.sparkSession(), statePath, time, stateIds, partitions);
  }

  /**
   * Moves the state to another number of partitions, into another folder.
   *
   * @return JSON: `{"state": ids, "entries": {operator: number}}`
   */
  public String repartition(SparkSession session, String from, String ids, int partitions, String to, int newPartitions, long time)
      throws Exception {
    return new Repartition(this, stages(session), to, newPartitions).run(from, StateIds.parse(ids, partitions), time);
  }

  /** Runs one tick whose input is an RDD of such rows. */
  TickResult tick(RDD<InternalRow> batch, SparkSession session, String statePath, long time, String stateIds, int partitions) {
    return stages(session).run(batch, statePath, time, stateIds, partitions);
  }

  /** Runs one tick with one partition in the calling thread. `single`: whether the parts are a single record. */
  TickResult tick(List<TickInput.Part> parts, SparkSession session, String statePath, long time, String stateIds, boolean single) {
    return stages(session).run(parts, statePath, time, stateIds, single);
  }
}
