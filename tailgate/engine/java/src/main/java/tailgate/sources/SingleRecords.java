package tailgate.sources;

import java.util.*;
import java.util.concurrent.TimeUnit;

/**
 * The topics of which a tick reads one record while few wait, so that each record has its own change
 * of a row, and how many such ticks may run. They cost more than one tick with all records, so many
 * records share a tick.
 *
 * <p>Guarded by the feed that has it.
 */
final class SingleRecords {
  // limit of the records that wait, which take about a second
  private static final int WAITING_MAX = 200;
  // longest waits of a record of these topics, and of one of another topic; after that all records share a tick
  private static final long WAIT_MAX_MS = 5_000, OTHERS_WAIT_MAX_MS = 2_000;
  // ticks of one record that may run at once, and per second after that. Records that share a tick count, too: of those that always
  // arrive faster, only a part would have a tick, and these ticks would take the CPU of all other work.
  private static final double TICKS_MAX = 400, TICKS_PER_SECOND = 50;
  // With as many ticks left, records are fetched when they arrive, so that their order is known; otherwise just before each tick.
  private static final double TICKS_TO_FETCH = 100;
  private Set<String> streams = Set.of(), tables = Set.of();
  private double ticks = TICKS_MAX;
  private long counted = System.nanoTime();  // when `ticks` was computed

  /** Sets the topics. Those of tables come first at the same time. */
  void set(Set<String> streams, Set<String> tables) {
    this.streams = streams;
    this.tables = tables;
  }

  boolean has(String topic) { return streams.contains(topic) || tables.contains(topic); }

  boolean isTable(String topic) { return tables.contains(topic); }

  boolean none() { return streams.isEmpty() && tables.isEmpty(); }

  /** Returns whether each of so many records may have its tick. */
  boolean allow(int waiting) { return waiting > 0 && waiting <= Math.min(WAITING_MAX, (int) left()); }

  /** Returns whether a record that has waited for this long waits for further ticks of one record. */
  boolean waits(String topic, long millis) { return millis <= (has(topic) ? WAIT_MAX_MS : OTHERS_WAIT_MAX_MS); }

  /** Returns the number of records from which on {@link #allow} is false. */
  static int most() { return WAITING_MAX + 1; }

  /** Returns whether records are fetched when they arrive. */
  boolean fetchesAtOnce() { return !none() && left() >= TICKS_TO_FETCH; }

  /** Counts the records of a tick. After more than the limit, records share ticks for up to four seconds. */
  void ticked(int records) { ticks = Math.max(left() - records, -WAITING_MAX); }

  private double left() {
    long now = System.nanoTime();
    ticks = Math.min(TICKS_MAX, ticks + TICKS_PER_SECOND * (now - counted) / TimeUnit.SECONDS.toNanos(1));
    counted = now;
    return ticks;
  }
}
