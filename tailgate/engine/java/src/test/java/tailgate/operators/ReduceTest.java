package tailgate.operators;

import tailgate.rows.SortKey;
import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.math.BigDecimal;
import java.util.*;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tailgate.aggregates.AggregateCall;
import tailgate.circuit.Circuit;
import tailgate.sources.Decoder;

/** The rules of sums, averages and extremes. */
class ReduceTest {
  /** One aggregate over all of a column. */
  static Running over(String column, String function, String result) {
    StructType row = schema("v " + column), out = schema("r " + result);
    Circuit c = new Circuit();
    c.relation(1, out, 2);
    c.source(1, "a", Decoder.arrow(row), empty(row));
    c.operator(11, reduce(row, new int[0], new String[] {function}, new int[] {0}, out));
    c.edge(1, empty(row), 11, 0);
    c.output(11, empty(out), 1);
    c.seal();
    return new Running(c, 1);
  }

  static Object value(Running r) {
    assertEquals(1, r.relation(1).size(), r.relation(1).toString());
    return r.relation(1).keySet().iterator().next().get(0);
  }

  private record Case(String column, String function, String result, Object[] expected, List<List<Weighted>> ticks) {}

  private final List<Case> cases = new ArrayList<>();

  /** The result after each of some ticks. */
  private void follows(String column, String function, String result, Object[] expected,
      List<List<Weighted>> ticks) {
    cases.add(new Case(column, function, result, expected, ticks));
  }

  /** All cases of a test as one circuit. */
  @AfterEach
  void run() {
    if (cases.isEmpty()) return;
    Circuit c = new Circuit();
    for (int i = 1; i <= cases.size(); i++) {
      Case of = cases.get(i - 1);
      StructType row = schema("v " + of.column), out = schema("r " + of.result);
      c.relation(i, out, 100 + i);
      c.source(i, "a" + i, Decoder.arrow(row), empty(row));
      c.operator(100 + i, reduce(row, new int[0], new String[] {of.function}, new int[] {0}, out));
      c.edge(i, empty(row), 100 + i, 0);
      c.output(100 + i, empty(out), i);
    }
    c.seal();
    Running r = new Running(c, 1);
    for (int t = 0; t < cases.stream().mapToInt(of -> of.ticks.size()).max().getAsInt(); t++) {
      List<org.apache.spark.sql.Row> records = new ArrayList<>();
      for (int i = 1; i <= cases.size(); i++)
        if (t < cases.get(i - 1).ticks.size())
          records.add(arrow("a" + i, schema("v " + cases.get(i - 1).column),
              cases.get(i - 1).ticks.get(t)));
      r.tick(records.toArray(new org.apache.spark.sql.Row[0]));
      for (int i = 1; i <= cases.size(); i++)
        if (t < cases.get(i - 1).ticks.size())
          assertEquals(Bag.of(row(cases.get(i - 1).expected[t])), r.relation(i),
              cases.get(i - 1).function + " of " + cases.get(i - 1).column + ", tick " + t);
    }
  }

  @Test
  void doublesDoNotDrift() {
    follows("double", "sum", "double", new Object[] {1e16, 1e16 + 2, 1.0, 0.0, null}, List.of(
        List.of(plus(1e16)), List.of(plus(1.0), plus(1.0)), List.of(minus(1e16), minus(1.0)),
            List.of(plus(-0.0), minus(1.0)), List.of(minus(-0.0))));
    follows("double", "sum", "double", new Object[] {0.6, Double.NaN, Double.POSITIVE_INFINITY, 0.1 + 0.2, Double.MIN_VALUE}, List.of(
        List.of(plus(0.1), plus(0.2), plus(0.3)), List.of(plus(Double.NaN), plus(Double.POSITIVE_INFINITY)), List.of(minus(Double.NaN)),
        List.of(minus(Double.POSITIVE_INFINITY), minus(0.3)), List.of(minus(0.1), minus(0.2), plus(Double.MIN_VALUE))));
    follows("double", "avg", "double", new Object[] {1.5, Double.NaN}, List.of(List.of(plus(1.0), plus(2.0), plus((Double) null)),
        List.of(plus(Double.NEGATIVE_INFINITY), plus(Double.POSITIVE_INFINITY))));
    follows("float", "sum", "float", new Object[] {3.5f}, List.of(List.of(plus(1.25f), plus(2.25f))));
  }

  @Test
  void overflowIsAnErrorThatGoes() {
    Running r = over("int", "sum", "int");
    r.tick(arrow("a", schema("v int"), List.of(plus(Integer.MAX_VALUE))));
    assertEquals(Integer.MAX_VALUE, value(r));
    r.tick(arrow("a", schema("v int"), List.of(plus(1))));
    assertEquals(new Bag(), r.relation(1));
    assertEquals(Bag.of(row("22003", "integer out of range")), r.relation(2));
    r.tick(arrow("a", schema("v int"), List.of(plus(5))));
    assertEquals(0, r.last.relations().length, "the same error is no change");
    r.tick(arrow("a", schema("v int"), List.of(minus(1), minus(Integer.MAX_VALUE))));
    assertEquals(5, value(r));
    assertEquals(new Bag(), r.relation(2));
    Running d = over("double", "sum", "double");
    d.tick(arrow("a", schema("v double"), List.of(plus(Double.MAX_VALUE), plus(Double.MAX_VALUE))));
    assertEquals(Bag.of(row("22003", "value out of range: overflow")), d.relation(2));
    Running n = over("decimal(4,2)", "sum", "decimal(4,2)");
    n.tick(arrow("a", schema("v decimal(4,2)"), List.of(plus(new BigDecimal("99.99")), plus(new BigDecimal("0.01")))));
    assertEquals(Bag.of(row("22003", "numeric field overflow")), n.relation(2));
  }

