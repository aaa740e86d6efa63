package tailgate.functions;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static tailgate.Expressions.assertResults;

import org.junit.jupiter.api.Test;
import tailgate.circuit.Lab;

/** Functions that are expressions of Spark. */
class FunctionsTest {
  @Test
  void raisesForNull() {
    assertResults("tg_required(x, concat('null value in ', 'column'))",
        "a", "a",
        null, "22004 null value in column");
    assertResults("tg_required(cast(x as int), 'no') + 1", "1", "2", null, "22004 no");
    assertResults("tg_required(cast(x as decimal(10,2)), 'no')", "1", "1.00", null, "22004 no");
    assertFalse(Lab.empty(Lab.schema("x string")).selectExpr("tg_required(x, 'm') y").schema().apply(0).nullable());
  }
}
