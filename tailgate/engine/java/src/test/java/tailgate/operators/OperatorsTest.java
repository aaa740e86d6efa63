package tailgate.operators;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.util.*;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tailgate.circuit.Circuit;
import tailgate.sources.Decoder;

/** The law: in every order and division into ticks, the sum of the output is the query over the sum of the input. */
class OperatorsTest {
  static final StructType LEFT = schema("k int, v int"), RIGHT = schema("k int, s string"), BOTH = schema("k int, v int, k2 int, s string");
  static final StructType USERS = schema("id int, name string"),
      EVENTS = schema("id int, name string, __deleted boolean, __position string");

  /** Three sources: left and right of a join, its sums by text; and users by key. */
  static Circuit circuit(boolean leftAppendOnly, boolean rightAppendOnly) {
    Circuit c = new Circuit();
    c.relation(1, BOTH, 0);
    c.relation(2, schema("s string, n bigint, total bigint, low int, high int, mean decimal(38,16)"), 0);
    c.relation(3, USERS, 0);
    c.relation(4, schema("k int"), 0);
    c.relation(5, schema("n bigint, high string"), 0);
    c.source(1, "left", Decoder.arrow(LEFT), empty(LEFT));
    c.source(2, "right", Decoder.arrow(RIGHT), empty(RIGHT));
    c.source(3, "users", Decoder.arrow(EVENTS), empty(EVENTS));
    c.operator(12, reduce(schema("s string, v int"), new int[] {0},
        new String[] {"count", "sum", "min", "max", "avg"}, new int[] {-1, 1, 1, 1, 1},
        schema("n bigint, total bigint, low int, high int, mean decimal(38,16)")));
    c.operator(11, Operators.join("inner", LEFT, new int[] {0}, RIGHT, new int[] {0},
        new boolean[1], new boolean[] {leftAppendOnly, rightAppendOnly}, new boolean[2], null));
    c.operator(13, upsert(USERS, new int[] {0}));
    c.operator(14, reduce(LEFT, new int[] {0}, new String[0], new int[0], new StructType()));
    c.operator(15, reduce(RIGHT, new int[0], new String[] {"count", "max"}, new int[] {1, 1}, schema("n bigint, high string")));
    c.edge(1, empty(LEFT), 11, 0);
    c.edge(2, empty(RIGHT), 11, 1);
    c.edge(11, empty(BOTH).selectExpr("s", "v"), 12, 0);
    c.edge(3, empty(EVENTS), 13, 0);
    c.edge(1, empty(LEFT), 14, 0);
    c.edge(2, empty(RIGHT), 15, 0);
    c.output(11, empty(BOTH), 1);
    c.output(12, empty(schema("s string, n bigint, total bigint, low int, high int, mean decimal(38,16)")), 2);
    c.output(13, empty(USERS), 3);
    c.output(14, empty(schema("k int")), 4);
    c.output(15, empty(schema("n bigint, high string")), 5);
    c.seal();
    return c;
  }

  static Bag join(Bag left, Bag right) {
    Bag both = new Bag();
    left.forEach((l, lw) -> right.forEach((r, rw) -> {
      if (l.get(0) != null && l.get(0).equals(r.get(0))) both.add(row(l.get(0), l.get(1), r.get(0), r.get(1)), lw * rw);
    }));
    return both;
  }

  static Bag sums(Bag both) {
    Map<Object, List<Integer>> groups = new HashMap<>();
    both.forEach((r, w) -> groups.computeIfAbsent(r.get(3), s -> new ArrayList<>())
        .addAll(Collections.nCopies((int) (long) w, (Integer) r.get(1))));
    Bag out = new Bag();
    groups.forEach((s, all) -> {
      List<Integer> v = all.stream().filter(Objects::nonNull).toList();
      long sum = v.stream().mapToLong(i -> i).sum();
      out.add(v.isEmpty() ? row(s, (long) all.size(), null, null, null, null)
          : row(s, (long) all.size(), sum, Collections.min(v), Collections.max(v),
              new java.math.BigDecimal(sum)
              .divide(new java.math.BigDecimal(v.size()), 16, java.math.RoundingMode.HALF_UP)), 1);
    });
    return out;
  }

  static Bag single(Bag right) {
    long n = 0;
    String high = null;
    for (var e : right.entrySet()) {
      String s = (String) e.getKey().get(1);
      if (s == null) continue;
      n += e.getValue();
      if (high == null || Arrays.compareUnsigned(utf8(s), utf8(high)) > 0) high = s;
    }
    return Bag.of(row(n, high));
  }

