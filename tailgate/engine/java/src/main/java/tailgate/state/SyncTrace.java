package tailgate.state;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Reports syncs to tests: one line for each sync, in the file that the property `tailgate.traced`
 * names.
 */
final class SyncTrace {
  private static final String FILE = System.getProperty("tailgate.traced");

  private SyncTrace() {}

  static void sync(Path path) throws IOException {
    if (FILE != null)
      Files.write(Path.of(FILE), (path + "\n").getBytes(StandardCharsets.UTF_8),
          StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  }
}
