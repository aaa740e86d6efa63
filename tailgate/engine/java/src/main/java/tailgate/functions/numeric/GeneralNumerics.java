package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;

/**
 * Functions of general numerics. {@code tailgate/values/numeric} computes the same and names the sources.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL.
 */
public final class GeneralNumerics {
  private static final String KEY = "struct<f1:decimal(38,0),f2:binary>";
  private static final UTF8String QUOTE = UTF8String.fromString("\"");
  private static final long OVERFLOW = Long.MIN_VALUE;  // in place of a result that does not fit into a long
  private static final int SERIES_MAX = 1_000_000;  // rows of one call of generate_series()
  private static final int SERIES_DIGITS_MAX = 100_000_000;  // of all its rows
  private static final int FACTORIAL_MAX = 32_177;  // a larger one has more digits than a numeric may have
  static final int GROUP = 4;  // digits
  static final int SIGNIFICANT_DIGITS = 16;  // at least, of a rounded result
  static final int DISPLAY_SCALE_MAX = 1_000;  // of a rounded result

  private GeneralNumerics() {}

  // ---- order ------------------------------------------------------------------------------------

  @Returns(KEY)
  public static InternalRow generalKey(General a) { return a.key(); }

  /** Returns a negative number, 0 or a positive number. */
  public static int generalCompare(General a, General b) { return a.compareValue(b); }

  // ---- sums, products and quotients -------------------------------------------------------------

  public static General generalAdd(General a, General b) {
    if (a.isSmall() && b.isSmall()) {
      int scale = Math.max(a.scale(), b.scale());
      long left = shifted(a, scale);
      long right = shifted(b, scale);
      long sum = left + right;
      if (left != OVERFLOW && right != OVERFLOW && ((left ^ sum) & (right ^ sum)) >= 0) return General.small(sum, scale);
    }
    if (a.isFinite() && b.isFinite()) return General.of(a.value().add(b.value()));
    if (a.isNan() || b.isNan() || a.isInfinite() && b.isInfinite() && a.signum() != b.signum()) return General.NAN;
    return a.isInfinite() ? a : b;
  }

  public static General generalSubtract(General a, General b) { return generalAdd(a, generalNegate(b)); }

  /** Returns the units of a small number at a scale that is not below its own; OVERFLOW if they do not fit into a long. */
  private static long shifted(General a, int scale) {
    int zeros = scale - a.scale();
    if (zeros == 0) return a.units();
    return zeros > Decimal.MAX_LONG_DIGITS() ? OVERFLOW : product(a.units(), Numbers.powerOfTen(zeros));
  }

  /** Returns the product, or OVERFLOW if it does not fit into a long. */
  private static long product(long a, long b) {
    long low = a * b;
    return Math.multiplyHigh(a, b) == low >> (Long.SIZE - 1) ? low : OVERFLOW;
  }

  public static General generalMultiply(General a, General b) {
    if (a.isSmall() && b.isSmall() && a.scale() + b.scale() <= General.SCALE_MAX) {
      long product = product(a.units(), b.units());
      if (product != OVERFLOW) return General.small(product, a.scale() + b.scale());
    }
    if (a.isFinite() && b.isFinite()) {
      BigDecimal product = a.value().multiply(b.value());
      if (product.scale() > General.SCALE_MAX) product = product.setScale(General.SCALE_MAX, RoundingMode.HALF_UP);
      return General.of(product);
    }
    if (a.isNan() || b.isNan() || a.signum() == 0 || b.signum() == 0) return General.NAN;
    return infinity(a, b);
  }

  /** Returns the infinity with the sign of a product. */
  private static General infinity(General a, General b) {
    return a.signum() == b.signum() ? General.INFINITY : General.MINUS_INFINITY;
  }

  public static General generalDivide(General dividend, General divisor) {
    General special = specialQuotient(dividend, divisor);
    if (special != null) return special;
    return General.of(dividend.value().divide(divisor.value(), quotientScale(dividend, divisor), RoundingMode.HALF_UP));
  }

  /** Returns the quotient if an operand is NaN or infinite, else null. Throws 22012. */
  private static General specialQuotient(General a, General b) {
    if (a.isNan() || b.isNan()) return General.NAN;
    if (b.signum() == 0) throw divisionByZero();
    if (a.isInfinite()) return b.isInfinite() ? General.NAN : infinity(a, b);
    return b.isInfinite() ? General.ZERO : null;
  }

  static SqlError divisionByZero() { return new SqlError("22012", "division by zero"); }

