package tailgate.rows;

import java.io.ByteArrayOutputStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.StructType;
import tailgate.rows.SortKey;

/**
 * Encodes some columns of a row as bytes whose unsigned order is that of the columns, each with its
 * direction and its order of NULLs, and decodes them.
 *
 * <p>No encoding of a column is a prefix of another one. Rows therefore have equal encodings of
 * their first columns if and only if these columns are equal.
 */
public final class SortKeyCodec {
  private static final int NULL_FIRST = 0, VALUE = 1, NULL_LAST = 2;
  private final SortKey[] keys;
  private final OrderedCodec[] values;

  public SortKeyCodec(StructType row, SortKey... keys) { this(row, false, keys); }

  private SortKeyCodec(StructType row, boolean exact, SortKey... keys) {
    this.keys = keys;
    this.values = new OrderedCodec[keys.length];
    for (int i = 0; i < keys.length; i++) values[i] = new OrderedCodec(row.apply(keys[i].column()).dataType(), keys[i].descending(), exact);
  }

  /** Returns an order for columns that must be decoded exactly ({@link OrderedCodec}). */
  public static SortKeyCodec exact(StructType row, int... columns) { return new SortKeyCodec(row, true, ascending(columns)); }

  /** Returns sort keys for ascending columns, NULLs last. */
  public static SortKey[] ascending(int... columns) {
    SortKey[] keys = new SortKey[columns.length];
    for (int i = 0; i < keys.length; i++) keys[i] = new SortKey(columns[i], false, false);
    return keys;
  }

  static SortKey[] then(SortKey[] first, SortKey... more) {
    SortKey[] all = java.util.Arrays.copyOf(first, first.length + more.length);
    System.arraycopy(more, 0, all, first.length, more.length);
    return all;
  }

  public byte[] encode(SpecializedGetters row) {
    ByteArrayOutputStream out = new ByteArrayOutputStream(32);
    for (int i = 0; i < keys.length; i++) {
      boolean none = row.isNullAt(keys[i].column());
      out.write(!none ? VALUE : keys[i].nullsFirst() ? NULL_FIRST : NULL_LAST);
      if (!none) out.writeBytes(values[i].encode(row, keys[i].column()));
    }
    return out.toByteArray();
  }

  /** Decodes the columns at the start of these bytes, in the order of the keys. */
  public Object[] decode(byte[] bytes) { return decode(new OrderedCodec.Reader(bytes)); }

  public Object[] decode(OrderedCodec.Reader in) {
    Object[] columns = new Object[keys.length];
    for (int i = 0; i < keys.length; i++) if (in.plain() == VALUE) columns[i] = values[i].decode(in);
    return columns;
  }

  public static boolean begins(byte[] bytes, byte[] with) {
    return bytes.length >= with.length
        && java.util.Arrays.equals(bytes, 0, with.length, with, 0, with.length);
  }
}
