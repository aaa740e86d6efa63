package tailgate.circuit;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import org.apache.spark.metrics.source.CodegenMetrics;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tailgate.formats.Formats;
import tailgate.rows.Rows;
import tailgate.sources.Decoder;
import tailgate.state.StateLost;

/** Errors, dead letters, state and its ids, circuits that change. */
class CircuitTest {
  static final StructType PAGES = schema("k int, v int"),
      SUMS = schema("k int, s bigint, n bigint"), TOTAL = schema("n bigint, s decimal(38,0)");
  static final StructType DEAD = schema("topic string, partition int, offset bigint, error string");

  static Operator sums() {
    return reduce(PAGES, new int[] {0}, new String[] {"sum", "count"}, new int[] {1, -1},
        schema("s bigint, n bigint"));
  }

  static Operator total() { return reduce(SUMS, new int[0], new String[] {"count", "sum"}, new int[] {-1, 1}, TOTAL); }

  /** sum(v) of each k as relation 1; below it, 100 / s as relation 2 and the number of keys as relation 3. Errors: 11, 12, 13. */
  static Circuit circuit(boolean below) {
    Circuit c = new Circuit();
    c.source(1, "a", Decoder.arrow(PAGES), empty(PAGES));
    c.operator(2, sums());
    c.edge(1, empty(PAGES).where("v is null or 10 / (v + 1000) > 0"), 2, 0);
    c.relation(1, SUMS, 11);
    c.output(2, empty(SUMS), 1);
    if (below) {
      c.relation(2, schema("k int, share bigint"), 12);
      c.output(2, empty(SUMS).selectExpr("k", "100 div s"), 2);
      c.operator(3, total());
      c.edge(2, empty(SUMS), 3, 0);
      c.relation(3, TOTAL, 13);
      c.output(3, empty(TOTAL), 3);
    }
    c.seal();
    return c;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void errorsComeAndGo(int partitions) {
    Running r = new Running(circuit(true), partitions);
    r.tick(arrow("a", PAGES, List.of(plus(1, 10), plus(2, 0))));
    assertEquals(Bag.of(row(1, 10L, 1L), row(2, 0L, 1L)), r.relation(1));
    assertEquals(Bag.of(row(1, 10L)), r.relation(2));
    assertEquals(Bag.of(row("22012", "division by zero")), r.relation(12));
    assertEquals(new Bag(), r.relation(11), "an edge's error reaches what lies below it only");
    r.tick(arrow("a", PAGES, List.of(plus(2, 5), plus(3, -1000), plus(3, -1000))));
    assertEquals(Bag.of(row(1, 10L), row(2, 20L)), r.relation(2));
    Bag twice = new Bag().add(row("22012", "division by zero"), 2);
    assertEquals(List.of(twice, twice, twice), List.of(r.relation(11), r.relation(12), r.relation(13)), "all relations below the edge");
    r.tick(arrow("a", PAGES, List.of(minus(3, -1000), minus(3, -1000))));
    assertEquals(List.of(new Bag(), new Bag(), new Bag()), List.of(r.relation(11), r.relation(12), r.relation(13)));
    assertEquals(Bag.of(row(2L, new java.math.BigDecimal(15))), r.relation(3));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void deadLetters(int partitions) {
    Circuit c = new Circuit();
    StructType decoded = Decoder.kafka(Formats.none(), Formats.text()).schema();
    c.source(1, "t", Decoder.kafka(Formats.none(), Formats.text()), empty(decoded).selectExpr("cast(value as int) v", "__offset o"));
    c.source(2, "t", Decoder.kafka(Formats.bytes(), Formats.bytes()),
        empty(Decoder.kafka(Formats.bytes(), Formats.bytes()).schema()).selectExpr("__offset o"));
    c.operator(3, upsert(DEAD, new int[] {0, 1, 2}));
    c.deadLetters(1, empty(Circuit.DEAD).selectExpr("topic", "partition", "offset", "error", "false", "cast(null as string)"), 3, 0);
    c.relation(1, schema("v int, o bigint"), 0);
    c.relation(2, DEAD, 0);
    c.relation(3, schema("o bigint"), 0);
    c.output(1, empty(schema("v int, o bigint")), 1);
    c.output(2, empty(schema("o bigint")), 3);
    c.output(3, empty(DEAD), 2);
    c.seal();
    Running r = new Running(c, partitions);
    r.tick(record("t", 1, null, utf8("7")), record("t", 2, null, utf8("x")),
        record("t", 3, null, new byte[] {'1', (byte) 0xff}), record("t", 4, null, null),
        record("other", 5, null, null));
    assertEquals(Bag.of(row(7, 1L), row(null, 4L)), r.relation(1));
    assertEquals(Bag.of(row("t", 0, 2L, "invalid input syntax for type integer: \"x\""),
        row("t", 0, 3L, "invalid byte sequence for encoding \"UTF8\": 0xff")), r.relation(2));
    assertEquals(Bag.of(row(1L), row(2L), row(3L), row(4L)), r.relation(3));
    assertEquals(Map.of("1.records", 4L, "1.dead_letters", 2L, "1.bytes", 4L, "1.last_message",
        1000L, "2.records", 4L, "2.dead_letters", 0L, "2.bytes", 4L, "2.last_message", 1000L),
        r.last.counters());
  }

  /** A record of a topic with two partitions. */
  private record Record(int partition, long offset, long time) {}

  /**
   * The order of a record, its partition and its offset sort records as an evaluator takes them: tick by tick, each time the
   * record with the lowest timestamp of the next ones of all partitions. Records of a fill come first.
   */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void recordsAreSortedByTheirArrival(int partitions) {
    StructType row = schema("tick bigint, ord bigint, p int, o bigint");
    Decoder decoder = Decoder.kafka(Formats.none(), Formats.none());
    Circuit c = new Circuit();
    for (int n = 1; n <= 2; n++) {
      c.source(n, n == 1 ? "t" : Circuit.FILL + "1", decoder,
          empty(decoder.schema()).selectExpr("__tick tick", "__order ord", "__partition p", "__offset o"));
      c.relation(n, row, 0);
      c.output(n, empty(row), n);
    }
    c.seal();
    Running r = Running.ordered(c, partitions);
    r.time = 5;
    Random random = new Random(partitions);
    List<List<Object>> expected = new ArrayList<>();
    long[] next = new long[2];
    for (int t = 0; t < 20; t++) {
      List<Deque<Record>> sent = List.of(new ArrayDeque<>(), new ArrayDeque<>());
      List<Row> records = new ArrayList<>();
      for (int n = random.nextInt(12); n >= 0; n--) {
        int p = random.nextInt(2);
        Record one = new Record(p, next[p]++, random.nextInt(4) == 0 ? random.nextInt(100) : 10 * t + random.nextInt(20));
        sent.get(p).add(one);
        records.add(RowFactory.create(null, null, "t", p, one.offset, new java.sql.Timestamp(one.time), 0));
      }
      for (int n = records.size(); n > 0; n--) {
        Record first = sent.stream().filter(s -> !s.isEmpty()).map(Deque::peek)
            .min(Comparator.comparingLong(Record::time).thenComparingInt(Record::partition)).get();
        expected.add(row(first.partition, sent.get(first.partition).remove().offset));
      }
      r.tick(records.toArray(Row[]::new));
    }
    r.tick(RowFactory.create(null, null, Circuit.FILL + "1", 0, 7L, new java.sql.Timestamp(60), 0));
    assertEquals(Bag.of(row(0L, 60L, 0, 7L)), r.relation(2));
    Comparator<List<Object>> order = Comparator.comparing(o -> (Long) o.get(0));
    order = order.thenComparing(o -> (Long) o.get(1)).thenComparing(o -> (Integer) o.get(2)).thenComparing(o -> (Long) o.get(3));
    assertEquals(expected, r.relation(1).keySet().stream().sorted(order).map(o -> o.subList(2, 4)).toList());
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void failuresOfExpressionsAndOfRecords(int partitions) {
    Circuit c = new Circuit();
    Decoder decoder = Decoder.kafka(Formats.text(), Formats.text());
    c.source(1, "t", decoder, empty(decoder.schema()).selectExpr("value", "__offset o"));
    c.operator(2, upsert(DEAD, new int[] {0, 1, 2}));
    c.deadLetters(1, empty(Circuit.DEAD).selectExpr("topic", "partition", "offset", "error", "false", "cast(null as string)"), 2, 0);
    c.relation(3, schema("v int"), 0);
    var accepted = empty(schema("value string, o bigint")).where("tg_try(10 div (o - 1)) is not null");
    c.output(1, accepted.selectExpr("tg_try(tg_text_to_int4(value)) v"), 3);
    c.seal();
    Running r = new Running(c, partitions);
    byte[] invalid = {(byte) 0xff};
    r.tick(record("t", 1, null, utf8("7")), record("t", 2, null, utf8("x")), record("t", 3, null, utf8("x")),
        record("t", 4, null, invalid), record("t", 5, invalid, null));
    assertEquals(new Bag().add(row((Object) null), 2), r.relation(3));
    String encoding = "invalid byte sequence for encoding \"UTF8\": 0xff";
    Map<String, Long> rows = new TreeMap<>();
    for (TickResult.Failure f : r.last.failures()) rows.merge(f.to() + " " + f.port() + " " + f.message(), f.rows(), Long::sum);
    assertEquals(Map.of("3 -1 division by zero", 1L, "1 " + Sent.VALUE + " " + encoding, 1L, "1 " + Sent.KEY + " " + encoding, 1L,
        "3 -1 invalid input syntax for type integer: \"x\"", 2L), rows);
    r.tick(record("t", 6, null, utf8("8")));
    assertEquals(List.of(), r.last.failures());
  }

  /** A tick that ran but never entered the log is garbage, now and after any restart. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void runAgainWithOtherInput(int partitions) {
    Running r = new Running(circuit(true), partitions);
    r.tick(arrow("a", PAGES, List.of(plus(1, 1))));
    for (int i = 0; i < 3; i++) {
      r.attempt(arrow("a", PAGES, List.of(plus(1, 1000), plus(4, 1000 + i))));
      if (i == 1) r.restart();
    }
    r.tick(arrow("a", PAGES, List.of(plus(1, 2))));
    assertEquals(Bag.of(row(1, 3L, 2L)), r.relation(1));
    r.attempt(arrow("a", PAGES, List.of(minus(1, 2))));
    r.restart();
    r.tick(arrow("a", PAGES, List.of(plus(1, 4), plus(2, 8))));
    r.restart();
    r.tick(arrow("a", PAGES, List.of(minus(1, 1))));
    assertEquals(Bag.of(row(1, 6L, 2L), row(2, 8L, 1L)), r.relation(1));
    assertEquals(Bag.of(row(2L, new java.math.BigDecimal(14))), r.relation(3));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void lostState(int partitions) throws Exception {
    Running r = new Running(circuit(true), partitions);
    r.tick(arrow("a", PAGES, List.of(plus(1, 1), plus(2, 2), plus(3, 3))));
    r.tick(arrow("a", PAGES, List.of(plus(1, 1), plus(2, 2), plus(3, 3))));
    r.restart();
    try (var files = Files.walk(r.folder)) {
      for (Path f : files.filter(f -> f.toString().endsWith(".changelog")).toList()) Files.delete(f);
    }
    assertThrows(StateLost.class, () -> r.tick(arrow("a", PAGES, List.of(plus(1, 1)))));
    r.ids = "";
    r.relations.clear();
    r.tick(arrow("a", PAGES, List.of(plus(1, 1))));
    assertEquals(Bag.of(row(1, 1L, 1L)), r.relation(1), "and begins anew in the same folder");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void viewsComeAndGo(int partitions) {
    Running r = new Running(circuit(false), partitions);
    r.tick(arrow("a", PAGES, List.of(plus(1, 1), plus(2, 2))));
    r.circuit = circuit(true);  // with a level that had no state
    r.tick(arrow("a", PAGES, List.of(plus(1, 1))));
    assertEquals(Bag.of(row(1, 2L, 2L), row(2, 2L, 1L)), r.relation(1));
    assertEquals(Bag.of(row(0L, null)), r.relation(3), "fed with the changes only: one row came, one went");
    r.circuit = circuit(false);
    r.tick(arrow("a", PAGES, List.of(plus(5, 5))));
    Circuit without = new Circuit();
    without.source(1, "a", Decoder.arrow(PAGES), empty(PAGES));
    without.relation(1, PAGES, 0);
    without.output(1, empty(PAGES), 1);
    without.operator(7, sums());
    without.edge(1, empty(PAGES), 7, 0);
    without.relation(7, SUMS, 0);
    without.output(7, empty(SUMS), 7);
    without.forget(2);
    without.forget(3);
    without.seal();
    r.circuit = without;
    r.tick(arrow("a", PAGES, List.of(plus(1, 1))));
    r.tick(arrow("a", PAGES, List.of(plus(1, 1))));
    assertArrayEquals(new int[] {2, 3}, r.last.forgotten());
    assertEquals(Bag.of(row(1, 2L, 2L)), r.relation(7), "forgetting leaves others alone");
    r.restart();
    r.circuit = circuit(true);
    r.relations.clear();
    r.tick(arrow("a", PAGES, List.of(plus(1, 3))));
    assertEquals(Bag.of(row(1, 3L, 1L)), r.relation(1), "as if new");
    assertEquals(Bag.of(row(1L, new java.math.BigDecimal(3))), r.relation(3));
  }

  @Test
  void forgettingIsBounded() {
    Circuit c = circuit(false);
    Running r = new Running(c, 1);
    List<Weighted> many = new ArrayList<>();
    for (int i = 0; i < 5000; i++) many.add(plus(i, i));
    r.tick(arrow("a", PAGES, many));
    Circuit none = new Circuit();
    none.forget(2);
    none.forget(99);
    none.seal();
    r.circuit = none;
    assertArrayEquals(new int[] {99}, r.tick().forgotten());
    assertArrayEquals(new int[] {99}, r.tick().forgotten());
    assertArrayEquals(new int[] {2, 99}, r.tick().forgotten());
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aCircuitTakesPartsOfTheOneBefore(int partitions) throws Exception {
    Running r = new Running(circuit(true), partitions);
    r.tick(arrow("a", PAGES, List.of(plus(1, 10), plus(2, 4))));
    Circuit before = r.circuit;
    r.circuit = before.without("{\"nodes\": [3], \"relations\": [2, 3], \"links\": [[2, 0, 2, -1], [2, 0, 3, 0], [3, 0, 3, -1]]}");
    r.circuit.relation(4, schema("k int"), 14);
    r.circuit.output(2, empty(SUMS).selectExpr("k"), 4);
    r.circuit.forget(3);
    r.circuit.seal();
    r.circuit.warm(spark(), partitions, before);
    assertEquals(Set.of(1, 11, 4, 14), r.circuit.relations.keySet());
    r.tick(arrow("a", PAGES, List.of(minus(1, 10), plus(3, 7), plus(3, -1000))));
    assertEquals(Bag.of(row(2, 4L, 1L), row(3, 7L, 1L)), r.relation(1));
    assertEquals(new Bag().add(row(1), -1).add(row(3), 1), r.relation(4), "its changes from now on");
    assertEquals(Bag.of(row("22012", "division by zero")), r.relation(14), "the edge's error reaches the new relation");
    assertEquals(Bag.of(row("22012", "division by zero")), r.relation(11));
  }

  @Test
  void operatorsAboveARelationWithRepeatedRowsRepeatThem() throws Exception {
    String nothing = "{\"nodes\": [], \"relations\": [], \"links\": []}";
    String lower = "{\"nodes\": [3], \"relations\": [3], \"links\": [[2, 0, 3, 0], [3, 0, 3, -1]]}";
    assertEquals(List.of(), repeating(circuit(true)));
    Circuit upper = circuit(true).without(nothing), all = circuit(true).without(nothing);
    upper.repeats(1);
    all.repeats(3);
    for (Circuit c : List.of(upper, all)) c.seal();
    assertEquals(List.of(2), repeating(upper));
    assertEquals(List.of(2, 3), repeating(all));
    Circuit rest = all.without(lower);
    rest.seal();
    assertEquals(List.of(), repeating(rest), "its operator no longer reaches the relation");
  }

  private static List<Integer> repeating(Circuit circuit) {
    return Arrays.stream(circuit.order).filter(o -> o.repeats).map(o -> o.id).toList();
  }

  @Test
  void warmingCompilesOperators() {
    StructType row = schema("a int, b string, c double, d bigint, e float, f string"), out = row.add("n", "long");
    Circuit c = new Circuit();
    c.source(1, "a", Decoder.arrow(row), empty(row));
    c.operator(2, reduce(row, new int[] {0, 1, 2, 3, 4, 5}, new String[] {"count"}, new int[] {-1}, schema("n bigint")));
    c.edge(1, empty(row), 2, 0);
    c.relation(1, out, 0);
    c.output(2, empty(out), 1);
    c.seal();
    c.warm(spark(), 1, null);
    long compiled = CodegenMetrics.METRIC_COMPILATION_TIME().getCount();
    c.order[0].key(0, Rows.row(new byte[8 + 8 * row.length()], row.length()));
    assertEquals(compiled, CodegenMetrics.METRIC_COMPILATION_TIME().getCount());
  }

  @Test
  void mistakesAreFoundWhenSealing() {
    Circuit cycle = new Circuit();
    cycle.operator(1, reduce(PAGES, new int[] {0, 1}, new String[0], new int[0], new StructType()));
    cycle.operator(2, reduce(PAGES, new int[] {0, 1}, new String[0], new int[0], new StructType()));
    cycle.edge(1, empty(PAGES), 2, 0);
    cycle.edge(2, empty(PAGES), 1, 0);
    assertThrows(IllegalArgumentException.class, cycle::seal);
    Circuit types = new Circuit();
    types.source(1, "a", Decoder.arrow(PAGES), empty(PAGES));
    types.operator(2, sums());
    types.edge(1, empty(PAGES).selectExpr("k", "cast(v as bigint) v"), 2, 0);
    assertThrows(IllegalArgumentException.class, types::seal);
    assertThrows(IllegalArgumentException.class, () -> new Circuit().edge(1, empty(PAGES).groupBy("k").count(), 2, 0));
    assertThrows(IllegalArgumentException.class, () -> new Circuit().edge(1, empty(PAGES).selectExpr("rand()"), 2, 0));
    assertThrows(IllegalStateException.class, () -> new Circuit().tick(empty(KAFKA), "/tmp", 0, "", 1));
    Running r = new Running(circuit(false), 1);
    r.tick();
    assertThrows(IllegalArgumentException.class,
        () -> r.circuit.tick(empty(KAFKA), r.folder.toString(), 1, r.ids, 2),
        "another number of partitions");
  }

  /** A filter that is never true, which the optimizer removes. */
  @Test
  void nothingPasses() {
    Circuit c = new Circuit();
    c.source(1, "a", Decoder.arrow(PAGES), empty(PAGES));
    c.relation(1, schema("v int"), 0);
    c.output(1, empty(PAGES).where("false").selectExpr("v"), 1);
    c.seal();
    Running r = new Running(c, 1);
    r.tick(arrow("a", PAGES, List.of(plus(1, 1))));
    assertEquals(new Bag(), r.relation(1));
  }
}
