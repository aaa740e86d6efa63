package tailgate;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.tools.ToolProvider;

/**
 * Classes of this JVM replaced by others of the same shape, while it runs. To be loaded as an
 * agent, into a JVM that may be running already; its argument may name a
 * file whose first line is the name of a source file, and whose other lines are the text that replaces it.
 */
public final class Mutant {
  private static final Map<String, ClassDefinition[]> MADE = new HashMap<>();  // by text
  private static Instrumentation instrumentation;

  private Mutant() {}

  public static void agentmain(String arguments, Instrumentation given) throws Exception {
    instrumentation = given;
    if (arguments == null || arguments.isEmpty()) return;
    String[] parts = Files.readString(Path.of(arguments)).split("\n", 2);
    replace(parts[0], parts[1]);
  }

  /** Replaces the classes of a source file by those of another text of it. */
  public static void replace(String file, String text) throws Exception {
    instrumentation.redefineClasses(MADE.computeIfAbsent(text, t -> compiled(file, t)));
  }

  private static ClassDefinition[] compiled(String file, String text) {
    try {
      Path folder = Files.createTempDirectory("mutant");
      Path source = Files.writeString(folder.resolve(file), text);
      int failed = ToolProvider.getSystemJavaCompiler()
          .run(null, null, null, "-nowarn", "-proc:none", "-g", "-cp",
          System.getProperty("java.class.path"), "-d", folder.toString(),
          source.toString());
      if (failed != 0) throw new IllegalArgumentException(file + " does not compile");
      List<ClassDefinition> classes = new ArrayList<>();
      try (var files = Files.walk(folder)) {
        for (Path path : (Iterable<Path>) files.filter(f -> f.toString().endsWith(".class"))::iterator) {
          String name = folder.relativize(path).toString().replace('/', '.');
          classes.add(new ClassDefinition(Class.forName(name.substring(0, name.length() - ".class".length())), Files.readAllBytes(path)));
        }
      }
      return classes.toArray(ClassDefinition[]::new);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (ClassNotFoundException e) {
      throw new IllegalArgumentException(file + " has another shape", e);
    }
  }
}
