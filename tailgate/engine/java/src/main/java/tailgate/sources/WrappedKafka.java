package tailgate.sources;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.connector.read.streaming.*;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Spark's Kafka source with a different choice of the end of a batch. */
abstract class WrappedKafka implements TableProvider {
  private final KafkaSourceProvider kafka = new KafkaSourceProvider();

  abstract MicroBatchStream wrapped(MicroBatchStream stream, CaseInsensitiveStringMap options);

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
          @Override public MicroBatchStream toMicroBatchStream(String checkpoint) { return wrapped(scan.toMicroBatchStream(checkpoint), options); }
        };
      }
    };
  }

  /**
   * Delegates to Kafka's stream, except for {@link #latestOffset(Offset, ReadLimit)}. Used by the
   * query's thread only.
   */
  abstract static class Stream implements MicroBatchStream, SupportsAdmissionControl {
    final MicroBatchStream stream;

    Stream(MicroBatchStream stream) { this.stream = stream; }

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
