package tailgate.formats.json;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import tailgate.errors.SqlError;
import tailgate.formats.Mutator;
import tailgate.functions.text.Utf8;

/** Flat messages: each is read as the general parser reads it, or left to that parser. TAILGATE_FUZZ is the number of random ones. */
class FlatJsonTest {
  private static final StructType COLUMNS = StructType.fromDDL(
      "i int, l bigint, s string, d double, f float, n decimal(6,2), w decimal(30,2), b boolean, dt date, t timestamp")
      .add("j", "string", true, new MetadataBuilder().putBoolean("jsonb", true).build());
  private static final String[] VALUES = {
      "0", "-0", "1", "-1", "00", "01", "-", "1.", ".5", "1.25", "-12.3", "1.005", "9999.99", "-9999.99", "10000", "10000.00",
      "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807",
      "123456789012345678", "1234567890123456789", "0.000000000000000001", "1e2", "1.5E1", "1e",
      "null", "true", "false", "nul", "True", "\"\"", "\"a\"", "\"é\"", "\"a\\u0041\"", "\"a\\\\\"", "\"\u0001\"", "\"a",
      "\"2020-01-02\"", "\"2020-01-02T03:04:05Z\"", "\"2020-13-02\"", "{}", "{\"x\": 1}", "[]", "[1]", ""};
  private static final int MESSAGES = Integer.parseInt(System.getenv().getOrDefault("TAILGATE_FUZZ", "40000"));
  private final Random random = new Random(5);
  private final Mutator mutator = new Mutator(random);

  private static byte[] utf8(String text) { return text.getBytes(StandardCharsets.UTF_8); }

  /** Returns the decoded row as text, or the error. */
  private static String outcome(Function<byte[], Object> decode, byte[] message) {
    try {
      return String.valueOf(CatalystTypeConverters.createToScalaConverter(COLUMNS).apply(decode.apply(message)));
    } catch (SqlError e) {
      return e.sqlstate() + " " + e.getMessage();
    }
  }

  private static boolean isFlat(FlatJson reader, byte[] message) {
    try {
      return reader.values(message) != null;
    } catch (SqlError e) {
      return true;
    }
  }

  private String message() {
    StringBuilder json = new StringBuilder(blank()).append('{');
    for (int n = random.nextInt(5), i = 0; i < n; i++) {
      String name = random.nextInt(6) == 0 ? "other" : COLUMNS.fieldNames()[random.nextInt(COLUMNS.length())];
      if (random.nextInt(8) == 0) name = name.toUpperCase();
      json.append(i == 0 ? "" : ",").append(blank()).append('"').append(name).append('"').append(blank()).append(':').append(blank())
          .append(VALUES[random.nextInt(VALUES.length)]).append(blank());
    }
    return json.append('}').append(blank()).toString();
  }

  private String blank() { return random.nextInt(4) == 0 ? " \n\t\r".substring(0, random.nextInt(5)) : ""; }

  @Test
  void theResultIsThatOfTheGeneralParser() {
    int flat = 0;
    JsonColumnsFormat format = new JsonColumnsFormat(COLUMNS);
    FlatJson reader = new FlatJson(COLUMNS, new boolean[COLUMNS.length()]);
    for (int i = 0; i < MESSAGES; i++) {
      byte[] message = utf8(message());
      if (i % 2 == 0) message = mutator.mutate(message);
      if (isFlat(reader, message)) flat++;
      byte[] read = message;
      String expected = outcome(m -> format.parsed(Utf8.checked(m)), read);
      assertEquals(expected, outcome(format::decode, read), () -> new String(read, StandardCharsets.UTF_8));
    }
    assertTrue(flat > MESSAGES / 10, flat + " flat messages");
  }

  @Test
  void usualMessagesAreFlat() {
    FlatJson flat = new FlatJson(COLUMNS, new boolean[COLUMNS.length()]);
    assertNotNull(flat.values(utf8("{\"i\": 1, \"l\": 123456789012345678, \"s\": \"é\", \"d\": 0.5, \"n\": -12.30}")));
    assertNotNull(flat.values(utf8("{\"b\": true, \"t\": \"2020-01-02 03:04:05\", \"other\": \"x\"}")));
    assertNotNull(flat.values(utf8("{ \"n\" : 7 , \"i\" : null }")));
    assertNotNull(flat.values(utf8("{}")));
    assertNull(flat.values(utf8("{\"s\": \"\\n\"}")));
    assertNull(flat.values(utf8("{\"i\": 1}}")));
    assertNull(flat.values(utf8("{\"i\": 1,}")));
    assertNull(flat.values(utf8("{\"i\": {}}")));
  }
}
