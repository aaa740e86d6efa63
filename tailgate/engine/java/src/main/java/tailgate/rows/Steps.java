package tailgate.rows;

import java.io.Serializable;
import java.util.*;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.codegen.GeneratePredicate;
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;
import tailgate.errors.SparkErrors;
import tailgate.errors.SqlError;

/**
 * Δ(linear(A)) = linear(ΔA): a chain of filters, projections and array expansions, applied row by
 * row. Weights do not change.
 *
 * <p>It is defined by a DataFrame over an empty relation. The constructor extracts its analysed and
 * optimised Catalyst expressions. They are serialized with the circuit and run as generated code,
 * compiled when the first row arrives. No planning is needed per tick.
 */
public final class Steps implements Serializable {
  private static final long serialVersionUID = 1;

  /**
   * A filter, a projection, or an expansion of an array: each element's position and value are
   * appended to the columns in `project`. The other fields are null.
   */
  private record Step(Expression filter, List<Expression> project, Expression array, boolean outer) implements Serializable {}

  /** Projections of the columns to keep and of the array. */
  private record Explode(UnsafeProjection kept, UnsafeProjection array, DataType element, boolean outer) {}

  /** Columns of the input and the output. The input is null, since unknown, if no row passes. */
  public final StructType input, output;
  private final List<Step> steps = new ArrayList<>();
  private boolean nothing;
  /**
   * Whether a row may become several rows. Then {@link #all} must be called, otherwise
   * {@link #apply}.
   */
  public boolean expands;
  private transient Object[] compiled;
  private final transient Dataset<Row> shape;  // identifies equal steps of two circuits
  private transient int step;          // the current step, for `error`
  private transient InternalRow at;

  public Steps(Dataset<Row> shape) {
    this.shape = shape;
    LogicalPlan plan = optimized(shape);
    output = shape.schema();
    LogicalPlan leaf = add(plan);
    input = nothing ? null : leaf.schema();
    if (!nothing && (steps.isEmpty() || (steps.get(steps.size() - 1).project == null || expands))) steps.add(new Step(null, bind(plan.output(), plan.output()), null, false));
  }

  /** Returns the optimised plan. The optimizer evaluates constant expressions, which may fail. */
  private static LogicalPlan optimized(Dataset<Row> shape) {
    try {
      return ((org.apache.spark.sql.classic.Dataset<Row>) shape).queryExecution().optimizedPlan();
    } catch (RuntimeException e) {
      if (e instanceof org.apache.spark.SparkThrowable || e instanceof SqlError) throw SparkErrors.of(e);
      throw e;
    }
  }

  /** Adds the steps of a plan. Returns the relation at its start. */
  private LogicalPlan add(LogicalPlan plan) {
    if (plan.children().isEmpty()) {
      nothing |= plan instanceof LocalRelation;  // the optimizer's replacement for a filter that is never true
      return plan;
    }
    LogicalPlan child = plan.children().head(), leaf = add(child);
    if (plan instanceof Project p) steps.add(new Step(null, bind(p.projectList(), child.output()), null, false));
    else if (plan instanceof Filter f) steps.add(new Step(bind(f.condition(), CollectionConverters.asJava(child.output())), null, null, false));
    else if (plan instanceof Generate g && g.generator() instanceof PosExplode e) {
      expands = true;
      steps.add(new Step(null, bind(g.requiredChildOutput(), child.output()), bind(e.child(), CollectionConverters.asJava(child.output())), g.outer()));
    } else throw new IllegalArgumentException("not a filter, projection or posexplode: " + plan);
    return leaf;
  }

  private static List<Expression> bind(Seq<?> expressions, Seq<Attribute> input) {
    List<Expression> bound = new ArrayList<>();
    for (Object e : CollectionConverters.asJava(expressions)) bound.add(bind((Expression) e, CollectionConverters.asJava(input)));
    return bound;
  }

  private static Expression bind(Expression expression, List<Attribute> input) {
    if (!expression.deterministic()) throw new IllegalArgumentException("not deterministic: " + expression);
    return expression.transform(new scala.runtime.AbstractPartialFunction<Expression, Expression>() {
      @Override public boolean isDefinedAt(Expression e) { return e instanceof AttributeReference; }

      @SuppressWarnings("unchecked")
      @Override public <A extends Expression, B> B applyOrElse(A e, scala.Function1<A, B> other) {
        if (e instanceof AttributeReference a)
          for (int i = 0; i < input.size(); i++)
            if (input.get(i).exprId().equals(a.exprId())) return (B) new BoundReference(i, a.dataType(), a.nullable());
        return other.apply(e);
      }
    });
  }

  /**
   * Returns the resulting row, valid until the next call, or null if a filter drops it. Throws the
   * errors of expressions.
   */
  public UnsafeRow apply(InternalRow row) {
    if (nothing) return null;
    compile();
    at = row;
    try {
      for (step = 0; step < compiled.length; step++) {
        if (compiled[step] instanceof BasePredicate filter) {
          if (!filter.eval(at)) return null;
        } else at = ((UnsafeProjection) compiled[step]).apply(at);
      }
    } catch (StackOverflowError e) {
      throw SqlError.tooDeep();
    }
    return (UnsafeRow) at;
  }

