package tailgate.sources;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.*;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's Kafka source for change topics, with batches that contain whole transactions of the
 * database. It reads the change topics and the transaction topic. The offsets of the latter are
 * part of a batch, but not its messages, which {@link TransactionScan} reads. Options:
 * `transactions`, the configuration of the scan; `reader`, the prefix of the channels; `inbox`, the
 * folder whose doorbell starts batches.
 */
public final class TransactedKafka extends WrappedKafka {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final String KAFKA = "kafka.";
  private static final Map<String, TransactionScan> SCANS = new ConcurrentHashMap<>();

  /** Returns the warning of this reader, or null ({@link TransactionScan#warning}). */
  public static String warning(String reader) {
    TransactionScan scan = SCANS.get(reader);
    return scan == null ? null : scan.warning();
  }

  @Override MicroBatchStream wrapped(MicroBatchStream stream, CaseInsensitiveStringMap options) { return new Transacted(stream, options); }

  private static final class Transacted extends Stream {
    private final CaseInsensitiveStringMap options;
    private final JsonNode said;
    private final String topic, reader, inbox;
    private TransactionScan scan;

    Transacted(MicroBatchStream stream, CaseInsensitiveStringMap options) {
      super(stream);
      this.options = options;
      this.said = parsed(options.get("transactions"));
      this.topic = said.get("topic").textValue();
      this.reader = options.get("reader");
      this.inbox = options.get("inbox");
    }

    @Override public Offset latestOffset(Offset start, ReadLimit limit) {
      if (scan == null) SCANS.put(reader, scan = new TransactionScan(reader, said, consumer(), partitions(start.json()), () -> InboxSource.look(inbox)));
      String json = json(scan.enter(limit instanceof ReadMaxRows rows ? rows.maxRows() : Long.MAX_VALUE));
      return partitions(json).equals(partitions(start.json())) ? start : stream.deserializeOffset(json);
    }

    @Override public InputPartition[] planInputPartitions(Offset start, Offset end) {
      return Arrays.stream(stream.planInputPartitions(start, end)).filter(p -> !((KafkaBatchInputPartition) p).offsetRange().topicPartition().topic().equals(topic)).toArray(InputPartition[]::new);
    }

    @Override public void stop() {
      if (scan != null) {
        SCANS.remove(reader, scan);
        scan.close();
      }
      stream.stop();
    }

    private Map<String, Object> consumer() {
      Map<String, Object> own = new HashMap<>();
      options.asCaseSensitiveMap().forEach((name, value) -> {
        if (name.toLowerCase(Locale.ROOT).startsWith(KAFKA)) own.put(name.substring(KAFKA.length()), value);
      });
      return own;
    }
  }

  // ---- offsets in Spark's JSON: {topic: {partition: offset}} ------------------------------------

  private static Map<TopicPartition, Long> partitions(String json) {
    Map<TopicPartition, Long> at = new LinkedHashMap<>();
    for (var t : parsed(json).properties()) for (var p : t.getValue().properties()) at.put(new TopicPartition(t.getKey(), Integer.parseInt(p.getKey())), p.getValue().longValue());
    return at;
  }

  private static String json(Map<TopicPartition, Long> at) {
    ObjectNode all = MAPPER.createObjectNode();
    at.forEach((p, offset) -> all.withObjectProperty(p.topic()).put(Integer.toString(p.partition()), offset));
    return all.toString();
  }

  private static JsonNode parsed(String json) {
    try {
      return MAPPER.readTree(json);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(json, e);
    }
  }
}
