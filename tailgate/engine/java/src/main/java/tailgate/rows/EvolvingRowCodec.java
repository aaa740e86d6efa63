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
  private final StructType schema;
  private final int first;
  private final boolean normalized;
  private final Columns[] columns;

  /** `first` is the number of original columns. `normalized`: equal rows have equal bytes. */
  public EvolvingRowCodec(StructType schema, int first, boolean normalized) {
    if (first < 0 || first > schema.length()) throw new IllegalArgumentException("first " + first + " of " + schema.length() + " columns");
    this.schema = schema;
    this.first = first;
    this.normalized = normalized;
    this.columns = new Columns[schema.length() + 1];
  }

  /** Encodes a row. Of a wider row, only the first columns are used. */
  public byte[] encode(UnsafeRow row) { return encode(row, schema.length()); }

  /** Encodes a row that is given as the bytes of all columns. */
  public byte[] encode(byte[] row) { return first == schema.length() ? row : encode(Rows.row(row, schema.length())); }

  /** Encodes a row whose columns from ordinal `width` on are NULL. */
  public byte[] encode(UnsafeRow row, int width) {
    while (width > first && row.isNullAt(width - 1)) width--;
    byte[] bytes = columns(width).bytes(row);
    return width == first ? bytes : ByteBuffer.allocate(bytes.length + Integer.BYTES).put(bytes).putInt(width).array();
  }

  /** Decodes a row to all columns. */
  public byte[] decode(byte[] stored) {
    if (first == schema.length()) return stored;
    boolean more = stored.length % Long.BYTES != 0;
    int width = more ? ByteBuffer.wrap(stored).getInt(stored.length - Integer.BYTES) : first;
    byte[] bytes = more ? Arrays.copyOf(stored, stored.length - Integer.BYTES) : stored;
    if (width == schema.length()) return bytes;
    UnsafeRow narrow = Rows.row(bytes, width);
    Object[] values = new Object[schema.length()];
    for (int i = 0; i < width; i++) values[i] = narrow.isNullAt(i) ? null : narrow.get(i, schema.apply(i).dataType());
    return columns(schema.length()).bytes(new GenericInternalRow(values));
  }

  /** Returns the number of original columns. Every stored row has at least these. */
  public int first() { return first; }

  private Columns columns(int width) {
    if (columns[width] == null)
      columns[width] = normalized ? Columns.key(schema, IntStream.range(0, width).toArray())
          : Columns.first(schema, width);
    return columns[width];
  }
}
