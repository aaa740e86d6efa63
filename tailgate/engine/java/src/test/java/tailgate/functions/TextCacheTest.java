package tailgate.functions;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

class TextCacheTest {
  private final TextCache<Object> cache = new TextCache<>(2, 10, text -> new Object());

  @Test
  void keepsResultsOfShortTexts() {
    Object first = cache.get(text("a"));
    assertSame(first, cache.get(text("a")));
    cache.get(text("b"));
    assertEquals(2, cache.size());
    cache.get(text("c"));
    assertEquals(1, cache.size());
    assertNotSame(first, cache.get(text("a")));
  }

  @Test
  void keepsNoResultOfALongText() {
    assertNotSame(cache.get(text("more than ten bytes")), cache.get(text("more than ten bytes")));
    assertEquals(0, cache.size());
  }

  private static UTF8String text(String text) { return UTF8String.fromString(text); }
}
