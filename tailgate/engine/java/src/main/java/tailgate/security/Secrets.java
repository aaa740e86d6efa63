package tailgate.security;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.provider.ConfigProvider;

/**
 * Secret texts of this process, each stored under a number.
 *
 * <p>Reader options, plans, messages and logs contain the numbers instead of the texts. Kafka's
 * clients resolve a setting's value {@code ${tailgate:number}} themselves (KIP-297) if their
 * settings include {@link #PROVIDER}. Equal texts have the same number, so equal settings stay
 * equal. Texts are stored until the process ends; only a change of a secret adds one. An executor in
 * another process looks numbers up in the driver ({@link SecretsPlugin}).
 */
public final class Secrets implements ConfigProvider {
  /** Settings that a Kafka client needs to resolve references. */
  public static final Map<String, String> PROVIDER = Map.of(
      "config.providers", "tailgate",
      "config.providers.tailgate.class", Secrets.class.getName());

  private static final Map<String, String> NUMBERS_BY_TEXT = new ConcurrentHashMap<>();
  private static final Map<String, String> TEXTS_BY_NUMBER = new ConcurrentHashMap<>();
  private static final AtomicLong LAST_NUMBER = new AtomicLong();
  private static volatile UnaryOperator<String> driver;  // null in the driver's process

  /** Stores a text and returns its number. */
  public static String keep(String text) {
    return NUMBERS_BY_TEXT.computeIfAbsent(text, t -> {
      String number = Long.toString(LAST_NUMBER.incrementAndGet());
      TEXTS_BY_NUMBER.put(number, t);
      return number;
    });
  }

  /** Stores a text and returns its reference, for a setting of a Kafka client. */
  public static String reference(String text) { return "${tailgate:" + keep(text) + "}"; }

  /** Looks up the texts that this process does not have by this function. */
  static void lookUp(UnaryOperator<String> texts) { driver = texts; }

  /** Returns the text with a number. */
  public static String text(String number) {
    UnaryOperator<String> remote = driver;
    String text = remote == null ? TEXTS_BY_NUMBER.get(number) : TEXTS_BY_NUMBER.computeIfAbsent(number, remote);
    return Objects.requireNonNull(text, "no secret has this number");
  }

  // ---- ConfigProvider ---------------------------------------------------------------------------

  @Override public ConfigData get(String path) { return new ConfigData(Map.of()); }

  @Override public ConfigData get(String path, Set<String> numbers) {
    Map<String, String> texts = new HashMap<>();
    for (String number : numbers) {
      if (driver != null || TEXTS_BY_NUMBER.containsKey(number)) texts.put(number, text(number));
    }
    return new ConfigData(texts);
  }

  @Override public void configure(Map<String, ?> configs) {}

  @Override public void close() {}
}
