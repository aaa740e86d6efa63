package tailgate.circuit;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.VectorUnloader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.ipc.message.IpcOption;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.arrow.ArrowFieldWriter;
import org.apache.spark.sql.execution.arrow.ArrowWriter$;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.bitset.BitSetMethods;

/**
 * An Arrow stream of rows and their weights, written column by column.
 *
 * <p>Numbers, times, texts and bytes are copied from the bytes of the rows to the buffers of Arrow. The values of other types are
 * converted by Spark's writers.
 */
final class ArrowChanges implements AutoCloseable {
  private final VectorSchemaRoot root;
  private final VectorUnloader batches;
  private final WriteChannel out;
  private final Column[] columns;
  private final BaseFixedWidthVector weights;

  /** The form of the streams of a relation, which ticks share: its columns, and the message with the schema that begins a stream. */
  record Form(StructType columns, Schema schema, byte[] message) {
    static Form of(StructType columns) {
      Schema schema = ArrowUtils.toArrowSchema(columns.add("__weight", DataTypes.LongType, false), "UTC", false, false);
      ByteArrayOutputStream message = new ByteArrayOutputStream();
      try {
        MessageSerializer.serialize(new WriteChannel(Channels.newChannel(message)), schema);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return new Form(columns, schema, message.toByteArray());
    }
  }

  /** Begins a stream. */
  ArrowChanges(Form form, WritableByteChannel out) throws IOException {
    int width = form.columns.length();
    this.out = new WriteChannel(out);
    this.out.write(form.message);
    root = VectorSchemaRoot.create(form.schema, ArrowUtils.rootAllocator());
    batches = new VectorUnloader(root);
    columns = new Column[width];
    for (int i = 0; i < width; i++) columns[i] = column(form.columns.apply(i).dataType(), root.getVector(i), i, width);
    weights = (BaseFixedWidthVector) root.getVector(width);
  }

  /** Writes the first `n` rows as a batch. */
  void write(byte[][] rows, long[] weights, int n) throws IOException {
    for (Column column : columns) column.fill(rows, n);
    this.weights.allocateNew(n);
    Platform.copyMemory(weights, Platform.LONG_ARRAY_OFFSET, null, this.weights.getDataBufferAddress(), 8L * n);
    for (int i = 0; i < n; i++) setValid(this.weights.getValidityBufferAddress(), i);
    root.setRowCount(n);
    try (ArrowRecordBatch batch = batches.getRecordBatch()) {
      MessageSerializer.serialize(out, batch);
    }
  }

  /** Ends the stream. One without a batch has the schema. */
  void end() throws IOException { ArrowStreamWriter.writeEndOfStream(out, IpcOption.DEFAULT); }

  @Override public void close() { root.close(); }

  private static void setValid(long validity, int i) {
    long at = validity + (i >> 3);
    Platform.putByte(null, at, (byte) (Platform.getByte(null, at) | 1 << (i & 7)));
  }

  private static Column column(DataType type, FieldVector vector, int ordinal, int width) {
    if (vector instanceof BaseFixedWidthVector fixed) {
      Copy copy = copy(type);
      if (copy != null) return new Fixed(fixed, ordinal, width, copy);
    } else if (vector instanceof BaseVariableWidthVector variable && (type instanceof StringType || type == DataTypes.BinaryType))
      return new Variable(variable, ordinal, width);
    return new Converted(vector, ordinal, width);
  }

  /** Returns how a value is copied, or null for a type that Spark's writers convert. */
  private static Copy copy(DataType type) {
    if (type instanceof DecimalType d)
      return d.precision() <= Decimal.MAX_LONG_DIGITS() ? ArrowChanges::smallDecimal : ArrowChanges::largeDecimal;
    if (type == DataTypes.LongType || type == DataTypes.DoubleType || type == DataTypes.TimestampType || type == DataTypes.TimestampNTZType)
      return (row, field, to) -> Platform.putLong(null, to, Platform.getLong(row, field));
    if (type == DataTypes.IntegerType || type == DataTypes.FloatType || type == DataTypes.DateType)
      return (row, field, to) -> Platform.putInt(null, to, Platform.getInt(row, field));
    if (type == DataTypes.ShortType) return (row, field, to) -> Platform.putShort(null, to, Platform.getShort(row, field));
    return null;
  }

