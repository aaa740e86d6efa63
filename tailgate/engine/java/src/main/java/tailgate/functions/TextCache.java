package tailgate.functions;

import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A cache of the results of a function for short texts. Rows may contain the texts, so a limit of their number alone would not
 * limit the memory: the result for a long text is computed each time. Safe for many threads.
 */
public final class TextCache<V> {
  private static final int LENGTH_MAX = 1_000;  // bytes of a cached text

  private final ConcurrentHashMap<UTF8String, V> values = new ConcurrentHashMap<>();
  private final int entries, lengthMax;
  private final Function<UTF8String, V> function;

  /** @param entries the texts that are cached; one more removes all of them */
  public TextCache(int entries, Function<UTF8String, V> function) { this(entries, LENGTH_MAX, function); }

  public TextCache(int entries, int lengthMax, Function<UTF8String, V> function) {
    this.entries = entries;
    this.lengthMax = lengthMax;
    this.function = function;
  }

  /** Returns the result for a text. */
  public V get(UTF8String text) {
    if (text.numBytes() > lengthMax) return function.apply(text);
    V cached = values.get(text);
    if (cached != null) return cached;
    V value = function.apply(text);
    if (values.size() >= entries) values.clear();
    values.put(text.clone(), value);
    return value;
  }

  int size() { return values.size(); }
}
