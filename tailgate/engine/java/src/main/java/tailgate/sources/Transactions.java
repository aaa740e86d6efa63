package tailgate.sources;

import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.roaringbitmap.RoaringBitmap;

/**
 * Determines how far change topics may be read without showing part of a database transaction. Pure
 * logic: no Kafka, clock or threads.
 *
 * <pre>   transaction topic   BEGIN 7 · END 7 {users: 2, items: 1} · BEGIN 8 · …      the order in which transactions are admitted
 *   users, partition 0  7/1 · 8/1 ┐                                             7 is whole: both records of users and the one of items
 *   users, partition 1  7/2 ──────┤ ◄── enter() advances to here                were read, so all partitions advance past their last
 *   items, partition 0  7/1 · 8/1 ┘                                             record of it</pre>
 *
 * <p>A transaction is <i>whole</i> when its END has been read, and as many different records of
 * each collection as END counts, for the collections that are read. Whole transactions are admitted
 * in the order of their ENDs, each with all records before its own, so the admitted records always
 * show a state that the database once had. Records without a transaction (snapshots, tombstones)
 * are admitted on arrival.
 *
 * <p>Offsets alone record how far transactions are admitted: those of the change topics, and that of
 * the transaction topic, which is after the last admitted END. A reader that starts there also reads
 * some earlier ENDs ({@link Limits#remembered}). They identify admitted transactions, whose copies, after
 * a crash of the connector, need not wait.
 *
 * <p>An incomplete transaction is admitted when every partition that could still supply its missing
 * part has been read to a time {@link Limits#waitMs} later. Reasons are records that were compacted
 * away or dropped by a transform; an END that was deleted before the topic of its records was read,
 * or that was never written because its connector lost its position. A transaction is also admitted
 * early if it has more than {@link Limits#bytes}, or if the limit of waiting records is reached.
 */
final class Transactions {
  /**
   * Limits of memory and waiting time.
   *
   * @param waiting runs of records of one transaction, or ENDs, by which a partition may be ahead
   * @param bytes keys and values of one transaction, as in Kafka: a tick reads it as a whole
   * @param waitMs time to wait for the missing part of a transaction
   * @param remembered number of admitted transactions whose ids are kept
   */
  record Limits(int waiting, long bytes, long waitMs, int remembered) {}

  private static final long SKEW_MS = 600_000;  // maximum difference between the clocks of two machines
  private static final long RUN_MS = 1_000;     // arrivals of one run without a transaction: the precision of its oldest record

  /** A set of numbers from 1 up. */
  private static final class Orders {
    private int upTo;  // contains all numbers from 1 to this one
    private RoaringBitmap beyond;

    /** Adds a number. Returns whether it is new. */
    boolean add(int order) {
      if (order <= upTo) return false;
      if (order > upTo + 1) {
        if (beyond == null) beyond = new RoaringBitmap();
        return beyond.checkedAdd(order);
      }
      upTo = order;
      while (beyond != null && beyond.contains(upTo + 1)) beyond.remove(++upTo);
      return true;
    }

    long count() { return upTo + (beyond == null ? 0 : beyond.getLongCardinality()); }
  }

  private static final class Transaction {
    final String id;
    final Orders[] seen;        // by topic
    final Map<Partition, Run> last = new HashMap<>();  // its last run in each partition
    Map<String, Long> counts;   // counts of its END by collection; null until END is read
    long bytes, stamp, heard;   // times of its newest record: Kafka's and ours
    boolean in;

    Transaction(String id, int topics) {
      this.id = id;
      this.seen = new Orders[topics];
    }
  }

  /**
   * Consecutive records of a partition that belong to one transaction, or to none (null). `next` is
   * the offset after the last one. In the transaction topic, a run ends with an END. Records without
   * a transaction that arrive later than RUN_MS begin another run.
   */
  private static final class Run {
    final Transaction of;
    final long began;  // our time of its first record
    final Map<String, RecordAges.Oldest> oldest = new HashMap<>(2);  // none in the transaction topic
    long next, rows;

    Run(Transaction of, long began) {
      this.of = of;
      this.began = began;
    }

