package tailgate.functions.text;

import static tailgate.Expressions.assertResults;

import org.junit.jupiter.api.Test;

/** Functions of bytea. */
class ByteStringsTest {
  @Test
  void convertsFromEncodings() {
    assertResults("tg_convert_from(unhex(x), 'UTF8')",
        "c3a4", "ä",
        "61ff62", "22021 invalid byte sequence for encoding \"UTF8\": 0xff",
        "6100", "22021 invalid byte sequence for encoding \"UTF8\": 0x00",
        "e228a1", "22021 invalid byte sequence for encoding \"UTF8\": 0xe2 0x28 0xa1",
        "eda080", "22021 invalid byte sequence for encoding \"UTF8\": 0xed 0xa0 0x80",
        "c3", "22021 invalid byte sequence for encoding \"UTF8\": 0xc3",
        "f09f9880", "\ud83d\ude00");
    assertResults("tg_convert_from(unhex(x), 'LATIN1')", "e4", "ä");
    assertResults("tg_convert_from(unhex(x), 'nope')", "e4", "22023 invalid source encoding name \"nope\"");
  }
}