  static Bag keys(Bag left) {
    Bag out = new Bag();
    left.keySet().forEach(r -> { if (!out.containsKey(row(r.get(0)))) out.add(row(r.get(0)), 1); });
    return out;
  }

  /** Rows that stay, and others that come and go, in any order. */
  static List<Weighted> changes(Random random, int n, java.util.function.Supplier<Object[]> rows, boolean retract) {
    List<Weighted> all = new ArrayList<>();
    for (int i = 0; i < n; i++) all.add(plus(rows.get()));
    for (int i = 0; retract && i < n; i++) {
      Object[] row = rows.get();
      all.add(plus(row));
      all.add(minus(row));
    }
    Collections.shuffle(all, random);
    return all;
  }

  static Bag sum(List<Weighted> changes) {
    Bag bag = new Bag();
    changes.forEach(c -> bag.add(c.row(), c.weight()));
    return bag;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void anyOrder(int partitions) {
    for (boolean appendOnly : new boolean[] {false, true}) {
      Random random = new Random(7 + partitions);
      String[] texts = {null, "", "a", "ab", "ä", "z", "\ud83d\ude00", "\uffee"};
      List<Weighted> left = changes(random, 40,
          () -> new Object[] {random.nextInt(6) == 0 ? null : random.nextInt(8),
          random.nextInt(4) == 0 ? null : random.nextInt(5) - 2}, !appendOnly);
      List<Weighted> right = changes(random, 12,
          () -> new Object[] {random.nextInt(5) == 0 ? null : random.nextInt(8),
          texts[random.nextInt(texts.length)]}, !appendOnly);
      Running r = new Running(circuit(appendOnly, appendOnly), partitions);
      r.tick();
      assertEquals(Bag.of(row(0L, null)), r.relation(5));
      int ticks = 4;
      for (int t = 0; t < ticks; t++) {
        r.tick(arrow("left", LEFT,
            left.subList(left.size() * t / ticks, left.size() * (t + 1) / ticks)),
            arrow("right", RIGHT, right.subList(right.size() * t / ticks,
            right.size() * (t + 1) / ticks)));
        if (t == 1) r.restart();
      }
      Bag both = join(sum(left), sum(right));
      assertFalse(both.isEmpty());
      assertEquals(both, r.relation(1));
      assertEquals(sums(both), r.relation(2));
      assertEquals(keys(sum(left)), r.relation(4));
      assertEquals(single(sum(right)), r.relation(5));
      if (appendOnly) continue;
      // and everything goes again
      r.tick(arrow("left", LEFT, sum(left).entrySet().stream().map(e -> new Weighted(e.getKey(), -e.getValue())).toList()),
          arrow("right", RIGHT, sum(right).entrySet().stream().map(e -> new Weighted(e.getKey(), -e.getValue())).toList()));
      assertEquals(new Bag(), r.relation(1));
      assertEquals(new Bag(), r.relation(2));
      assertEquals(new Bag(), r.relation(4));
      assertEquals(Bag.of(row(0L, null)), r.relation(5));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void upsertByPosition(int partitions) {
    Random random = new Random(partitions);
    List<Weighted> events = new ArrayList<>();
    for (int p = 0; p < 60; p++) events.add(plus(random.nextInt(6), "n" + p, random.nextInt(4) == 0, String.format("%04d", p)));
    Bag expected = new Bag();
    Map<Object, List<Object>> newest = new TreeMap<>();
    for (Weighted e : events) newest.put(e.row().get(0), e.row());
    newest.values().forEach(e -> { if (!(Boolean) e.get(2)) expected.add(row(e.get(0), e.get(1)), 1); });
    List<Weighted> delivered = new ArrayList<>(events);
    delivered.addAll(events.subList(0, 30));  // at least once
    Collections.shuffle(delivered, random);
    Running r = new Running(circuit(false, false), partitions);
    for (int t = 0; t < 4; t++) r.tick(arrow("users", EVENTS, delivered.subList(delivered.size() * t / 4, delivered.size() * (t + 1) / 4)));
    assertEquals(expected, r.relation(3));
  }

  @Test
  void upsertWithoutPosition() {
    Running r = new Running(circuit(false, false), 1);
    r.tick(arrow("users", EVENTS, List.of(plus(1, "a", false, null), plus(1, "b", false, null), plus(2, "x", null, "0005"))));
    assertEquals(Bag.of(row(1, "b"), row(2, "x")), r.relation(3));
    r.tick(arrow("users", EVENTS, List.of(plus(1, null, true, null), plus(2, "old", false, "0005"))));
    assertEquals(Bag.of(row(2, "x")), r.relation(3));
    r.tick(arrow("users", EVENTS, List.of(plus(2, null, true, "0007"))), arrow("users", EVENTS, List.of(plus(2, "late", false, "0006"))));
    assertEquals(new Bag(), r.relation(3));
    r.tick(arrow("users", EVENTS, List.of(plus(2, "late", false, "0007"), plus(null, "no key", false, "1"))));
    assertEquals(Bag.of(row(null, "no key")), r.relation(3), "a deleted key keeps its position");
    r.tick(arrow("users", EVENTS, List.of(plus(2, "new", false, "001"), plus(null, "no key", false, "2"))));
    assertEquals(Bag.of(row(null, "no key"), row(2, "new")), r.relation(3), "positions compare as bytes");
    assertEquals(1, r.last.rows(0), "an equal row is no change");
    r.tick(arrow("users", EVENTS, List.of(plus(2, "unplaced", false, null))));
    r.tick(arrow("users", EVENTS, List.of(plus(2, "stale", false, "0009"))));
    assertEquals(Bag.of(row(null, "no key"), row(2, "unplaced")), r.relation(3),
        "an event without a position leaves the position as it was");
  }

  @Test
  void crossJoin() {
    Circuit c = new Circuit();
    c.relation(1, BOTH, 0);
    c.source(1, "left", Decoder.arrow(LEFT), empty(LEFT));
    c.source(2, "right", Decoder.arrow(RIGHT), empty(RIGHT));
    c.operator(11, Operators.join("inner", LEFT, new int[0], RIGHT, new int[0], new boolean[0], new boolean[2], new boolean[2], null));
    c.edge(1, empty(LEFT), 11, 0);
    c.edge(2, empty(RIGHT), 11, 1);
    c.output(11, empty(BOTH), 1);
    c.seal();
    Running r = new Running(c, 1);
    r.tick(arrow("left", LEFT, List.of(plus(1, 1), plus(null, 2))));
    r.tick(arrow("right", RIGHT, List.of(plus(5, "x"), plus(5, "x"))), arrow("left", LEFT, List.of(minus(1, 1))));
    assertEquals(new Bag().add(row(null, 2, 5, "x"), 2), r.relation(1));
  }

  /** Keys: -0.0 is 0.0, NaN is NaN, NULL never. */
  @Test
  void joinKeysAreNormalised() {
    StructType left = schema("k double, v int"), right = schema("k double, w int");
    Circuit c = new Circuit();
    c.relation(1, schema("v int, w int"), 0);
    c.relation(2, schema("k double, n bigint"), 0);
    c.source(1, "left", Decoder.arrow(left), empty(left));
    c.source(2, "right", Decoder.arrow(right), empty(right));
    c.operator(11, Operators.join("inner", left, new int[] {0}, right, new int[] {0},
        new boolean[1], new boolean[2], new boolean[2], null));
    c.operator(12, reduce(left, new int[] {0}, new String[] {"count"}, new int[] {-1}, schema("n bigint")));
    c.edge(1, empty(left), 11, 0);
    c.edge(1, empty(left), 12, 0);
    c.edge(2, empty(right), 11, 1);
    c.output(11, empty(schema("k double, v int, k2 double, w int")).selectExpr("v", "w"), 1);
    c.output(12, empty(schema("k double, n bigint")), 2);
    c.seal();
    Running r = new Running(c, 1);
    r.tick(arrow("left", left,
        List.of(plus(-0.0, 1), plus(0.0, 2), plus(Double.longBitsToDouble(0x7ff8000000000001L), 3),
        plus(Double.NaN, 4), plus(null, 5), plus(null, 6))));
    r.tick(arrow("right", right, List.of(plus(0.0, 1), plus(Double.NaN, 2), plus(null, 3))));
    assertEquals(Bag.of(row(1, 1), row(2, 1), row(3, 2), row(4, 2)), r.relation(1));
    assertEquals(Bag.of(row(0.0, 2L), row(Double.NaN, 2L), row(null, 2L)), r.relation(2));
  }
}
