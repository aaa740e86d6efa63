package tailgate.sources;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.utf8;

import java.io.IOException;
import java.util.*;
import org.apache.commons.lang3.SerializationUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

class FetchedRowsTest {
  private static final UTF8String TOPIC = UTF8String.fromString("tøpic");

  private static InternalRow row(byte[] key, byte[] value, long offset, ArrayData headers) {
    return new GenericInternalRow(new Object[] {key, value, TOPIC, 3, offset, 1_000_000 * offset, (int) offset % 2, headers});
  }

  private static InternalRow header(String name, byte[] value) {
    return new GenericInternalRow(new Object[] {UTF8String.fromString(name), value});
  }

  private static String text(InternalRow row) {
    StringBuilder text = new StringBuilder();
    for (int i = KafkaRecord.KEY; i <= KafkaRecord.VALUE; i++) text.append(bytes(row, i)).append(' ');
    text.append(row.getUTF8String(KafkaRecord.TOPIC)).append(row.getInt(KafkaRecord.PARTITION)).append(' ');
    text.append(row.getLong(KafkaRecord.OFFSET)).append(' ').append(row.getLong(KafkaRecord.TIMESTAMP));
    text.append(' ').append(row.getInt(KafkaRecord.TIMESTAMP + 1));
    ArrayData headers = KafkaRecord.headers(row);
    for (int i = 0; headers != null && i < headers.numElements(); i++) {
      InternalRow one = headers.getStruct(i, 2);
      text.append(' ').append(one.getUTF8String(0)).append('=').append(bytes(one, 1));
    }
    return text.append(headers == null).toString();
  }

  private static String bytes(InternalRow row, int column) {
    return row.isNullAt(column) ? "-" : Arrays.toString(row.getBinary(column));
  }

  @Test void aCopyInAnotherProcessHasTheSameRecords() throws IOException {
    Object[] all = {header("a", utf8("x")), header("", new byte[0]), header("a", null)};
    InternalRow one = row(utf8("k"), utf8("välue"), 1, null), other = row(null, new byte[0], 2, new GenericArrayData(all));
    List<InternalRow> rows = List.of(one, other, row(new byte[0], null, 9, null));
    try (PartitionReader<InternalRow> copy = SerializationUtils.clone(new FetchedRows(rows)).reader()) {
      for (InternalRow row : rows) {
        assertTrue(copy.next());
        assertEquals(text(row), text(copy.get()));
      }
      assertFalse(copy.next());
    }
  }

  @Test void recordsAreCompressed() {
    List<InternalRow> rows = new ArrayList<>();
    int bytes = 0;
    for (int i = 0; i < 1000; i++) {
      byte[] value = utf8("{\"id\": " + i + ", \"item\": \"item " + i % 10 + "\", \"amount\": " + i * 17 % 100 + "}");
      rows.add(row(null, value, i, null));
      bytes += value.length;
    }
    assertTrue(SerializationUtils.serialize(new FetchedRows(rows)).length < bytes / 3);
  }
}
