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
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tailgate.circuit.Circuit;
import tailgate.sources.Decoder;

/** Joins of two streams: compared with an evaluation of one record after the other. */
class WithinJoinTest {
  static final StructType STREAM = schema("k int, n int, at timestamp");
  static final StructType JOINED =
      schema("k int, n int, at timestamp, rk int, rn int, rat timestamp, number bigint"), SHOWN = schema("k int, n int, rk int, rn int");
  static final String[] CHANNELS = {"left", "right"};

  /** The options of a join, in ms. */
  record Join(String kind, long before, long after, long grace, boolean eager) {}

  static Circuit circuit(Join join, boolean filling) {
    Circuit c = new Circuit();
    c.operator(21, Operators.withinJoin(join.kind, STREAM, new int[] {0}, 2, STREAM, new int[] {0}, 2,
        join.before * 1000, join.after * 1000, join.grace * 1000, join.eager, filling));
    for (int side = 0; side < 2; side++) {
      c.source(1 + side, CHANNELS[side], Decoder.arrow(STREAM), empty(STREAM));
      c.edge(1 + side, empty(STREAM), 21, side);
      if (!filling) continue;
      c.source(3 + side, "$fill/" + CHANNELS[side], Decoder.arrow(STREAM), empty(STREAM));
      c.edge(3 + side, empty(STREAM), 21, 2 + side);
    }
    c.relation(1, SHOWN, 0);
    c.output(21, empty(JOINED).select("k", "n", "rk", "rn"), 1);
    c.relation(2, JOINED, 0);
    c.output(21, empty(JOINED), 2);
    c.seal();
    return c;
  }

  /** A record of a side; `time` is that of the row, which is also the time of the record. */
  record Sent(int side, int partition, long time, Integer key, int value) {
    Row record(String prefix) {
      Row row = arrow(prefix + CHANNELS[side], STREAM, List.of(plus(key, value, new Timestamp(time))));
      return RowFactory.create(row.get(0), row.get(1), prefix + CHANNELS[side], partition, 0L, new Timestamp(time), 0);
    }

    Row record() { return record(""); }
  }

  /** Takes one record after the other. */
  static final class Evaluation {
    final Join join;
    final Bag rows = new Bag();
    final List<List<Object>> emitted = new ArrayList<>();
    private final List<Stored> stored = new ArrayList<>();
    private long streamTime = Long.MIN_VALUE;
    int late;

    private static final class Stored {
      final Sent sent;
      final long closing;
      boolean alone;

      Stored(Sent sent, long closing) {
        this.sent = sent;
        this.closing = closing;
      }
    }

    Evaluation(Join join) { this.join = join; }

    void tick(List<Sent> records) {
      Map<List<Integer>, Long> newest = new HashMap<>();
      Map<Sent, Long> order = new IdentityHashMap<>();
      for (Sent s : records) order.put(s, newest.merge(List.of(s.side, s.partition), s.time, Math::max));
      List<Sent> sorted = new ArrayList<>(records);
      sorted.sort(Comparator.<Sent>comparingLong(order::get).thenComparingInt(Sent::side));
      sorted.forEach(this::process);
    }

    private boolean outer(int side) { return join.kind.equals("full") || join.kind.equals(CHANNELS[side]); }

    void process(Sent s) {
      if (s.key == null) return;
      long reach = s.side == 0 ? join.after : join.before, back = s.side == 0 ? join.before : join.after;
      long closing = s.time + reach + join.grace;
      // the end belongs to the window
      if (join.grace == 0 ? streamTime > closing : streamTime >= closing) {
        late++;
        return;
      }
      if (s.time > streamTime) {
        streamTime = s.time;
        List<Stored> closed = stored.stream().filter(k -> join.grace == 0 ? streamTime > k.closing : streamTime >= k.closing)
            .sorted(Comparator.<Stored>comparingLong(k -> k.closing).thenComparingInt(k -> k.sent.side)).toList();
        for (Stored k : closed) if (k.alone && !join.eager) emit(k.sent, null);
        stored.removeAll(closed);
      }
      List<Stored> matches = stored.stream()
          .filter(k -> k.sent.side != s.side && k.sent.key.equals(s.key) && k.sent.time >= s.time - back && k.sent.time <= s.time + reach)
          .sorted(Comparator.comparingLong(k -> k.sent.time)).toList();
      for (Stored k : matches) {
        k.alone = false;
        emit(s, k.sent);
      }
      Stored own = new Stored(s, closing);
      own.alone = matches.isEmpty() && outer(s.side);
      if (own.alone && join.eager) emit(s, null);
      stored.add(own);
    }

    private void emit(Sent one, Sent other) {
      Sent left = one.side == 0 ? one : other, right = one.side == 0 ? other : one;
      List<Object> row = row(left == null ? null : left.key, left == null ? null : left.value, right == null ? null : right.key,
          right == null ? null : right.value);
      rows.add(row, 1);
      emitted.add(row);
    }
  }

