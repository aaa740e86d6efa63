package tailgate.functions;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tailgate.Expressions;

/**
 * Casts of text to each type and back give what PostgreSQL 15 gives. The golden files are those of
 * the tests of {@code tailgate/values}.
 */
class GoldenTest {
  private static final Path FOLDER = Path.of("../../../tests/values/golden");
  private static final ObjectMapper JSON = new ObjectMapper();

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
      "bool|if(tg_text_to_bool(x), 't', 'f')",
      "int2|tg_text_to_int2(x)",
      "int4|tg_text_to_int4(x)",
      "int8|tg_text_to_int8(x)",
      "oid|tg_text_to_oid(x)",
      "money|tg_money_to_text(tg_text_to_money(x))",
      "float4|tg_float4_to_text(tg_text_to_float4(x))",
      "float8|tg_float8_to_text(tg_text_to_float8(x))",
      "numeric_5_2|tg_text_to_numeric(x, 5, 2)",
      "numeric_3_0|tg_text_to_numeric(x, 3, 0)",
      "bytea|concat('\\\\x', lower(hex(tg_text_to_bytea(x))))",
      "char|tg_char_to_text(tg_text_to_char(x))",
      "date|tg_date_to_text(tg_text_to_date(x))",
      "time|tg_time_to_text(tg_text_to_time(x))",
      "timetz|tg_timetz_to_text(tg_text_to_timetz(x))",
      "timestamp|tg_timestamp_to_text(tg_text_to_timestamp(x))",
      "timestamptz|tg_timestamptz_to_text(tg_text_to_timestamptz(x))",
      "interval|tg_interval_to_text(tg_text_to_interval(x))",
      "uuid|tg_text_to_uuid(x)",
      "inet|tg_inet_output(tg_text_to_inet(x))",
      "cidr|tg_inet_to_text(tg_text_to_cidr(x))",
      "macaddr|tg_text_to_macaddr(x)",
      "macaddr8|tg_text_to_macaddr8(x)",
      "bit|tg_text_to_bit(x)",
      "varbit|tg_text_to_varbit(x)",
      "int4range|tg_range_to_text(tg_text_to_int4range(x))",
      "int8range|tg_range_to_text(tg_text_to_int8range(x))",
      "numrange|tg_range_to_text(tg_text_to_numrange(x))",
      "daterange|tg_range_to_text(tg_text_to_daterange(x))",
      "tsrange|tg_range_to_text(tg_text_to_tsrange(x))",
      "tstzrange|tg_range_to_text(tg_text_to_tstzrange(x))",
      "int4multirange|tg_multirange_to_text(tg_text_to_int4multirange(x))",
      "int8multirange|tg_multirange_to_text(tg_text_to_int8multirange(x))",
      "nummultirange|tg_multirange_to_text(tg_text_to_nummultirange(x))",
      "datemultirange|tg_multirange_to_text(tg_text_to_datemultirange(x))",
      "tsmultirange|tg_multirange_to_text(tg_text_to_tsmultirange(x))",
      "tstzmultirange|tg_multirange_to_text(tg_text_to_tstzmultirange(x))",
      "json|tg_text_to_json(x)",
      "jsonb|tg_jsonb_parse(x)",
  })
  void agreesWithPostgresql(String name, String expression) throws IOException {
    List<String> differences = new ArrayList<>();
    for (String line : Files.readAllLines(FOLDER.resolve(name + ".jsonl"))) {
      JsonNode golden = JSON.readTree(line);
      String text = golden.get(0).asText();
      boolean value = !golden.get(1).isNull();
      String expected = value ? golden.get(1).asText() : golden.get(2).asText() + " " + golden.get(3).asText();
      String found = Expressions.evaluate(expression, text);
      if (!found.equals(expected) && !(value && isUnsupported(name, expected))) {
        differences.add(text + ": " + found + ", in PostgreSQL " + expected);
      }
    }
    assertEquals(List.of(), differences);
  }

  /** Returns whether a view does not have a value: a timestamp of a year that 64 bits lack, NaN. */
  private static boolean isUnsupported(String name, String output) {
    if (name.startsWith("numeric")) return !output.matches("-?[0-9.]+");
    return name.startsWith("timestamp") && output.matches("2942(4[7-9]|[5-7][0-9])-.*");
  }
}