  /**
   * Returns the resulting rows, none if a filter drops them. If an expression throws, there are no
   * rows at all.
   */
  public List<UnsafeRow> all(InternalRow row) {
    List<UnsafeRow> rows = new ArrayList<>();
    if (nothing) return rows;
    compile();
    try {
      expand(row, 0, rows);
    } catch (StackOverflowError e) {
      throw SqlError.tooDeep();
    }
    return rows;
  }

  private void expand(InternalRow row, int from, List<UnsafeRow> rows) {
    at = row;
    for (step = from; step < compiled.length; step++) {
      if (compiled[step] instanceof BasePredicate filter) {
        if (!filter.eval(at)) return;
      } else if (compiled[step] instanceof UnsafeProjection projection) at = projection.apply(at);
      else {
        explode((Explode) compiled[step], step + 1, rows);
        return;
      }
    }
    rows.add(((UnsafeRow) at).copy());
  }

  private void explode(Explode by, int next, List<UnsafeRow> rows) {
    UnsafeRow array = by.array.apply(at), kept = by.kept.apply(at).copy();
    ArrayData elements = array.isNullAt(0) ? null : array.getArray(0).copy();
    int n = elements == null ? 0 : elements.numElements();
    if (n == 0 && by.outer) expand(new JoinedRow(kept, new GenericInternalRow(2)), next, rows);
    for (int i = 0; i < n; i++)
      expand(new JoinedRow(kept, new GenericInternalRow(new Object[] {i, elements.isNullAt(i) ? null : elements.get(i, by.element)})), next, rows);
  }

  /**
   * Takes the compiled expressions of other steps if they are of the same DataFrame. The others must
   * not be used any more when these are.
   */
  public void reuse(Steps other) {
    if (compiled == null && other.shape != null && other.shape == shape) compiled = other.compiled;
  }

  /** Compiles the expressions, unless they are. */
  public void compile() {
    if (compiled == null)
      compiled = steps.stream().map(s -> s.filter != null ? predicate(s.filter) : s.array == null ? projection(s.project)
          : new Explode(projection(s.project), projection(List.of(s.array)), ((ArrayType) s.array.dataType()).elementType(), s.outer)).toArray();
  }

  /**
   * Converts the exception that `apply` or `all` has just thrown to the error of PostgreSQL. The
   * type of an overflow is found by evaluating the expressions again, one by one.
   */
  public SqlError error(Exception e) {
    if (!SparkErrors.isOverflow(e)) return SparkErrors.of(e);
    Step failed = steps.get(step);
    List<Expression> tried = failed.filter != null ? List.of(failed.filter) : failed.array != null ? List.of(failed.array) : failed.project;
    return SparkErrors.overflow(tried.stream().filter(this::overflows).findFirst().map(this::overflown).orElse(null));
  }

  private boolean overflows(Expression expression) {
    try {
      expression.eval(at);
      return false;
    } catch (RuntimeException e) {
      return SparkErrors.isOverflow(e);
    }
  }

  /**
   * Returns the type of the innermost expression that overflows; of a conditional, only evaluated
   * parts are considered.
   */
  private DataType overflown(Expression expression) {
    for (Expression part : evaluated(expression)) if (overflows(part)) return overflown(part);
    return expression.dataType();
  }

  private List<Expression> evaluated(Expression expression) {
    List<Expression> parts = CollectionConverters.asJava(expression.children());
    if (!(expression instanceof If || expression instanceof CaseWhen)) return parts;
    for (int i = 0; i + 1 < parts.size(); i += 2) {  // condition, value, …, otherwise
      if (overflows(parts.get(i))) return List.of(parts.get(i));
      if (Boolean.TRUE.equals(parts.get(i).eval(at))) return List.of(parts.get(i + 1));
    }
    return parts.subList(parts.size() - 1, parts.size());
  }

  private static UnsafeProjection projection(List<Expression> columns) {
    scala.collection.immutable.Seq<Expression> all = CollectionConverters.asScala(columns).toSeq();
    if (columns.stream().noneMatch(Steps::hasShortcut)) return UnsafeProjection.create(all);
    try {
      return GenerateUnsafeProjection.generate(all, false);
    } catch (Exception e) {  // the code is too long
      return InterpretedUnsafeProjection.createProjection(all);
    }
  }

  private static BasePredicate predicate(Expression condition) {
    if (!hasShortcut(condition)) return Predicate.create(condition);
    try {
      return GeneratePredicate.generate(condition, false);
    } catch (Exception e) {
      return new InterpretedPredicate(condition);
    }
  }

  /**
   * Returns whether an expression has AND or OR. Generated code would compute parts that occur twice in their arguments first, also
   * for rows for which an earlier argument decides and the part fails.
   */
  private static boolean hasShortcut(Expression expression) {
    return expression.exists(part -> part instanceof And || part instanceof Or);
  }
}
