package tailgate.functions.range;

import java.util.Arrays;

/**
 * A bound of a range.
 *
 * @param key its stored form; the order of bounds is that of these bytes
 * @param scale the display scale of a numeric, in 2 bytes
 */
record Bound(byte[] key, byte[] scale) implements Comparable<Bound> {
  static final byte FINITE = 1;
  static final byte EXCLUSIVE_UPPER = 0;
  static final byte INCLUSIVE = 1;
  static final byte EXCLUSIVE_LOWER = 2;
  static final byte[] NO_SCALE = {0, 0};
  static final Bound INFINITE_LOWER = new Bound(new byte[] {0}, NO_SCALE);
  static final Bound INFINITE_UPPER = new Bound(new byte[] {2}, NO_SCALE);

  boolean isInfinite() { return key[0] != FINITE; }

  boolean isInclusive() { return !isInfinite() && key[key.length - 1] == INCLUSIVE; }

  /** Compares the values of two finite bounds. */
  int compareValue(Bound other) {
    return Arrays.compareUnsigned(key, 1, key.length - 1, other.key, 1, other.key.length - 1);
  }

  @Override public int compareTo(Bound other) { return Arrays.compareUnsigned(key, other.key); }

  /** Returns the bound at which the values on the other side begin or end. {@code side}: that of an exclusive bound. */
  Bound inverted(byte side) {
    byte[] inverted = key.clone();
    inverted[key.length - 1] = isInclusive() ? side : INCLUSIVE;
    return new Bound(inverted, scale);
  }
}