  /** Random records of both sides; `clock` is the newest time of each partition of each. Some are late. */
  static List<Sent> some(Random random, long[] clock) {
    List<Sent> records = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      int side = random.nextInt(2), partition = random.nextInt(2), place = 2 * side + partition;
      clock[place] += random.nextInt(6);
      long time = random.nextInt(4) == 0 ? Math.max(1, clock[place] - random.nextInt(40)) : clock[place];
      records.add(new Sent(side, partition, time, random.nextInt(10) == 0 ? null : (Integer) random.nextInt(3), random.nextInt(1000)));
    }
    return records;
  }

  static Row[] records(List<Sent> sent) { return sent.stream().map(Sent::record).toArray(Row[]::new); }

  @ParameterizedTest
  @CsvSource({"inner, 10, 10, 5, false, 1", "inner, 0, 20, 0, true, 3", "left, 10, 10, 5, false, 2", "left, 10, 0, 1000, true, 3",
      "right, 3, 12, 5, false, 3", "right, 5, 5, 100, true, 1", "full, 10, 4, 0, false, 3", "full, 4, 10, 7, false, 1",
      "full, 8, 8, 200, true, 2"})
  void oneAfterTheOther(String kind, long before, long after, long grace, boolean eager, int partitions) {
    Join join = new Join(kind, before, after, grace, eager);
    Random random = new Random(partitions + before);
    Evaluation expected = new Evaluation(join);
    Running r = Running.ordered(circuit(join, false), partitions);
    long[] clock = {100, 100, 100, 100};
    long late = 0;
    for (int t = 0; t < 6; t++) {
      List<Sent> sent = some(random, clock);
      if (t == 3) r.attempt(records(some(random, clock.clone())));  // an attempt that does not enter the log
      r.tick(records(sent));
      late += r.last.counters().getOrDefault("21.late_rows", 0L);
      expected.tick(sent);
      if (t == 2) r.restart();
      if (t % 2 == 1) r.move(1 + (partitions + t) % 4);
      assertEquals(expected.rows, r.relation(1), "tick " + t);
      assertEquals(expected.late, late, "tick " + t);
    }
    assertTrue(expected.rows.size() > 20);
    if (grace < 50) assertTrue(expected.late > 0);
  }

  /** The numbers of the rows are in the order in which the evaluation emits them. */
  @Test
  void rowsAreNumbered() {
    Join join = new Join("full", 10, 10, 5, false);
    Random random = new Random(7);
    Evaluation expected = new Evaluation(join);
    Running r = Running.ordered(circuit(join, false), 1);
    long[] clock = {100, 100, 100, 100};
    for (int t = 0; t < 3; t++) {
      List<Sent> sent = some(random, clock);
      r.tick(records(sent));
      expected.tick(sent);
    }
    List<List<Object>> rows = r.relation(2).keySet().stream().sorted(Comparator.comparingLong(row -> (Long) row.get(6)))
        .map(row -> row(row.get(0), row.get(1), row.get(3), row.get(4))).toList();
    assertEquals(expected.emitted, rows);
  }

  /** The timeline of ksqlDB's documentation: a window of 15 s with a grace period of 5 s. */
  @ParameterizedTest
  @ValueSource(strings = {"inner", "left", "full"})
  void timeline(String kind) {
    Running r = Running.ordered(circuit(new Join(kind, 15_000, 15_000, 5_000, false), false), 1);
    Bag expected = new Bag();
    List<Integer> left = new ArrayList<>(), right = new ArrayList<>();
    for (int[] of : new int[][] {{3, 0}, {4, 1}, {5, 0}, {6, 1}, {9, 0}, {10, 1}, {14, 1}, {15, 0}}) {
      r.tick(new Sent(of[1], 0, of[0] * 1000L, 1, of[0]).record());
      (of[1] == 0 ? left : right).add(of[0]);
      for (int other : of[1] == 0 ? right : left) expected.add(of[1] == 0 ? row(1, of[0], 1, other) : row(1, other, 1, of[0]), 1);
      assertEquals(expected, r.relation(1));
    }
    boolean outer = !kind.equals("inner");
    r.tick(new Sent(0, 0, 40_000, 1, 40).record());
    assertEquals(expected, r.relation(1));
    r.tick(new Sent(0, 0, 60_000, 1, 60).record());
    if (outer) expected.add(row(1, 40, null, null), 1);
    assertEquals(expected, r.relation(1));
    r.tick(new Sent(1, 0, 80_000, 1, 80).record());
    if (outer) expected.add(row(1, 60, null, null), 1);
    assertEquals(expected, r.relation(1));
    r.tick(new Sent(0, 0, 100_000, 1, 100).record());
    if (kind.equals("full")) expected.add(row(null, null, 1, 80), 1);
    assertEquals(expected, r.relation(1));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void theHistoryIsMergedByTime(int partitions) {
    Join join = new Join("full", 10, 10, 5, false);
    Random random = new Random(partitions);
    Evaluation expected = new Evaluation(join);
    Running r = Running.ordered(circuit(join, true), partitions);
    long[] clock = {100, 100, 100, 100};
    List<Sent> history = some(random, clock);
    Arrays.fill(clock, Arrays.stream(clock).max().getAsLong());
    List<Sent> live = some(random, clock), more = some(random, clock);
    r.tick(records(live));
    for (int side = 1; side >= 0; side--) {
      int of = side;
      r.tick(history.stream().filter(s -> s.side == of).map(s -> s.record("$fill/")).toArray(Row[]::new));
    }
    r.restart();
    r.move(3);
    assertEquals(new Bag(), r.relation(1));
    r.circuit = circuit(join, false);
    r.tick();
    for (List<Sent> sent : List.of(history, live)) expected.tick(sent);
    assertEquals(expected.rows, r.relation(1));
    r.tick(records(more));
    expected.tick(more);
    assertEquals(expected.rows, r.relation(1));
  }

  /** The state has the rows of the open windows only, however long the streams are. */
  @Test
  void stateIsReleased() {
    Join join = new Join("full", 10, 10, 5, false);
    Running r = Running.ordered(circuit(join, false), 1);
    long most = 0;
    for (int t = 1; t <= 40; t++) {
      List<Sent> sent = new ArrayList<>();
      for (int i = 0; i < 20; i++) sent.add(new Sent(i % 2, 0, 20 * t + i, i, i));
      r.tick(records(sent));
      most = Math.max(most, r.entries(21));
    }
    assertEquals(800, r.relation(2).size(), 60);
    assertTrue(most < 120, "entries: " + most);
  }
}