    boolean passes() { return of == null || of.in; }
  }

  private static final class Partition {
    final int topic;  // -1 for the transaction topic
    final ArrayDeque<Run> runs = new ArrayDeque<>();
    long next;                                  // all records before this offset have been admitted
    // Kafka's time of the last record, and when the end was last reached, by the wall clock and by ours
    long stamp = Long.MIN_VALUE / 2, caughtUp = Long.MIN_VALUE / 2, caughtUpAt = Long.MIN_VALUE / 2;

    Partition(int topic, long next) {
      this.topic = topic;
      this.next = next;
    }
  }

  private final List<String> topics, collections;
  private final Limits limits;
  private final Map<TopicPartition, Partition> partitions = new LinkedHashMap<>();
  private final Map<String, Transaction> waiting = new HashMap<>();
  private final Map<String, Transaction> finished = new LinkedHashMap<>() {
    @Override protected boolean removeEldestEntry(Map.Entry<String, Transaction> eldest) { return size() > limits.remembered; }
  };
  private final Map<String, RecordAges.Oldest> admitted = new HashMap<>();  // since the last commit
  private final Map<TopicPartition, Long> ends = new HashMap<>();  // the next offsets after them
  private final List<String> warnings = new ArrayList<>();
  private boolean news;

  /** `collections`: for each change topic, its collection name in ENDs. */
  Transactions(Map<String, String> collections, Limits limits) {
    this.topics = List.copyOf(collections.keySet());
    this.collections = topics.stream().map(collections::get).toList();
    this.limits = limits;
  }

  /**
   * Adds a partition and the offset up to which it has been admitted. A topic that is not a change
   * topic is the transaction topic.
   */
  void partition(TopicPartition p, long next) { partitions.put(p, new Partition(topics.indexOf(p.topic()), next)); }

  /** Returns whether so many records of a partition wait that reading must pause. */
  boolean full(TopicPartition p) { return full(partitions.get(p)); }

  /**
   * Returns whether records read since the last {@link #enter} allow it to advance. Otherwise only
   * the passing of time can.
   */
  boolean news() { return news; }

  /** Returns whether any transaction waits. */
  boolean waits() { return !waiting.isEmpty(); }

  private boolean full(Partition p) { return p.runs.size() >= limits.waiting; }

  /** Returns and clears the reasons why incomplete transactions were admitted. */
  List<String> warnings() {
    List<String> reasons = List.copyOf(warnings);
    warnings.clear();
    return reasons;
  }

  // ---- reading ----------------------------------------------------------------------------------

  /**
   * Adds a change record, in the order of its partition. `id`: its transaction, or null; `order`:
   * its number in the transaction among those of its collection. `stamp`: its time in Kafka; `now`:
   * our time, by a clock that is never set; `ages`: its times ({@link RecordAges#oldest}).
   */
  void change(TopicPartition tp, long offset, int bytes, long stamp, long now, String id, long order, Map<String, RecordAges.Oldest> ages) {
    Partition p = partitions.get(tp);
    p.stamp = stamp;
    Transaction t = id == null ? null : heard(id, stamp, now);
    Run run = p.runs.peekLast();
    if (run == null || run.of != t || t == null && now - run.began > RUN_MS) p.runs.add(run = new Run(t, now));
    run.next = offset + 1;
    run.rows++;
    add(run.oldest, ages);
    if (t == null || t.in) {
      news = true;
      return;
    }
    if (t.seen[p.topic] == null) t.seen[p.topic] = new Orders();
    // a copy, which need not be admitted with the transaction
    if (order > 0 && order < Integer.MAX_VALUE && !t.seen[p.topic].add((int) order)) return;
    t.last.put(p, run);
    t.bytes += bytes;
    if (t.bytes > limits.bytes) letIn(t, "has more than " + limits.bytes + " bytes");
    if (t.in || t.counts != null && whole(t)) news = true;
  }

