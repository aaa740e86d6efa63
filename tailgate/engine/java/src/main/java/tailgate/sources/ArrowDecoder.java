package tailgate.sources;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.List;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import tailgate.errors.SqlError;
import tailgate.rows.Rows;

/**
 * Decodes records with many weighted rows: an Arrow IPC stream with the row's columns in order,
 * then `__weight` int64. Used for fills and writes to tables.
 */
final class ArrowDecoder implements Decoder {
  private static final long serialVersionUID = 1;
  private final StructType row;

  ArrowDecoder(StructType row) { this.row = row; }

  @Override public StructType schema() { return row; }

  @Override public void decode(InternalRow record, long tick, long order, Rows rows) {
    if (record.isNullAt(KafkaRecord.VALUE)) return;
    byte[] value = record.getBinary(KafkaRecord.VALUE);
    if (value.length == 0) return;  // earlier versions wrote one for a table that a transaction only read
    try (var allocator = ArrowUtils.rootAllocator().newChildAllocator("decoder", 0, Long.MAX_VALUE);
        var reader = new ArrowStreamReader(new ByteArrayInputStream(value), allocator)) {
      var root = reader.getVectorSchemaRoot();
      check(ArrowUtils.fromArrowSchema(root.getSchema()));
      List<FieldVector> vectors = root.getFieldVectors();
      ColumnVector[] columns = vectors.stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
      while (reader.loadNextBatch()) {
        ColumnarBatch batch = new ColumnarBatch(columns, root.getRowCount());
        for (int i = 0; i < root.getRowCount(); i++) rows.row(batch.getRow(i), columns[row.length()].getLong(i));
      }
    } catch (IOException | IllegalArgumentException | UnsupportedOperationException | IndexOutOfBoundsException e) {
      throw new SqlError("22023", "not an Arrow stream: " + e.getMessage());
    }
  }

  private void check(StructType given) {
    StructType wanted = row.add("__weight", DataTypes.LongType, false);
    boolean same = given.length() == wanted.length();
    for (int i = 0; same && i < wanted.length(); i++) same = DataTypeUtils.sameType(wanted.apply(i).dataType(), given.apply(i).dataType());
    if (!same) throw new SqlError("22023", "an Arrow stream of " + given.catalogString() + ", not " + wanted.catalogString());
  }
}
