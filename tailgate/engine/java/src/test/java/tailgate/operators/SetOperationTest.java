package tailgate.operators;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.util.*;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tailgate.circuit.Circuit;
import tailgate.sources.Decoder;

/** INTERSECT and EXCEPT, of sets and of bags: in any order, the sum of the output is that of the sums of the inputs. */
class SetOperationTest {
  static final StructType ROW = schema("k int, d double");

  /** Relation 1 + 2 * except + all. */
  static Circuit circuit() {
    Circuit c = new Circuit();
    c.source(1, "left", Decoder.arrow(ROW), empty(ROW));
    c.source(2, "right", Decoder.arrow(ROW), empty(ROW));
    for (int i = 0; i < 4; i++) {
      c.operator(11 + i, Operators.setOperation(ROW, i >= 2, i % 2 == 1));
      c.edge(1, empty(ROW), 11 + i, 0);
      c.edge(2, empty(ROW), 11 + i, 1);
      c.relation(1 + i, ROW, 0);
      c.output(11 + i, empty(ROW), 1 + i);
    }
    c.seal();
    return c;
  }

  static Bag expected(int which, Bag left, Bag right) {
    Bag out = new Bag();
    left.forEach((row, l) -> {
      long r = right.getOrDefault(row, 0L);
      out.add(row, switch (which) {
        case 0 -> r > 0 ? 1 : 0;
        case 1 -> Math.min(l, r);
        case 2 -> r > 0 ? 0 : 1;
        default -> Math.max(l - r, 0);
      });
    });
    return out;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void anyOrder(int partitions) {
    Random random = new Random(partitions);
    java.util.function.Supplier<List<Weighted>> some = () -> {
      List<Weighted> all = new ArrayList<>();
      for (int i = 0; i < 60; i++) {
        Object[] row = {random.nextInt(5) == 0 ? null : random.nextInt(5), random.nextInt(3) == 0 ? null : 0.5 * random.nextInt(3)};
        all.add(plus(row));
        if (random.nextInt(3) > 0) all.add(minus(row));
      }
      Collections.shuffle(all, random);
      return all;
    };
    List<Weighted> left = some.get(), right = some.get();
    Running r = new Running(circuit(), partitions);
    for (int t = 0; t < 5; t++) {
      r.tick(arrow("left", ROW, JoinTest.part(left, t, 5)), arrow("right", ROW, JoinTest.part(right, t, 5)));
      if (t == 2) r.restart();
    }
    for (int i = 0; i < 4; i++) assertEquals(expected(i, JoinTest.sum(left), JoinTest.sum(right)), r.relation(1 + i), "operation " + i);
    r.tick(arrow("left", ROW, JoinTest.gone(JoinTest.sum(left))));
    r.tick(arrow("right", ROW, JoinTest.gone(JoinTest.sum(right))));
    for (int i = 0; i < 4; i++) assertEquals(new Bag(), r.relation(1 + i), "operation " + i + " of nothing");
  }

  @Test
  void equalValues() {
    Running r = new Running(circuit(), 1);
    r.tick(arrow("left", ROW, List.of(plus(1, -0.0), plus(null, Double.NaN), plus(null, null))));
    r.tick(arrow("right", ROW, List.of(plus(1, 0.0), plus(null, Double.longBitsToDouble(0x7ff8000000000001L)), plus(null, null))));
    assertEquals(Bag.of(row(1, 0.0), row(null, Double.NaN), row(null, null)), r.relation(1));
    assertEquals(new Bag(), r.relation(3));
  }
}
