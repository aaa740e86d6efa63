package tailgate.sources;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.*;

/**
 * A Kafka stream with another choice of the end of a tick: it delegates all but {@link
 * #latestOffset(Offset, ReadLimit)}. Used by the loop's thread only.
 */
abstract class WrappedKafka implements MicroBatchStream, SupportsAdmissionControl {
  final MicroBatchStream stream;

  WrappedKafka(MicroBatchStream stream) { this.stream = stream; }

  @Override public ReadLimit getDefaultReadLimit() { return ((SupportsAdmissionControl) stream).getDefaultReadLimit(); }
  @Override public Offset latestOffset() { throw new UnsupportedOperationException("without a limit"); }
  @Override public Offset initialOffset() { return stream.initialOffset(); }
  @Override public Offset deserializeOffset(String json) { return stream.deserializeOffset(json); }
  @Override public InputPartition[] planInputPartitions(Offset start, Offset end) { return stream.planInputPartitions(start, end); }
  @Override public PartitionReaderFactory createReaderFactory() { return stream.createReaderFactory(); }
  @Override public void commit(Offset end) { stream.commit(end); }
  @Override public void stop() { stream.stop(); }
}
