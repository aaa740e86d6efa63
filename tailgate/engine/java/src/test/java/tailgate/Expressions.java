package tailgate;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.circuit.Lab;
import tailgate.errors.SqlError;
import tailgate.rows.Steps;

/**
 * Spark SQL expressions over one text column {@code x}, evaluated by generated code as the edges of
 * a circuit are.
 */
public final class Expressions {
  private static final StructType ROW = Lab.schema("x string");
  private static final Map<String, Steps> COMPILED = new HashMap<>();

  private Expressions() {}

  /**
   * Asserts the results of an expression.
   *
   * @param pairs values of {@code x}, each followed by the expected result, which is from PostgreSQL
   *     15: a text, {@code NULL}, or an error's SQLSTATE and message
   */
  public static void assertResults(String expression, String... pairs) {
    for (int i = 0; i < pairs.length; i += 2) {
      assertEquals(pairs[i + 1], evaluate(expression, pairs[i]), expression + " of " + pairs[i]);
    }
  }

  /** Returns the result as a text, {@code NULL}, or an error's SQLSTATE and message. */
  public static String evaluate(String expression, String x) {
    Steps linear = COMPILED.computeIfAbsent(
        expression, e -> new Steps(Lab.empty(ROW).selectExpr("cast(" + e + " as string)")));
    try {
      UnsafeRow row = linear.apply(new GenericInternalRow(new Object[] {UTF8String.fromString(x)}));
      return row.isNullAt(0) ? "NULL" : row.getString(0);
    } catch (RuntimeException e) {
      SqlError error = linear.error(e);
      return error.sqlstate() + " " + error.getMessage();
    }
  }
}