  private static int quotientScale(General a, General b) {
    if (!a.isSmall() || !b.isSmall() || a.units() == OVERFLOW || b.units() == OVERFLOW) return quotientScale(a.value(), b.value());
    long left = Math.abs(a.units());
    long right = Math.abs(b.units());
    int leftPlace = place(left, a.scale());
    int rightPlace = place(right, b.scale());
    int places = Math.floorDiv(leftPlace, GROUP) - Math.floorDiv(rightPlace, GROUP);
    if (firstGroup(left, leftPlace) <= firstGroup(right, rightPlace)) places--;
    return Math.min(Math.max(SIGNIFICANT_DIGITS - places * GROUP, Math.max(a.scale(), b.scale())), DISPLAY_SCALE_MAX);
  }

  /** Returns the power of ten of the first digit, 0 for zero. */
  private static int place(long units, int scale) { return units == 0 ? 0 : Numbers.digits(units) - scale - 1; }

  private static long firstGroup(long units, int place) {
    int zeros = Math.floorMod(place, GROUP) + 1 - Numbers.digits(units);
    return zeros >= 0 ? units * Numbers.powerOfTen(zeros) : units / Numbers.powerOfTen(-zeros);
  }

  /** Returns the display scale of a / b: at least 16 significant digits. */
  static int quotientScale(BigDecimal a, BigDecimal b) {
    int places = weight(a) - weight(b);
    if (groups(a, 1) <= groups(b, 1)) places--;
    return displayScale(places * GROUP, a, b);
  }

  /** Returns the power of 10,000 of the first group of digits, 0 for zero. */
  static int weight(BigDecimal value) {
    return value.signum() == 0 ? 0 : Math.floorDiv(value.precision() - value.scale() - 1, GROUP);
  }

  /** Returns the first groups of digits as one integer. */
  static long groups(BigDecimal value, int count) {
    return value.abs().scaleByPowerOfTen(GROUP * (count - 1 - weight(value))).setScale(0, RoundingMode.DOWN).longValue();
  }

  /** Returns a scale that shows at least 16 digits of a result with so many digits before the decimal point. */
  static int displayScale(int digitsBefore, BigDecimal... arguments) {
    int scale = Math.max(SIGNIFICANT_DIGITS - digitsBefore, 0);
    for (BigDecimal argument : arguments) scale = Math.max(scale, argument.scale());
    return Math.min(scale, DISPLAY_SCALE_MAX);
  }

  /** Returns the integer part of the quotient. */
  public static General generalDiv(General dividend, General divisor) {
    General special = specialQuotient(dividend, divisor);
    if (special != null) return special;
    return General.of(dividend.value().divideToIntegralValue(divisor.value()).setScale(0, RoundingMode.DOWN));
  }

  /** Returns the remainder with the sign of the dividend. */
  public static General generalRemainder(General dividend, General divisor) {
    if (dividend.isNan() || divisor.isNan()) return General.NAN;
    if (divisor.signum() == 0) throw divisionByZero();
    if (dividend.isInfinite()) return General.NAN;
    if (divisor.isInfinite()) return dividend;
    int scale = Math.max(dividend.value().scale(), divisor.value().scale());
    return General.of(dividend.value().remainder(divisor.value()).setScale(scale));
  }

  public static General generalGcd(General one, General other) {
    return one.isFinite() && other.isFinite() ? General.of(gcd(one.value(), other.value())) : General.NAN;
  }

  private static BigDecimal gcd(BigDecimal a, BigDecimal b) {
    int scale = Math.max(a.scale(), b.scale());
    return new BigDecimal(a.setScale(scale).unscaledValue().gcd(b.setScale(scale).unscaledValue()), scale);
  }

  public static General generalLcm(General one, General other) {
    if (!one.isFinite() || !other.isFinite()) return General.NAN;
    BigDecimal divisor = gcd(one.value(), other.value());
    if (one.signum() == 0 || other.signum() == 0) return General.of(BigDecimal.valueOf(0, divisor.scale()));
    BigInteger units = one.value().setScale(divisor.scale()).unscaledValue();
    BigInteger factor = other.value().setScale(divisor.scale()).unscaledValue().divide(divisor.unscaledValue());
    return General.of(new BigDecimal(units.multiply(factor).abs(), divisor.scale()));
  }

  // ---- signs and rounding -----------------------------------------------------------------------

  public static General generalNegate(General a) {
    if (a.isSmall() && a.units() != OVERFLOW) return General.small(-a.units(), a.scale());
    if (a.isFinite()) return General.of(a.value().negate());
    return a.isNan() ? a : a.signum() < 0 ? General.INFINITY : General.MINUS_INFINITY;
  }

  public static General generalAbs(General value) { return value.signum() < 0 ? generalNegate(value) : value; }

  public static General generalSign(General value) { return value.isNan() ? value : General.small(value.signum(), 0); }

