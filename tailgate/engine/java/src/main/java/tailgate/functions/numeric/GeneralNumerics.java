package tailgate.functions.numeric;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.Returns;

/**
 * Functions of general numerics. {@code tailgate/values/numeric} computes the same and names the sources.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL, and rows are stored forms of
 * {@link General}.
 */
public final class GeneralNumerics {
  private static final String KEY = "struct<f1:decimal(38,0),f2:binary>";
  private static final UTF8String QUOTE = UTF8String.fromString("\"");
  static final int GROUP = 4;  // digits
  static final int SIGNIFICANT_DIGITS = 16;  // at least, of a rounded result
  static final int DISPLAY_SCALE_MAX = 1_000;  // of a rounded result

  private GeneralNumerics() {}

  // ---- order ------------------------------------------------------------------------------------

  @Returns(KEY)
  public static InternalRow generalKey(InternalRow a) { return General.of(a).key(); }

  /** Returns a negative number, 0 or a positive number. */
  public static int generalCompare(InternalRow a, InternalRow b) { return General.of(a).compareValue(General.of(b)); }

  // ---- sums, products and quotients -------------------------------------------------------------

  public static InternalRow generalAdd(InternalRow a, InternalRow b) { return sum(General.of(a), General.of(b)).row(); }

  public static InternalRow generalSubtract(InternalRow a, InternalRow b) {
    return sum(General.of(a), negated(General.of(b))).row();
  }

  private static General sum(General a, General b) {
    if (a.isFinite() && b.isFinite()) return General.of(a.value().add(b.value()));
    if (a.isNan() || b.isNan() || a.isInfinite() && b.isInfinite() && a.head() != b.head()) return General.NAN;
    return a.isInfinite() ? a : b;
  }

  public static InternalRow generalMultiply(InternalRow a, InternalRow b) {
    return product(General.of(a), General.of(b)).row();
  }

