package tailgate.sources;

import java.util.*;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A reader of topics of one broker: Spark's Kafka stream, with a rate limit or whole transactions
 * if they are wanted.
 */
public final class KafkaReader {
  // limit per tick: 0.5 s of work, so that a source that catches up delays others little
  private static final long ROWS_PER_TICK = 50_000;
  // longest wait for a broker; its sources are then stalled, and ticks of the others continue
  private static final String ANSWER_MS = "3000";
  // the default makes every tick at a low rate 500 ms longer
  private static final String FETCH_WAIT_MS = "10";
  private final String name, brokers;
  private final List<String> topics;
  private final Map<String, String> clients;
  private long rate;
  private String transactions = "";

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

  /** Limits the reader to so many records per second. */
  public void limit(long rate) { this.rate = rate; }

  /** Lets every tick have whole transactions ({@link TransactedKafka}). */
  public void keepTransactions(String configuration) { transactions = configuration; }

  /** Opens the stream. `inbox` is the folder whose doorbell starts ticks. */
  public MicroBatchStream stream(String inbox) {
    Map<String, String> options = new HashMap<>(Map.of("kafka.bootstrap.servers", brokers, "subscribe", String.join(",", topics),
        "maxOffsetsPerTrigger", Long.toString(ROWS_PER_TICK), "failOnDataLoss", "true", "includeHeaders", "true", "fetchOffset.numRetries", "1"));
    consumer().forEach((setting, value) -> options.put("kafka." + setting, value.toString()));
    CaseInsensitiveStringMap all = new CaseInsensitiveStringMap(options);
    KafkaSourceProvider kafka = new KafkaSourceProvider();
    SupportsRead table = (SupportsRead) kafka.getTable(kafka.inferSchema(all), new Transform[0], options);
    MicroBatchStream stream = table.newScanBuilder(all).build().toMicroBatchStream(inbox + "/" + name);
    if (!transactions.isEmpty()) return new TransactedKafka(stream, name, transactions, consumer(), inbox);
    return rate > 0 ? new RatedKafka(stream, rate, inbox) : stream;
  }

  /**
   * Returns the watch that rings the doorbell of the inbox when there are new records, or null for
   * a reader with transactions, whose scan rings it.
   */
  public AutoCloseable watch(String inbox) { return transactions.isEmpty() ? InboxSource.watch(inbox, brokers, topics, clients) : null; }

  private Map<String, Object> consumer() {
    Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", brokers, "isolation.level", "read_committed", "fetch.max.wait.ms", FETCH_WAIT_MS,
        "default.api.timeout.ms", ANSWER_MS, "request.timeout.ms", ANSWER_MS));
    all.putAll(clients);
    return all;
  }
}
