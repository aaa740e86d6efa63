package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;

/**
 * An exact sum of doubles: subtracting a value restores exactly the sum from before its addition.
 *
 * <p>A finite double is an integer times a power of two, and so is any sum of doubles. The sum is
 * stored in this form, with the smallest exponent seen. Infinities and NaN are counted. The value
 * is the exact sum, rounded once.
 */
final class ExactSum {
  private BigInteger mantissa = BigInteger.ZERO;  // sum = mantissa * 2^exponent
  private int exponent;
  private long infinite, negativeInfinite, nan;

  void add(double value, long weight) {
    if (Double.isNaN(value)) nan += weight;
    else if (value == Double.POSITIVE_INFINITY) infinite += weight;
    else if (value == Double.NEGATIVE_INFINITY) negativeInfinite += weight;
    else if (value != 0) {
      long bits = Double.doubleToRawLongBits(value), fraction = bits & (1L << 52) - 1;
      int power = (int) (bits >> 52 & 0x7ff);
      if (power == 0) power = 1;
      else fraction |= 1L << 52;
      int zeros = Long.numberOfTrailingZeros(fraction);
      fraction >>= zeros;
      add(BigInteger.valueOf(bits < 0 ? -fraction : fraction).multiply(BigInteger.valueOf(weight)), power - 1075 + zeros);
    }
  }

  /** Adds the exact product of two doubles, or NaN if one of them is not finite. */
  void addProduct(double a, double b, long weight) {
    if (!Double.isFinite(a) || !Double.isFinite(b)) nan += weight;
    else {
      ExactSum one = new ExactSum(), other = new ExactSum();
      one.add(a, 1);
      other.add(b, weight);
      add(one.mantissa.multiply(other.mantissa), one.exponent + other.exponent);
    }
  }

  void add(ExactSum other) {
    nan += other.nan;
    infinite += other.infinite;
    negativeInfinite += other.negativeInfinite;
    add(other.mantissa, other.exponent);
  }

  private void add(BigInteger other, int at) {
    if (other.signum() == 0) return;
    if (mantissa.signum() == 0) exponent = at;
    if (at < exponent) {
      mantissa = mantissa.shiftLeft(exponent - at);
      exponent = at;
    }
    mantissa = mantissa.add(other.shiftLeft(at - exponent));
    if (mantissa.signum() == 0) exponent = 0;
  }

  boolean isZero() { return mantissa.signum() == 0 && isFinite(); }

  boolean isFinite() { return nan == 0 && infinite == 0 && negativeInfinite == 0; }

  /** Returns the exact sum, which must be finite. */
  BigDecimal exact() {
    return exponent >= 0 ? new BigDecimal(mantissa.shiftLeft(exponent))
        : new BigDecimal(mantissa).divide(new BigDecimal(BigInteger.ONE.shiftLeft(-exponent)));
  }

  /** Returns the sum as the nearest double, infinite if it is too large. */
  double value() {
    if (nan != 0 || infinite != 0 && negativeInfinite != 0) return Double.NaN;
    if (infinite != 0) return Double.POSITIVE_INFINITY;
    if (negativeInfinite != 0) return Double.NEGATIVE_INFINITY;
    if (mantissa.bitLength() <= 53 && exponent >= -1000 && exponent <= 900) return Math.scalb((double) mantissa.longValue(), exponent);
    return exact().doubleValue();
  }

  void write(DataOutput out) throws IOException {
    byte[] bytes = mantissa.toByteArray();
    out.writeShort(bytes.length);
    out.write(bytes);
    out.writeShort(exponent);
    out.writeBoolean(!isFinite());
    if (isFinite()) return;
    out.writeLong(infinite);
    out.writeLong(negativeInfinite);
    out.writeLong(nan);
  }

  void read(DataInput in) throws IOException {
    byte[] bytes = new byte[in.readUnsignedShort()];
    in.readFully(bytes);
    mantissa = new BigInteger(bytes);
    exponent = in.readShort();
    if (!in.readBoolean()) return;
    infinite = in.readLong();
    negativeInfinite = in.readLong();
    nan = in.readLong();
  }
}
