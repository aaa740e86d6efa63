package tailgate.aggregates;

import tailgate.rows.SortKey;
import static org.junit.jupiter.api.Assertions.*;

import java.math.BigDecimal;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import tailgate.errors.SqlError;
import tailgate.functions.numeric.General;
import tailgate.rows.SortKeyCodec;

/** Totals of values that come and go in any order, in memory. */
class AccumulatorTest {
  private static final SortKey[] NO_ORDER = {};

  /** A group's total and the values that it keeps. */
  private static final class Group {
    private final AggregateCall call;
    private final StructType row;
    private final Accumulator total;
    private final GroupValues kept = new GroupValues.InMemory();
    private long rows;

    Group(String ddl, AggregateCall call) {
      this.row = StructType.fromDDL(ddl);
      this.call = call;
      this.total = Accumulator.factory(call, row, false).get();
    }

    Group with(long weight, Object... values) {
      for (int i = 0; i < values.length; i++)
        if (values[i] instanceof String s) values[i] = UTF8String.fromString(s);
        else if (values[i] instanceof BigDecimal d)
          values[i] = Decimal.apply(d, ((DecimalType) row.apply(i).dataType()).precision(),
              d.scale());
      Accumulator change = Accumulator.factory(call, row, false).get();
      change.add(new GenericInternalRow(values), weight);
      total.merge(change, kept);
      rows += weight;
      return this;
    }

    Object result() {
      Object found = total.result(rows, kept);
      if (found instanceof ArrayData a) return Arrays.asList(a.toObjectArray(((ArrayType) call.result).elementType()));
      return found instanceof UTF8String || found instanceof Decimal ? found.toString() : found;
    }
  }

  private static AggregateCall call(String function, String result, int... columns) {
    return new AggregateCall(function, columns, DataType.fromDDL(result), false, -1, NO_ORDER, 0);
  }

  private static AggregateCall distinct(String function, String result, int... columns) {
    return new AggregateCall(function, columns, DataType.fromDDL(result), true, -1, NO_ORDER, 0);
  }

  @Test
  void onceForEachValue() {
    Group g = new Group("a int", distinct("sum", "bigint", 0)).with(1, 5).with(1, 5).with(1, 2);
    assertEquals(7L, g.result());
    assertEquals(7L, g.with(-1, 5).result());
    assertEquals(2L, g.with(-1, 5).result());
    assertEquals(2L, g.with(-1, 9).result(), "it goes before it comes");
    assertEquals(2L, g.with(1, 9).result());
    assertEquals(1L, new Group("a double", distinct("count", "bigint", 0)).with(1, 0.0).with(1, -0.0).with(1, (Object) null).result());
  }

  @Test
  void nothingIsLeftOfWhatWasTakenAway() {
    for (String function : List.of("var_pop", "stddev_samp", "sum", "avg", "bool_and", "bit_xor", "bit_and", "corr")) {
      boolean pair = function.equals("corr"), truth = function.startsWith("bool"), bits = function.startsWith("bit");
      String type = truth ? "boolean" : bits ? "int" : "double";
      Group g = new Group("a " + type + ", b " + type, call(function, type, pair ? new int[] {0, 1} : new int[] {0}));
      Object one = truth ? (Object) true : bits ? (Object) 6 : (Object) 0.1,
          other = truth ? (Object) false : bits ? (Object) (-3) : (Object) 1e300;
      g.with(1, one, other).with(3, other, one).with(-2, other, one).with(-1, one, other);
      assertFalse(g.total.isZero(), function);
      assertTrue(g.with(-1, other, one).total.isZero(), function);
    }
  }

  @Test
  void variances() {
    Group exact = new Group("a decimal(10,2)", call("stddev_pop", "decimal(38,16)", 0))
        .with(1, new BigDecimal("1.00")).with(1, new BigDecimal("2.00"));
    assertEquals("0.5000000000000000", exact.result());
    Group wide = new Group("a double", call("var_samp", "double", 0)).with(1, 1e15).with(1, 1e15 + 1).with(1, 1e15 + 2);
    assertEquals(1.0, wide.result(), "no digit is lost");
    assertEquals(Double.NaN, wide.with(1, Double.POSITIVE_INFINITY).result());
    assertEquals(1.0, wide.with(-1, Double.POSITIVE_INFINITY).result());
    assertNull(new Group("a double", call("var_samp", "double", 0)).with(1, 3.0).result());
  }

