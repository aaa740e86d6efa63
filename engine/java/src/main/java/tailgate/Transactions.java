package tailgate;

import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.roaringbitmap.RoaringBitmap;

/**
 * How far change topics may be read without showing half of a database's transaction. Decides alone: no Kafka, no clock, no threads.
 *
 * <pre>   transaction topic   BEGIN 7 · END 7 {users: 2, items: 1} · BEGIN 8 · …      the order in which transactions enter
 *   users, partition 0  7/1 · 8/1 ┐                                             7 is whole: both of users and the one of items were seen,
 *   users, partition 1  7/2 ──────┤ ◄── enter() goes to here                    so all partitions go on to behind their last record of it
 *   items, partition 0  7/1 · 8/1 ┘</pre>
 *
 * <p>A transaction is <i>whole</i> when its END was read and as many different records of each collection that is read as END counts. Whole ones enter in
 * the order of their ENDs, each with all that stands before it, so what has entered is the database as it once was. Records of no transaction (snapshots, tombstones) enter as they come. What has
 * entered is told by offsets alone: those of the change topics, and that of the transaction topic, which is behind the last END that entered. A reader that starts there reads some ENDs before it,
 * too ({@link Limits#done}): they say which transactions are in, whose copies, after a connector's crash, may pass.
 *
 * <p>A transaction that cannot become whole is let in all the same, when every partition that could still bring what it lacks has been read to a time that is {@link Limits#waitMs} later: records that were compacted away, or that
 * a transform dropped; an END that was deleted before the topic of its records was read, or that never came because its connector lost its place. So is one of more than {@link Limits#bytes}, and one for which so much waits that no more can be kept.
 */
final class Transactions {
  /**
   * What is kept and how long it is waited.
   *
   * @param waiting stretches of records of one transaction, or ENDs, that a partition may be ahead by
   * @param bytes of one transaction, keys and values as they are in Kafka: it enters in one tick
   * @param done transactions remembered as in
   */
  record Limits(int waiting, long bytes, long waitMs, int done) {}

  private static final long SKEW_MS = 600_000;  // by which the clocks of two machines differ at most

  /** Different numbers from 1 up. */
  private static final class Orders {
    private int upTo;  // all of 1 to here
    private RoaringBitmap beyond;

    /** Whether it is new. */
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
    final Map<Partition, Run> last = new HashMap<>();  // of each partition that has something of it
    Map<String, Long> counts;   // of its END, by collection; null until that is read
    long bytes, stamp, heard;   // its newest record: by Kafka, by our clock
    boolean in;

    Transaction(String id, int topics) {
      this.id = id;
      this.seen = new Orders[topics];
    }
  }

  /** Records of a partition that follow one another: of one transaction, or of none (null). `next`: behind the last. Of the transaction topic: what goes to an END. */
  private static final class Run {
    final Transaction of;
    long next, rows;

    Run(Transaction of) { this.of = of; }

    boolean passes() { return of == null || of.in; }
  }

  private static final class Partition {
    final int topic;  // -1: the transaction topic
    final ArrayDeque<Run> runs = new ArrayDeque<>();
    long next;                                  // up to where all has entered
    long stamp = Long.MIN_VALUE / 2, caughtUp = Long.MIN_VALUE / 2;  // the last record's time, and when nothing was left to be read

    Partition(int topic, long next) {
      this.topic = topic;
      this.next = next;
    }
  }

  private final List<String> topics, collections;
  private final Limits limits;
  private final Map<TopicPartition, Partition> partitions = new LinkedHashMap<>();
  private final Map<String, Transaction> waiting = new HashMap<>();
  private final Map<String, Transaction> done = new LinkedHashMap<>() {
    @Override protected boolean removeEldestEntry(Map.Entry<String, Transaction> eldest) { return size() > limits.done; }
  };
  private final List<String> warnings = new ArrayList<>();
  private boolean news;

  /** `collections`: of each topic of changes, what ENDs call it. */
  Transactions(Map<String, String> collections, Limits limits) {
    this.topics = List.copyOf(collections.keySet());
    this.collections = topics.stream().map(collections::get).toList();
    this.limits = limits;
  }

  /** A partition, and up to where it has entered. Of another topic than those with changes: the transaction topic. */
  void partition(TopicPartition p, long next) { partitions.put(p, new Partition(topics.indexOf(p.topic()), next)); }

  /** Whether so much of a partition waits that no more is to be read of it. */
  boolean full(TopicPartition p) { return full(partitions.get(p)); }

