package tailgate.functions;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static tailgate.Expressions.assertResults;

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import tailgate.circuit.Lab;
import tailgate.rows.Steps;

class TryTest {
  @Test void anErrorIsNull() {
    assertResults("tg_try(tg_text_to_int4(x))", "12", "12", "a", "NULL", "99999999999", "NULL");
    assertResults("tg_try(1 / tg_text_to_int4(x))", "0", "NULL", "2", "0.5", "a", "NULL");
    assertResults("tg_try(2147483647 + cast(x as int))", "0", "2147483647", "1", "NULL");
    assertResults("tg_try(raise_error(concat('\\u000122012', x)))", "a", "NULL");
    assertResults("coalesce(tg_try(tg_text_to_date(x)), date'2020-01-01')", "2021-02-30", "2020-01-01", "2021-02-03", "2021-02-03");
  }

  @Test void errorsOutsideAreRaised() {
    assertResults("tg_text_to_int4(x) + tg_try(cast(x as int))", "1", "2",
        "a", "22P02 invalid input syntax for type integer: \"a\"");
  }

  @Test void constantsAreNotEvaluatedInAdvance() {
    assertResults("tg_try(1 div 0)", "a", "NULL");
    assertResults("tg_try(concat(x, cast(1 div 0 as string)))", "a", "NULL");
    assertResults("tg_try(if(x = 'b', 1 div 0, 1))", "a", "1", "b", "NULL");
  }

  @Test void commonExpressionsAreNotEvaluatedInAdvance() {
    Steps steps = new Steps(Lab.empty(Lab.schema("x string"))
        .selectExpr("tg_try(tg_text_to_int4(x))", "tg_try(tg_text_to_int4(x) + 1)", "length(x)"));
    UnsafeRow row = steps.apply(row("abc"));
    assertEquals(3, row.getInt(2));
    assertEquals(true, row.isNullAt(0) && row.isNullAt(1));
    assertEquals(8, steps.apply(row("7")).getInt(1));
    Steps mixed = new Steps(Lab.empty(Lab.schema("x string")).selectExpr("tg_try(tg_text_to_int4(x))", "tg_text_to_int4(x)"));
    assertThrows(RuntimeException.class, () -> mixed.apply(row("abc")));
  }

  private static GenericInternalRow row(String x) { return new GenericInternalRow(new Object[] {UTF8String.fromString(x)}); }
}
