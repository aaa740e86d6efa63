package tailgate.functions.numeric;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.math.BigDecimal;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** Numbers whose unscaled value is a long, compared with those of any size. */
class GeneralTest {
  private static final long[] UNITS = {
    0, 1, -1, 127, 128, -128, -129, 255, 256, 32_767, -32_769, 99_999, 1L << 55, -(1L << 55) - 1, 999_999_999_999_999_999L,
    1_000_000_000_000_000_000L, Long.MAX_VALUE, Long.MIN_VALUE + 1, Long.MIN_VALUE
  };
  private static final int[] SCALES = {0, 1, 2, 16, 19, 1_000, General.SCALE_MAX};

  @Test void storedFormsHaveTheBytesThatSparkWrites() {
    UnsafeProjection columns = UnsafeProjection.create(new StructType().add("c", General.TYPE));
    for (long units : UNITS)
      for (int scale : SCALES) {
        GenericInternalRow expected = new GenericInternalRow(General.FIELDS);
        expected.update(0, Decimal.apply(BigDecimal.valueOf(units), 38, 0));
        expected.update(1, (short) scale);
        InternalRow stored = assertInstanceOf(UnsafeRow.class, General.small(units, scale).row());
        UnsafeRow written = columns.apply(new GenericInternalRow(new Object[] {expected})).copy();
        assertEquals(written, columns.apply(new GenericInternalRow(new Object[] {stored})));
        for (InternalRow row : new InternalRow[] {stored, expected, written.getStruct(0, General.FIELDS)})
          assertEquals(BigDecimal.valueOf(units, scale), General.of(row).value());
      }
  }

  @Test void arithmeticOfLongsIsThatOfNumbersOfAnySize() {
    for (long left : UNITS)
      for (long right : UNITS)
        for (int scale : SCALES)
          for (int other : SCALES) {
            General a = General.small(left, scale), b = General.small(right, other);
            assertEquals(a.value().add(b.value()), GeneralNumerics.generalAdd(a, b).value());
            assertEquals(a.value().subtract(b.value()), GeneralNumerics.generalSubtract(a, b).value());
            if (right != 0) {
              BigDecimal quotient = GeneralNumerics.generalDivide(a, b).value();
              assertEquals(GeneralNumerics.quotientScale(a.value(), b.value()), quotient.scale());
            }
            assertEquals(a.value().compareTo(b.value()), Integer.signum(a.compareValue(b)));
            if (scale + other <= General.SCALE_MAX)
              assertEquals(a.value().multiply(b.value()), GeneralNumerics.generalMultiply(a, b).value());
          }
  }
}
