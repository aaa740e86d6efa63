package tailgate.circuit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.*;
import java.util.function.Consumer;
import java.util.function.LongUnaryOperator;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId;
import tailgate.errors.SqlError;
import tailgate.rows.Rows.Bytes;
import tailgate.state.DurableFiles;
import tailgate.state.State;
import tailgate.state.StateIds;

/**
 * Moves the state of a circuit to another number of partitions, into another folder. No tick may run meanwhile.
 *
 * <pre>   each partition of each store ──entry──► operator.owner ──► its store and partition in the other folder ──► version 1
 *   the other folder, read from its files ──► as many entries of each operator as were moved</pre>
 *
 * <p>With one partition, a store has all operators; otherwise each level has one. State of operators that the circuit does
 * not have is left out.
 */
final class Repartition {
  private static final UUID CHECK = new UUID(0, 2);  // opens stores again, from their files
  private static final StateIds.Store NEW = new StateIds.Store(0, null);
  private final Circuit circuit;
  private final Stages stages;
  private final String to;
  private final int partitions, stores;
  private final List<State> targets = new ArrayList<>();  // by store and partition
  private final Map<Shared, byte[]> shared = new LinkedHashMap<>();
  private final SortedMap<Integer, Long> moved = new TreeMap<>();  // number of entries by operator
  private final Map<Integer, Sum> sums = new HashMap<>();

  /** The place of an entry that each partition has. */
  private record Shared(Operator operator, int port, Bytes key, Bytes row) {}

  /** The sum of an operator's input in all partitions. */
  private record Sum(boolean isKnown, long sum, long sum2) {
    Sum plus(Sum other) { return new Sum(isKnown && other.isKnown, sum + other.sum, sum2 + other.sum2); }
  }

  Repartition(Circuit circuit, Stages stages, String to, int partitions) {
    this.circuit = circuit;
    this.stages = stages;
    this.to = to;
    this.partitions = partitions;
    this.stores = partitions == 1 ? 1 : circuit.levels;
  }

  String run(String from, StateIds ids, long time) throws Exception {
    StateIds after = StateIds.parse(null, partitions).after(inTask(() -> {
      for (int i = 0; i < stores * partitions; i++) {
        StateStoreProviderId id = Stages.storeId(to, i / partitions, i % partitions);
        targets.add(new State(stages.opening.open(id, NEW)));
      }
      for (int store : ids.stores())
        for (int partition = 0; partition < ids.partitions(); partition++)
          read(Stages.storeId(from, store, partition), ids.store(store), of(partition, ids.partitions()));
      share();
      return DurableFiles.durably(() -> committed(time));
    }));
    check(after);
    ObjectMapper json = new ObjectMapper();
    ObjectNode result = json.createObjectNode().put("state", after.toString());
    ObjectNode entries = result.putObject("entries");
    moved.forEach((operator, count) -> entries.put(operator.toString(), count));
    return json.writeValueAsString(result);
  }

  private <T> List<T> inTask(java.util.concurrent.Callable<List<T>> work) throws Exception {
    return LocalTask.run(stages.context, stages.properties(), work);
  }

  private void read(StateStoreProviderId id, StateIds.Store version, Consumer<State> use) {
    stages.opening.use(id, version, store -> {
      State state = new State(store);
      use.accept(state);
      state.abort();
      return List.of();
    });
  }

  /** Returns what moves the entries of a partition of a store, of `all` partitions. */
  private Consumer<State> of(int partition, int all) {
    return from -> move(from, number -> {
      if (number > Long.MAX_VALUE / all - 1) throw new SqlError("54000", "the numbers of rows in the state cannot get larger");
      return number * all + partition;
    });
  }

  private void move(State from, LongUnaryOperator number) {
    from.forEach(entry -> {
      if (!(circuit.nodes.get(entry.operator()) instanceof Operator operator)) return;
      if (operator.loop != null) put(operator, Sent.place(operator.loop[0].id, State.NONE), entry);
      else operator.move(from, entry, number, (owner, moved) -> put(operator, owner, moved));
    });
    for (Operator operator : circuit.order) {
      long[] sized = from.sized(operator.id);
      sums.merge(operator.id, new Sum(sized[2] == 1, sized[3], sized[4]), Sum::plus);
    }
  }

  private void put(Operator operator, byte[] owner, State.Entry entry) {
    if (owner == null)
      shared.merge(new Shared(operator, entry.port(), new Bytes(entry.key()), new Bytes(entry.row())), entry.value(),
          (one, other) -> operator.merged(entry.port(), one, other));
    else put(operator, Sent.place(operator.id, owner), entry);
  }

  private void put(Operator operator, int place, State.Entry entry) {
    target(operator, Math.floorMod(place, partitions)).put(operator.id, entry.port(), entry.key(), entry.row(), entry.value(), true);
    moved.merge(operator.id, 1L, Long::sum);
  }

  private State target(Operator operator, int partition) {
    return targets.get((stores == 1 ? 0 : operator.level) * partitions + partition);
  }

  /** Writes the entries that each partition has, and the statistics of the operators. The sum of an input is in one partition. */
  private void share() {
    for (int partition = 0; partition < partitions; partition++) {
      for (var entry : shared.entrySet()) {
        Shared at = entry.getKey();
        target(at.operator, partition).put(at.operator.id, at.port, at.key.bytes, at.row.bytes, entry.getValue(), true);
        moved.merge(at.operator.id, 1L, Long::sum);
      }
      for (Operator operator : circuit.order) {
        Sum sum = sums.getOrDefault(operator.id, new Sum(true, 0, 0));
        State state = target(operator, partition);
        state.sum(operator.id, sum.isKnown, partition == 0 ? sum.sum : 0, partition == 0 ? sum.sum2 : 0);
        state.sized(operator.id);
      }
    }
  }

  private List<StateIds.Committed> committed(long time) {
    List<StateIds.Committed> all = new ArrayList<>();
    for (int i = 0; i < targets.size(); i++) all.add(new StateIds.Committed(i / partitions, i % partitions, targets.get(i).commit(time)));
    return all;
  }

  /** Checks that the files of the other folder have the entries that were moved. */
  private void check(StateIds after) throws Exception {
    SortedMap<Integer, Long> counts = new TreeMap<>();
    inTask(() -> {
      for (int store : after.stores())
        for (int partition = 0; partition < partitions; partition++) {
          StateStoreId id = Stages.storeId(to, store, partition).storeId();
          read(new StateStoreProviderId(id, CHECK), after.store(store),
              state -> state.forEach(entry -> counts.merge(entry.operator(), 1L, Long::sum)));
        }
      return List.of();
    });
    if (!counts.equals(moved)) throw new IllegalStateException("the new state has " + counts + " entries by operator, not " + moved);
  }
}
