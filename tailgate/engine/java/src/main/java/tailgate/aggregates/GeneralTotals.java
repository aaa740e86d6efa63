package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import tailgate.functions.numeric.General;
import tailgate.functions.numeric.GeneralMoments;

/**
 * Sums, averages and variances of general numerics: how many values have each display scale, how many
 * are NaN and each infinity, and the exact sums of the others and of their squares.
 *
 * <p>The display scale of a sum is the largest one of its values, as in PostgreSQL.
 */
final class GeneralTotals extends Counts {
  private static final String[] FUNCTIONS = {"sum", "avg", "var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev"};
  private final String function;
  private final boolean variance;
  private final TreeMap<Integer, Long> scales = new TreeMap<>();  // how many values have a scale; never zero
  private long nans;
  private long infinities;
  private long negativeInfinities;
  private BigDecimal sum = BigDecimal.ZERO;
  private BigDecimal squares = BigDecimal.ZERO;
  // small numbers of one scale that are not in `scales` and `sum` yet; not used for variances
  private int recentScale;
  private long recentCount;
  private long recentUnits;

  GeneralTotals(AggregateCall call) {
    super(call.columns[0]);
    this.function = call.function;
    this.variance = !call.is("sum", "avg");
  }

  /** Returns whether a call is the sum, the average or a variance of general numerics. */
  static boolean fits(AggregateCall call, StructType row) {
    if (!call.is(FUNCTIONS) || !call.type(row, 0).sameType(General.TYPE)) return false;
    if (!call.result.sameType(General.TYPE)) throw none(call);
    return true;
  }

  @Override public void add(InternalRow row, long weight) {
    if (row.isNullAt(column)) return;
    n += weight;
    General number = General.of(row.getStruct(column, General.FIELDS));
    if (number.isSmall() && !variance && addSmall(number, weight)) return;
    if (number.isNan()) {
      nans += weight;
    } else if (!number.isFinite()) {
      if (number.signum() > 0) infinities += weight;
      else negativeInfinities += weight;
    } else {
      count(number.value().scale(), weight);
      BigDecimal times = number.value().multiply(BigDecimal.valueOf(weight));
      sum = sum.add(times);
      if (variance) squares = squares.add(times.multiply(number.value()));
    }
  }

  /** Adds a small number to the recent ones. Returns false, and adds nothing, if their sum would not fit into a long. */
  private boolean addSmall(General number, long weight) {
    if (number.scale() != recentScale) {
      flush();
      recentScale = number.scale();
    }
    long times = number.units() * weight, total = recentUnits + times;
    boolean fits = Math.multiplyHigh(number.units(), weight) == times >> (Long.SIZE - 1) && ((recentUnits ^ total) & (times ^ total)) >= 0;
    if (!fits) return false;
    recentUnits = total;
    recentCount += weight;
    return true;
  }

  private void flush() {
    if (recentCount != 0) count(recentScale, recentCount);
    if (recentUnits != 0) sum = sum.add(BigDecimal.valueOf(recentUnits, recentScale));
    recentCount = recentUnits = 0;
  }

  private void count(int scale, long weight) {
    scales.merge(scale, weight, (a, b) -> a + b == 0 ? null : Long.valueOf(a + b));
  }

  @Override public void merge(Accumulator change, GroupValues values) {
    super.merge(change, values);
    GeneralTotals other = (GeneralTotals) change;
    flush();
    other.flush();
    nans += other.nans;
    infinities += other.infinities;
    negativeInfinities += other.negativeInfinities;
    other.scales.forEach(this::count);
    sum = sum.add(other.sum);
    squares = squares.add(other.squares);
  }

  @Override public boolean isZero() {
    flush();
    return n == 0 && nans == 0 && infinities == 0 && negativeInfinities == 0 && scales.isEmpty()
        && sum.signum() == 0 && squares.signum() == 0;
  }

  @Override public Object result(long rows, GroupValues values) {
    flush();
    int scale = scales.isEmpty() ? 0 : scales.lastKey();
    if (variance) {
      boolean finite = nans == 0 && infinities == 0 && negativeInfinities == 0;
      return GeneralMoments.variance(function, n, atScale(sum, scale), atScale(squares, 2 * scale), finite);
    }
    if (n == 0) return null;
    if (nans != 0 || infinities != 0 && negativeInfinities != 0) return General.NAN.row();
    if (infinities != 0 || negativeInfinities != 0) return (infinities != 0 ? General.INFINITY : General.MINUS_INFINITY).row();
    BigDecimal total = atScale(sum, scale);
    return function.equals("avg") ? GeneralMoments.average(n, total) : General.of(total).row();
  }

  /**
   * Returns the value with a display scale. Digits are lost only while weights are negative, before the last
   * piece of a history: then the scale of a value may be missing although the value is in the sum.
   */
  private static BigDecimal atScale(BigDecimal value, int scale) {
    return value.setScale(scale, RoundingMode.DOWN);
  }

  @Override public void write(DataOutput out) throws IOException {
    flush();
    super.write(out);
    out.writeLong(nans);
    out.writeLong(infinities);
    out.writeLong(negativeInfinities);
    out.writeShort(scales.size());
    for (Map.Entry<Integer, Long> scale : scales.entrySet()) {
      out.writeShort(scale.getKey());
      out.writeLong(scale.getValue());
    }
    write(sum, out);
    if (variance) write(squares, out);
  }

  private static void write(BigDecimal value, DataOutput out) throws IOException {
    byte[] bytes = value.unscaledValue().toByteArray();
    out.writeInt(value.scale());
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  @Override public void read(DataInput in) throws IOException {
    super.read(in);
    nans = in.readLong();
    infinities = in.readLong();
    negativeInfinities = in.readLong();
    for (int left = in.readUnsignedShort(); left > 0; left--) scales.put(in.readUnsignedShort(), in.readLong());
    sum = number(in);
    if (variance) squares = number(in);
  }

  private static BigDecimal number(DataInput in) throws IOException {
    int scale = in.readInt();
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    return new BigDecimal(new BigInteger(bytes), scale);
  }
}
