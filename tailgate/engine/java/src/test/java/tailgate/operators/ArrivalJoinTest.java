package tailgate.operators;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.sql.Timestamp;
import java.util.*;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tailgate.circuit.Circuit;
import tailgate.sources.Decoder;

/** The rows of a stream get those of the table at their arrival: compared with an evaluation of one record after the other. */
class ArrivalJoinTest {
  static final StructType STREAM = schema("k int, n int"), TABLE = schema("k int, v int");
  static final StructType EVENT = TABLE.add("deleted", "boolean").add("position", "string");
  static final StructType JOINED = schema("k int, n int, tk int, v int"), CHAIN = schema("k int, n int, tk int, v int, uk int, w int");

  /** Two tables; relation 1: a left join with the first; 2: an inner join of this with the second. */
  static Circuit circuit(boolean filling) {
    Circuit c = new Circuit();
    c.source(1, "stream", Decoder.arrow(STREAM), empty(STREAM));
    for (int i = 0; i < 2; i++) {
      c.source(2 + i, "table" + i, Decoder.arrow(EVENT), empty(EVENT));
      c.operator(11 + i, upsert(TABLE, new int[] {0}));
      c.edge(2 + i, empty(EVENT), 11 + i, 0);
    }
    c.operator(21, Operators.arrivalJoin(true, STREAM, new int[] {0}, TABLE, new int[] {0}, filling));
    c.operator(22, Operators.arrivalJoin(false, JOINED, new int[] {0}, TABLE, new int[] {0}, filling));
    c.edge(1, empty(STREAM), 21, 0);
    c.edge(11, empty(TABLE), 21, 1);
    c.edge(21, empty(JOINED), 22, filling ? 2 : 0);  // what leaves the first join during a fill is history
    c.edge(12, empty(TABLE), 22, 1);
    if (filling) {
      c.source(4, "$fill/stream", Decoder.arrow(STREAM), empty(STREAM));
      c.source(5, "$fill/table0", Decoder.arrow(TABLE), empty(TABLE));
      c.source(6, "$fill/table1", Decoder.arrow(TABLE), empty(TABLE));
      c.edge(4, empty(STREAM), 21, 2);
      c.edge(5, empty(TABLE), 21, 3);
      c.edge(6, empty(TABLE), 22, 3);
    }
    c.relation(1, JOINED, 0);
    c.output(21, empty(JOINED), 1);
    c.relation(2, CHAIN, 0);
    c.output(22, empty(CHAIN), 2);
    c.seal();
    return c;
  }

  /** A record of a stream, or of a table (0, 1): a key, and a value or null for a tombstone. */
  record Sent(int table, int partition, long time, Integer key, Integer value) {
    Row record() {
      String channel = table < 0 ? "stream" : "table" + table;
      Row row = table < 0 ? arrow(channel, STREAM, List.of(plus(key, value)))
          : arrow(channel, EVENT, List.of(plus(key, value, value == null, null)));
      return RowFactory.create(row.get(0), row.get(1), channel, partition, 0L, new Timestamp(time), 0);
    }
  }

  /** Takes one record after the other. */
  static final class Evaluation {
    final List<Map<Integer, Integer>> tables = List.of(new HashMap<>(), new HashMap<>());
    final Bag one = new Bag(), both = new Bag();

    void tick(List<Sent> records) {
      List<Sent> sorted = new ArrayList<>(records);
      sorted.sort(Comparator.<Sent>comparingLong(s -> s.time).thenComparingInt(s -> s.table < 0 ? 1 : 0));
      for (Sent s : sorted) {
        if (s.table >= 0) {
          if (s.value == null) tables.get(s.table).remove(s.key);
          else tables.get(s.table).put(s.key, s.value);
          continue;
        }
        Integer v = tables.get(0).get(s.key), w = tables.get(1).get(s.key);
        one.add(row(s.key, s.value, v == null ? null : s.key, v), 1);
        if (w != null) both.add(row(s.key, s.value, v == null ? null : s.key, v, s.key, w), 1);
      }
    }
  }

