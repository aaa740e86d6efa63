package tailgate.aggregates;

import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import tailgate.state.State;

/** The values of one group that an accumulator stores, each with a weight, in the order of their bytes. */
public interface GroupValues {
  /** Adds to the weight of a value. Returns the new weight. */
  long weigh(byte[] value, long weight);

  /** Returns a scan of all values. */
  Walk walk();

  /** Returns the first value with a positive weight, or null. */
  default byte[] first() {
    try (Walk walk = walk()) {
      while (walk.next()) if (walk.weight() > 0) return walk.value();
      return null;
    }
  }

  /** A scan, which must be closed. */
  interface Walk extends AutoCloseable {
    boolean next();

    byte[] value();

    long weight();

    @Override void close();
  }

  /** Values in an operator's state. */
  record Stored(State state, int operator, int port, byte[] group) implements GroupValues {
    @Override public long weigh(byte[] value, long weight) { return state.weigh(operator, port, group, value, weight); }

    @Override public Walk walk() {
      State.Entries entries = state.entries(operator, port, group);
      return new Walk() {
        @Override public boolean next() { return entries.next(); }

        @Override public byte[] value() { return entries.row(); }

        @Override public long weight() { return State.weight(entries.value()); }

        @Override public void close() { entries.close(); }
      };
    }
  }

  /** Values in memory, while a partition is computed. */
  final class InMemory implements GroupValues {
    private final TreeMap<byte[], Long> weights = new TreeMap<>(Arrays::compareUnsigned);

    @Override public long weigh(byte[] value, long weight) {
      Long now = weights.merge(value, weight, (a, b) -> a + b == 0 ? null : (Long) (a + b));
      return now == null ? 0 : now;
    }

    @Override public Walk walk() {
      Iterator<Map.Entry<byte[], Long>> entries = weights.entrySet().iterator();
      return new Walk() {
        private Map.Entry<byte[], Long> at;

        @Override public boolean next() {
          if (!entries.hasNext()) return false;
          at = entries.next();
          return true;
        }

        @Override public byte[] value() { return at.getKey(); }

        @Override public long weight() { return at.getValue(); }

        @Override public void close() {}
      };
    }
  }
}
