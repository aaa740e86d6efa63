package tailgate.circuit;

import static org.junit.jupiter.api.Assertions.*;

import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

class SentBlocksTest {
  private static final int PARTITIONS = 3, LEVELS = 4;

  private record Received(int port, int to, long weight, long order, String text) {}

  /** Each change is in a block of its level and partition, in the order in which it was added, also one that is larger than a block. */
  @Test
  void changesKeepTheirOrder() {
    UnsafeProjection projection = UnsafeProjection.create(new StructType().add("n", "long").add("text", "string"));
    Random random = new Random(1);
    List<InternalRow> sent = new ArrayList<>();
    SentBlocks blocks = new SentBlocks(PARTITIONS, sent);
    Map<List<Integer>, List<Received>> expected = new HashMap<>(), received = new HashMap<>();
    for (int n = 0; n < 30_000; n++) {
      int level = random.nextInt(LEVELS) == 0 ? SentBlocks.RELATIONS : random.nextInt(LEVELS), place = random.nextInt();
      String text = "x".repeat(n % 10_000 == 17 ? 3 << 20 : random.nextInt(300));
      UnsafeRow row = projection.apply(new GenericInternalRow(new Object[] {(long) n, UTF8String.fromString(text)}));  // it is reused
      blocks.add(level, place, n % 3 - 1, n % 7, row, n - 5, n * 10L);
      expected.computeIfAbsent(List.of(level, Math.floorMod(place, PARTITIONS)), k -> new ArrayList<>())
          .add(new Received(n % 3 - 1, n % 7, n - 5, n * 10L, n + text));
    }
    blocks.flush();
    assertTrue(sent.size() < 100, "changes share blocks");
    for (InternalRow block : sent) {
      assertEquals(Sent.BLOCK, Sent.kind(block));
      List<Integer> place = List.of(Sent.to(block), Math.floorMod(Sent.place(block), PARTITIONS));
      List<Received> of = received.computeIfAbsent(place, k -> new ArrayList<>());
      SentBlocks.forEach(block,
          (port, to, row, weight, order) -> of.add(new Received(port, to, weight, order, row.getLong(0) + row.getString(1))));
    }
    assertEquals(expected, received);
    sent.clear();
    blocks.flush();
    assertTrue(sent.isEmpty());
  }
}
