package tailgate.sources;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.*;
import org.junit.jupiter.api.Test;

class InboxSourceTest {
  private record Batch(long id, List<Row> rows) {}

  private static void entry(Path folder, long n, Object[]... records) throws IOException {
    try (DataOutputStream out = new DataOutputStream(Files.newOutputStream(folder.resolve(Long.toString(n))))) {
      for (Object[] r : records) {
        for (int i = 0; i < 3; i++) {
          byte[] bytes = utf8((String) r[i]);
          out.writeInt(bytes == null ? -1 : bytes.length);
          if (bytes != null) out.write(bytes);
        }
        out.writeInt((int) r[3]);
        out.writeLong((long) r[4]);
        out.writeLong((long) r[5]);
        out.writeInt(-1);
      }
    }
    InboxSource.advance(folder.toString(), n);
  }

  @Test
  void entriesInOrderAndTime() throws Exception {
    Path folder = Files.createTempDirectory("inbox"), checkpoint = Files.createTempDirectory("checkpoint");
    entry(folder, 7, new Object[] {"t", "old", "old", 0, 0L, 0L});
    BlockingQueue<Batch> batches = new LinkedBlockingQueue<>();
    var query = spark().readStream().format("tailgate-inbox").option("path", folder.toString()).option("start", "7").option("clock", "600000").load()
        .writeStream().option("checkpointLocation", checkpoint.toString()).foreachBatch((VoidFunction2<Dataset<Row>, Long>) (b, id) -> batches.add(new Batch(id, b.collectAsList()))).start();
    try {
      Batch first = batches.poll(30, TimeUnit.SECONDS);
      assertEquals(1, first.rows.size());
      assertEquals(InboxSource.CLOCK, first.rows.get(0).getString(2));
      Files.delete(folder.resolve("7"));  // the log has passed it
      entry(folder, 8, new Object[] {"t", null, "v", 3, 44L, 1234L}, new Object[] {"u", "k", "", 0, 45L, 5L});
      Batch second = batches.poll(30, TimeUnit.SECONDS);
      assertEquals(List.of(InboxSource.CLOCK, "t", "u"), second.rows.stream().map(r -> r.getString(2)).toList());
      Row r = second.rows.get(1);
      assertTrue(r.isNullAt(0));
      assertEquals(List.of("v", 3, 44L, 1234L), List.of(new String((byte[]) r.get(1)), r.getInt(3), r.getLong(4), r.getTimestamp(5).getTime()));
      long clock = second.rows.get(0).getTimestamp(5).getTime();
      assertTrue(clock > first.rows.get(0).getTimestamp(5).getTime());
      List<String> offsets = Files.readAllLines(checkpoint.resolve("offsets/" + second.id));
      assertEquals("[8," + clock + "]", offsets.get(2), "the time is known before the batch runs");
      InboxSource.tables(folder.toString(), List.of("$table/2"));
      entry(folder, 9, new Object[] {"$table/1", "k", "nobody reads it", 0, 0L, 0L}, new Object[] {"$table/2", null, "read", 0, 0L, 0L}, new Object[] {"$table/1", null, null, 0, 0L, 0L});
      assertEquals(List.of(InboxSource.CLOCK, "$table/2"), batches.poll(30, TimeUnit.SECONDS).rows.stream().map(b -> b.getString(2)).toList());
      assertNull(batches.poll(1200, TimeUnit.MILLISECONDS), "no batch without a reason");
      InboxSource.ring(folder.toString());
      assertEquals(1, batches.poll(30, TimeUnit.SECONDS).rows.size(), "a ring is a batch");
      InboxSource.clock(folder.toString(), 200);
      assertNotNull(batches.poll(30, TimeUnit.SECONDS));
      assertNotNull(batches.poll(30, TimeUnit.SECONDS), "the clock is a batch");
      InboxSource.wall = () -> System.currentTimeMillis() - 86_400_000;
      batches.clear();
      for (int i = 0; i < 3; i++) assertNotNull(batches.poll(30, TimeUnit.SECONDS), "also when the wall clock was set back by a day");
    } finally {
      InboxSource.wall = System::currentTimeMillis;
      query.stop();
    }
  }

  @Test
  void watchesSeveralBrokers() {
    Dataset<Row> frame = spark().readStream().format("tailgate-inbox").option("path", "/tmp/inbox-" + UUID.randomUUID()).option("watch", "[]").load();
    assertEquals(KAFKA.length() + 1, frame.schema().length(), "Kafka's columns, and headers");
  }
}