  @Test
  void bitStrings() {
    Object[][] expected = {{"bit_and", "0010"}, {"bit_or", "0111"}, {"bit_xor", "0101"}};
    for (Object[] e : expected) {
      Group g = new Group("a string", call((String) e[0], "string", 0));
      assertNull(g.with(1, (Object) null).result());
      g.with(1, "0110").with(1, "0011");
      assertEquals(e[1], g.result(), (String) e[0]);
      assertEquals("22026", assertThrows(SqlError.class, () -> g.with(1, "1").result()).sqlstate());
      assertEquals(e[1], g.with(-1, "1").result(), (String) e[0]);
      assertTrue(g.with(-1, "0110").with(-1, "0011").total.isZero(), (String) e[0]);
    }
    Group once = new Group("a string", distinct("bit_xor", "string", 0)).with(2, "10").with(1, "11");
    assertEquals("01", once.result());
  }

  @Test
  void generalNumericsThatGoBeforeTheyCome() {
    for (String function : List.of("sum", "avg", "var_pop", "stddev_samp")) {
      AggregateCall call = new AggregateCall(function, new int[] {0}, General.TYPE, false, -1, NO_ORDER, 0);
      Group g = new Group("a " + General.TYPE.sql(), call);
      for (String value : List.of("0.25", "1.5", "2.75")) g.with(1, general(value));
      g.with(-1, general("3.10")).with(-1, general("7.01"));
      g.result();
      g.with(1, general("3.10")).with(1, general("7.01"));
      Group direct = new Group("a " + General.TYPE.sql(), call);
      for (String value : List.of("0.25", "1.5", "2.75")) direct.with(1, general(value));
      assertEquals(String.valueOf(direct.result()), String.valueOf(g.result()), function);
    }
  }

  private static Object general(String value) {
    return General.of(new BigDecimal(value)).row();
  }

  @Test
  void lines() {
    Object[][] expected = {{"regr_slope", 2.0}, {"regr_intercept", 1.0}, {"corr", 1.0},
        {"regr_r2", 1.0}, {"regr_avgx", 2.0}, {"regr_sxy", 4.0}, {"covar_samp", 2.0}};
    for (Object[] e : expected) {
      Group g = new Group("y double, x double", call((String) e[0], "double", 0, 1))
          .with(1, 3.0, 1.0).with(1, 5.0, 2.0).with(1, 7.0, 3.0).with(1, null, 9.0);
      assertEquals(e[1], g.result(), (String) e[0]);
    }
    assertNull(new Group("y double, x double", call("regr_slope", "double", 0, 1)).with(1, 3.0, 1.0).with(1, 4.0, 1.0).result());
  }

  @Test
  void valuesInOrder() {
    SortKey[] order = {new SortKey(1, true, false)};
    Group g = new Group("a string, n int",
        new AggregateCall("array_agg", new int[] {0}, DataType.fromDDL("array<string>"), false, -1,
        order, 0));
    g.with(1, "a", 1).with(1, "b", 2).with(1, null, 3).with(1, "c", null).with(2, "a", 2).with(-1, "z", 9);
    assertEquals(Arrays.asList(null, "a", "a", "b", "a", "c"),
        ((List<?>) g.result()).stream().map(v -> v == null ? null : v.toString()).toList());
    Group text = new Group("a string, d string", distinct("string_agg", "string", 0, 1))
        .with(1, "b", ", ").with(2, "a", ", ").with(1, null, ", ");
    assertEquals("a, b", text.result());
    Group json = new Group("k string, v string", call("jsonb_object_agg", "string", 0, 1))
        .with(1, "long", "1").with(1, "k", "null").with(1, "k", "\"x\"");
    assertEquals("{\"k\": null, \"long\": 1}", json.result());
    assertEquals("22023", assertThrows(SqlError.class, () -> json.with(1, null, "1").result()).sqlstate());
  }

