package tailgate.sources;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import tailgate.circuit.Circuit;
import tailgate.formats.Formats;

/** Records that sources cannot decode, and a schema registry that does not answer. */
class DecoderTest {
  @Test
  void arrowStreamsWithOtherColumnsAreDeadLetters() {
    Circuit c = new Circuit();
    StructType row = schema("a int, b string");
    c.source(1, "a", Decoder.arrow(row), empty(row));
    c.relation(1, row, 0);
    c.output(1, empty(row), 1);
    c.seal();
    Running r = new Running(c, 1);
    r.tick(
        arrow("a", schema("a bigint, b string"), List.of(plus(1L, "x"))),
        record("a", 1, null, new byte[] {1, 2, 3}),
        record("a", 2, null, null),
        record("a", 3, null, new byte[0]),
        arrow("a", row, List.of(
            new Weighted(row(1, "x"), 3), new Weighted(row(1, "x"), -3), new Weighted(row(2, null), 2))));
    assertEquals(new Bag().add(row(2, null), 2), r.relation(1));
    assertEquals(2L, r.last.counters().get("1.dead_letters"));
  }

  @Test
  void unreachableRegistryStallsTheSource() {
    String schema = "{\"type\": \"record\", \"name\": \"r\", \"fields\": [{\"name\": \"a\", \"type\": \"int\"}]}";
    Decoder decoder = Decoder.kafka(Formats.none(), Formats.avro(schema, "http://127.0.0.1:1", ""));
    Circuit c = new Circuit();
    c.source(1, "t", decoder, empty(decoder.schema()).selectExpr("value.a"));
    c.relation(1, schema("a int"), 0);
    c.output(1, empty(schema("a int")), 1);
    c.seal();
    Running r = new Running(c, 1);
    r.tick(record("t", 0, null, null));
    Row message = record("t", 1, null, new byte[] {0, 0, 0, 0, 1, 2});
    SourceStalled stalled = assertThrows(SourceStalled.class, () -> r.tick(message));
    assertEquals("t", stalled.channel());
    String expected = "schema registry http://127.0.0.1:1 does not answer";
    assertTrue(stalled.getMessage().startsWith(expected), stalled.getMessage());
    r.tick(record("t", 2, null, null));
    assertEquals(new Bag().add(row((Object) null), 2), r.relation(1));
  }
}
