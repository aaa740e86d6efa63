package tailgate.circuit;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tailgate.sources.Decoder;
import tailgate.operators.Operators;

/** Net changes in memory and, beyond a limit, in files; much that waits for one operator. */
class NetTest {
  private static final StructType ROW = schema("k int");

  private static UnsafeRow unsafe(int k) { return UnsafeProjection.create(ROW).apply(new GenericInternalRow(new Object[] {k})); }

  @Test void filesHoldWhatMemoryHolds(@TempDir Path folder) throws Exception {
    for (long memory : new long[] {Net.MEMORY_MAX, 10_000}) {
      Net net = new Net(ROW, memory);
      Bag expected = new Bag();
      Random random = new Random(3);
      for (int i = 0; i < 20_000; i++) {
        int k = random.nextInt(3000), weight = random.nextInt(5) - 2;
        net.add(unsafe(k), weight);
        if (weight != 0) expected.add(row(k), weight);
      }
      Sent sent = net.sent(7, folder.resolve("results").toString());
      assertEquals(memory < Net.MEMORY_MAX ? Sent.FILE : Node.Edge.RELATION, sent.kind());
      byte[] stream = sent.kind() == Sent.FILE
          ? Files.readAllBytes(Path.of(new String(sent.bytes(), StandardCharsets.UTF_8)))
          : sent.bytes();
      assertEquals(expected, changes(ROW, stream));
      assertEquals(expected.size(), sent.n());
    }
  }

  @Test void nothingIsNothing(@TempDir Path folder) throws Exception {
    Net net = new Net(ROW, 500);
    for (int k = 0; k < 100; k++) net.add(unsafe(k), 1);
    for (int k = 0; k < 100; k++) net.add(unsafe(k), -1);
    assertNull(net.sent(7, folder.resolve("results").toString()));
    try (var left = Files.list(folder.resolve("results"))) {
      assertEquals(0, left.count());
    }
  }

  /** One change on the left meets 300,000 rows on the right: more than may wait for the next operator, and than is sent as bytes. */
  @Test void oneRowWithManyPartners() throws Exception {
    int n = 300_000;
    StructType left = schema("k int, name string"), right = schema("k int, v int"),
        pairs = schema("k int, name string, k2 int, v int"), sums = schema("s bigint, n bigint");
    Circuit c = new Circuit();
    c.source(1, "left", Decoder.arrow(left), empty(left));
    c.source(2, "right", Decoder.arrow(right), empty(right));
    c.operator(3, Operators.join("inner", left, new int[] {0}, right, new int[] {0}, new boolean[1], new boolean[2], new boolean[2], null));
    c.edge(1, empty(left), 3, 0);
    c.edge(2, empty(right), 3, 1);
    c.relation(1, pairs, 0);
    c.output(3, empty(pairs), 1);
    c.operator(4, reduce(pairs, new int[] {}, new String[] {"sum", "count"}, new int[] {3, -1}, sums));
    c.edge(3, empty(pairs), 4, 0);
    c.relation(2, sums, 0);
    c.output(4, empty(sums), 2);
    c.seal();
    Running r = new Running(c, 1);
    for (int from = 0; from < n; from += 100_000) {
      List<Weighted> rows = new ArrayList<>();
      for (int i = from; i < from + 100_000; i++) rows.add(plus(1, i));
      r.advance(arrow("right", right, rows));
    }
    TickResult result = r.advance(arrow("left", left, List.of(plus(1, "x".repeat(100)))));
    assertNull(result.changes(0));
    Path file = Path.of(result.file(0));
    assertEquals(n, result.rows(0));
    assertTrue(Files.size(file) > Net.MEMORY_MAX / 4);
    assertEquals(Bag.of(row((long) n * (n - 1) / 2, (long) n)), positive(changes(sums, result.changes(1))));
    Files.delete(file);
  }

  private static Bag positive(Bag bag) {
    bag.values().removeIf(w -> w < 0);
    return bag;
  }
}
