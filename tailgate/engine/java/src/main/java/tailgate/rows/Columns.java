package tailgate.rows;

import java.io.Serializable;
import java.util.*;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A projection of a row to some of its columns. Keys are normalized, so that equal values have
 * equal bytes: -0.0 becomes 0.0, and every NaN the same NaN.
 */
public final class Columns implements Serializable {
  private static final long serialVersionUID = 1;
  public final StructType schema;
  private final StructType of;
  private final int[] ordinals;
  private final boolean normalized;
  private transient UnsafeProjection projection;

  private Columns(StructType of, int[] ordinals, boolean normalized) {
    for (int i : ordinals)
      if (i < 0 || i >= of.length())
        throw new IllegalArgumentException("no column " + i + " in " + of.catalogString());
    this.of = of;
    this.ordinals = ordinals.clone();
    this.normalized = normalized;
    this.schema = new StructType(Arrays.stream(ordinals).mapToObj(i -> of.fields()[i]).toArray(StructField[]::new));
  }

  public static Columns key(StructType of, int[] ordinals) { return new Columns(of, ordinals, true); }

  public static Columns first(StructType of, int n) { return new Columns(of, IntStream.range(0, n).toArray(), false); }

  /** Returns the projected row, valid until the next call. */
  public UnsafeRow of(InternalRow row) {
    compile();
    return projection.apply(row);
  }

  /** Compiles the projection, unless it is. */
  public void compile() {
    if (projection != null) return;
    List<Expression> columns = new ArrayList<>();
    for (int i : ordinals) {
      Expression column = new BoundReference(i, of.apply(i).dataType(), true);
      columns.add(normalized ? NormalizeFloatingNumbers$.MODULE$.normalize(column) : column);
    }
    projection = UnsafeProjection.create(CollectionConverters.asScala(columns).toSeq());
  }

  public byte[] bytes(InternalRow row) { return Rows.bytes(of(row)); }
}
