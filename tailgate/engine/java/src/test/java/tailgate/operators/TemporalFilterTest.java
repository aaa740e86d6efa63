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

/** Rows that come and go by the clock; arrays made rows. */
class TemporalFilterTest {
  static final StructType ROW = schema("k int"), TIMED = schema("k int, from bigint, until bigint");

  static Running running(int partitions) {
    Circuit c = new Circuit();
    c.source(1, "a", Decoder.arrow(TIMED), empty(TIMED));
    c.operator(2, Operators.temporalFilter(ROW));
    c.edge(1, empty(TIMED), 2, 0);
    c.relation(1, ROW, 11);
    c.output(2, empty(ROW), 1);
    c.seal();
    return new Running(c, partitions);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void rowsComeAndGoByTheClock(int partitions) {
    Running r = running(partitions);
    r.time = 100;
    r.tick(arrow("a", TIMED, List.of(plus(1, null, null), plus(2, 100L, 200L), plus(3, 150L, null),
        plus(4, null, 100L), plus(5, 300L, 300L), plus(6, -50L, 101L))));
    assertEquals(Bag.of(row(1), row(2), row(6)), r.relation(1));
    assertEquals(101, r.last.due());
    r.time = 150;
    r.restart();
    r.tick();
    assertEquals(Bag.of(row(1), row(2), row(3)), r.relation(1));
    assertEquals(200, r.last.due());
    r.time = 250;
    r.tick();
    assertEquals(Bag.of(row(1), row(3)), r.relation(1));
    assertEquals(Long.MAX_VALUE, r.last.due());
  }

  @Test void theSumOfTheInputDecides() {
    Random random = new Random(7);
    for (int round = 0; round < 5; round++) {
      List<Weighted> rows = new ArrayList<>();
      for (int i = 0; i < 60; i++) {
        Weighted w = plus(random.nextInt(5),
            random.nextInt(4) == 0 ? null : (long) random.nextInt(100),
            random.nextInt(4) == 0 ? null : (long) random.nextInt(100));
        rows.add(w);
        if (random.nextBoolean()) rows.add(new Weighted(w.row(), -1));
      }
      Collections.shuffle(rows, random);
      Running r = running(1);
      Map<Integer, List<Weighted>> seen = new TreeMap<>();
      for (int t = 0; t < 6; t++) {
        r.time = t * 20;
        List<Weighted> now = rows.subList(t * rows.size() / 6, (t + 1) * rows.size() / 6);
        seen.put(t, now);
        r.tick(arrow("a", TIMED, now));
        Bag expected = new Bag();
        for (List<Weighted> of : seen.values())
          for (Weighted w : of) {
            Long from = (Long) w.row().get(1), until = (Long) w.row().get(2);
            if ((from == null || from <= t * 20) && (until == null || t * 20 < until)) expected.add(row(w.row().get(0)), w.weight());
          }
        assertEquals(expected, r.relation(1), "at " + t * 20);
      }
    }
  }

  @Test void arraysBecomeRows() {
    StructType lists = schema("k int, a array<int>"), out = schema("k int, place int, e int");
    Circuit c = new Circuit();
    c.source(1, "a", Decoder.arrow(lists), empty(lists));
    c.relation(1, out, 11);
    c.output(1, empty(lists).selectExpr("k", "posexplode(transform(a, x -> cast(10 div x as int))) as (place, e)").where("e > 1"), 1);
    c.relation(2, out, 12);
    c.output(1, empty(lists).selectExpr("k", "posexplode_outer(a) as (place, e)"), 2);
    c.seal();
    Running r = new Running(c, 1);
    List<Weighted> rows = List.of(plus(1, List.of(2, 5, 9)), plus(1, List.of(2, 5, 9)),
        plus(2, List.of()), plus(3, null), plus(4, List.of(1, 0)));
    r.tick(arrow("a", lists, rows));
    assertEquals(new Bag().add(row(1, 0, 5), 2).add(row(1, 1, 2), 2), r.relation(1));
    assertEquals(Bag.of(row("22012", "division by zero")), r.relation(11), "a row fails as a whole");
    assertEquals(new Bag().add(row(1, 0, 2), 2).add(row(1, 1, 5), 2).add(row(1, 2, 9), 2)
        .add(row(2, null, null), 1).add(row(3, null, null), 1).add(row(4, 0, 1), 1)
        .add(row(4, 1, 0), 1), r.relation(2));
    r.tick(arrow("a", lists, rows.stream().map(w -> new Weighted(w.row(), -1)).toList()));
    assertEquals(List.of(new Bag(), new Bag(), new Bag()), List.of(r.relation(1), r.relation(2), r.relation(11)));
  }
}
