package tailgate.formats.ksqldb;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import tailgate.formats.Format;
import tailgate.formats.Formats;

/** ksqlDB's DELIMITED: a line with a field for each column. A field that is empty, also in quotes, is NULL. */
final class KsqldbDelimitedFormat extends Format {
  private static final long serialVersionUID = 1;
  private final KsqldbColumns columns;
  private final Format line;

  KsqldbDelimitedFormat(KsqldbColumns columns, String delimiter) {
    this.columns = columns;
    this.line = Formats.csv(columns.size(), delimiter, new String[0], true);
  }

  @Override public DataType type() { return columns.struct(); }

  @Override public Object decode(byte[] bytes) {
    InternalRow fields = (InternalRow) line.decode(bytes);
    Object[] values = new Object[columns.size()];
    for (int i = 0; i < values.length; i++) {
      if (fields.isNullAt(i) || fields.getUTF8String(i).numBytes() == 0) continue;
      values[i] = KsqldbValues.ofText(fields.getUTF8String(i).toString(), columns.types()[i], columns.spark(i));
    }
    return new GenericInternalRow(values);
  }
}
