package tailgate.security;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Lets executors in other processes look up the driver's {@link Secrets} by their numbers, over
 * Spark's RPC, which is authenticated and encrypted. No plan, log or environment contains a text.
 *
 * <pre>   task: Secrets.text(7) ──► not known here ──ask──► driver: Secrets.text(7)</pre>
 */
public final class SecretsPlugin implements SparkPlugin {
  @Override public DriverPlugin driverPlugin() { return new Answers(); }

  @Override public ExecutorPlugin executorPlugin() { return new Questions(); }

  private static final class Answers implements DriverPlugin {
    @Override public Map<String, String> init(SparkContext context, PluginContext plugin) { return Map.of(); }

    @Override public Object receive(Object number) { return Secrets.text((String) number); }
  }

  private static final class Questions implements ExecutorPlugin {
    @Override public void init(PluginContext plugin, Map<String, String> unused) {
      Secrets.lookUp(number -> {
        try {
          return (String) plugin.ask(number);
        } catch (IOException e) {
          throw new UncheckedIOException(e);
        } catch (Exception e) {
          throw new IllegalStateException("the driver did not return a secret", e);
        }
      });
    }
  }
}
