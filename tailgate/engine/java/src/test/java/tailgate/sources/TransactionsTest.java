package tailgate.sources;

import static org.junit.jupiter.api.Assertions.*;

import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

/**
 * A connector that crashes and sends again, a reader that crashes and reads again, and partitions
 * that are seen in any order: no step shows half a transaction, and all come.
 */
class TransactionsTest {
  private static final Map<String, String> TOPICS = new TreeMap<>(Map.of("users", "shop.users", "items", "shop.items"));
  private static final TopicPartition MARKS = new TopicPartition("marks", 0),
      MORE = new TopicPartition("marks", 1), USERS = new TopicPartition("users", 0),
      OTHERS = new TopicPartition("users", 1), ITEMS = new TopicPartition("items", 0);
  private static final List<TopicPartition> FEW = List.of(MARKS, USERS, OTHERS, ITEMS), ALL = List.of(MARKS, MORE, USERS, OTHERS, ITEMS);
  private static final Transactions.Limits LIMITS = new Transactions.Limits(1000, 1 << 20, 60_000, 1000);

  /**
   * A message. For a change, `order` is its position in its collection, 0 without a transaction. For the
   * transaction topic, `counts` is null for a BEGIN.
   */
  private record Sent(TopicPartition to, String id, int order, Map<String, Long> counts) {}

  // ---- the property ---------------------------------------------------------------------------------------------------------------

  @Test void noStepShowsHalfATransaction() {
    for (int seed = 0; seed < 1000; seed++) run(seed);
  }

  private static List<List<Sent>> database(Random random, int transactions, boolean apart) {
    List<List<Sent>> all = new ArrayList<>();
    for (int t = 0; t < transactions; t++) {
      String id = "t" + t;
      TopicPartition marks = apart && random.nextBoolean() ? MORE : MARKS;
      List<Sent> sent = new ArrayList<>(List.of(new Sent(marks, id, 0, null)));
      Map<String, Long> counts = new HashMap<>();
      for (int n = random.nextInt(6); n >= 0; n--) {
        int which = random.nextInt(5);
        String collection = which == 0 ? "shop.unread" : which < 3 ? "shop.users" : "shop.items";
        int order = counts.merge(collection, 1L, Long::sum).intValue();
        if (which > 0) sent.add(new Sent(which == 1 ? USERS : which == 2 ? OTHERS : ITEMS, id, order, null));
        if (which > 0 && random.nextInt(4) == 0) sent.add(new Sent(sent.get(sent.size() - 1).to, null, 0, null));  // a tombstone
      }
      sent.add(new Sent(marks, id, 0, counts));
      all.add(sent);
    }
    return all;
  }

  /** Returns the final contents of the partitions. */
  private static Map<TopicPartition, List<Sent>> logs(Random random, List<List<Sent>> database) {
    List<Sent> line = database.stream().flatMap(List::stream).toList();
    Map<TopicPartition, List<Sent>> logs = new HashMap<>();
    for (TopicPartition p : ALL) logs.put(p, new ArrayList<>());
    for (int n = random.nextInt(4); n-- > 0;) logs.get(ITEMS).add(new Sent(ITEMS, null, 0, null));  // a snapshot
    int from = 0;
    for (int crashes = random.nextInt(4); crashes > 0; crashes--) {
      // all to `durable` is; of each partition more
      int crash = from + random.nextInt(line.size() - from + 1),
          durable = from + random.nextInt(crash - from + 1);
      Map<TopicPartition, Integer> more = new HashMap<>();
      for (TopicPartition p : ALL) more.put(p, durable + random.nextInt(crash - durable + 1));
      for (int i = from; i < crash; i++) if (i < more.get(line.get(i).to)) logs.get(line.get(i).to).add(line.get(i));
      from = Math.min(random.nextInt(durable + 1), line.size() - 1);
      if (random.nextBoolean()) while (from > 0 && !line.get(from).to.topic().equals("marks")) from--;
    }
    for (Sent s : line.subList(from, line.size())) logs.get(s.to).add(s);
    return logs;
  }

  private static Transactions reader(Map<TopicPartition, Integer> at) {
    Transactions reader = new Transactions(TOPICS, LIMITS);
    for (TopicPartition p : ALL) reader.partition(p, at.get(p));
    return reader;
  }

  private static void change(Transactions reader, TopicPartition p, long offset, long stamp, long now, String id, long order) {
    reader.change(p, offset, 10, stamp, now, id, order, Map.of(p.topic(), new RecordAges.Oldest(stamp, now)));
  }

  private static void read(Transactions reader, TopicPartition p, int offset, Sent s) {
    if (p.topic().equals("marks")) reader.mark(p, offset, 0, 0, s.id, s.counts);
    else change(reader, p, offset, offset, 0, s.id, s.order);
  }

  /** Returns the time of each topic's oldest record: the least offset of its partitions that has been read and not admitted. */
  private static Map<String, Long> oldest(Map<TopicPartition, Integer> from, Map<TopicPartition, Integer> to) {
    Map<String, Long> oldest = new HashMap<>();
    for (TopicPartition p : ALL)
      if (!p.topic().equals("marks") && from.get(p) < to.get(p)) oldest.merge(p.topic(), (long) from.get(p), Math::min);
    return oldest;
  }

