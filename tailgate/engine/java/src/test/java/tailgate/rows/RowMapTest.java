package tailgate.rows;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

/** A map of rows, compared with Java's own. */
class RowMapTest {
  private final UnsafeRowWriter writer = new UnsafeRowWriter(2, 32);

  /** Returns a row in a buffer that the next call overwrites. */
  private UnsafeRow row(long number, String text) {
    writer.reset();
    writer.zeroOutNullBytes();
    writer.write(0, number);
    writer.write(1, UTF8String.fromString(text));
    return writer.getRow();
  }

  @Test
  void equalRowsAreOneKeyInTheOrderOfInsertion() {
    Random random = new Random(1);
    Map<String, long[]> expected = new LinkedHashMap<>();
    RowMap<long[]> map = new RowMap<>();
    for (int i = 0; i < 20_000; i++) {
      long number = random.nextInt(3_000);
      String text = "x".repeat(random.nextInt(3) * 8);
      expected.computeIfAbsent(number + text, k -> new long[1])[0]++;
      map.computeIfAbsent(row(number, text), () -> new long[1])[0]++;
    }
    List<String> keys = new ArrayList<>();
    List<Long> counts = new ArrayList<>();
    map.forEach((key, count) -> {
      UnsafeRow row = Rows.row(key, 2);
      keys.add(row.getLong(0) + row.getString(1));
      counts.add(count[0]);
    });
    assertEquals(expected.size(), map.size());
    assertEquals(List.copyOf(expected.keySet()), keys);
    assertEquals(expected.values().stream().map(n -> n[0]).toList(), counts);
  }

  @Test
  void aRowWithoutColumnsIsAKey() {
    RowMap<String> map = new RowMap<>();
    assertEquals("first", map.computeIfAbsent(Rows.row(new byte[0], 0), () -> "first"));
    assertEquals("first", map.computeIfAbsent(Rows.row(new byte[0], 0), () -> "second"));
    map.forEach((key, value) -> assertArrayEquals(new byte[0], key));
  }
}
