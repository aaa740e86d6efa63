package tailgate.state;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Reports syncs to tests, in the file that the property `tailgate.traced` names: a line "content" or
 * "name", and the path, for each sync that is complete.
 */
final class SyncTrace {
  private static final String FILE = System.getProperty("tailgate.traced");

  private SyncTrace() {}

  static void content(Path path) throws IOException { note("content " + path); }

  static void name(Path path) throws IOException { note("name " + path); }

  private static void note(String line) throws IOException {
    if (FILE != null)
      Files.write(Path.of(FILE), (line + "\n").getBytes(StandardCharsets.UTF_8),
          StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  }
}
