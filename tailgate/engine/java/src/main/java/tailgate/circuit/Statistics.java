package tailgate.circuit;

import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import tailgate.state.State;

/**
 * Recent work and state sizes of a lake's operators, kept on the driver. {@link #recent} returns
 * them.
 *
 * <p>In a tick, each partition reports the operators that ran. In its first tick with a circuit it
 * reports all of them. The number of entries is stored in the state itself.
 */
public final class Statistics {
  /** Number of ticks that are summed up. */
  static final int TICKS = 60;
  /** Indexes of the numbers in a {@link Sent}: rows in and out, time, then {@link State#sized}. */
  static final int IN = 0, OUT = 1, NANOS = 2, ENTRIES = 3, BYTES = 4, SUMMED = 5, WIDTH = 8;
  private static final int SHOWN = 5;
  private static final Map<String, Statistics> ALL = new ConcurrentHashMap<>();
  private final Deque<Map<Integer, long[]>> ticks = new ArrayDeque<>();
  private final Map<Integer, Map<Long, long[]>> held = new TreeMap<>();  // per node and partition: entries, bytes

  /** Returns the statistics for the path of a state. */
  static Statistics of(String path) { return ALL.computeIfAbsent(path, p -> new Statistics()); }

  static byte[] bytes(long[] counts) {
    ByteBuffer out = ByteBuffer.allocate(8 * WIDTH);
    for (long n : counts) out.putLong(n);
    return out.array();
  }

  /** Adds the report of one tick. */
  synchronized void add(Circuit circuit, List<Sent> sent) {
    Map<Integer, long[]> sums = new TreeMap<>();
    for (Sent s : sent) {
      ByteBuffer in = ByteBuffer.wrap(s.bytes());
      long[] sum = sums.computeIfAbsent(s.to(), n -> new long[ENTRIES]);
      for (int i = 0; i < ENTRIES; i++) sum[i] += in.getLong();
      held.computeIfAbsent(s.to(), n -> new TreeMap<>()).put(s.n(), new long[] {in.getLong(), in.getLong()});
    }
    ticks.add(sums);
    if (ticks.size() > TICKS) ticks.remove();
    held.keySet().retainAll(circuit.nodes.keySet());
  }

  /**
   * Returns JSON: the number of ticks, and by node [rows in, rows out, nanoseconds, entries of
   * state, bytes of state].
   */
  public static String recent(String path) {
    Statistics of = of(path);
    synchronized (of) {
      StringJoiner nodes = new StringJoiner(", ", "{", "}");
      of.held.forEach((node, partitions) -> {
        long[] sum = new long[SHOWN];
        for (Map<Integer, long[]> tick : of.ticks)
          for (int i = 0; i < ENTRIES; i++) sum[i] += tick.getOrDefault(node, new long[ENTRIES])[i];
        for (long[] state : partitions.values()) for (int i = 0; i < 2; i++) sum[ENTRIES + i] += state[i];
        nodes.add("\"" + node + "\": " + Arrays.toString(sum));
      });
      return "{\"ticks\": " + of.ticks.size() + ", \"nodes\": " + nodes + "}";
    }
  }
}
