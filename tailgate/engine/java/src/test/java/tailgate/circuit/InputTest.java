package tailgate.circuit;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.junit.jupiter.api.Test;
import tailgate.sources.RecordAges;

/** The records that no tick has read, after a reader was replaced. */
class InputTest {
  private static final String START = "{\"events\":{\"0\":5}}";

  /** A stream whose answers a test sets. */
  private static final class Reader implements MicroBatchStream, RecordAges {
    Set<String> unanswered = Set.of();
    Map<String, List<Unread>> unread = Map.of();

    @Override public Set<String> unanswered() { return unanswered; }
    @Override public Map<String, List<Unread>> unread() { return unread; }
    @Override public Map<String, Oldest> oldest(Offset end) { return Map.of(); }
    @Override public Map<TopicPartition, Long> ends() { return Map.of(new TopicPartition("events", 0), 9L); }
    @Override public int waiting() { return 0; }

    @Override public Offset deserializeOffset(String json) {
      return new Offset() {
        @Override public String json() { return json; }
      };
    }

    @Override public Offset initialOffset() { throw new UnsupportedOperationException(); }
    @Override public Offset latestOffset() { throw new UnsupportedOperationException(); }
    @Override public InputPartition[] planInputPartitions(Offset start, Offset end) { throw new UnsupportedOperationException(); }
    @Override public PartitionReaderFactory createReaderFactory() { throw new UnsupportedOperationException(); }
    @Override public void commit(Offset end) {}
    @Override public void stop() {}
  }

  @Test void theRecordsOfAReplacedReaderCountUntilTheFirstAnswerOnly() throws IOException {
    Reader earlier = new Reader(), reader = new Reader();
    earlier.unread = Map.of("events", List.of(new RecordAges.Unread(1_000, 6)));
    TickLoop.Input input = new TickLoop.Input("r", reader, START, new TickLoop.Input("r", earlier, START, null));
    Map<String, List<RecordAges.Unread>> expected = new HashMap<>(earlier.unread);
    expected.put("orders", null);
    reader.unanswered = Set.of("events", "orders");
    assertEquals(expected, input.unread());
    reader.unanswered = Set.of();
    assertEquals(Map.of(), input.unread());
    reader.unanswered = Set.of("events");  // a connection was lost
    assertEquals(Collections.singletonMap("events", null), input.unread());
  }

  @Test void theRecordsBehindAreThoseUpToTheKnownEnd() throws IOException {
    TickLoop.Input input = new TickLoop.Input("r", new Reader(), START, null);
    assertEquals(Map.of("events", 4L), input.behind());
    assertEquals(Map.of(), new TickLoop.Input("r", new Reader(), "{\"orders\":{\"0\":5}}", null).behind());
  }
}
