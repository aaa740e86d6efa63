package tailgate;

import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.provider.ConfigProvider;

/**
 * Texts that are to stand in no option of a reader, no plan, no message and no log: kept here under a number, and looked up by who needs them.
 *
 * <p>Kafka's clients do so by themselves (KIP-297): `${tailgate:number}` as a setting's value, and {@link #PROVIDER} among the settings. A text keeps its number, so that equal
 * settings stay equal; a new one is kept for as long as the process lives, and comes with each change of a secret.
 */
public final class Secrets implements ConfigProvider {
  /** What a client that is given references must be told besides. */
  public static final Map<String, String> PROVIDER = Map.of("config.providers", "tailgate", "config.providers.tailgate.class", Secrets.class.getName());

  private static final Map<String, String> NAMES = new ConcurrentHashMap<>(), TEXTS = new ConcurrentHashMap<>();
  private static final AtomicLong NUMBERS = new AtomicLong();

  /** The name of a text from now on. */
  public static String keep(String text) {
    return NAMES.computeIfAbsent(text, t -> {
      String name = Long.toString(NUMBERS.incrementAndGet());
      TEXTS.put(name, t);
      return name;
    });
  }

  /** What stands for a text in a setting of Kafka's clients. */
  public static String reference(String text) { return "${tailgate:" + keep(text) + "}"; }

  static String text(String name) { return Objects.requireNonNull(TEXTS.get(name), "a secret that nobody keeps"); }

  // ---- for Kafka's clients ----------------------------------------------------------------------------------------------------

  @Override public ConfigData get(String path) { return new ConfigData(Map.of()); }

  @Override public ConfigData get(String path, Set<String> names) {
    Map<String, String> found = new HashMap<>();
    for (String name : names) if (TEXTS.containsKey(name)) found.put(name, text(name));
    return new ConfigData(found);
  }

  @Override public void configure(Map<String, ?> configs) {}
  @Override public void close() {}
}
