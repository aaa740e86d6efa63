package tailgate;

import java.util.*;
import java.util.concurrent.*;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.connector.read.streaming.*;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's Kafka source with a limit by the second, which it lacks: options `rate`, records a second, and `inbox`, the folder whose doorbell starts batches.
 *
 * <pre>   look ──► is a slice of a second over? ──no──► nothing new, and a ring when it is
 *                └─yes─► as many records as the time since the last of them has earned, of one second at most</pre>
 */
public final class RatedKafka implements TableProvider {
  private static final long SLICE_MS = 200;    // records come in slices of so long: a tick for every few records would be dear
  private static final long SECOND_MS = 1000;
  private static final ScheduledExecutorService TIMER = Executors.newSingleThreadScheduledExecutor(r -> {
    Thread thread = new Thread(r, "tailgate-rate");
    thread.setDaemon(true);
    return thread;
  });
  private final KafkaSourceProvider kafka = new KafkaSourceProvider();

  @Override public StructType inferSchema(CaseInsensitiveStringMap options) { return kafka.inferSchema(options); }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    SupportsRead table = (SupportsRead) kafka.getTable(schema, partitioning, properties);
    return new SupportsRead() {
      @Override public String name() { return table.name(); }
      @Override public StructType schema() { return schema; }
      @Override public Set<TableCapability> capabilities() { return Set.of(TableCapability.MICRO_BATCH_READ); }
      @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        Scan scan = table.newScanBuilder(options).build();
        return () -> new Scan() {
          @Override public StructType readSchema() { return scan.readSchema(); }
          @Override public MicroBatchStream toMicroBatchStream(String checkpoint) {
            return new Rated(scan.toMicroBatchStream(checkpoint), options.getLong("rate", Long.MAX_VALUE), options.get("inbox"));
          }
        };
      }
    };
  }

  /** One thread, the query's. */
  private static final class Rated implements MicroBatchStream, SupportsAdmissionControl {
    private final MicroBatchStream stream;
    private final long rate;
    private final String inbox;
    private long last = System.currentTimeMillis() - SECOND_MS;  // when records were let in

    Rated(MicroBatchStream stream, long rate, String inbox) {
      this.stream = stream;
      this.rate = rate;
      this.inbox = inbox;
    }

    @Override public Offset latestOffset(Offset start, ReadLimit limit) {
      long now = System.currentTimeMillis(), passed = Math.min(now - last, SECOND_MS);
      long earned = rate * passed / SECOND_MS;
      if (passed < SLICE_MS || earned < 1) {
        TIMER.schedule(() -> InboxSource.look(inbox), Math.max(SLICE_MS - passed, earned < 1 ? SECOND_MS / rate - passed + 1 : 0), TimeUnit.MILLISECONDS);
        return start;
      }
      long most = limit instanceof ReadMaxRows rows ? Math.min(rows.maxRows(), earned) : earned;
      Offset end = ((SupportsAdmissionControl) stream).latestOffset(start, ReadLimit.maxRows(most));
      if (end != null && !end.equals(start)) last = now;
      return end;
    }

    @Override public ReadLimit getDefaultReadLimit() { return ((SupportsAdmissionControl) stream).getDefaultReadLimit(); }
    @Override public Offset latestOffset() { throw new UnsupportedOperationException("without a limit"); }
    @Override public Offset initialOffset() { return stream.initialOffset(); }
    @Override public Offset deserializeOffset(String json) { return stream.deserializeOffset(json); }
    @Override public InputPartition[] planInputPartitions(Offset start, Offset end) { return stream.planInputPartitions(start, end); }
    @Override public PartitionReaderFactory createReaderFactory() { return stream.createReaderFactory(); }
    @Override public void commit(Offset end) { stream.commit(end); }
    @Override public void stop() { stream.stop(); }
  }
}
