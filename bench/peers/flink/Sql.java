import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/**
 * Runs the statements of a file on a Flink cluster inside this process, as Flink's SQL client would. The
 * first argument is the file, the others are settings of Flink, as {@code name=value}. The last statement
 * is an INSERT, which runs until the process is ended.
 */
public final class Sql {
  public static void main(String[] arguments) throws Exception {
    Configuration settings = new Configuration();
    for (String argument : List.of(arguments).subList(1, arguments.length)) {
      int equals = argument.indexOf('=');
      settings.setString(argument.substring(0, equals), argument.substring(equals + 1));
    }
    TableEnvironment environment =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
    TableResult result = null;
    for (String statement : Files.readString(Path.of(arguments[0])).split(Pattern.quote(";"))) {
      if (!statement.isBlank()) {
        result = environment.executeSql(statement.strip());
      }
    }
    result.await();
  }

  private Sql() {}
}
