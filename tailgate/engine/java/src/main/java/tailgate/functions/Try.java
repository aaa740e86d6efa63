package tailgate.functions;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.ConditionalExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.TryEval;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The value of an expression, or NULL if its evaluation throws an exception.
 *
 * <p>It is Spark's {@link TryEval} as a conditional expression: Spark does not evaluate the parts of
 * a conditional expression in advance, neither as constants nor as common subexpressions.
 */
public final class Try extends Expression implements ConditionalExpression, Serializable {
  private static final long serialVersionUID = 1;
  private final Expression child;

  public Try(Expression child) { this.child = child; }

  @Override public Seq<Expression> children() { return CollectionConverters.asScala(List.of(child)).toSeq(); }

  @Override public DataType dataType() { return child.dataType(); }

  @Override public boolean nullable() { return true; }

  @Override public boolean foldable() { return child.foldable(); }

  @Override public Object eval(InternalRow row) { return new TryEval(child).eval(row); }

  @Override public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return new TryEval(child).doGenCode(context, code);
  }

  @Override public Expression withNewChildrenInternal(IndexedSeq<Expression> children) { return new Try(children.head()); }

  @Override public Seq<Expression> alwaysEvaluatedInputs() { return none(); }

  @Override public ConditionalExpression withNewAlwaysEvaluatedInputs(Seq<Expression> inputs) { return this; }

  @Override public Seq<Seq<Expression>> branchGroups() { return none(); }

  private static <T> Seq<T> none() { return CollectionConverters.asScala(List.<T>of()).toSeq(); }

  @Override public int productArity() { return 1; }

  @Override public Object productElement(int index) { return child; }

  @Override public boolean canEqual(Object other) { return other instanceof Try; }

  @Override public boolean equals(Object other) { return other instanceof Try t && child.equals(t.child); }

  @Override public int hashCode() { return 31 * child.hashCode() + 1; }
}
