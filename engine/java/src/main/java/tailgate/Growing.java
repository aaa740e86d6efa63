package tailgate;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * Rows as an operator keeps them whose row may get more columns at its end (ALTER SOURCE … REFRESH SCHEMA): NULLs of later columns at the end are left out, so a row that
 * was kept before there were such columns is kept as it would be now.
 *
 * <pre>   the columns that there were first           the bytes of the row
 *   n columns, which are more                   the bytes of the row, n as four bytes: a row's own are a multiple of eight</pre>
 */
final class Growing implements Serializable {
  private static final long serialVersionUID = 1;
  private final StructType row;
  private final int first;
  private final boolean normalised;
  private final Columns[] columns;

  /** `first`: how many columns there were first. `normalised`: equal rows are equal bytes. */
  Growing(StructType row, int first, boolean normalised) {
    if (first < 0 || first > row.length()) throw new IllegalArgumentException("first " + first + " of " + row.length() + " columns");
    this.row = row;
    this.first = first;
    this.normalised = normalised;
    this.columns = new Columns[row.length() + 1];
  }

  /** As it is kept; of a wider row the first columns. */
  byte[] kept(UnsafeRow of) { return kept(of, row.length()); }

  /** The same of the bytes of a row of all columns. */
  byte[] kept(byte[] of) { return first == row.length() ? of : kept(Rows.row(of, row.length())); }

  /** As it is kept if columns from the `width`th on are NULL. */
  byte[] kept(UnsafeRow of, int width) {
    while (width > first && of.isNullAt(width - 1)) width--;
    byte[] bytes = columns(width).bytes(of);
    return width == first ? bytes : ByteBuffer.allocate(bytes.length + Integer.BYTES).put(bytes).putInt(width).array();
  }

  /** All columns of a kept row. */
  byte[] row(byte[] kept) {
    if (first == row.length()) return kept;
    boolean more = kept.length % Long.BYTES != 0;
    int width = more ? ByteBuffer.wrap(kept).getInt(kept.length - Integer.BYTES) : first;
    byte[] bytes = more ? Arrays.copyOf(kept, kept.length - Integer.BYTES) : kept;
    if (width == row.length()) return bytes;
    UnsafeRow narrow = Rows.row(bytes, width);
    Object[] values = new Object[row.length()];
    for (int i = 0; i < width; i++) values[i] = narrow.isNullAt(i) ? null : narrow.get(i, row.apply(i).dataType());
    return columns(row.length()).bytes(new GenericInternalRow(values));
  }

  /** How many columns there were first: rows of fewer were never kept. */
  int first() { return first; }

  private Columns columns(int width) {
    if (columns[width] == null) columns[width] = normalised ? Columns.key(row, IntStream.range(0, width).toArray()) : Columns.first(row, width);
    return columns[width];
  }
}
