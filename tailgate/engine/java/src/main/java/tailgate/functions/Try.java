package tailgate.functions;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.ConditionalExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeBlock;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.JavaCode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The value of an expression, or NULL if its evaluation throws an exception.
 *
 * <p>It is a conditional expression: Spark does not evaluate the parts of a conditional expression in
 * advance, neither as constants nor as common subexpressions. {@link #caught} has the exceptions.
 */
public final class Try extends Expression implements ConditionalExpression, Serializable {
  private static final long serialVersionUID = 1;
  private static final int CAUGHT_MAX = 100;  // exceptions that nobody has taken, for instance those of a plan's constants
  private static final ThreadLocal<List<Exception>> CAUGHT = ThreadLocal.withInitial(ArrayList::new);
  private final Expression child;

  public Try(Expression child) { this.child = child; }

  /** Returns the exceptions that were caught in this thread, for the caller to remove. */
  public static List<Exception> caught() { return CAUGHT.get(); }

  /** Called by generated code. */
  public static void caught(Exception e) {
    List<Exception> caught = CAUGHT.get();
    if (caught.size() < CAUGHT_MAX) caught.add(e);
  }

  @Override public Seq<Expression> children() { return CollectionConverters.asScala(List.of(child)).toSeq(); }

  @Override public DataType dataType() { return child.dataType(); }

  @Override public boolean nullable() { return true; }

  @Override public boolean foldable() { return child.foldable(); }

  @Override public Object eval(InternalRow row) {
    try {
      return child.eval(row);
    } catch (Exception e) {
      return null;
    }
  }

  @Override public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    ExprCode inner = child.genCode(context);
    String type = CodeGenerator.javaType(dataType()), initial = CodeGenerator.defaultValue(dataType(), false);
    String failure = context.freshName("failure");
    return code.copy(block(
        List.of("boolean ", " = true;\n" + type + " ", " = " + initial + ";\ntry {\n", "\n", " = ", ";\n", " = ",
            ";\n} catch (Exception " + failure + ") {\n  " + Try.class.getName() + ".caught(" + failure + ");\n}\n"),
        code.isNull(), code.value(), inner.code(), code.isNull(), inner.isNull(), code.value(), inner.value()),
        code.isNull(), code.value());
  }

  /** Returns generated code: the parts of text, with a value between each two. */
  private static CodeBlock block(List<String> parts, JavaCode... values) {
    return new CodeBlock(CollectionConverters.asScala(parts).toSeq(), CollectionConverters.asScala(List.of(values)).toSeq());
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