  @Test
  void percentiles() {
    SortKey[] up = {new SortKey(0, false, false)}, down = {new SortKey(0, true, false)};
    Group middle = new Group("a double",
        new AggregateCall("percentile_cont", new int[] {0}, DataTypes.DoubleType, false, -1, up,
        0.5)).with(1, 1.0).with(1, 2.0).with(1, 10.0);
    assertEquals(2.0, middle.result());
    assertEquals(6.0, middle.with(1, 10.0).result());
    assertEquals(10.0, middle.with(3, 10.0).result());
    Group at = new Group("a int",
        new AggregateCall("percentile_disc", new int[] {0}, DataTypes.IntegerType, false, -1, down,
        0.25)).with(1, 1).with(1, 2).with(1, 3).with(1, 4).with(5, (Object) null);
    assertEquals(4, at.result());
    Group mode = new Group("a int",
        new AggregateCall("mode", new int[] {0}, DataTypes.IntegerType, false, -1, down, 0))
        .with(2, 1).with(2, 2).with(1, 3);
    assertEquals(2, mode.result());
    Group zeros = new Group("a double",
        new AggregateCall("mode", new int[] {0}, DataTypes.DoubleType, false, -1, up, 0))
        .with(2, -2.25).with(1, -0.0).with(2, 0.0);
    assertEquals(0.0, (double) zeros.result(), 0.0);
  }

  @Test
  void theValueBesideTheGreatest() {
    Group g = new Group("v string, by int", call("max_by", "string", 0, 1)).with(1, "b", 1)
        .with(1, "z", 3).with(1, "y", 3).with(1, "n", null);
    assertEquals("y", g.result());
    assertEquals("z", g.with(-1, "y", 3).result());
    assertEquals("b", g.with(-1, "z", 3).result());
  }

  @Test
  void onlyRowsForWhichAColumnIsTrue() {
    Group g = new Group("a int, f boolean",
        new AggregateCall("array_agg", new int[] {0}, DataType.fromDDL("array<int>"), false, 1,
        NO_ORDER, 0));
    assertEquals(List.of(2), g.with(1, 1, false).with(1, 2, true).with(1, 3, null).result());
  }

  /** The order of bytes is the order of values, for every direction and order of nulls, and the values are decoded. */
  @Test
  void orderOfSeveralColumns() {
    StructType row = StructType.fromDDL("a string, b double, c array<int>");
    Random random = new Random(7);
    List<Object[]> rows = new ArrayList<>();
    for (int i = 0; i < 200; i++)
      rows.add(new Object[] {random.nextInt(5) == 0 ? null
          : UTF8String.fromString(List.of("", "a", "a\0", "a\0b", "b").get(random.nextInt(5))),
          random.nextInt(5) == 0 ? null : List.of(-1.5, -0.0, 0.0, Double.NaN, Double.POSITIVE_INFINITY).get(random.nextInt(5)), null});
    for (int way = 0; way < 16; way++) {
      boolean down = (way & 1) != 0, first = (way & 2) != 0, down2 = (way & 4) != 0, first2 = (way & 8) != 0;
      SortKeyCodec order = new SortKeyCodec(row, new SortKey(0, down, first), new SortKey(1, down2, first2));
      Comparator<Object[]> wanted = Comparator.<Object[]>comparingInt(r -> r[0] == null ? first ? -1 : 1 : 0)
          .thenComparing((a, b) -> a[0] == null ? 0 : (down ? -1 : 1) * ((UTF8String) a[0]).compareTo((UTF8String) b[0]))
          .thenComparingInt(r -> r[1] == null ? first2 ? -1 : 1 : 0)
          .thenComparing((a, b) -> a[1] == null ? 0 : (down2 ? -1 : 1) * Double.compare((Double) a[1] + 0.0, (Double) b[1] + 0.0));
      for (Object[] a : rows)
        for (Object[] b : rows) {
          byte[] x = order.encode(new GenericInternalRow(a)), y = order.encode(new GenericInternalRow(b));
          assertEquals(Integer.signum(wanted.compare(a, b)), Integer.signum(Arrays.compareUnsigned(x, y)));
        }
      assertEquals(rows.get(3)[0], order.decode(order.encode(new GenericInternalRow(rows.get(3))))[0]);
    }
  }
}
