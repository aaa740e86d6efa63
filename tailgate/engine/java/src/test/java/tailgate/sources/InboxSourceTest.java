package tailgate.sources;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.junit.jupiter.api.Test;

class InboxSourceTest {
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

  /** A stream, read from tick to tick as the loop does. */
  private static final class Ticks {
    private final MicroBatchStream stream;
    private Offset start;
    private final ExecutorService thread = Executors.newSingleThreadExecutor(r -> {
      Thread t = new Thread(r);
      t.setDaemon(true);
      return t;
    });
    private Future<Offset> looking;

    Ticks(MicroBatchStream stream, String start) {
      this.stream = stream;
      this.start = stream.deserializeOffset(start);
    }

    /** Returns the rows of the next tick, or null if there is no reason for one. */
    List<InternalRow> next(long millis) throws Exception {
      long end = System.nanoTime() + millis * 1_000_000;
      while (true) {
        if (looking == null) looking = thread.submit(() -> stream.latestOffset());
        Offset newest;
        try {
          newest = looking.get(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
          return null;
        }
        looking = null;
        if (newest.equals(start)) continue;
        List<InternalRow> rows = new ArrayList<>();
        for (InputPartition part : stream.planInputPartitions(start, newest))
          try (var reader = stream.createReaderFactory().createReader(part)) {
            while (reader.next()) rows.add(reader.get());
          }
        start = newest;
        stream.commit(newest);
        return rows;
      }
    }
  }

  private static List<String> topics(List<InternalRow> rows) { return rows.stream().map(r -> r.getUTF8String(KafkaRecord.TOPIC).toString()).toList(); }

  private static long time(List<InternalRow> rows) { return rows.get(0).getLong(KafkaRecord.TIMESTAMP) / 1000; }

  @Test
  void entriesInOrderAndTime() throws Exception {
    Path folder = Files.createTempDirectory("inbox");
    entry(folder, 7, new Object[] {"t", "old", "old", 0, 0L, 0L});
    Ticks ticks = new Ticks(InboxSource.stream(folder.toString(), 7, 600_000), "[7,0]");
    try {
      List<InternalRow> first = ticks.next(30_000);
      assertEquals(List.of(InboxSource.CLOCK), topics(first));
      Files.delete(folder.resolve("7"));  // the log has passed it
      entry(folder, 8, new Object[] {"t", null, "v", 3, 44L, 1234L}, new Object[] {"u", "k", "", 0, 45L, 5L});
      List<InternalRow> second = ticks.next(30_000);
      assertEquals(List.of(InboxSource.CLOCK, "t", "u"), topics(second));
      InternalRow r = second.get(1);
      assertTrue(r.isNullAt(KafkaRecord.KEY));
      assertEquals(List.of("v", 3, 44L, 1234L), List.of(new String(r.getBinary(KafkaRecord.VALUE)), r.getInt(KafkaRecord.PARTITION), r.getLong(KafkaRecord.OFFSET), r.getLong(KafkaRecord.TIMESTAMP) / 1000));
      assertTrue(time(second) > time(first));
      assertEquals("[8," + time(second) + "]", ticks.start.json(), "the time is known before the tick runs");
      InboxSource.tables(folder.toString(), List.of("$table/2"));
      entry(folder, 9, new Object[] {"$table/1", "k", "nobody reads it", 0, 0L, 0L}, new Object[] {"$table/2", null, "read", 0, 0L, 0L}, new Object[] {"$table/1", null, null, 0, 0L, 0L});
      assertEquals(List.of(InboxSource.CLOCK, "$table/2"), topics(ticks.next(30_000)));
      assertNull(ticks.next(1200), "no tick without a reason");
      InboxSource.ring(folder.toString());
      assertEquals(1, ticks.next(30_000).size(), "a ring is a tick");
      InboxSource.clock(folder.toString(), 200);
      assertNotNull(ticks.next(30_000));
      assertNotNull(ticks.next(30_000), "the clock is a tick");
      InboxSource.wall = () -> System.currentTimeMillis() - 86_400_000;
      for (int i = 0; i < 3; i++) assertNotNull(ticks.next(30_000), "also when the wall clock was set back by a day");
    } finally {
      InboxSource.wall = System::currentTimeMillis;
      ticks.thread.shutdownNow();
    }
  }
}