  private static General product(General a, General b) {
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

  public static InternalRow generalDivide(InternalRow a, InternalRow b) {
    General dividend = General.of(a);
    General divisor = General.of(b);
    General special = specialQuotient(dividend, divisor);
    if (special != null) return special.row();
    int scale = quotientScale(dividend.value(), divisor.value());
    return General.of(dividend.value().divide(divisor.value(), scale, RoundingMode.HALF_UP)).row();
  }

  /** Returns the quotient if an operand is NaN or infinite, else null. Throws 22012. */
  private static General specialQuotient(General a, General b) {
    if (a.isNan() || b.isNan()) return General.NAN;
    if (b.signum() == 0) throw divisionByZero();
    if (a.isInfinite()) return b.isInfinite() ? General.NAN : infinity(a, b);
    return b.isInfinite() ? General.ZERO : null;
  }

  static SqlError divisionByZero() { return new SqlError("22012", "division by zero"); }

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
  public static InternalRow generalDiv(InternalRow a, InternalRow b) {
    General dividend = General.of(a);
    General divisor = General.of(b);
    General special = specialQuotient(dividend, divisor);
    if (special != null) return special.row();
    return General.of(dividend.value().divideToIntegralValue(divisor.value()).setScale(0, RoundingMode.DOWN)).row();
  }

  /** Returns the remainder with the sign of the dividend. */
  public static InternalRow generalRemainder(InternalRow a, InternalRow b) {
    General dividend = General.of(a);
    General divisor = General.of(b);
    if (dividend.isNan() || divisor.isNan()) return General.NAN.row();
    if (divisor.signum() == 0) throw divisionByZero();
    if (dividend.isInfinite()) return General.NAN.row();
    if (divisor.isInfinite()) return a;
    int scale = Math.max(dividend.value().scale(), divisor.value().scale());
    return General.of(dividend.value().remainder(divisor.value()).setScale(scale)).row();
  }

  public static InternalRow generalGcd(InternalRow a, InternalRow b) {
    General one = General.of(a);
    General other = General.of(b);
    return one.isFinite() && other.isFinite() ? General.of(gcd(one.value(), other.value())).row() : General.NAN.row();
  }

  private static BigDecimal gcd(BigDecimal a, BigDecimal b) {
    int scale = Math.max(a.scale(), b.scale());
    return new BigDecimal(a.setScale(scale).unscaledValue().gcd(b.setScale(scale).unscaledValue()), scale);
  }

  public static InternalRow generalLcm(InternalRow a, InternalRow b) {
    General one = General.of(a);
    General other = General.of(b);
    if (!one.isFinite() || !other.isFinite()) return General.NAN.row();
    BigDecimal divisor = gcd(one.value(), other.value());
    if (one.signum() == 0 || other.signum() == 0) return General.of(BigDecimal.valueOf(0, divisor.scale())).row();
    BigInteger units = one.value().setScale(divisor.scale()).unscaledValue();
    BigInteger factor = other.value().setScale(divisor.scale()).unscaledValue().divide(divisor.unscaledValue());
    return General.of(new BigDecimal(units.multiply(factor).abs(), divisor.scale())).row();
  }

  // ---- signs and rounding -----------------------------------------------------------------------

  public static InternalRow generalNegate(InternalRow a) { return negated(General.of(a)).row(); }

  private static General negated(General a) {
    if (a.isFinite()) return General.of(a.value().negate());
    return a.isNan() ? a : a.signum() < 0 ? General.INFINITY : General.MINUS_INFINITY;
  }

  public static InternalRow generalAbs(InternalRow a) {
    General value = General.of(a);
    return value.signum() < 0 ? negated(value).row() : a;
  }

  public static InternalRow generalSign(InternalRow a) {
    General value = General.of(a);
    return value.isNan() ? a : General.of(BigDecimal.valueOf(value.signum())).row();
  }

  public static InternalRow generalCeil(InternalRow a) { return rounded(a, 0, RoundingMode.CEILING); }

  public static InternalRow generalFloor(InternalRow a) { return rounded(a, 0, RoundingMode.FLOOR); }

  public static InternalRow generalRound(InternalRow a, int digits) { return rounded(a, digits, RoundingMode.HALF_UP); }

  public static InternalRow generalTrunc(InternalRow a, int digits) { return rounded(a, digits, RoundingMode.DOWN); }

  private static InternalRow rounded(InternalRow a, int digits, RoundingMode mode) {
    General value = General.of(a);
    if (!value.isFinite()) return a;
    int places = Math.max(-General.DIGITS_MAX - 1, Math.min(digits, General.SCALE_MAX));
    return General.of(value.value().setScale(places, mode).setScale(Math.max(places, 0))).row();
  }

  /** Returns the display scale; null for NaN and infinities. */
  @Returns("int")
  public static Integer generalScale(InternalRow a) {
    General value = General.of(a);
    return value.isFinite() ? value.value().scale() : null;
  }

  /** Returns the smallest scale that shows all digits; null for NaN and infinities. */
  @Returns("int")
  public static Integer generalMinScale(InternalRow a) {
    General value = General.of(a);
    return value.isFinite() ? minScale(value.value()) : null;
  }

  private static int minScale(BigDecimal value) {
    return value.signum() == 0 ? 0 : Math.max(0, value.stripTrailingZeros().scale());
  }

  public static InternalRow generalTrimScale(InternalRow a) {
    General value = General.of(a);
    return value.isFinite() ? General.of(value.value().setScale(minScale(value.value()))).row() : a;
  }

  public static InternalRow generalSqrt(InternalRow a) {
    General value = General.of(a);
    if (value.isNan() || value.isInfinite() && value.signum() > 0) return a;
    if (value.signum() < 0) throw new SqlError("2201F", "cannot take square root of a negative number");
    BigDecimal number = value.value();
    int scale = displayScale((weight(number) + 1) * GROUP / 2 - 1, number);
    return General.of(root(number, scale)).row();
  }

  /** Returns the square root of a value that is not negative, rounded half up to a scale. */
  static BigDecimal root(BigDecimal value, int scale) {
    // the root of 4 · value · 10^(2 · scale), cut off, is twice the root in units of the result
    BigInteger doubled = value.scaleByPowerOfTen(2 * scale).multiply(BigDecimal.valueOf(4)).toBigInteger().sqrt();
    return new BigDecimal(doubled.add(BigInteger.ONE).shiftRight(1), scale);
  }

  public static InternalRow generalExp(InternalRow a) { return GeneralPowers.exp(General.of(a)).row(); }

  public static InternalRow generalLn(InternalRow a) { return GeneralPowers.ln(General.of(a)).row(); }

  public static InternalRow generalLog10(InternalRow a) { return GeneralPowers.log10(General.of(a)).row(); }

  public static InternalRow generalLog(InternalRow base, InternalRow a) {
    return GeneralPowers.log(General.of(base), General.of(a)).row();
  }

  public static InternalRow generalPower(InternalRow a, InternalRow b) {
    return GeneralPowers.power(General.of(a), General.of(b)).row();
  }

  public static int widthBucketGeneral(InternalRow operand, InternalRow from, InternalRow to, int count) {
    General value = General.of(operand);
    General low = General.of(from);
    General high = General.of(to);
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

  // ---- casts ------------------------------------------------------------------------------------

  public static UTF8String generalToText(InternalRow a) {
    return UTF8String.fromString(General.of(a).text());
  }

  /** Returns the JSON of a number; of NaN and infinities a string. */
  public static UTF8String generalToJson(InternalRow a) {
    UTF8String text = generalToText(a);
    return General.of(a).isFinite() ? text : UTF8String.concat(QUOTE, text, QUOTE);
  }

  public static InternalRow textToGeneral(UTF8String text) { return NumberInput.toGeneral(text).row(); }

  public static InternalRow integerToGeneral(long value) { return General.of(BigDecimal.valueOf(value)).row(); }

  /** Returns a fixed numeric with its scale. */
  public static InternalRow fixedToGeneral(Decimal value) { return General.of(value.toJavaBigDecimal()).row(); }

  public static InternalRow float8ToGeneral(double value) {
    return ofDouble(value, new MathContext(15, RoundingMode.HALF_EVEN));
  }

  public static InternalRow float4ToGeneral(float value) {
    return ofDouble(value, new MathContext(6, RoundingMode.HALF_EVEN));
  }

  /** Returns a float with so many significant digits, without zeros after the decimal point at the end. */
  private static InternalRow ofDouble(double value, MathContext digits) {
    if (Double.isNaN(value)) return General.NAN.row();
    if (Double.isInfinite(value)) return (value > 0 ? General.INFINITY : General.MINUS_INFINITY).row();
    BigDecimal rounded = new BigDecimal(value).round(digits);
    return General.of(rounded.setScale(minScale(rounded))).row();
  }

  /** Returns a value as decimal(precision, scale). Throws 22003 if it is too large, NaN or infinite. */
  public static Decimal generalToFixed(InternalRow value, int precision, int scale) {
    General number = General.of(value);
    if (!number.isFinite()) throw Numbers.fieldOverflow();
    return (Decimal) Numbers.of(number.value(), DataTypes.createDecimalType(precision, scale));
  }

  public static short generalToInt2(InternalRow a) { return (Short) integer(a, "smallint", DataTypes.ShortType); }

  public static int generalToInt4(InternalRow a) { return (Integer) integer(a, "integer", DataTypes.IntegerType); }

  public static long generalToMoney(InternalRow a) {
    General value = General.of(a);
    if (value.isFinite()) return Amounts.cents(value.value());
    throw new SqlError("0A000", "cannot convert " + (value.isNan() ? "NaN" : "infinity") + " to bigint");
  }

  public static long generalToInt8(InternalRow a) { return (Long) integer(a, "bigint", DataTypes.LongType); }

  private static Object integer(InternalRow a, String typeName, DataType type) {
    General value = General.of(a);
    if (value.isFinite()) return Numbers.of(value.value(), type);
    throw new SqlError("0A000", "cannot convert " + (value.isNan() ? "NaN" : "infinity") + " to " + typeName);
  }

  public static double generalToFloat8(InternalRow a) {
    General value = General.of(a);
    if (!value.isFinite()) return value.isNan() ? Double.NaN : value.signum() * Double.POSITIVE_INFINITY;
    double number = value.value().doubleValue();
    checkRange(value.value(), number, "double precision");
    return number;
  }

  public static float generalToFloat4(InternalRow a) {
    General value = General.of(a);
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
