package tailgate;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.jar.JarFile;
import javax.management.JMException;
import javax.management.ObjectName;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** Writes the classes that this JVM has loaded to an archive, which it maps at the next start. */
public final class ClassArchive {
  private ClassArchive() {}

  /**
   * Runs the diagnostic command VM.cds. `jcmd` would do the same, but only a JDK has it.
   *
   * @throws JMException if this JVM has no such command
   */
  public static void write(String file) throws JMException {
    Object[] arguments = {new String[] {"dynamic_dump", file}};
    String[] signature = {String[].class.getName()};
    ObjectName commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
    ManagementFactory.getPlatformMBeanServer().invoke(commands, "vmCds", arguments, signature);
  }

  /** Loads the classes of Kafka's clients, which an engine without sources does not, and links them: the archive has linked ones. */
  public static void loadClients() throws IOException, URISyntaxException {
    var jar = Path.of(KafkaConsumer.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    try (var file = new JarFile(jar.toFile())) {
      file.stream().map(entry -> entry.getName().replace('/', '.')).filter(ClassArchive::isClient)
          .forEach(name -> link(name.substring(0, name.length() - ".class".length())));
    }
  }

  /**
   * Links the classes that this JVM has loaded, as {@code -Xlog:class+load} lists them. Without this, classes that others only name, such
   * as types of parameters, are not in the archive: a fifth of all.
   */
  public static void linkLoaded(String log) throws IOException {
    for (String line : Files.readAllLines(Path.of(log))) link(line.split(" ", 2)[0]);
  }

  private static boolean isClient(String file) {
    return file.matches("org\\.apache\\.kafka\\.(common|clients)\\..*\\.class");
  }

  private static void link(String name) {
    try {
      Class.forName(name, false, KafkaConsumer.class.getClassLoader()).getDeclaredMethods();
    } catch (ClassNotFoundException | LinkageError withoutALibrary) {
      // classes of lambdas, and those for libraries that are not on the class path
    }
  }
}
