package tailgate.functions.numeric;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.math.BigDecimal;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.Test;
import tailgate.errors.SqlError;

/** Numbers of 64 bits, compared with those of any size. */
class NumbersTest {
  private static final long[] VALUES = {
    0, 1, -1, 5, 49, 50, -50, 99_999, 100_000, -99_999, -100_000, 999_999_999_999_999_999L, 1_000_000_000_000_000_000L,
    -1_000_000_000_000_000_000L, Integer.MAX_VALUE, Integer.MAX_VALUE + 1L, Long.MAX_VALUE, Long.MIN_VALUE
  };

  @Test void numbersOf64BitsAreLikeOthers() {
    List<DataType> types = List.of(DataTypes.LongType, DataTypes.IntegerType, DataTypes.ShortType, DataTypes.DoubleType,
        DataTypes.createDecimalType(5, 2), DataTypes.createDecimalType(5, 0), DataTypes.createDecimalType(18, 2),
        DataTypes.createDecimalType(20, 2), DataTypes.createDecimalType(38, 2), DataTypes.createDecimalType(38, 0));
    for (DataType type : types)
      for (int digits : new int[] {0, 2, 3})
        for (long value : VALUES) {
          String what = value + "e-" + digits + " as " + type.catalogString();
          assertEquals(text(() -> Numbers.of(BigDecimal.valueOf(value, digits), type)), text(() -> Numbers.of(value, digits, type)), what);
        }
  }

  private interface Call {
    Object call();
  }

  private static String text(Call call) {
    try {
      return call.call().toString();
    } catch (SqlError e) {
      return e.sqlstate() + " " + e.getMessage();
    }
  }
}
