package tailgate.functions;

import java.lang.reflect.Method;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Multiply;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.ObjectType;
import scala.jdk.javaapi.CollectionConverters;
import tailgate.functions.numeric.General;
import tailgate.functions.numeric.GeneralNumerics;

/**
 * Calls of methods that take and return {@link General}. The value of a call is a stored form, so that it can be a column. If it
 * is the argument of another call, this one gets the object instead, of which no stored form is made.
 */
final class GeneralCalls {
  private static final DataType OBJECT = new ObjectType(General.class);
  private static final String OF = "of", STORED = "stored";  // methods of General
  private static final String FIXED = "fixedToGeneral", MULTIPLY = "generalMultiply";  // methods of GeneralNumerics

  private GeneralCalls() {}

  /** Returns a call of a method whose result is a number. */
  static Expression stored(Method m, List<Expression> arguments) {
    Expression number = m.getName().equals(FIXED) ? ofDecimal(arguments.get(0)) : call(m.getDeclaringClass(), m.getName(), arguments);
    return Functions.invoke(General.class, STORED, General.TYPE, List.of(number));
  }

  private static Expression call(Class<?> owner, String method, List<Expression> arguments) {
    return evaluated(Functions.invoke(owner, method, OBJECT, arguments));
  }

  /** Returns an expression whose value is the object of a decimal. Products of objects are faster than those of decimals. */
  private static Expression ofDecimal(Expression decimal) {
    if (decimal instanceof Cast cast && cast.child() instanceof Multiply product && isExact(product, cast.dataType()))
      return call(GeneralNumerics.class, MULTIPLY, List.of(ofDecimal(product.left()), ofDecimal(product.right())));
    return call(GeneralNumerics.class, FIXED, List.of(decimal));
  }

  /** Returns whether a type has room for the product of all decimals of the operands' types. */
  private static boolean isExact(Multiply product, DataType type) {
    return type instanceof DecimalType t
        && product.left().dataType() instanceof DecimalType a && product.right().dataType() instanceof DecimalType b
        && t.scale() == a.scale() + b.scale() && t.precision() >= a.precision() + b.precision();
  }

  /** Returns an expression whose value is the object of a stored form. */
  static Expression object(Expression stored) {
    boolean isResult = stored instanceof StaticInvoke call && call.staticObject() == General.class && call.functionName().equals(STORED);
    return isResult ? stored.children().head() : call(General.class, OF, List.of(stored));
  }

  /**
   * Returns a call with constant arguments as a literal, because Spark evaluates only calls without objects in advance. A call that
   * fails stays one, and fails for each row.
   */
  private static Expression evaluated(Expression call) {
    if (!CollectionConverters.asJava(call.children()).stream().allMatch(Expression::foldable)) return call;
    try {
      return new Literal(call.eval(null), OBJECT);
    } catch (RuntimeException e) {
      return call;
    }
  }
}