  @Test
  void wholeNumbersOfAnySize() {
    follows("bigint", "sum", "decimal(38,16)",
        new Object[] {new BigDecimal("18446744073709551614.0000000000000000"),
        new BigDecimal("0E-16")}, List.of(
        List.of(plus(Long.MAX_VALUE), plus(Long.MAX_VALUE)), List.of(plus(Long.MIN_VALUE), plus(Long.MIN_VALUE), plus(2L))));
    follows("int", "avg", "decimal(38,16)",
        new Object[] {new BigDecimal("0.3333333333333333"), new BigDecimal("0.6666666666666667"),
        new BigDecimal("-0.6666666666666667")}, List.of(
        List.of(plus(1), plus(0), plus(0)), List.of(plus(1), minus(0)), List.of(minus(1), minus(1), plus(-1), plus(-1))));
    follows("decimal(30,3)", "avg", "decimal(38,2)", new Object[] {new BigDecimal("0.35"), new BigDecimal("0.18")}, List.of(
        List.of(plus(new BigDecimal("0.345"))), List.of(plus(new BigDecimal("0.005")))));
    follows("decimal(9,2)", "sum", "decimal(38,2)",
        new Object[] {new BigDecimal("0.30"), new BigDecimal("0.10"), null},
        List.of(List.of(plus(new BigDecimal("0.10")), plus(new BigDecimal("0.20"))),
        List.of(minus(new BigDecimal("0.20"))), List.of(minus(new BigDecimal("0.10")))));
  }

  @Test
  void extremes() {
    follows("double", "max", "double", new Object[] {Double.NaN, 5.0, 0.0, -1.0, null},
        List.of(List.of(plus(Double.NaN), plus(5.0), plus(-0.0), plus(-1.0)),
        List.of(minus(Double.NaN)), List.of(minus(5.0)), List.of(minus(-0.0)), List.of(minus(-1.0))));
    follows("double", "min", "double", new Object[] {Double.NEGATIVE_INFINITY, -2.5, -1.0, Double.NaN}, List.of(
        List.of(plus(Double.NaN), plus(-1.0), plus(-2.5), plus(Double.NEGATIVE_INFINITY)),
            List.of(minus(Double.NEGATIVE_INFINITY)), List.of(minus(-2.5)), List.of(minus(-1.0))));
    follows("string", "max", "string", new Object[] {"b", "ab", "a", ""},
        List.of(List.of(plus("a"), plus(""), plus("ab"), plus("b")), List.of(minus("b")),
        List.of(minus("ab")), List.of(minus("a"))));
    follows("string", "min", "string", new Object[] {"", "a", "ab", "b"},
        List.of(List.of(plus("a"), plus(""), plus("ab"), plus("b")), List.of(minus("")),
        List.of(minus("a")), List.of(minus("ab"))));
    follows("int", "min", "int", new Object[] {-1, -1, 300},
        List.of(List.of(plus(300), plus(-1), plus(-1), plus(70000)), List.of(minus(-1)),
        List.of(minus(-1))));
    follows("bigint", "max", "bigint", new Object[] {Long.MAX_VALUE, -1L},
        List.of(List.of(plus(-1L), plus(Long.MIN_VALUE), plus(Long.MAX_VALUE)),
        List.of(minus(Long.MAX_VALUE))));
    BigDecimal big = new BigDecimal("12345678901234567890.5"), small = new BigDecimal("-3.0");
    follows("decimal(38,1)", "max", "decimal(38,1)", new Object[] {big, small},
        List.of(List.of(plus(small), plus(big), plus(new BigDecimal("-4.5"))),
        List.of(minus(big))));
    follows("boolean", "max", "boolean", new Object[] {true, false}, List.of(List.of(plus(true), plus(false)), List.of(minus(true))));
    follows("date", "min", "date", new Object[] {java.sql.Date.valueOf("1969-12-31"), java.sql.Date.valueOf("2020-02-29")}, List.of(
        List.of(plus(java.sql.Date.valueOf("2020-02-29")),
            plus(java.sql.Date.valueOf("1969-12-31"))),
            List.of(minus(java.sql.Date.valueOf("1969-12-31")))));
  }

  /** A value that goes before it comes. */
  @Test
  void extremesBelowZero() {
    follows("int", "max", "int", new Object[] {3, 3, 9, 9},
        List.of(List.of(plus(3), minus(7)), List.of(plus(7)), List.of(plus(9), minus(8)),
        List.of(plus(8))));
  }

