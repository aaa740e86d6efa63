package tailgate.sources;

import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Records of one partition of a topic, in Kafka's columns, that the driver has fetched. A task in
 * another process receives them with its description.
 */
public final class FetchedRows implements InputPartition {
  private static final long serialVersionUID = 1;
  private static final int NULL = -1;
  private transient List<InternalRow> rows;

  /** `rows`: at least one, all with the same topic and partition. */
  public FetchedRows(List<InternalRow> rows) { this.rows = rows; }

  /** Returns a reader of the records. */
  PartitionReader<InternalRow> reader() { return new Rows(rows.iterator()); }

  private void writeObject(ObjectOutputStream out) throws IOException {
    InternalRow first = rows.get(0);
    write(out, first.getUTF8String(KafkaRecord.TOPIC).getBytes());
    out.writeInt(first.getInt(KafkaRecord.PARTITION));
    out.writeInt(rows.size());
    for (InternalRow row : rows) {
      write(out, row.isNullAt(KafkaRecord.KEY) ? null : row.getBinary(KafkaRecord.KEY));
      write(out, row.isNullAt(KafkaRecord.VALUE) ? null : row.getBinary(KafkaRecord.VALUE));
      out.writeLong(row.getLong(KafkaRecord.OFFSET));
      out.writeLong(row.getLong(KafkaRecord.TIMESTAMP));
      out.writeInt(row.getInt(KafkaRecord.TIMESTAMP + 1));
      writeHeaders(out, KafkaRecord.headers(row));
    }
  }

  private void readObject(ObjectInputStream in) throws IOException {
    UTF8String topic = UTF8String.fromBytes(read(in));
    int partition = in.readInt(), n = in.readInt();
    rows = new ArrayList<>(n);
    for (int i = 0; i < n; i++) {
      Object[] columns = {read(in), read(in), topic, partition, in.readLong(), in.readLong(), in.readInt(), readHeaders(in)};
      rows.add(new GenericInternalRow(columns));
    }
  }

  private static void writeHeaders(ObjectOutputStream out, ArrayData headers) throws IOException {
    int n = headers == null ? NULL : headers.numElements();
    out.writeInt(n);
    for (int i = 0; i < n; i++) {
      InternalRow header = headers.getStruct(i, 2);
      write(out, header.getUTF8String(0).getBytes());
      write(out, header.isNullAt(1) ? null : header.getBinary(1));
    }
  }

  private static ArrayData readHeaders(ObjectInputStream in) throws IOException {
    int n = in.readInt();
    if (n == NULL) return null;
    Object[] headers = new Object[n];
    for (int i = 0; i < n; i++) headers[i] = new GenericInternalRow(new Object[] {UTF8String.fromBytes(read(in)), read(in)});
    return new GenericArrayData(headers);
  }

  private static void write(ObjectOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes == null ? NULL : bytes.length);
    if (bytes != null) out.write(bytes);
  }

  private static byte[] read(ObjectInputStream in) throws IOException {
    int length = in.readInt();
    if (length == NULL) return null;
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    return bytes;
  }

  /** A reader of rows in memory. */
  static final class Rows implements PartitionReader<InternalRow> {
    private final Iterator<InternalRow> rows;
    private InternalRow row;

    Rows(Iterator<InternalRow> rows) { this.rows = rows; }

    @Override public boolean next() {
      if (!rows.hasNext()) return false;
      row = rows.next();
      return true;
    }

    @Override public InternalRow get() { return row; }
    @Override public void close() {}
  }
}
