package tailgate.operators;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.util.*;
import java.util.function.BiFunction;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tailgate.circuit.Circuit;
import tailgate.sources.Decoder;

/**
 * Every kind of join, with a key, a condition, both and neither: the sum of the output is the join of
 * the sums of the inputs.
 */
class JoinTest {
  static final StructType LEFT = schema("k int, v int"), RIGHT = schema("k int, w int"), BOTH = schema("k int, v int, k2 int, w int");
  static final List<String> KINDS = List.of("inner", "left", "right", "full", "semi", "anti");

  /** One join of each kind over the same rows; relation i + 1 is KINDS[i], its errors are 11 + i. */
  static Circuit circuit(boolean keyed, boolean nullSafe, String condition, boolean leftAppendOnly, boolean rightAppendOnly) {
    return circuit(keyed, nullSafe, condition, new boolean[] {leftAppendOnly, rightAppendOnly}, new boolean[2]);
  }

  static Circuit circuit(boolean keyed, boolean nullSafe, String condition, boolean[] appendOnly, boolean[] unique) {
    Circuit c = new Circuit();
    c.source(1, "left", Decoder.arrow(LEFT), empty(LEFT));
    c.source(2, "right", Decoder.arrow(RIGHT), empty(RIGHT));
    int[] key = keyed ? new int[] {0} : new int[0];
    for (int i = 0; i < KINDS.size(); i++) {
      StructType out = i < 4 ? BOTH : LEFT;
      c.relation(1 + i, out, 11 + i);
      boolean[] safe = new boolean[key.length];
      if (keyed) safe[0] = nullSafe;
      c.operator(21 + i, Operators.join(KINDS.get(i), LEFT, key, RIGHT, key, safe, appendOnly,
          unique, condition == null ? null : empty(BOTH).where(condition)));
      c.edge(1, empty(LEFT), 21 + i, 0);
      c.edge(2, empty(RIGHT), 21 + i, 1);
      c.output(21 + i, empty(out), 1 + i);
    }
    c.seal();
    return c;
  }

  interface Matches extends BiFunction<List<Object>, List<Object>, Boolean> {}

  static Bag join(String kind, Bag left, Bag right, Matches matches) {
    Bag out = new Bag();
    Set<List<Object>> matched = new HashSet<>();
    left.forEach((l, lw) -> {
      boolean[] met = {false};
      right.forEach((r, rw) -> {
        if (!matches.apply(l, r)) return;
        met[0] = true;
        matched.add(r);
        if (KINDS.indexOf(kind) < 4) out.add(row(l.get(0), l.get(1), r.get(0), r.get(1)), lw * rw);
      });
      if (kind.equals("semi") && met[0] || kind.equals("anti") && !met[0]) out.add(l, lw);
      if (!met[0] && (kind.equals("left") || kind.equals("full"))) out.add(row(l.get(0), l.get(1), null, null), lw);
    });
    if (kind.equals("right") || kind.equals("full"))
      right.forEach((r, rw) -> { if (!matched.contains(r)) out.add(row(null, null, r.get(0), r.get(1)), rw); });
    return out;
  }

  static Bag sum(List<Weighted> changes) {
    Bag bag = new Bag();
    changes.forEach(c -> bag.add(c.row(), c.weight()));
    return bag;
  }

  static List<Weighted> changes(Random random, boolean retract) {
    java.util.function.Supplier<Object[]> rows = () ->
        new Object[] {random.nextInt(6) == 0 ? null : random.nextInt(7),
        random.nextInt(5) == 0 ? null : random.nextInt(6)};
    List<Weighted> all = new ArrayList<>();
    for (int i = 0; i < 15; i++) all.add(plus(rows.get()));
    for (int i = 0; retract && i < 25; i++) {
      Object[] row = rows.get();
      all.add(plus(row));
      all.add(minus(row));
    }
    Collections.shuffle(all, random);
    return all;
  }

  static List<Weighted> part(List<Weighted> all, int i, int of) { return all.subList(all.size() * i / of, all.size() * (i + 1) / of); }

  static List<Weighted> gone(Bag bag) { return bag.entrySet().stream().map(e -> new Weighted(e.getKey(), -e.getValue())).toList(); }

  static boolean equal(Object a, Object b) { return a != null && a.equals(b); }

  static boolean less(Object a, Object b) { return a != null && b != null && (int) a < (int) b; }

  void anyOrder(int partitions, boolean keyed, boolean nullSafe, boolean conditional, boolean leftAppendOnly, boolean rightAppendOnly) {
    anyOrder(partitions, keyed, nullSafe, conditional, leftAppendOnly, rightAppendOnly, new boolean[2]);
  }

