package tailgate.operators;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.sql.Timestamp;
import java.util.*;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tailgate.aggregates.AggregateCall;
import tailgate.circuit.Circuit;
import tailgate.rows.SortKey;
import tailgate.sources.Decoder;

/** Groups of windows that leave: compared with an evaluation of one record after the other. */
class RetentionTest {
  private static final StructType GROUPS = schema("k int, until timestamp, n bigint, high int");
  private static final long SIZE = ClosingTest.SIZE;

  private static AggregateCall call(String function, int[] columns, DataType result) {
    return new AggregateCall(function, columns, result, false, -1, new SortKey[0], 0);
  }

  /** `max` over rows that may be retracted stores all values. */
  private static Circuit circuit(long grace, long retention, boolean last) {
    Circuit c = new Circuit();
    StructType row = ClosingTest.ROW;
    c.source(1, "stream", Decoder.arrow(row), empty(row));
    c.operator(21, Operators.closing(row, 4, 2, 3, grace * 1000, last, false));
    c.edge(1, empty(row), 21, 0);
    AggregateCall[] calls = {call("count", new int[0], GROUPS.apply(2).dataType()), call("max", new int[] {1}, GROUPS.apply(3).dataType())};
    c.operator(22, Operators.reduce(row, new int[] {0, 3}, calls, false, 3, retention * 1000));
    c.edge(21, empty(row), 22, 0);
    c.edge(1, empty(row).select("at"), 22, 1);
    c.relation(1, GROUPS, 0);
    c.output(22, empty(GROUPS), 1);
    c.seal();
    return c;
  }

  private static long end(ClosingTest.Sent s) { return Math.floorDiv(s.time(), SIZE) * SIZE + SIZE; }

  @ParameterizedTest
  @CsvSource({"0, 10, false, 1", "7, 17, false, 3", "5, 60, false, 2", "0, 20, true, 2", "13, 23, true, 1"})
  void oneAfterTheOther(long grace, long retention, boolean last, int partitions) {
    Random random = new Random(partitions + grace + retention);
    Running r = Running.ordered(circuit(grace, retention, last), partitions);
    ClosingTest.Evaluation evaluation = new ClosingTest.Evaluation(grace, last);
    long[] clock = {100, 100};
    long streamTime = 0;
    Set<Long> left = new HashSet<>();
    for (int t = 0; t < 8; t++) {
      List<ClosingTest.Sent> sent = ClosingTest.some(random, clock);
      long before = streamTime;
      for (ClosingTest.Sent s : sent) streamTime = Math.max(streamTime, s.time());
      if (t == 3) r.attempt(ClosingTest.records(ClosingTest.some(random, clock.clone()), "stream"));
      r.tick(ClosingTest.records(sent, "stream"));
      evaluation.tick(sent);
      if (t == 4) r.restart();
      Bag expected = new Bag();
      Map<Long, long[]> groups = new TreeMap<>();
      evaluation.rows.forEach((row, weight) -> {
        long[] group = groups.computeIfAbsent((long) (int) row.get(0), start -> new long[] {0, Long.MIN_VALUE});
        group[0] += weight;
        group[1] = Math.max(group[1], (int) row.get(1));
      });
      for (var group : groups.entrySet()) {
        long end = group.getKey() + SIZE;
        if (end + retention > before)
          expected.add(row((int) (long) group.getKey(), new Timestamp(end), group.getValue()[0], (int) group.getValue()[1]), 1);
        else left.add(end);
      }
      assertEquals(expected, r.relation(1), "tick " + t);
      for (long released : r.last.released().values()) assertTrue(released <= before - retention);
    }
    assertTrue(left.size() > 3);
  }

  /** A window that closes and changes in the tick in which it is due leaves in the next tick, which needs no input. */
  @ParameterizedTest
  @CsvSource({"false", "true"})
  void lastRowsAreWritten(boolean last) {
    Running r = Running.ordered(circuit(0, 10, last), 1);
    r.tick(ClosingTest.records(List.of(new ClosingTest.Sent(0, 101, 1)), "stream"));
    List<ClosingTest.Sent> more = new ArrayList<>();
    for (long time : new long[] {102, 111, 900}) more.add(new ClosingTest.Sent(0, time, 2));
    r.tick(ClosingTest.records(more, "stream"));
    assertEquals(last ? 2 : 3, r.relation(1).size());
    assertTrue(r.last.released().isEmpty());
    assertEquals(r.time, r.last.due());
    r.tick();
    assertEquals(last ? 0 : 1, r.relation(1).size());
    assertFalse(r.last.released().isEmpty());
    assertEquals(Long.MAX_VALUE, r.last.due());
  }

  /** The operator runs several times in a tick with many changes. */
  @ParameterizedTest
  @CsvSource({"1", "2"})
  void lastRowsOfALargeTick(int partitions) {
    StructType sent = schema("k string, at timestamp, until timestamp"), counts = schema("k string, until timestamp, n bigint");
    Circuit c = new Circuit();
    c.source(1, "stream", Decoder.arrow(sent), empty(sent));
    c.operator(21, Operators.closing(sent, 3, 1, 2, 0, false, false));
    c.edge(1, empty(sent), 21, 0);
    AggregateCall[] count = {call("count", new int[0], counts.apply(2).dataType())};
    c.operator(22, Operators.reduce(sent, new int[] {0, 2}, count, false, 2, 0));
    c.edge(21, empty(sent), 22, 0);
    c.edge(1, empty(sent).select("at"), 22, 1);
    c.relation(1, schema("until timestamp, n bigint"), 0);
    c.output(22, empty(counts).select("until", "n"), 1);
    c.seal();
    Running r = Running.ordered(c, partitions);
    List<Row> records = new ArrayList<>();
    for (int n = 0; n <= 80; n++) {
      long time = n < 80 ? 101 : 900;
      Row of = arrow("stream", sent, List.of(plus(n + "x".repeat(1 << 20), new Timestamp(time), new Timestamp(time - time % 10 + 10))));
      records.add(RowFactory.create(of.get(0), of.get(1), "stream", 0, 0L, new Timestamp(time), 0));
    }
    r.tick(records.toArray(Row[]::new));
    assertEquals(new Bag().add(row(new Timestamp(910), 1L), 1).add(row(new Timestamp(110), 1L), 80), r.relation(1));
    r.tick();
    assertEquals(new Bag().add(row(new Timestamp(910), 1L), 1), r.relation(1));
  }

  /** The state of the aggregates does not grow with the stream, also that of aggregates that store values. */
  @Test
  void theStateIsFlat() {
    Running r = Running.ordered(circuit(5, 30, false), 1);
    List<Long> entries = new ArrayList<>();
    boolean any = false;
    for (int t = 0; t < 60; t++) {
      List<ClosingTest.Sent> sent = new ArrayList<>();
      for (int i = 0; i < 10; i++) sent.add(new ClosingTest.Sent(0, 100 + 10 * t + i, i));
      r.tick(ClosingTest.records(sent, "stream"));
      entries.add(r.entries(22));
      any |= !r.last.released().isEmpty();
    }
    assertTrue(any);
    assertTrue(Collections.max(entries.subList(10, 60)) <= Collections.max(entries.subList(0, 10)), "entries: " + entries);
    assertEquals(5, r.relation(1).size());
  }
}
