package tailgate.functions.text;

import static tailgate.Expressions.assertResults;

import org.junit.jupiter.api.Test;

/** Log positions as text. */
class LogPositionsTest {
  @Test
  void padsWithZeros() {
    assertResults("tg_position(cast(x as bigint), 5)",
        "0", "00000",
        "42", "00042",
        "12345", "12345",
        "123456", "123456",
        null, "NULL");
    assertResults("tg_position(cast(x as bigint), 20)", "9223372036854775807", "09223372036854775807");
    assertResults("tg_position(cast(x as bigint), 5)", "-1", "22023 log position is negative: -1");
  }
}
