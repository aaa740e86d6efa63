package tailgate.operators;

import tailgate.rows.SortKey;
import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.util.*;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import tailgate.aggregates.AggregateCall;
import tailgate.circuit.Circuit;
import tailgate.circuit.Operator;
import tailgate.sources.Decoder;

/**
 * Operators that keep the rows of a partition in order: the sum of the output depends only on the sum
 * of the input, not on its order.
 */
class PartitionedTest {
  private static final StructType ROW = schema("k int, v int, w int");
  private static final boolean[] UP = {false}, DOWN = {true};

  private static Running over(Operator operator) {
    Circuit c = new Circuit();
    c.relation(1, operator.output(), 2);
    c.source(1, "a", Decoder.arrow(ROW), empty(ROW));
    c.operator(11, operator);
    c.edge(1, empty(ROW), 11, 0);
    c.output(11, empty(operator.output()), 1);
    c.seal();
    return new Running(c, 1);
  }

  private static void tick(Running r, List<Weighted> rows) { r.tick(arrow("a", ROW, rows)); }

  /** Random rows come and go, in an order in which some go before they come; in the end those with a weight above zero are there. */
  private static void follows(Operator operator, java.util.function.Function<List<List<Integer>>, Bag> expected, int seed) {
    Random random = new Random(seed);
    Map<List<Object>, Long> sum = new HashMap<>();
    List<Weighted> changes = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      List<Object> row = List.of(random.nextInt(2), random.nextInt(4), random.nextInt(5));
      long weight = random.nextInt(3) == 0 && sum.getOrDefault(row, 0L) > 0 ? -1 : 1;
      sum.merge(row, weight, Long::sum);
      changes.add(new Weighted(row, weight));
    }
    Collections.shuffle(changes, random);
    Running r = over(operator);
    for (int i = 0; i < changes.size(); i += 7) tick(r, changes.subList(i, Math.min(i + 7, changes.size())));
    List<List<Integer>> rows = new ArrayList<>();
    sum.forEach((row, n) -> {
      for (long i = 0; i < n; i++) rows.add(row.stream().map(v -> (Integer) v).toList());
    });
    assertEquals(expected.apply(rows), r.relation(1));
    assertEquals(new Bag(), r.relation(2));
  }

  private static Map<Integer, List<List<Integer>>> partitions(List<List<Integer>> rows, Comparator<List<Integer>> order) {
    Map<Integer, List<List<Integer>>> split = new TreeMap<>();
    for (List<Integer> row : rows) split.computeIfAbsent(row.get(0), k -> new ArrayList<>()).add(row);
    for (var part : split.values()) part.sort(order.thenComparing(row -> row.get(1)).thenComparing(row -> row.get(2)));
    return split;
  }

  @Test
  void firstRows() {
    Comparator<List<Integer>> down = Comparator.comparing((List<Integer> row) -> -row.get(1));
    for (int seed = 0; seed < 3; seed++) {
      int n = seed;
      follows(Operators.topK(ROW, 3, new int[] {0}, new int[] {1}, DOWN, UP, 2 + n, n, false, false), rows -> {
        Bag bag = new Bag();
        partitions(rows, down).values()
            .forEach(part -> part.stream().skip(n).limit(2 + n)
            .forEach(row -> bag.add(new ArrayList<>(row), 1)));
        return bag;
      }, seed);
      follows(Operators.topK(ROW, 3, new int[] {0}, new int[] {1}, DOWN, UP, 2, 0, true, false), rows -> {
        Bag bag = new Bag();
        partitions(rows, down).values()
            .forEach(part -> part.stream()
            .filter(row -> part.stream().filter(o -> o.get(1) > row.get(1)).count() < 2)
            .forEach(row -> bag.add(new ArrayList<>(row), 1)));
        return bag;
      }, seed);
      follows(Operators.topK(ROW, 3, new int[] {0}, new int[] {1}, DOWN, UP, -1, 3, false, false), rows -> {
        Bag bag = new Bag();
        partitions(rows, down).values().forEach(part -> part.stream().skip(3).forEach(row -> bag.add(new ArrayList<>(row), 1)));
        return bag;
      }, seed);
    }
  }

  @Test
  void numbersAndRunningSums() {
    AggregateCall number = new AggregateCall("row_number", new int[0],
        org.apache.spark.sql.types.DataTypes.LongType, false, -1, new SortKey[0], 0);
    AggregateCall sum = new AggregateCall("sum", new int[] {2},
        org.apache.spark.sql.types.DataTypes.LongType, false, -1, new SortKey[0], 0);
    WindowCall[] calls = {WindowCall.of(number, "range", "unbounded preceding", 0, -1, "current row", 0, -1, "no others", -1),
        WindowCall.of(sum, "rows", "preceding", 1, -1, "current row", 0, -1, "no others", -1)};
    for (int seed = 0; seed < 3; seed++)
      follows(Operators.window(ROW, 3, new int[] {0}, new int[] {1}, UP, UP, calls), rows -> {
        Bag bag = new Bag();
        partitions(rows, Comparator.comparing(row -> row.get(1))).values().forEach(part -> {
          for (int i = 0; i < part.size(); i++) {
            List<Object> out = new ArrayList<>(part.get(i));
            out.add((long) i + 1);
            out.add((long) part.get(i).get(2) + (i > 0 ? part.get(i - 1).get(2) : 0));
            bag.add(out, 1);
          }
        });
        return bag;
      }, seed);
  }

  /** A row far behind the last one shown costs nothing but itself: nothing is emitted, and nothing else is read. */
  @Test
  void onlyRowsThatAreReachedChange() {
    AggregateCall number = new AggregateCall("rank", new int[0],
        org.apache.spark.sql.types.DataTypes.LongType, false, -1, new SortKey[0], 0);
    WindowCall[] calls = {WindowCall.of(number, "range", "unbounded preceding", 0, -1, "current row", 0, -1, "no others", -1)};
    Running r = over(Operators.window(ROW, 3, new int[] {0}, new int[] {1}, UP, UP, calls));
    tick(r, List.of(plus(1, 1, 1), plus(1, 2, 1), plus(1, 3, 1)));
    tick(r, List.of(plus(1, 3, 2)));
    assertEquals(1, r.last.rows(0), "the rows before it keep their rank");
    tick(r, List.of(minus(1, 1, 1)));
    assertEquals(Bag.of(row(1, 2, 1, 1L), row(1, 3, 1, 2L), row(1, 3, 2, 2L)), r.relation(1));
  }
}
