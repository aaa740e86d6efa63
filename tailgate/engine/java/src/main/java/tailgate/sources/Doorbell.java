package tailgate.sources;

import java.util.function.BooleanSupplier;

/**
 * Wakes the loop when there may be a reason for a tick.
 *
 * <p>Any thread may ring; only the loop's thread waits. Rings are hints. A superfluous one costs a
 * look at the inputs. A lost one only delays a tick until the wait times out. A ring says whether
 * there is new data, or only that it is time to look again.
 */
final class Doorbell {
  private long rings, heard;
  private boolean news;

  synchronized void ring(boolean news) {
    rings++;
    this.news |= news;
    notifyAll();
  }

  /** Waits up to `millis` ms for a ring since the last call. Returns whether there is new data. */
  synchronized boolean await(long millis) throws InterruptedException {
    long end = System.nanoTime() + millis * 1_000_000;
    for (long left = millis; rings == heard && left > 0; left = (end - System.nanoTime() + 999_999) / 1_000_000) wait(left);
    heard = rings;
    boolean had = news;
    news = false;
    return had;
  }

  /** Waits up to this many nanoseconds, or until a condition holds, which each ring checks. Every ring stays to be heard. */
  synchronized void pause(long nanos, BooleanSupplier ended) {
    long end = System.nanoTime() + nanos;
    boolean interrupted = false;
    for (long left = nanos; left > 0 && !ended.getAsBoolean(); left = end - System.nanoTime()) {
      try {
        wait(left / 1_000_000, (int) (left % 1_000_000));
      } catch (InterruptedException e) {
        interrupted = true;
        break;
      }
    }
    if (interrupted) Thread.currentThread().interrupt();
  }
}
