package tailgate.rows;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * Encodes stored rows so that columns can be added at the end (ALTER SOURCE … REFRESH SCHEMA).
 * Trailing NULLs of added columns are omitted. A row that was stored before a column was added
 * therefore has the same encoding as one stored afterwards.
 *
 * <pre>   the original columns          the bytes of the row
 *   n columns, more than those    the bytes of the row, then n in four bytes; the length of a row is a multiple of eight</pre>
 */
public final class EvolvingRowCodec implements Serializable {
  private static final long serialVersionUID = 1;
  private final StructType row;
  private final int first;
  private final boolean normalised;
  private final Columns[] columns;

  /** `first` is the number of original columns. `normalised`: equal rows have equal bytes. */
  public EvolvingRowCodec(StructType row, int first, boolean normalised) {
    if (first < 0 || first > row.length()) throw new IllegalArgumentException("first " + first + " of " + row.length() + " columns");
    this.row = row;
    this.first = first;
    this.normalised = normalised;
    this.columns = new Columns[row.length() + 1];
  }

  /** Encodes a row. Of a wider row, only the first columns are used. */
  public byte[] kept(UnsafeRow of) { return kept(of, row.length()); }

  /** Encodes a row that is given as the bytes of all columns. */
  public byte[] kept(byte[] of) { return first == row.length() ? of : kept(Rows.row(of, row.length())); }

  /** Encodes a row whose columns from ordinal `width` on are NULL. */
  public byte[] kept(UnsafeRow of, int width) {
    while (width > first && of.isNullAt(width - 1)) width--;
    byte[] bytes = columns(width).bytes(of);
    return width == first ? bytes : ByteBuffer.allocate(bytes.length + Integer.BYTES).put(bytes).putInt(width).array();
  }

  /** Decodes a row to all columns. */
  public byte[] row(byte[] stored) {
    if (first == row.length()) return stored;
    boolean more = stored.length % Long.BYTES != 0;
    int width = more ? ByteBuffer.wrap(stored).getInt(stored.length - Integer.BYTES) : first;
    byte[] bytes = more ? Arrays.copyOf(stored, stored.length - Integer.BYTES) : stored;
    if (width == row.length()) return bytes;
    UnsafeRow narrow = Rows.row(bytes, width);
    Object[] values = new Object[row.length()];
    for (int i = 0; i < width; i++) values[i] = narrow.isNullAt(i) ? null : narrow.get(i, row.apply(i).dataType());
    return columns(row.length()).bytes(new GenericInternalRow(values));
  }

  /** Returns the number of original columns. Every stored row has at least these. */
  public int first() { return first; }

  private Columns columns(int width) {
    if (columns[width] == null)
      columns[width] = normalised ? Columns.key(row, IntStream.range(0, width).toArray())
          : Columns.first(row, width);
    return columns[width];
  }
}
