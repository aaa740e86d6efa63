package tailgate;

import java.lang.management.ManagementFactory;
import javax.management.JMException;
import javax.management.ObjectName;

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
}
