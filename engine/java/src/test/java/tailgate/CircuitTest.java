package tailgate;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.Lab.*;

import java.util.*;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CircuitTest {
  static final StructType PAGES = schema("k int, v int");

  /** sum(v) of each k. */
  static Circuit sums() {
    Circuit c = new Circuit();
    c.source(1, "a", Decoder.arrow(PAGES), empty(PAGES));
    c.operator(2, Operator.reduce(PAGES, new int[] {0}, new String[] {"sum", "count"}, new int[] {1, -1}, schema("s bigint, n bigint")));
    c.edge(1, empty(PAGES).selectExpr("k", "v"), 2, 0);
    c.relation(1, schema("k int, s bigint, n bigint"), 9);
    c.output(2, empty(schema("k int, s bigint, n bigint")), 1);
    c.seal();
    return c;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void sumsFollow(int partitions) {
    Running r = new Running(sums(), partitions);
    r.tick(arrow("a", PAGES, List.of(plus(1, 10), plus(1, 5), plus(2, 7))));
    assertEquals(Bag.of(row(1, 15L, 2L), row(2, 7L, 1L)), r.relation(1));
    r.tick(arrow("a", PAGES, List.of(minus(1, 10), minus(2, 7), plus(3, null))));
    assertEquals(Bag.of(row(1, 5L, 1L), row(3, null, 1L)), r.relation(1));
    r.tick();
    assertEquals(0, r.last.relations().length);
  }
}