  @Test
  void countsOfValues() {
    follows("int", "count", "bigint", new Object[] {2L, 1L}, List.of(List.of(plus(1), plus((Integer) null), plus(1)), List.of(minus(1))));
  }

  /** The greatest of rows that never go is remembered, and nothing else: the state of a group is one entry, however many rows came. */
  @Test
  void extremesOfAppendOnlyInput() {
    StructType row = schema("g int, v int, t string"), out = schema("g int, least int, greatest int, last string");
    Circuit c = new Circuit();
    c.relation(1, out, 2);
    c.source(1, "a", Decoder.arrow(row), empty(row));
    AggregateCall[] calls = {call("min", 1, "int"), call("max", 1, "int"),
        new AggregateCall("max_by", new int[] {2, 1}, schema("r string").apply(0).dataType(),
        false, -1, new SortKey[0], 0)};
    c.operator(11, Operators.reduce(row, new int[] {0}, calls, true, -1, 0));
    c.edge(1, empty(row), 11, 0);
    c.output(11, empty(out), 1);
    c.seal();
    Running r = new Running(c, 1);
    r.tick(arrow("a", row, List.of(plus(1, 5, "five"), plus(1, 7, "seven"), plus(2, null, "none"))));
    assertEquals(Bag.of(row(1, 5, 7, "seven"), row(2, null, null, null)), r.relation(1));
    r.tick(arrow("a", row, List.of(plus(1, 6, "six"), plus(1, 9, "nine"), plus(1, 9, "also"), plus(2, -1, "one"))));
    assertEquals(Bag.of(row(1, 5, 9, "also"), row(2, -1, -1, "one")), r.relation(1));
    r.tick(arrow("a", row, List.of(plus(1, 8, "eight"))));
    assertEquals(Bag.of(row(1, 5, 9, "also"), row(2, -1, -1, "one")), r.relation(1));
    assertThrows(RuntimeException.class, () -> r.tick(arrow("a", row, List.of(minus(1, 9, "nine")))));
  }

  /** The state of append-only input has only the values that are needed. */
  @ParameterizedTest
  @CsvSource({"2, false, true, false", "-3, false, true, false", "1, true, true, false", "-2, true, true, false",
      "2, false, false, false", "0, false, true, true", "3, false, true, true", "3, false, false, true"})
  void theFirstValues(int limit, boolean distinct, boolean appendOnly, boolean unique) {
    StructType row = schema("g int, v int, o int"), out = schema("g int, r array<int>");
    AggregateCall all = new AggregateCall("array_agg", new int[] {1}, out.apply(1).dataType(), distinct, -1,
        new SortKey[] {new SortKey(distinct ? 1 : 2, true, false)}, 0, limit, unique);
    Circuit c = new Circuit();
    c.relation(1, out, 2);
    c.source(1, "a", Decoder.arrow(row), empty(row));
    c.operator(11, Operators.reduce(row, new int[] {0}, new AggregateCall[] {all}, appendOnly, -1, 0));
    c.edge(1, empty(row), 11, 0);
    c.output(11, empty(out), 1);
    c.seal();
    Running r = new Running(c, 1);
    Random random = new Random(limit);
    List<int[]> rows = new ArrayList<>();
    for (int t = 0; t < 12; t++) {
      List<Weighted> changes = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        int[] one = {random.nextInt(2), random.nextInt(9), random.nextInt(40)};
        rows.add(one);
        changes.add(plus(one[0], one[1], one[2]));
      }
      if (!appendOnly) {
        int[] gone = rows.remove(random.nextInt(rows.size()));
        changes.add(minus(gone[0], gone[1], gone[2]));
      }
      r.tick(arrow("a", row, changes));
      for (List<Object> result : r.relation(1).keySet()) {
        var sorted = rows.stream().filter(one -> one[0] == (int) result.get(0))
            .sorted(Comparator.<int[]>comparingInt(one -> distinct ? -one[1] : -one[2]).thenComparingInt(one -> one[1])).map(one -> one[1]);
        List<Integer> expected = (distinct || unique ? sorted.distinct() : sorted).toList();
        List<?> values = scala.jdk.javaapi.CollectionConverters.asJava((scala.collection.Seq<?>) result.get(1));
        if (unique) values = values.stream().distinct().toList();
        int n = limit == 0 ? expected.size() : Math.min(Math.abs(limit), expected.size());
        if (limit >= 0) assertEquals(expected.subList(0, n), values.subList(0, n));
        else assertEquals(expected.subList(expected.size() - n, expected.size()), values.subList(values.size() - n, values.size()));
      }
      assertEquals(2, r.relation(1).size());
    }
    long most = 2L * (1 + (limit == 0 ? 9 : Math.abs(limit)));  // there are 9 different values
    assertTrue(appendOnly ? r.entries(11) <= most : r.entries(11) > most, "entries: " + r.entries(11));
  }

  private static AggregateCall call(String function, int column, String result) {
    return new AggregateCall(function, new int[] {column}, schema("r " + result).apply(0).dataType(), false, -1, new SortKey[0], 0);
  }
}
