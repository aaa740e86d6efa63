package tailgate;

/**
 * Limits the duration of the JVM's exit. Native libraries were seen to hang in an exit, and the
 * next engine waits until this JVM is gone. A forced exit loses nothing: all data is in the log and
 * the state files before any client is told of it.
 */
public final class Ending {
  private Ending() {}

  /** From now on, an exit of this JVM takes at most this many milliseconds. */
  public static void within(long millis) {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      Thread halt = new Thread(() -> {
        try {
          Thread.sleep(millis);
        } catch (InterruptedException e) {
          // the JVM exits in any case
        }
        Runtime.getRuntime().halt(0);
      }, "tailgate-ending");
      halt.setDaemon(true);
      halt.start();
    }));
  }
}