  /** Asserts that no record is older than reported. A run that is admitted in parts keeps the time of its first record. */
  private static void assertAges(Map<String, Long> expected, Map<String, Long> reported) {
    assertEquals(expected.keySet(), reported.keySet());
    expected.forEach((topic, time) -> assertTrue(reported.get(topic) <= time, topic + " " + reported + " " + time));
  }

  private static Map<String, Long> times(Map<String, RecordAges.Oldest> oldest) {
    Map<String, Long> times = new HashMap<>();
    oldest.forEach((topic, record) -> times.put(topic, record.time()));
    return times;
  }

  /** Returns the times of the oldest records that are not before these positions. */
  private static Map<String, Long> unread(Transactions reader, Map<TopicPartition, Integer> from) {
    Map<String, Long> positions = new HashMap<>(), times = new HashMap<>();
    from.forEach((p, offset) -> positions.merge(p.topic(), (long) offset, Long::sum));
    reader.unread().forEach((topic, records) -> {
      for (RecordAges.Unread of : records) if (of.position() > positions.get(topic)) times.merge(topic, of.time(), Math::min);
    });
    return times;
  }

  private static void run(int seed) {
    Random random = new Random(seed);
    // the transaction topic has partitions: the order in which transactions ended is not known
    // between them
    boolean apart = random.nextInt(3) == 0;
    List<List<Sent>> database = database(random, 1 + random.nextInt(12), apart);
    Map<TopicPartition, List<Sent>> logs = logs(random, database);
    Map<TopicPartition, Integer> entered = new HashMap<>(), scanned = new HashMap<>();
    for (TopicPartition p : ALL) {
      entered.put(p, 0);
      scanned.put(p, 0);
    }
    Transactions reader = reader(entered);
    Map<String, Set<String>> shown = new HashMap<>();
    int restarts = random.nextInt(4);
    for (int step = 0; ; step++) {
      if (restarts > 0 && random.nextInt(25) == 0) {
        restarts--;
        reader = reader(entered);
        scanned = new HashMap<>(entered);
        scanned.put(MARKS, 0);
        scanned.put(MORE, 0);
      }
      TopicPartition p = ALL.get(random.nextInt(ALL.size()));
      for (int n = random.nextInt(4); n > 0 && scanned.get(p) < logs.get(p).size(); n--)
        read(reader, p, scanned.get(p), logs.get(p).get(scanned.merge(p, 1, Integer::sum) - 1));
      Map<TopicPartition, Integer> start = new HashMap<>(entered);
      assertAges(oldest(start, scanned), unread(reader, start));
      Map<TopicPartition, Long> to = reader.enter(1 + random.nextInt(8));
      for (TopicPartition q : ALL) {
        int before = entered.put(q, (int) (long) to.get(q));
        assertTrue(before <= entered.get(q) && entered.get(q) <= Math.max(scanned.get(q), before), "seed " + seed);
        if (!q.topic().equals("marks"))
          for (Sent s : logs.get(q).subList(before, entered.get(q)))
            if (s.id != null)
              shown.computeIfAbsent(s.id, i -> new HashSet<>()).add(q.topic() + s.order);
      }
      assertAges(oldest(start, entered), times(reader.admitted()));
      assertAges(oldest(start, scanned), unread(reader, start));
      assertAges(oldest(entered, scanned), unread(reader, entered));
      reader.committed();
      assertEquals(Map.of(), reader.admitted());
      boolean missed = false;
      for (List<Sent> transaction : database) {
        Set<String> whole = new HashSet<>();
        for (Sent s : transaction) if (s.order > 0) whole.add(s.to.topic() + s.order);
        if (whole.isEmpty()) continue;
        Set<String> seen = shown.getOrDefault(transaction.get(0).id, Set.of());
        assertTrue(seen.isEmpty() || seen.equals(whole), "seed " + seed + ", step " + step + ": half of " + transaction.get(0).id);
        assertFalse(!apart && missed && !seen.isEmpty(), "seed " + seed + ": " + transaction.get(0).id + " before an earlier one");
        missed |= seen.isEmpty();
      }
      assertEquals(List.of(), reader.warnings(), "seed " + seed);
      if (logs.entrySet().stream()
          .allMatch(e -> e.getKey().topic().equals("marks")
          || entered.get(e.getKey()) == e.getValue().size()) && !missed)
        return;
      assertTrue(step < 5000, "seed " + seed + ": it does not go on from " + entered);
    }
  }

  // ---- one by one -----------------------------------------------------------------------------------------------------------------

  private final Transactions one = new Transactions(TOPICS, LIMITS);

  {
    for (TopicPartition p : FEW) one.partition(p, 0);
  }

  private long at(TopicPartition p) { return one.enter(1000).get(p); }

