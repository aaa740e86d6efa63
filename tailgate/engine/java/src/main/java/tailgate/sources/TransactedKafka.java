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

/**
 * Spark's Kafka stream of change topics, with ticks that contain whole transactions of the
 * database. It reads the change topics and the transaction topic. The offsets of the latter are
 * among the ends of a tick, but its messages are read by {@link TransactionScan} only.
 */
public final class TransactedKafka extends WrappedKafka implements RecordAges {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final Map<String, TransactionScan> SCANS = new ConcurrentHashMap<>();

  /** Returns the warning of this reader, or null ({@link TransactionScan#warning}). */
  public static String warning(String reader) {
    TransactionScan scan = SCANS.get(reader);
    return scan == null ? null : scan.warning();
  }

  private final Map<String, Object> consumer;
  private final JsonNode configuration;
  private final String topic, reader, inbox;
  private final Set<String> topics = new HashSet<>();  // of changes
  private final RecordTimes times;
  private volatile TransactionScan scan;

  /**
   * Wraps the stream of a reader.
   *
   * @param configuration that of the scan
   * @param consumer settings of the scan's consumer
   * @param times those of sources that take them from a column
   * @param inbox the folder whose doorbell starts ticks
   */
  TransactedKafka(MicroBatchStream stream, String reader, String configuration, Map<String, Object> consumer, RecordTimes times, String inbox) {
    super(stream);
    this.consumer = consumer;
    this.configuration = parsed(configuration);
    this.topic = this.configuration.get("topic").textValue();
    this.configuration.get("changes").fieldNames().forEachRemaining(topics::add);
    this.reader = reader;
    this.times = times;
    this.inbox = inbox;
  }

  @Override public Offset latestOffset(Offset start, ReadLimit limit) {
    if (scan == null) SCANS.put(reader, scan = new TransactionScan(reader, configuration, consumer, times, partitions(start.json()), () -> InboxSource.look(inbox)));
    String json = json(scan.enter(limit instanceof ReadMaxRows rows ? rows.maxRows() : Long.MAX_VALUE));
    return partitions(json).equals(partitions(start.json())) ? start : stream.deserializeOffset(json);
  }

  @Override public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return Arrays.stream(stream.planInputPartitions(start, end)).filter(p -> !((KafkaBatchInputPartition) p).offsetRange().topicPartition().topic().equals(topic)).toArray(InputPartition[]::new);
  }

  @Override public int waiting() { return scan == null ? 0 : scan.waiting(); }
  @Override public Set<String> unanswered() { return scan == null ? topics : scan.unanswered(); }
  @Override public Map<String, Oldest> oldest(Offset end) { return scan == null ? Map.of() : scan.admitted(); }
  @Override public Map<TopicPartition, Long> ends() { return scan == null ? Map.of() : scan.ends(); }
  @Override public Map<String, List<Unread>> unread() { return scan == null ? Map.of() : scan.unread(); }

  @Override public void commit(Offset end) {
    stream.commit(end);
    scan.committed();
  }

  @Override public void stop() {
    if (scan != null) {
      SCANS.remove(reader, scan);
      scan.close();
    }
    stream.stop();
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
