package tailgate.rows;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

class RowBufferTest {
  private final UnsafeProjection rows =
      UnsafeProjection.create(new StructType().add("n", DataTypes.LongType).add("s", DataTypes.StringType));

  /** Adds random rows, of which some are larger than a page, and removes some: the others are as they were. */
  @Test void rowsStayAsTheyWere() {
    Random random = new Random(1);
    RowBuffer buffer = new RowBuffer();
    List<Change> expected = new ArrayList<>();
    for (int i = 0; i < 20_000; i++) {
      String text = "x".repeat(random.nextInt(5_000) == 0 ? 300_000 : random.nextInt(40));
      Change change = new Change(
          rows.apply(new GenericInternalRow(new Object[] {(long) i, UTF8String.fromString(text)})).copy(), random.nextInt(5) - 2, i / 3);
      buffer.add(change.row(), change.weight(), change.order());
      expected.add(change);
      if (random.nextInt(1_000) == 0) {
        buffer.truncate(buffer.size() - 1);
        expected.remove(expected.size() - 1);
      }
      if (random.nextInt(4_000) == 0) {
        int each = 2 + random.nextInt(5);
        buffer.retain(n -> n % each != 0);
        List<Change> all = List.copyOf(expected);
        expected.clear();
        for (int n = 0; n < all.size(); n++) if (n % each != 0) expected.add(all.get(n));
      }
    }
    List<Change> actual = new ArrayList<>();
    buffer.forEach((row, weight, order) -> actual.add(new Change(row, weight, order)));
    assertEquals(expected, actual);
  }
}