  private void end(int offset, long stamp, String id, long users) {
    one.mark(MARKS, offset, stamp, stamp, id, Map.of("shop.users", users, "shop.unread", 7L));
  }

  @Test void aCollectionThatNobodyReadsIsNotWaitedFor() {
    change(one, USERS, 0, 0, 0, "a", 1);
    assertEquals(0, at(USERS));
    end(0, 0, "a", 1);
    assertTrue(one.news());
    assertEquals(1, at(USERS));
    assertEquals(1, at(MARKS));
    assertEquals(List.of(), one.warnings());
  }

  @Test void whatCanNoLongerComeIsNotWaitedFor() {
    change(one, USERS, 0, 1000, 1000, "a", 1);
    end(0, 1000, "a", 2);
    change(one, USERS, 1, 61_001, 1000, "b", 1);
    assertEquals(0, at(USERS), "the other partition may have it");
    one.caughtUp(OTHERS, 61_000, 61_000);
    assertEquals(0, at(USERS));
    one.caughtUp(OTHERS, 61_001, 61_001);
    assertEquals(1, at(USERS));
    assertEquals(List.of("transaction a lacks records of shop.users"), one.warnings());
  }

  @Test void theWallClockIsSetBack() {
    change(one, USERS, 0, 100_000_000, 1000, "a", 1);
    end(0, 100_000_000, "a", 2);
    one.caughtUp(OTHERS, 10_000_000, 100_060_001);
    one.caughtUp(USERS, 10_000_000, 100_060_001);
    assertEquals(1, at(USERS), "the wait of a minute ends by a clock that is never set");
  }

  @Test void transactionsOlderThanTheTransactionTopicPassAtOnce() {
    change(one, USERS, 0, 1000, 5_000_000, "a", 1);
    change(one, USERS, 1, 2_000_000, 5_000_000, "b", 1);
    assertEquals(0, at(USERS));
    one.mark(MARKS, 0, 2_000_000, 5_000_000, "b", null);
    assertEquals(1, at(USERS));
    assertEquals(List.of("transaction a has no END"), one.warnings());
  }

  @Test void nothingIsKeptWithoutBound() {
    Transactions small = new Transactions(TOPICS, new Transactions.Limits(3, 100, 60_000, 10));
    for (TopicPartition p : FEW) small.partition(p, 0);
    for (int i = 0; i < 10; i++) change(small, USERS, i, 0, 0, "long", i + 1);
    assertEquals(0, small.enter(5).get(USERS));
    change(small, USERS, 10, 0, 0, "long", 11);
    assertEquals(List.of("transaction long has more than 100 bytes"), small.warnings());
    assertEquals(2, small.enter(2).get(USERS), "in pieces");
    for (int i = 0; i < 3; i++) small.mark(MARKS, i, 0, 0, "m" + i, Map.of("shop.items", 1L));
    assertTrue(small.full(MARKS));
    change(small, OTHERS, 0, 0, 0, "never", 1);
    assertEquals(1, small.enter(100).get(OTHERS), "its END may stand behind what is kept");
  }

  @Test void aTransactionThatIsLargerThanATickEntersAlone() {
    for (int i = 0; i < 5; i++) change(one, USERS, i, 0, 0, "a", i + 1);
    for (int i = 0; i < 5; i++) change(one, USERS, 5 + i, 0, 0, "b", i + 1);
    end(0, 0, "a", 5);
    end(1, 0, "b", 5);
    assertEquals(5, one.enter(2).get(USERS));
    assertTrue(one.news());
    assertEquals(10, one.enter(2).get(USERS));
  }

  // ---- ages -----------------------------------------------------------------------------------------------------------------------

  private static long time(Map<String, RecordAges.Oldest> oldest) { return oldest.get("users").time(); }

  @Test void aRecordThatWaitsForItsTransactionAges() {
    change(one, USERS, 0, 500, 700, "a", 1);
    change(one, OTHERS, 0, 400, 800, "a", 2);
    assertEquals(Map.of("users", List.of(new RecordAges.Unread(400, 2))), one.unread());
    one.enter(1000);
    assertEquals(Map.of(), one.admitted());
    end(0, 900, "a", 2);
    change(one, ITEMS, 0, 950, 950, "b", 1);
    one.enter(1000);
    assertEquals(Map.of("users", new RecordAges.Oldest(400, 800)), one.admitted());
    assertEquals(Map.of("users", List.of(new RecordAges.Unread(400, 2)), "items", List.of(new RecordAges.Unread(950, 1))), one.unread());
    one.enter(1000);
    assertEquals(400, time(one.admitted()), "a tick that is repeated");
    one.committed();
    assertEquals(Map.of("items", List.of(new RecordAges.Unread(950, 1))), one.unread());
  }

  @Test void anAdmittedPartOfASnapshotDoesNotAge() {
    for (int i = 0; i < 100; i++) change(one, USERS, i, 1000 * i, 1000 * i, null, 0);
    assertEquals(50, one.enter(50).get(USERS));
    one.committed();
    assertEquals(49_000, one.unread().get("users").get(0).time(), 1000);
  }
}
