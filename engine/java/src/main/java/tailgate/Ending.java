package tailgate;

/**
 * An end within a time. Native libraries were seen to hang in a JVM's exit, and the next engine waits until this one's JVM is gone. Nothing is lost: what counts is
 * in the log and in the state's files before anyone is told of it.
 */
public final class Ending {
  private Ending() {}

  /** From now on an exit of this JVM takes at most so many milliseconds. */
  public static void within(long millis) {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      Thread halt = new Thread(() -> {
        try {
          Thread.sleep(millis);
        } catch (InterruptedException e) {
          // the end is near either way
        }
        Runtime.getRuntime().halt(0);
      }, "tailgate-ending");
      halt.setDaemon(true);
      halt.start();
    }));
  }
}
