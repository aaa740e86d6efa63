package tailgate;

/**
 * Limits the duration of the JVM's exit. Native libraries were seen to hang in an exit, and the
 * next engine waits until this JVM is gone. A forced exit loses nothing: data is in the log and the
 * state files before any client learns of it.
 */
public final class ExitTimeout {
  private ExitTimeout() {}

  /** Limits the duration of an exit of this JVM to this many milliseconds, from now on. */
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
