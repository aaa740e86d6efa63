package tailgate.circuit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.*;
import java.util.function.Predicate;
import org.apache.spark.Dependency;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import tailgate.sources.KafkaRecord;

/**
 * The records of one tick, in Kafka's columns, of several partitions: each part is read by its own
 * task. With a single partition the tick reads all parts in order ({@link Rows}).
 */
final class TickInput extends RDD<InternalRow> {
  private static final long serialVersionUID = 1;
  private final transient Split[] splits;

  /**
   * A range of an input's records.
   *
   * @param prefix goes before each record's topic; topic and prefix are the channel
   */
  record Part(String prefix, PartitionReaderFactory factory, InputPartition partition) implements java.io.Serializable {}

  private record Split(int index, Part part) implements Partition {
    private static final long serialVersionUID = 1;
    @Override public int hashCode() { return index; }
    @Override public boolean equals(Object other) { return other instanceof Split split && split.index == index; }
  }

  TickInput(SparkContext context, List<Part> parts) {
    super(context, none(), Stages.tag(InternalRow.class));
    splits = new Split[parts.size()];
    for (int i = 0; i < splits.length; i++) splits[i] = new Split(i, parts.get(i));
  }

  @SuppressWarnings("unchecked")
  private static scala.collection.immutable.Seq<Dependency<?>> none() { return (scala.collection.immutable.Seq<Dependency<?>>) (Object) scala.collection.immutable.Nil$.MODULE$; }

  @Override public Partition[] getPartitions() { return splits; }

  @Override public scala.collection.immutable.Seq<String> getPreferredLocations(Partition split) {
    return CollectionConverters.asScala(List.of(((Split) split).part.partition.preferredLocations())).toSeq();
  }

  @Override public Iterator<InternalRow> compute(Partition split, TaskContext task) {
    Rows rows = new Rows(List.of(((Split) split).part));
    task.addTaskCompletionListener((TaskCompletionListener) t -> rows.close());
    return CollectionConverters.asScala(rows);
  }

  /** The rows of some parts, one part after the other. */
  static final class Rows implements java.util.Iterator<InternalRow>, AutoCloseable {
    private final List<Part> parts;
    private final Map<UTF8String, UTF8String> channels = new HashMap<>();  // by topic, of this part
    private int next;
    private PartitionReader<InternalRow> reader;
    private boolean ready;

    Rows(List<Part> parts) { this.parts = parts; }

    /** Skips rows up to one of a channel that `reads` accepts. Returns whether there is one. */
    boolean skip(Predicate<String> reads) {
      while (hasNext() && !reads.test(parts.get(next - 1).prefix + reader.get().getUTF8String(KafkaRecord.TOPIC))) ready = false;
      return ready;
    }

    @Override public boolean hasNext() {
      try {
        while (!ready) {
          if (reader == null) {
            if (next == parts.size()) return false;
            Part part = parts.get(next++);
            reader = part.factory.createReader(part.partition);
            channels.clear();
          }
          if (reader.next()) ready = true;
          else close();
        }
        return true;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override public InternalRow next() {
      if (!hasNext()) throw new NoSuchElementException();
      ready = false;
      InternalRow row = reader.get();
      String prefix = parts.get(next - 1).prefix;
      return prefix.isEmpty() ? row : inChannel(row, prefix);
    }

    private InternalRow inChannel(InternalRow row, String prefix) {
      UTF8String topic = row.getUTF8String(KafkaRecord.TOPIC), channel = channels.get(topic);
      if (channel == null) channels.put(topic.copy(), channel = UTF8String.fromString(prefix + topic));
      return new GenericInternalRow(new Object[] {row.isNullAt(KafkaRecord.KEY) ? null : row.getBinary(KafkaRecord.KEY), row.isNullAt(KafkaRecord.VALUE) ? null : row.getBinary(KafkaRecord.VALUE), channel,
          row.getInt(KafkaRecord.PARTITION), row.getLong(KafkaRecord.OFFSET), row.getLong(KafkaRecord.TIMESTAMP), row.getInt(KafkaRecord.TIMESTAMP + 1),
          row.numFields() <= KafkaRecord.HEADERS || row.isNullAt(KafkaRecord.HEADERS) ? null : row.getArray(KafkaRecord.HEADERS)});
    }

    @Override public void close() {
      try {
        if (reader != null) reader.close();
        reader = null;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