  void anyOrder(int partitions, boolean keyed, boolean nullSafe, boolean conditional,
      boolean leftAppendOnly, boolean rightAppendOnly, boolean[] unique) {
    Matches matches = (l, r) ->
        (!keyed || (nullSafe ? Objects.equals(l.get(0), r.get(0)) : equal(l.get(0), r.get(0))))
        && (!conditional || less(l.get(1), r.get(1)));
    Random random = new Random(partitions * 31L + (keyed ? 1 : 0) + (conditional ? 2 : 0));
    List<Weighted> left = changes(random, !leftAppendOnly), right = changes(random, !rightAppendOnly);
    Running r = new Running(circuit(keyed, nullSafe, conditional ? "v < w" : null,
        new boolean[] {leftAppendOnly, rightAppendOnly}, unique), partitions);
    int ticks = 5;
    for (int t = 0; t < ticks; t++) {
      r.tick(arrow("left", LEFT, part(left, t, ticks)), arrow("right", RIGHT, part(right, t, ticks)));
      if (t == 2) r.restart();
    }
    String description = "keyed " + keyed + ", null-safe " + nullSafe + ", conditional " + conditional
        + ", append-only " + leftAppendOnly + rightAppendOnly;
    for (int i = 0; i < KINDS.size(); i++)
      assertEquals(join(KINDS.get(i), sum(left), sum(right), matches), r.relation(1 + i),
          KINDS.get(i) + ", " + description);
    if (leftAppendOnly || rightAppendOnly) return;
    // one side goes, and then the other, and nothing is left that would come back with it
    r.tick(arrow("right", RIGHT, gone(sum(right))));
    for (int i = 0; i < KINDS.size(); i++)
      assertEquals(join(KINDS.get(i), sum(left), new Bag(), matches), r.relation(1 + i),
          KINDS.get(i) + " without right, " + description);
    r.tick(arrow("left", LEFT, gone(sum(left))));
    for (int i = 0; i < KINDS.size(); i++) assertEquals(new Bag(), r.relation(1 + i), KINDS.get(i) + " of nothing, " + description);
    r.tick(arrow("right", RIGHT, part(right, 0, 1)));
    r.tick(arrow("left", LEFT, part(left, 0, 1)));
    for (int i = 0; i < KINDS.size(); i++)
      assertEquals(join(KINDS.get(i), sum(left), sum(right), matches), r.relation(1 + i),
          KINDS.get(i) + " again, " + description);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void byKey(int partitions) {
    anyOrder(partitions, true, false, false, false, false);
    anyOrder(partitions, true, true, false, false, false);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void byKeyAndCondition(int partitions) {
    anyOrder(partitions, true, false, true, false, false);
    anyOrder(partitions, true, true, true, false, false);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void byNoKey(int partitions) {
    anyOrder(partitions, false, false, true, false, false);
    anyOrder(partitions, false, false, false, false, false);
  }

  /** An input with one declared row per key is joined correctly also while it has more. */
  @Test
  void oneRowAKey() {
    anyOrder(1, true, false, false, false, false, new boolean[] {true, true});
    anyOrder(1, true, true, false, false, false, new boolean[] {false, true});
    anyOrder(1, true, false, false, true, true, new boolean[] {true, false});
    anyOrder(1, false, false, false, false, false, new boolean[] {true, true});
  }

  @Test
  void appendOnly() {
    for (boolean conditional : new boolean[] {false, true}) {
      anyOrder(1, true, false, conditional, true, true);
      anyOrder(1, true, false, conditional, true, false);
      anyOrder(1, true, false, conditional, false, true);
    }
  }

  /** A pair on which the condition fails is an error of its weight, until one of the two goes, however it came. */
  @Test
  void errorsOfPairs() {
    Running r = new Running(circuit(true, false, "10 div w > v", false, false), 1);
    r.tick(arrow("left", LEFT, List.of(plus(1, 2))));
    r.tick(arrow("right", RIGHT, List.of(plus(1, 0), plus(1, 3))));
    r.tick(arrow("left", LEFT, List.of(plus(1, 2), plus(2, 2))));
    for (int i = 0; i < KINDS.size(); i++)
      assertEquals(new Bag().add(row("22012", "division by zero"), 2), r.relation(11 + i),
          KINDS.get(i));
    assertEquals(new Bag().add(row(1, 2, 1, 3), 2).add(row(2, 2, null, null), 1), r.relation(2));
    assertEquals(new Bag().add(row(1, 2), 2), r.relation(5));
    r.tick(arrow("right", RIGHT, List.of(plus(1, 0))));
    for (int i = 0; i < KINDS.size(); i++)
      assertEquals(new Bag().add(row("22012", "division by zero"), 4), r.relation(11 + i),
          KINDS.get(i));
    r.tick(arrow("left", LEFT, List.of(minus(1, 2))));
    r.tick(arrow("left", LEFT, List.of(minus(1, 2))));
    for (int i = 0; i < KINDS.size(); i++) assertEquals(new Bag(), r.relation(11 + i), KINDS.get(i));
    r.tick(arrow("left", LEFT, List.of(plus(1, 2))), arrow("right", RIGHT, List.of(minus(1, 0), minus(1, 0))));
    for (int i = 0; i < KINDS.size(); i++) assertEquals(new Bag(), r.relation(11 + i), KINDS.get(i));
  }

  /** The history of a row comes after its end: weights are below zero meanwhile. */
  @Test
  void endBeforeBeginning() {
    for (String condition : new String[] {null, "v < w"}) {
      Running r = new Running(circuit(true, false, condition, false, false), 1);
      r.tick(arrow("left", LEFT, List.of(minus(1, 1), plus(1, 2))));
      r.tick(arrow("right", RIGHT, List.of(minus(1, 5))));
      r.tick(arrow("right", RIGHT, List.of(plus(1, 5), plus(1, 6))));
      r.tick(arrow("left", LEFT, List.of(plus(1, 1))));
      assertEquals(Bag.of(row(1, 2, 1, 6)), r.relation(2));
      assertEquals(Bag.of(row(1, 2)), r.relation(5));
      assertEquals(new Bag(), r.relation(6));
    }
  }
}
