package tailgate.functions.text;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import tailgate.errors.SqlError;

/** LIKE, which backtracks only to the last % that it reached. */
class LikePatternsTest {
  private static boolean like(String text, String pattern) {
    return LikePatterns.like(UTF8String.fromString(text), UTF8String.fromString(pattern));
  }

  @Test
  void matchesAsInPostgreSql() {
    assertTrue(like("", "%%"));
    assertFalse(like("", "_"));
    assertTrue(like("xaybaz", "%a%a_"));
    assertFalse(like("xaybaz", "%a%a"));
    assertTrue(like("é😀b", "_😀%"));
    assertFalse(like("é", "__"));
    assertTrue(like("50%", "5_\\%"));
    assertFalse(like("500", "50\\%"));
    assertTrue(like("a\\b", "a\\\\b"));
  }

  @Test
  void anEscapeCharacterAtTheEndIsAnError() {
    assertEquals("22025", assertThrows(SqlError.class, () -> like("ab", "a\\")).sqlstate());
  }

  @Test
  void manyPercentSignsAreFast() {
    String text = "a".repeat(10_000);
    assertTimeoutPreemptively(Duration.ofSeconds(20), () -> assertFalse(like(text, "%a".repeat(50) + "%b")));
  }
}
