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
import tailgate.circuit.Circuit;
import tailgate.sources.Decoder;

/** Sessions that close: compared with an evaluation of one record after the other. */
class SessionsTest {
  static final StructType ROW = schema("k int, n int, start timestamp, until timestamp, at timestamp");
  static final StructType OUTPUT = schema("k int, n int, start timestamp, until timestamp");
  static final StructType GROUPS = schema("k int, start timestamp, n bigint");
  static final long GAP = 10;

  static Circuit circuit(long grace, boolean last, boolean filling) {
    Circuit c = new Circuit();
    c.source(1, "stream", Decoder.arrow(ROW), empty(ROW));
    c.operator(21, Operators.sessions(ROW, 4, new int[] {0}, 4, 2, 3, grace * 1000, last, filling));
    c.edge(1, empty(ROW), 21, 0);
    if (filling) {
      c.source(3, "$fill/stream", Decoder.arrow(ROW), empty(ROW));
      c.edge(3, empty(ROW), 21, 1);
    }
    c.operator(22, reduce(OUTPUT, new int[] {0, 2}, new String[] {"count"}, new int[] {-1}, schema("n bigint")));
    c.edge(21, empty(OUTPUT), 22, 0);
    c.relation(1, OUTPUT, 0);
    c.output(21, empty(OUTPUT), 1);
    c.relation(2, GROUPS, 0);
    c.output(22, empty(GROUPS), 2);
    c.seal();
    return c;
  }

  record Sent(int partition, long time, int key, int value) {
    Row record(String channel) {
      Row row = arrow(channel, ROW, List.of(plus(key, value, new Timestamp(time), new Timestamp(time + GAP), new Timestamp(time))));
      return RowFactory.create(row.get(0), row.get(1), channel, partition, 0L, new Timestamp(time), 0);
    }
  }

  /** Takes one record after the other. */
  static final class Evaluation {
    final long grace;
    final boolean last;
    final Bag rows = new Bag();
    private final List<Session> sessions = new ArrayList<>();
    private long streamTime = Long.MIN_VALUE;
    int late, merged;

    static final class Session {
      int key;
      long start, end;  // times of the first and the last record
      final List<Sent> records = new ArrayList<>();
    }

    Evaluation(long grace, boolean last) {
      this.grace = grace;
      this.last = last;
    }

    void tick(List<Sent> records) {
      Map<Integer, Long> newest = new HashMap<>();
      Map<Sent, Long> order = new IdentityHashMap<>();
      for (Sent s : records) order.put(s, newest.merge(s.partition, s.time, Math::max));
      records.stream().sorted(Comparator.comparingLong(order::get)).forEach(this::process);
    }

    void process(Sent s) {
      streamTime = Math.max(streamTime, s.time);
      for (Session session : List.copyOf(sessions))
        if (session.end + GAP + grace + (last ? 0 : GAP) < streamTime) {
          sessions.remove(session);
          if (last) emit(session, 1);
        }
      Session all = new Session();
      all.key = s.key;
      all.start = all.end = s.time;
      List<Session> touched = sessions.stream().filter(o -> o.key == s.key && o.end >= s.time - GAP && o.start <= s.time + GAP).toList();
      for (Session o : touched) {
        all.start = Math.min(all.start, o.start);
        all.end = Math.max(all.end, o.end);
        all.records.addAll(o.records);
      }
      if (all.end + GAP + grace < streamTime) {
        late++;
        return;
      }
      if (touched.size() > 1) merged++;
      all.records.add(s);
      if (!last) for (Session o : touched) emit(o, -1);
      sessions.removeAll(touched);
      sessions.add(all);
      if (!last) emit(all, 1);
    }

    private void emit(Session of, int weight) {
      for (Sent s : of.records) rows.add(row(s.key, s.value, new Timestamp(of.start), new Timestamp(of.end + GAP)), weight);
    }
  }

  static List<Sent> some(Random random, long[] clock) {
    List<Sent> records = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      int partition = random.nextInt(2);
      clock[partition] += random.nextInt(6);
      long time = random.nextInt(3) == 0 ? Math.max(1, clock[partition] - random.nextInt(40)) : clock[partition];
      records.add(new Sent(partition, time, random.nextInt(9), random.nextInt(1000)));
    }
    return records;
  }

  static Row[] records(List<Sent> sent, String channel) { return sent.stream().map(s -> s.record(channel)).toArray(Row[]::new); }

  @ParameterizedTest
  @CsvSource({"0, false, 1", "20, false, 3", "0, true, 2", "13, true, 1", "5, true, 3", "1000, false, 2"})
  void oneAfterTheOther(long grace, boolean last, int partitions) {
    Random random = new Random(partitions + grace);
    Evaluation expected = new Evaluation(grace, last);
    Running r = Running.ordered(circuit(grace, last, false), partitions);
    long[] clock = {100, 100};
    long late = 0;
    for (int t = 0; t < 12; t++) {
      List<Sent> sent = some(random, clock);
      if (t == 3) r.attempt(records(some(random, clock.clone()), "stream"));  // an attempt that does not enter the log
      r.tick(records(sent, "stream"));
      late += r.last.counters().getOrDefault("21.late_rows", 0L);
      expected.tick(sent);
      if (t == 2) r.restart();
      if (t % 2 == 1) r.move(1 + (partitions + t) % 4);
      assertEquals(expected.rows, r.relation(1), "tick " + t);
      assertEquals(expected.late, late, "tick " + t);
    }
    assertTrue((expected.merged > 0 || grace == 0) && expected.rows.size() > 20, expected.merged + " merged");
    assertTrue(expected.late > 0 || grace == 1000);
  }

  @Test
  void theHistoryComesFirst() {
    Random random = new Random(1);
    Evaluation expected = new Evaluation(5, true);
    Running r = Running.ordered(circuit(5, true, true), 2);
    long[] clock = {100, 100};
    List<Sent> history = some(random, clock);
    Arrays.fill(clock, Math.max(clock[0], clock[1]));
    List<Sent> live = some(random, clock);
    r.tick(records(live, "stream"));
    r.tick(records(history, "$fill/stream"));
    assertEquals(new Bag(), r.relation(1));
    r.move(3);
    r.circuit = circuit(5, true, false);
    r.tick();
    expected.tick(history);
    expected.tick(live);
    assertEquals(expected.rows, r.relation(1));
  }

  /** The state has only rows of open sessions. */
  @Test
  void closedSessionsAreReleased() {
    Running r = Running.ordered(circuit(5, false, false), 1);
    long most = 0;
    for (int t = 0; t < 40; t++) {
      List<Sent> sent = new ArrayList<>();
      for (int i = 0; i < 10; i++) sent.add(new Sent(0, 100 + 30 * t + i, 0, i));
      r.tick(records(sent, "stream"));
      most = Math.max(most, r.entries(21));
    }
    assertEquals(40, r.relation(2).size());
    assertTrue(r.relation(2).keySet().stream().allMatch(row -> row.get(2).equals(10L)), "" + r.relation(2));
    assertTrue(most < 25, "entries: " + most);
  }
}