  private static void smallDecimal(byte[] row, long field, long to) {
    long value = Platform.getLong(row, field);
    Platform.putLong(null, to, value);
    Platform.putLong(null, to + 8, value >> 63);
  }

  /** Copies a decimal whose bytes, at most 16, are in the variable part of the row, the highest first. */
  private static void largeDecimal(byte[] row, long field, long to) {
    long place = Platform.getLong(row, field);
    int at = (int) (place >>> 32), end = at + (int) place;
    long low = row[at] >> 7, high = low;
    for (; at < end; at++) {
      high = high << 8 | low >>> 56;
      low = low << 8 | row[at] & 255;
    }
    Platform.putLong(null, to, low);
    Platform.putLong(null, to + 8, high);
  }

  /** Copies the value of the field of a row to an address. */
  private interface Copy {
    void copy(byte[] row, long field, long to);
  }

  /** A column of the rows, and the vector that its values are written to. */
  private abstract static class Column {
    final int ordinal, width;
    final long field;  // the place of the column in the bytes of a row

    Column(int ordinal, int width) {
      this.ordinal = ordinal;
      this.width = width;
      this.field = Platform.BYTE_ARRAY_OFFSET + UnsafeRow.calculateBitSetWidthInBytes(width) + 8L * ordinal;
    }

    final boolean isNull(byte[] row) { return BitSetMethods.isSet(row, Platform.BYTE_ARRAY_OFFSET, ordinal); }

    /** Fills the vector with the values of the first `n` rows. */
    abstract void fill(byte[][] rows, int n);
  }

  private static final class Fixed extends Column {
    private final BaseFixedWidthVector vector;
    private final Copy copy;

    Fixed(BaseFixedWidthVector vector, int ordinal, int width, Copy copy) {
      super(ordinal, width);
      this.vector = vector;
      this.copy = copy;
    }

    @Override void fill(byte[][] rows, int n) {
      vector.allocateNew(n);
      long values = vector.getDataBufferAddress(), validity = vector.getValidityBufferAddress();
      int size = vector.getTypeWidth();
      for (int i = 0; i < n; i++)
        if (!isNull(rows[i])) {
          copy.copy(rows[i], field, values + (long) i * size);
          setValid(validity, i);
        }
    }
  }

  /** Texts or bytes: the field of a row has their place and length. */
  private static final class Variable extends Column {
    private final BaseVariableWidthVector vector;

    Variable(BaseVariableWidthVector vector, int ordinal, int width) {
      super(ordinal, width);
      this.vector = vector;
    }

    @Override void fill(byte[][] rows, int n) {
      long bytes = 0;
      for (int i = 0; i < n; i++) if (!isNull(rows[i])) bytes += (int) Platform.getLong(rows[i], field);
      vector.allocateNew(bytes, n);
      long values = vector.getDataBufferAddress(), validity = vector.getValidityBufferAddress(), offsets = vector.getOffsetBufferAddress();
      int end = 0;
      for (int i = 0; i < n; i++) {
        if (!isNull(rows[i])) {
          long place = Platform.getLong(rows[i], field);
          Platform.copyMemory(rows[i], Platform.BYTE_ARRAY_OFFSET + (place >>> 32), null, values + end, (int) place);
          end += (int) place;
          setValid(validity, i);
        }
        Platform.putInt(null, offsets + 4L * (i + 1), end);
      }
      vector.setLastSet(n - 1);
    }
  }

  private static final class Converted extends Column {
    private final ArrowFieldWriter writer;

    Converted(FieldVector vector, int ordinal, int width) {
      super(ordinal, width);
      vector.allocateNew();
      writer = ArrowWriter$.MODULE$.createFieldWriter(vector);
    }

    @Override void fill(byte[][] rows, int n) {
      writer.reset();
      UnsafeRow row = new UnsafeRow(width);
      for (int i = 0; i < n; i++) {
        row.pointTo(rows[i], rows[i].length);
        writer.write(row, ordinal);
      }
      writer.finish();
    }
  }
}
