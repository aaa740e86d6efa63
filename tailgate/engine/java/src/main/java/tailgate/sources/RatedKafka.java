package tailgate.sources;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.streaming.*;

/**
 * A feed with a limit in records per second.
 *
 * <pre>   look ──► has a slice of a second passed? ──no──► nothing new; ring when it has
 *                └─yes─► as many records as the rate allows since the last ones, at most those of one second</pre>
 */
final class RatedKafka extends WrappedKafka implements RecordAges {
  private static final long SLICE_MS = 200;  // interval between reads: a tick for every few records would be expensive
  private static final long SECOND_MS = 1000;
  private static final ScheduledExecutorService TIMER = Executors.newSingleThreadScheduledExecutor(r -> {
    Thread thread = new Thread(r, "tailgate-rate");
    thread.setDaemon(true);
    return thread;
  });

  private final long rate;
  private final String inbox;
  private long last = System.nanoTime() - TimeUnit.MILLISECONDS.toNanos(SECOND_MS);  // time of the last read

  /** `rate`: records per second. `inbox`: the folder whose doorbell starts ticks. */
  RatedKafka(KafkaFeed stream, long rate, String inbox) {
    super(stream);
    this.rate = rate;
    this.inbox = inbox;
  }

  @Override public int waiting() { return ((KafkaFeed) stream).waiting(); }
  @Override public Set<String> unanswered() { return ((KafkaFeed) stream).unanswered(); }
  @Override public Map<TopicPartition, Long> ends() { return ((KafkaFeed) stream).ends(); }
  @Override public Map<String, Oldest> oldest(Offset end) { return ((KafkaFeed) stream).oldest(end); }
  @Override public Map<String, List<Unread>> unread() { return ((KafkaFeed) stream).unread(); }

  @Override public Offset latestOffset(Offset start, ReadLimit limit) {
    long now = System.nanoTime(), passed = Math.min(TimeUnit.NANOSECONDS.toMillis(now - last), SECOND_MS);
    long earned = rate * passed / SECOND_MS;
    if (passed < SLICE_MS || earned < 1) {
      long missing = earned < 1 ? SECOND_MS / rate - passed + 1 : 0;
      TIMER.schedule(() -> InboxSource.look(inbox), Math.max(SLICE_MS - passed, missing), TimeUnit.MILLISECONDS);
      return start;
    }
    long most = limit instanceof ReadMaxRows rows ? Math.min(rows.maxRows(), earned) : earned;
    Offset end = ((SupportsAdmissionControl) stream).latestOffset(start, ReadLimit.maxRows(most));
    if (end != null && !end.equals(start)) last = now;
    return end;
  }
}
