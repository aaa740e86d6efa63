package tailgate.sources;

import java.util.*;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A reader of topics of one broker: a feed that fetches ahead ({@link KafkaFeed}), with a rate limit
 * if it is wanted; or Spark's Kafka stream, cut at whole transactions.
 */
public final class KafkaReader {
  // longest wait for a broker; its sources are then stalled, and ticks of the others continue
  private static final String ANSWER_MS = "3000";
  // of Spark's consumer: the default makes every tick at a low rate 500 ms longer
  private static final String FETCH_WAIT_MS = "10";
  private final String name, brokers;
  private final List<String> topics;
  private final Map<String, String> clients;
  private long rate;
  private String transactions = "";
  private final RecordTimes times = new RecordTimes();

  /**
   * Describes a reader.
   *
   * @param name prefix of the channels of its topics
   * @param clients settings of Kafka's clients
   */
  public KafkaReader(String name, String brokers, List<String> topics, Map<String, String> clients) {
    this.name = name;
    this.brokers = brokers;
    this.topics = List.copyOf(topics);
    this.clients = Map.copyOf(clients);
  }

  /** Returns the memory of the records that all readers have fetched ahead, in bytes. */
  public static long queuedBytes() { return KafkaFeed.queuedBytes(); }

  /** Limits the reader to so many records per second. */
  public void limit(long rate) { this.rate = rate; }

  /**
   * Takes the times of a source's records from a column.
   *
   * @param source its id
   * @param shape the steps from a record, as the decoder returns it, to a bigint in milliseconds
   */
  public void time(String topic, String source, Decoder decoder, Dataset<Row> shape) { times.add(topic, source, decoder, shape); }

  /** Lets every tick have whole transactions ({@link TransactedKafka}). */
  public void keepTransactions(String configuration) { transactions = configuration; }

  /** Opens the stream. `inbox`: the folder whose doorbell starts ticks. `local`: whether all tasks run in this process. */
  public MicroBatchStream stream(String inbox, boolean local) {
    if (!transactions.isEmpty()) return new TransactedKafka(sparkStream(inbox), name, transactions, consumer(), times, inbox);
    KafkaFeed feed = new KafkaFeed(topics, consumer(), times, inbox, local);
    return rate > 0 ? new RatedKafka(feed, rate, inbox) : feed;
  }

  private MicroBatchStream sparkStream(String inbox) {
    Map<String, String> options = new HashMap<>(Map.of("kafka.bootstrap.servers", brokers, "subscribe", String.join(",", topics),
        "maxOffsetsPerTrigger", Integer.toString(KafkaFeed.TICK_RECORDS_MAX), "failOnDataLoss", "true", "includeHeaders", "true", "fetchOffset.numRetries", "1"));
    consumer().forEach((setting, value) -> options.put("kafka." + setting, value.toString()));
    CaseInsensitiveStringMap all = new CaseInsensitiveStringMap(options);
    KafkaSourceProvider kafka = new KafkaSourceProvider();
    SupportsRead table = (SupportsRead) kafka.getTable(kafka.inferSchema(all), new Transform[0], options);
    return table.newScanBuilder(all).build().toMicroBatchStream(inbox + "/" + name);
  }

  private Map<String, Object> consumer() {
    Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", brokers, "isolation.level", "read_committed", "fetch.max.wait.ms", FETCH_WAIT_MS,
        "default.api.timeout.ms", ANSWER_MS, "request.timeout.ms", ANSWER_MS));
    all.putAll(clients);
    return all;
  }
}