  static List<Sent> some(Random random, long[] clock) {
    List<Sent> records = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      int table = random.nextInt(3) - 1, partition = table < 0 ? random.nextInt(2) : 0, place = 1 + table + (table < 0 ? partition * 3 : 0);
      clock[place] += 1 + random.nextInt(4);
      Integer key = table < 0 && random.nextInt(8) == 0 ? null : (Integer) random.nextInt(4);
      records.add(new Sent(table, partition, clock[place], key, table >= 0 && random.nextInt(4) == 0 ? null : (Integer) random.nextInt(1000)));
    }
    return records;
  }

  static Row[] records(List<Sent> sent) { return sent.stream().map(Sent::record).toArray(Row[]::new); }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void oneAfterTheOther(int partitions) {
    Random random = new Random(partitions);
    Evaluation expected = new Evaluation();
    Running r = Running.ordered(circuit(false), partitions);
    long[] clock = new long[4];
    for (int t = 0; t < 6; t++) {
      List<Sent> sent = some(random, clock);
      if (t == 3) r.attempt(records(some(random, clock.clone())));  // an attempt that does not enter the log
      r.tick(records(sent));
      expected.tick(sent);
      if (t == 2) r.restart();
      assertEquals(expected.one, r.relation(1), "tick " + t);
      assertEquals(expected.both, r.relation(2), "tick " + t);
    }
    assertTrue(expected.both.size() > 20);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void liveRowsWaitForTheHistory(int partitions) {
    Random random = new Random(partitions);
    Evaluation expected = new Evaluation();
    Running r = Running.ordered(circuit(true), partitions);
    long[] clock = new long[4];
    List<List<Sent>> live = new ArrayList<>();
    for (int t = 0; t < 2; t++) {
      Arrays.fill(clock, Arrays.stream(clock).max().getAsLong());
      List<Sent> sent = new ArrayList<>(some(random, clock));
      sent.add(new Sent(-1, 0, ++clock[0], 5, t));  // a key that the tables have in their history only
      live.add(sent);
      r.tick(records(sent));
    }
    assertEquals(new Bag(), r.relation(1));
    r.tick(arrow("$fill/table0", TABLE, List.of(plus(5, 7))), arrow("$fill/table1", TABLE, List.of(plus(5, 8), plus(6, 9))));
    r.restart();
    r.tick(arrow("$fill/stream", STREAM, List.of(plus(5, 100), plus(6, 101), plus(9, 102))));
    assertEquals(Bag.of(row(5, 100, 5, 7), row(6, 101, null, null), row(9, 102, null, null)), r.relation(1));
    assertEquals(Bag.of(row(5, 100, 5, 7, 5, 8), row(6, 101, null, null, 6, 9)), r.relation(2));
    r.relation(1).forEach(expected.one::add);
    r.relation(2).forEach(expected.both::add);
    expected.tables.get(0).put(5, 7);
    expected.tables.get(1).putAll(Map.of(5, 8, 6, 9));
    r.circuit = circuit(false);
    r.tick();
    live.forEach(expected::tick);
    assertEquals(expected.one, r.relation(1));
    assertEquals(expected.both, r.relation(2));
    r.tick();
    assertEquals(expected.one, r.relation(1));
  }

  @Test
  void theOrderWithinAPartitionIsKept() {
    Running r = Running.ordered(circuit(false), 1);
    // the first record is newer than the others of its partition, so these are as late as it is
    r.tick(records(List.of(new Sent(-1, 0, 10, 1, 100), new Sent(-1, 0, 5, 1, 101), new Sent(0, 0, 7, 1, 200))));
    assertEquals(Bag.of(row(1, 100, 1, 200), row(1, 101, 1, 200)), r.relation(1));
    r.tick(records(List.of(new Sent(0, 0, 20, 1, 300), new Sent(0, 0, 12, 1, null), new Sent(-1, 0, 20, 1, 102), new Sent(-1, 1, 19, 1, 103))));
    assertEquals(1L, r.relation(1).get(row(1, 102, null, null)));
    assertEquals(1L, r.relation(1).get(row(1, 103, 1, 200)));
  }
}