  /**
   * Adds a record of the transaction topic, in the order of its partition. Records from before the
   * start offset may come first. `counts`: those of an END, null for other records.
   */
  void mark(TopicPartition tp, long offset, long stamp, long now, String id, Map<String, Long> counts) {
    Partition p = partitions.get(tp);
    p.stamp = stamp;
    if (counts == null) return;
    Transaction t = heard(id, stamp, now);
    if (offset < p.next) {
      in(t);
      return;
    }
    Run run = new Run(t, now);
    run.next = offset + 1;
    p.runs.add(run);
    if (!t.in && t.counts == null) {
      t.counts = counts;
      t.last.put(p, run);
    }
    if (t.in || whole(t)) news = true;
  }

  /**
   * Records that a change topic was read up to an offset. Offsets after its last record are markers
   * of Kafka transactions.
   */
  void read(TopicPartition tp, long next) {
    Partition p = partitions.get(tp);
    Run last = p.runs.peekLast();
    if (last != null) last.next = Math.max(last.next, next);
    else p.next = Math.max(p.next, next);
  }

  /** Records that the end of a partition was reached. `wall`: the time by the wall clock, as Kafka's times; `now`: our time. */
  void caughtUp(TopicPartition tp, long wall, long now) {
    Partition p = partitions.get(tp);
    p.caughtUp = wall;
    p.caughtUpAt = now;
  }

  private Transaction heard(String id, long stamp, long now) {
    Transaction known = finished.get(id);
    if (known != null) return known;
    Transaction t = waiting.computeIfAbsent(id, i -> new Transaction(i, topics.size()));
    t.stamp = Math.max(t.stamp, stamp);
    t.heard = now;
    return t;
  }

  // ---- ages -------------------------------------------------------------------------------------

  /** Returns the oldest records ({@link RecordAges#oldest}) that have been admitted since the last commit. */
  Map<String, RecordAges.Oldest> admitted() { return Map.copyOf(admitted); }

  /** Returns the oldest records that no committed tick has read ({@link RecordAges#unread}). */
  Map<String, List<RecordAges.Unread>> unread() {
    Map<String, List<RecordAges.Unread>> unread = new HashMap<>();
    RecordAges.add(unread, admitted, ends);
    Map<String, RecordAges.Oldest> oldest = new HashMap<>();
    Map<TopicPartition, Long> read = new HashMap<>();
    partitions.forEach((tp, p) -> {
      read.put(tp, p.runs.isEmpty() ? p.next : p.runs.peekLast().next);
      for (Run run : p.runs) add(oldest, run.oldest);
    });
    RecordAges.add(unread, oldest, read);
    return unread;
  }

  /** Returns the number of records that have been read and not admitted. */
  int waiting() { return (int) partitions.values().stream().flatMap(p -> p.runs.stream()).mapToLong(run -> run.rows).sum(); }

  /** Records that a tick with all admitted records is durable. */
  void committed() { admitted.clear(); }

  private static void add(Map<String, RecordAges.Oldest> oldest, Map<String, RecordAges.Oldest> others) {
    others.forEach((name, record) -> oldest.merge(name, record, (one, other) -> one.time() <= other.time() ? one : other));
  }

  // ---- admission --------------------------------------------------------------------------------

  /**
   * Advances by about `rows` records, or by more for a single larger transaction. Returns the
   * resulting offset of each partition.
   */
  Map<TopicPartition, Long> enter(long rows) {
    news = false;
    long left = rows - pass(rows);
    while (left > 0) {
      Set<Transaction> together = next();
      if (together == null) break;
      Map<Partition, Run> through = through(together);
      long more = 0;
      for (var e : through.entrySet()) for (Run run : e.getKey().runs) {
        more += run.rows;
        if (run == e.getValue()) break;
      }
      if (left < rows && more > left) {
        news = true;
        break;
      }
      together.forEach(this::in);
      through.forEach((p, last) -> {
        Run run;
        do {
          p.next = (run = p.runs.poll()).next;
          add(admitted, run.oldest);
        } while (run != last);
      });
      left -= more;
      left -= pass(Math.max(left, 0));
    }
    if (left <= 0) news = true;
    Map<TopicPartition, Long> at = new LinkedHashMap<>();
    partitions.forEach((tp, p) -> at.put(tp, p.next));
    ends.putAll(at);
    return at;
  }