  public static General generalCeil(General a) { return rounded(a, 0, RoundingMode.CEILING); }

  public static General generalFloor(General a) { return rounded(a, 0, RoundingMode.FLOOR); }

  public static General generalRound(General a, int digits) { return rounded(a, digits, RoundingMode.HALF_UP); }

  public static General generalTrunc(General a, int digits) { return rounded(a, digits, RoundingMode.DOWN); }

  private static General rounded(General value, int digits, RoundingMode mode) {
    if (!value.isFinite()) return value;
    int places = Math.max(-General.DIGITS_MAX - 1, Math.min(digits, General.SCALE_MAX));
    return General.of(value.value().setScale(places, mode).setScale(Math.max(places, 0)));
  }

  /** Returns the display scale; null for NaN and infinities. */
  @Returns("int")
  public static Integer generalScale(General value) {
    return value.isFinite() ? value.value().scale() : null;
  }

  /** Returns the smallest scale that shows all digits; null for NaN and infinities. */
  @Returns("int")
  public static Integer generalMinScale(General value) {
    return value.isFinite() ? minScale(value.value()) : null;
  }

  private static int minScale(BigDecimal value) {
    return value.signum() == 0 ? 0 : Math.max(0, value.stripTrailingZeros().scale());
  }

  public static General generalTrimScale(General value) {
    return value.isFinite() ? General.of(value.value().setScale(minScale(value.value()))) : value;
  }

  public static General generalSqrt(General value) {
    if (value.isNan() || value.isInfinite() && value.signum() > 0) return value;
    if (value.signum() < 0) throw new SqlError("2201F", "cannot take square root of a negative number");
    BigDecimal number = value.value();
    int scale = displayScale((weight(number) + 1) * GROUP / 2 - 1, number);
    return General.of(root(number, scale));
  }

  /** Returns the square root of a value that is not negative, rounded half up to a scale. */
  static BigDecimal root(BigDecimal value, int scale) {
    // the root of 4 · value · 10^(2 · scale), cut off, is twice the root in units of the result
    BigInteger doubled = value.scaleByPowerOfTen(2 * scale).multiply(BigDecimal.valueOf(4)).toBigInteger().sqrt();
    return new BigDecimal(doubled.add(BigInteger.ONE).shiftRight(1), scale);
  }

  public static General generalExp(General a) { return GeneralPowers.exp(a); }

  public static General generalLn(General a) { return GeneralPowers.ln(a); }

  public static General generalLog10(General a) { return GeneralPowers.log10(a); }

  public static General generalLog(General base, General a) { return GeneralPowers.log(base, a); }

  public static General generalPower(General a, General b) { return GeneralPowers.power(a, b); }

  public static int widthBucketGeneral(General value, General low, General high, int count) {
    if (value.isNan() || low.isNan() || high.isNan()) {
      throw NumericFunctions.invalidBucket("operand, lower bound, and upper bound cannot be NaN");
    }
    if (!low.isFinite() || !high.isFinite()) throw NumericFunctions.invalidBucket("lower and upper bounds must be finite");
    NumericFunctions.checkBuckets(count, low.compareValue(high) == 0);
    boolean ascending = low.compareValue(high) < 0;
    if (ascending ? value.compareValue(low) < 0 : value.compareValue(low) > 0) return 0;
    if (ascending ? value.compareValue(high) >= 0 : value.compareValue(high) <= 0) return NumericFunctions.overflowBucket(count);
    BigDecimal distance = value.value().subtract(low.value()).multiply(BigDecimal.valueOf(count));
    return distance.divideToIntegralValue(high.value().subtract(low.value())).intValue() + 1;
  }

  public static General generalFactorial(long n) {
    if (n < 0) throw new SqlError("22003", "factorial of a negative number is undefined");
    if (n > FACTORIAL_MAX) throw General.overflow();
    return General.of(new BigDecimal(productOfRange(1, (int) n + 1)));
  }

  /** Returns the product of the integers below `end`. Products of numbers of similar length are fast. */
  private static BigInteger productOfRange(int first, int end) {
    if (end - first <= 1) return first < end ? BigInteger.valueOf(first) : BigInteger.ONE;
    int middle = (first + end) / 2;
    return productOfRange(first, middle).multiply(productOfRange(middle, end));
  }