  /** Whether {@link #enter} may go on by something that was read; without, only time can tell. */
  boolean news() { return news; }

  /** Whether something is waited for. */
  boolean waits() { return !waiting.isEmpty(); }

  private boolean full(Partition p) { return p.runs.size() >= limits.waiting; }

  /** Why transactions were let in that were not whole, since the last call. */
  List<String> warnings() {
    List<String> told = List.copyOf(warnings);
    warnings.clear();
    return told;
  }

  // ---- what is read ---------------------------------------------------------------------------------------------------------------

  /** A record of changes, in its partition's order. `id`: of its transaction or null; `order`: its number among those of its collection there. `stamp`: Kafka's time of it, `now`: ours. */
  void change(TopicPartition tp, long offset, int bytes, long stamp, long now, String id, long order) {
    Partition p = partitions.get(tp);
    p.stamp = stamp;
    Transaction t = id == null ? null : heard(id, stamp, now);
    Run run = p.runs.peekLast();
    if (run == null || run.of != t) p.runs.add(run = new Run(t));
    run.next = offset + 1;
    run.rows++;
    if (t == null || t.in) {
      news = true;
      return;
    }
    if (t.seen[p.topic] == null) t.seen[p.topic] = new Orders();
    if (order > 0 && order < Integer.MAX_VALUE && !t.seen[p.topic].add((int) order)) return;  // a copy, which may stay behind
    t.last.put(p, run);
    t.bytes += bytes;
    if (t.bytes > limits.bytes) letIn(t, "has more than " + limits.bytes + " bytes");
    if (t.in || t.counts != null && whole(t)) news = true;
  }

  /** A record of the transaction topic, in its partition's order; some before where it is to begin may come first. `counts`: of an END; null of any other. */
  void mark(TopicPartition tp, long offset, long stamp, long now, String id, Map<String, Long> counts) {
    Partition p = partitions.get(tp);
    p.stamp = stamp;
    if (counts == null) return;
    Transaction t = heard(id, stamp, now);
    if (offset < p.next) {
      in(t);
      return;
    }
    Run run = new Run(t);
    run.next = offset + 1;
    p.runs.add(run);
    if (!t.in && t.counts == null) {
      t.counts = counts;
      t.last.put(p, run);
    }
    if (t.in || whole(t)) news = true;
  }

  /** All before an offset of a topic of changes was read: what stands behind its last record is none (a marker of Kafka's transactions). */
  void read(TopicPartition tp, long next) {
    Partition p = partitions.get(tp);
    Run last = p.runs.peekLast();
    if (last != null) last.next = Math.max(last.next, next);
    else p.next = Math.max(p.next, next);
  }

  /** All that could be read of a partition at a time by our clock has been read. */
  void caughtUp(TopicPartition p, long at) { partitions.get(p).caughtUp = at; }

  private Transaction heard(String id, long stamp, long now) {
    Transaction known = done.get(id);
    if (known != null) return known;
    Transaction t = waiting.computeIfAbsent(id, i -> new Transaction(i, topics.size()));
    t.stamp = Math.max(t.stamp, stamp);
    t.heard = now;
    return t;
  }

  // ---- what enters ----------------------------------------------------------------------------------------------------------------

  /** Goes on by about so many records, by more only for one transaction that has more; returns where each partition is then. */
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
        do p.next = (run = p.runs.poll()).next; while (run != last);
      });
      left -= more;
      left -= pass(Math.max(left, 0));
    }
    if (left <= 0) news = true;
    Map<TopicPartition, Long> at = new LinkedHashMap<>();
    partitions.forEach((tp, p) -> at.put(tp, p.next));
    return at;
  }

  /** What may enter by itself at the heads of partitions, in equal shares; how many records. */
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
        if (run.rows > share) {  // numbers may be left out, so it may be fewer records
          if (share == 0) break;
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

  /** The next transactions that are whole and have none before them that is not: a single one, but for what a connector's crash has left. Null if it must be waited. */
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

  /** Of each partition that has something of these transactions, the last that it has. */
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

  /** Whether it cannot be hoped any more that it becomes whole. */
  private boolean expired(Transaction t) {
    if (whole(t)) return false;
    for (Partition p : partitions.values()) {
      boolean awaited = t.counts == null ? p.topic < 0 : p.topic >= 0 && lacks(t, p.topic);
      if (awaited && !full(p) && Math.max(p.stamp, p.caughtUp - SKEW_MS) <= t.stamp + limits.waitMs && p.caughtUp <= t.heard + limits.waitMs) return false;
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
    done.put(t.id, t);
  }
}
