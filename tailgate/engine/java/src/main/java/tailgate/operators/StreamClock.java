package tailgate.operators;

import java.nio.ByteBuffer;
import java.util.function.LongUnaryOperator;
import tailgate.circuit.Tick;
import tailgate.state.State;

/**
 * The stream time of an operator in one partition: the greatest time of the rows that it has processed. The wall clock has no
 * effect on it.
 *
 * <p>It also numbers rows, and knows a time before which nothing is due, so that most ticks need no scan.
 */
final class StreamClock {
  private final Tick tick;
  private final int operator, port;
  private final boolean stored;
  private boolean changed;
  private long number;
  private boolean released;
  /** The stream time, or the smallest number before the first row. */
  long time = Long.MIN_VALUE;
  /** No row is due before this time. */
  long due = Long.MAX_VALUE;

  /** Reads the clock of an operator from a port of its state. */
  StreamClock(Tick tick, int operator, int port) {
    this.tick = tick;
    this.operator = operator;
    this.port = port;
    byte[] value = tick.state.get(operator, port, State.NONE, State.NONE);
    stored = value != null;
    if (!stored) return;
    ByteBuffer in = ByteBuffer.wrap(value);
    time = in.getLong();
    due = in.getLong();
    number = in.getLong();
    released = in.get() == 1;
  }

  /** Returns whether the rows that waited for the end of the fill are processed. No row waits afterwards. */
  boolean released() { return released; }

  /** Notes that the rows that waited are processed. */
  void release() {
    released = true;
    changed = true;
  }

  /** Advances the stream time. Returns whether rows may be due. */
  boolean advance(long to) {
    if (to <= time) return false;
    time = to;
    changed = true;
    return due <= time;
  }

  /** Advances the stream time of an operator that numbers no rows, and notes that this tick has done it. */
  void advanceInTick(long to) {
    if (to > time) number = tick.time;
    advance(to);
  }

  /** Returns whether {@link #advanceInTick} has advanced the stream time in this tick, in which the operator may run several times. */
  boolean hasAdvanced() { return number == tick.time; }

  /** Notes the time at which a row is due. */
  void expect(long at) {
    if (at >= due) return;
    due = at;
    changed = true;
  }

  /** Notes the time before which nothing is due, after all rows that were due are processed. */
  void expectFrom(long at) {
    changed |= due != at;
    due = at;
  }

  /** Returns a number that is greater than those before. */
  long next() {
    changed = true;
    return ++number;
  }

  void store() {
    if (changed) tick.state.put(operator, port, State.NONE, State.NONE, encoded(time, due, number, released), !stored);
  }

  private static byte[] encoded(long time, long due, long number, boolean released) {
    return ByteBuffer.allocate(25).putLong(time).putLong(due).putLong(number).put((byte) (released ? 1 : 0)).array();
  }

  /** Returns a stored clock whose last number is another one. */
  static byte[] numbered(byte[] clock, LongUnaryOperator number) {
    ByteBuffer in = ByteBuffer.wrap(clock);
    return encoded(in.getLong(), in.getLong(), number.applyAsLong(in.getLong()), in.get() == 1);
  }

  /** Returns the clock of all rows of two partitions. The stream time is the same in both, because each receives all times. */
  static byte[] merged(byte[] one, byte[] other) {
    ByteBuffer a = ByteBuffer.wrap(one), b = ByteBuffer.wrap(other);
    long time = Math.max(a.getLong(), b.getLong()), due = Math.min(a.getLong(), b.getLong()), number = Math.max(a.getLong(), b.getLong());
    return encoded(time, due, number, (a.get() & b.get()) == 1);
  }
}