  /** Returns the stored forms of the numbers from `first` to `last`. Throws 22023, 54000. */
  @Returns("array<struct<u:decimal(38,0),s:smallint,x:binary>>")
  public static ArrayData generalSeries(General first, General last, General step) {
    checkFinite("start value", first);
    checkFinite("stop value", last);
    checkFinite("step size", step);
    if (step.signum() == 0) throw new SqlError("22023", "step size cannot equal zero");
    BigDecimal distance = last.value().subtract(first.value());
    if (distance.signum() == -step.signum()) return new GenericArrayData(new Object[0]);
    if (distance.abs().compareTo(step.value().abs().multiply(BigDecimal.valueOf(SERIES_MAX))) >= 0) {
      throw new SqlError("54000", "generate_series of numerics gives more than " + SERIES_MAX + " rows");
    }
    int count = distance.divideToIntegralValue(step.value()).intValue() + 1;
    long digits = Math.max(Math.max(integerDigits(first), integerDigits(last)), 1)
        + Math.max(first.value().scale(), step.value().scale());
    if (count * digits > SERIES_DIGITS_MAX) {
      throw new SqlError("54000", "generate_series of numerics gives more than " + SERIES_DIGITS_MAX + " digits");
    }
    Object[] rows = new Object[count];
    General current = first;
    for (int i = 0; i < rows.length; i++) {
      if (i > 0) current = generalAdd(current, step);
      rows[i] = current.row();
    }
    return new GenericArrayData(rows);
  }

  private static int integerDigits(General value) { return value.value().precision() - value.value().scale(); }

  private static void checkFinite(String name, General value) {
    if (!value.isFinite()) throw new SqlError("22023", name + " cannot be " + (value.isNan() ? "NaN" : "infinity"));
  }

  // ---- casts ------------------------------------------------------------------------------------

  public static UTF8String generalToText(General a) { return UTF8String.fromString(a.text()); }

  /** Returns the JSON of a number; of NaN and infinities a string. */
  public static UTF8String generalToJson(General a) {
    UTF8String text = generalToText(a);
    return a.isFinite() ? text : UTF8String.concat(QUOTE, text, QUOTE);
  }

  public static General textToGeneral(UTF8String text) { return NumberInput.toGeneral(text); }

  public static General integerToGeneral(long value) { return General.small(value, 0); }

  /** Returns a fixed numeric with its scale. */
  public static General fixedToGeneral(Decimal value) { return General.of(value); }

  public static General float8ToGeneral(double value) {
    return ofDouble(value, new MathContext(15, RoundingMode.HALF_EVEN));
  }

  public static General float4ToGeneral(float value) {
    return ofDouble(value, new MathContext(6, RoundingMode.HALF_EVEN));
  }

  /** Returns a float with so many significant digits, without zeros after the decimal point at the end. */
  private static General ofDouble(double value, MathContext digits) {
    if (Double.isNaN(value)) return General.NAN;
    if (Double.isInfinite(value)) return value > 0 ? General.INFINITY : General.MINUS_INFINITY;
    BigDecimal rounded = new BigDecimal(value).round(digits);
    return General.of(rounded.setScale(minScale(rounded)));
  }

  /** Returns a value as decimal(precision, scale). Throws 22003 if it is too large, NaN or infinite. */
  public static Decimal generalToFixed(General number, int precision, int scale) {
    if (!number.isFinite()) throw Numbers.fieldOverflow();
    return (Decimal) Numbers.of(number.value(), DataTypes.createDecimalType(precision, scale));
  }

  public static short generalToInt2(General a) { return (Short) integer(a, "smallint", DataTypes.ShortType); }

  public static int generalToInt4(General a) { return (Integer) integer(a, "integer", DataTypes.IntegerType); }

  public static long generalToMoney(General value) {
    if (value.isFinite()) return Amounts.cents(value.value());
    throw new SqlError("0A000", "cannot convert " + (value.isNan() ? "NaN" : "infinity") + " to bigint");
  }

  public static long generalToInt8(General a) { return (Long) integer(a, "bigint", DataTypes.LongType); }

  private static Object integer(General value, String typeName, DataType type) {
    if (value.isFinite()) return Numbers.of(value.value(), type);
    throw new SqlError("0A000", "cannot convert " + (value.isNan() ? "NaN" : "infinity") + " to " + typeName);
  }

  public static double generalToFloat8(General value) {
    if (!value.isFinite()) return value.isNan() ? Double.NaN : value.signum() * Double.POSITIVE_INFINITY;
    double number = value.value().doubleValue();
    checkRange(value.value(), number, "double precision");
    return number;
  }

  public static float generalToFloat4(General value) {
    if (!value.isFinite()) return value.isNan() ? Float.NaN : value.signum() * Float.POSITIVE_INFINITY;
    float number = value.value().floatValue();
    checkRange(value.value(), number, "real");
    return number;
  }

  private static void checkRange(BigDecimal value, double number, String typeName) {
    if (Double.isInfinite(number) || number == 0 && value.signum() != 0) {
      throw new SqlError("22003", "\"" + value.toPlainString() + "\" is out of range for type " + typeName);
    }
  }
}
