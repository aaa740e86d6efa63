package tailgate.sources;

import static org.junit.jupiter.api.Assertions.*;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.EncoderFactory;
import org.junit.jupiter.api.Test;

/** Transactions in messages, in Avro and JSON. The schemas are Debezium's, except for names and documentation. */
class TransactionBlockTest {
  private static final Schema ROW = new Schema.Parser()
      .parse("{'type': 'record', 'name': 'Envelope', 'fields': [{'name': 'after', 'type': ['null', 'string']}, {'name': 'transaction', 'type': ['null', {'type': 'record', 'name': 'block', 'fields': [{'name': 'id', 'type': 'string'}, {'name': 'total_order', 'type': 'long'}, {'name': 'data_collection_order', 'type': 'long'}]}], 'default': null}]}".replace('\'', '"'));
  private static final Schema END = new Schema.Parser()
      .parse("{'type': 'record', 'name': 'Value', 'fields': [{'name': 'status', 'type': 'string'}, {'name': 'id', 'type': 'string'}, {'name': 'event_count', 'type': ['null', 'long'], 'default': null}, {'name': 'data_collections', 'type': ['null', {'type': 'array', 'items': ['null', {'type': 'record', 'name': 'collection', 'fields': [{'name': 'data_collection', 'type': 'string'}, {'name': 'event_count', 'type': 'long'}]}]}], 'default': null}, {'name': 'ts_ms', 'type': 'long'}]}".replace('\'', '"'));
  private static final TransactionBlock JSON = new TransactionBlock(new ObjectMapper().createObjectNode().put("type", "json"));

  private static TransactionBlock avro(Schema schema) {
    ObjectNode said = new ObjectMapper().createObjectNode().put("type", "avro").put("schema", schema.toString()).put("wire", true);
    return new TransactionBlock(said);
  }

  private static byte[] written(GenericData.Record record) throws IOException {
    var out = new ByteArrayOutputStream();
    out.write(new byte[] {0, 0, 0, 0, 7});
    var encoder = EncoderFactory.get().directBinaryEncoder(out, null);
    new GenericDatumWriter<GenericData.Record>(record.getSchema()).write(record, encoder);
    return out.toByteArray();
  }

  private static byte[] utf8(String json) { return json.replace('\'', '"').getBytes(StandardCharsets.UTF_8); }

  @Test void blocksInAvro() throws IOException {
    GenericData.Record row = new GenericData.Record(ROW),
        block = new GenericData.Record(ROW.getField("transaction").schema().getTypes().get(1));
    row.put("after", "x");
    assertNull(avro(ROW).change(written(row)), "a snapshot's");
    block.put("id", "571:5319");
    block.put("total_order", 3L);
    block.put("data_collection_order", 2L);
    row.put("transaction", block);
    assertEquals(new TransactionBlock.Change("571", 2), avro(ROW).change(written(row)));
    assertNull(avro(ROW).change(new byte[] {1, 2, 3}), "a dead letter");
    assertNull(avro(ROW).change(null), "a tombstone");
  }

  @Test void endsInAvro() throws IOException {
    GenericData.Record end = new GenericData.Record(END),
        one = new GenericData.Record(END.getField("data_collections").schema().getTypes().get(1)
        .getElementType().getTypes().get(1));
    one.put("data_collection", "public.users");
    one.put("event_count", 4L);
    end.put("status", "END");
    end.put("id", "0-1-77");
    end.put("event_count", 4L);
    end.put("ts_ms", 1L);
    end.put("data_collections", Arrays.asList(one, null));
    assertEquals(new TransactionBlock.Mark("0-1-77", Map.of("public.users", 4L)), avro(END).mark(written(end)));
    end.put("status", "BEGIN");
    end.put("data_collections", null);
    assertEquals(new TransactionBlock.Mark("0-1-77", null), avro(END).mark(written(end)));
  }

  @Test void blocksInJson() {
    String block = "'transaction': {'id': '36f7:5', 'total_order': 1, 'data_collection_order': 9}";
    var found = new TransactionBlock.Change("36f7:5", 9);
    assertEquals(found, JSON.change(utf8("{'before': null, 'after': {'transaction': {'id': 'no'}}, " + block + ", 'op': 'c'}")));
    assertEquals(found, JSON.change(utf8("{'schema': {'fields': [{'field': 'transaction'}]}, 'payload': {'after': {}, " + block + "}}")));
    assertNull(JSON.change(utf8("{'after': {}, 'transaction': null}")));
    assertNull(JSON.change(utf8("{'after': {")));
    assertNull(JSON.change(utf8("[1]")));
  }

  @Test void endsInJson() {
    String end = "{'status': 'END', 'id': '571:53195832', 'event_count': 2, 'data_collections': [{'data_collection': 's1.a', 'event_count': 2}], 'ts_ms': 1}";
    var found = new TransactionBlock.Mark("571", Map.of("s1.a", 2L));
    assertEquals(found, JSON.mark(utf8(end)));
    assertEquals(found, JSON.mark(utf8("{'schema': {}, 'payload': " + end + "}")));
    assertEquals(new TransactionBlock.Mark("571", null),
        JSON.mark(utf8("{'status': 'BEGIN', 'id': '571:53195829', 'event_count': null, 'data_collections': null}")));
    assertNull(JSON.mark(utf8("{}")));
    assertNull(JSON.mark(utf8("null")));
    assertNull(JSON.mark(utf8("nothing")));
  }
}