  /**
   * Admits records at the heads of partitions that need not wait, in equal shares. Returns their
   * number.
   */
  private long pass(long rows) {
    long passed = 0;
    int others = (int) partitions.values().stream().filter(p -> !p.runs.isEmpty()).count();
    for (Partition p : partitions.values()) {
      if (p.runs.isEmpty()) continue;
      long share = (rows - passed) / others--;
      Run run;
      while ((run = p.runs.peek()) != null) {
        if (!run.passes()) {
          if (!expired(run.of)) break;
          letIn(run.of, reason(run.of));
        }
        if (run.rows > share && share == 0) break;
        add(admitted, run.oldest);
        if (run.rows > share) {  // offsets may have gaps, so these may be fewer records
          long next = Math.min(run.next, p.next + share);
          run.rows = Math.max(0, run.rows - share);
          passed += share;
          p.next = next;
          if (next < run.next) break;
        } else {
          passed += run.rows;
          share -= run.rows;
          p.next = run.next;
        }
        p.runs.poll();
      }
    }
    return passed;
  }

  /**
   * Returns the next whole transactions without incomplete ones before them, or null to wait. It is
   * a single transaction, except after a crash of the connector.
   */
  private Set<Transaction> next() {
    for (Partition p : partitions.values())
      if (p.topic < 0 && !p.runs.isEmpty() && !p.runs.peek().of.in) {
        Set<Transaction> together = closed(p.runs.peek().of);
        if (together != null) return together;
      }
    return null;
  }

  private Set<Transaction> closed(Transaction first) {
    Set<Transaction> all = new LinkedHashSet<>(Set.of(first));
    Deque<Transaction> todo = new ArrayDeque<>(all);
    while (!todo.isEmpty()) {
      Transaction t = todo.poll();
      if (!whole(t)) {
        if (!expired(t)) return null;
        letIn(t, reason(t));
      }
      for (var e : through(all).entrySet())
        for (Run run : e.getKey().runs) {
          if (!run.passes() && all.add(run.of)) todo.add(run.of);
          if (run == e.getValue()) break;
        }
    }
    return all;
  }

  /** Returns the last run of these transactions in each partition. */
  private static Map<Partition, Run> through(Set<Transaction> all) {
    Map<Partition, Run> through = new LinkedHashMap<>();
    for (Transaction t : all) t.last.forEach((p, run) -> through.merge(p, run, (one, other) -> one.next > other.next ? one : other));
    return through;
  }

  private boolean whole(Transaction t) {
    if (t.counts == null) return false;
    for (int i = 0; i < collections.size(); i++) if (lacks(t, i)) return false;
    return true;
  }

  private boolean lacks(Transaction t, int topic) {
    return t.counts.getOrDefault(collections.get(topic), 0L) > (t.seen[topic] == null ? 0 : t.seen[topic].count());
  }

  /** Returns whether a transaction can no longer be expected to become whole. */
  private boolean expired(Transaction t) {
    if (whole(t)) return false;
    for (Partition p : partitions.values()) {
      boolean awaited = t.counts == null ? p.topic < 0 : p.topic >= 0 && lacks(t, p.topic);
      if (awaited && !full(p) && Math.max(p.stamp, p.caughtUp - SKEW_MS) <= t.stamp + limits.waitMs
          && p.caughtUpAt <= t.heard + limits.waitMs)
        return false;
    }
    return true;
  }

  private String reason(Transaction t) {
    if (t.counts == null) return "has no END";
    StringJoiner lacking = new StringJoiner(", ", "lacks records of ", "");
    for (int i = 0; i < topics.size(); i++) if (lacks(t, i)) lacking.add(collections.get(i));
    return lacking.toString();
  }

  private void letIn(Transaction t, String why) {
    warnings.add("transaction " + t.id + " " + why);
    in(t);
  }

  private void in(Transaction t) {
    t.in = true;
    waiting.remove(t.id);
    finished.put(t.id, t);
  }
}
