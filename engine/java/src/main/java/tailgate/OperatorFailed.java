package tailgate;

import java.io.UncheckedIOException;
import org.apache.spark.TaskContext;
import tailgate.errors.SqlError;

/**
 * An operator, or the output of a relation, threw an exception that no input should cause: a defect of the engine.
 *
 * <p>It ends the tick before anything is committed. The driver then runs the tick again without the views that depend on what failed.
 */
public final class OperatorFailed extends RuntimeException {
  private static final long serialVersionUID = 1;
  private static final int MESSAGE_MAX = 500;  // characters: a message may quote a row
  private final int node, relation;

  private OperatorFailed(int node, int relation, Throwable cause) {
    super(message(cause), cause);
    this.node = node;
    this.relation = relation;
  }

  /** What to throw for an exception of an operator: an {@link OperatorFailed}, or the exception itself if the operator is not to blame. */
  static RuntimeException of(Operator operator, Throwable e) { return of(operator.id, 0, e); }

  /** What to throw for an exception that writing a relation's changes caused. */
  static RuntimeException of(int relation, Throwable e) { return of(0, relation, e); }

  private static RuntimeException of(int node, int relation, Throwable e) {
    if (e instanceof RuntimeException r && (e instanceof OperatorFailed || outside(r))) return r;
    return new OperatorFailed(node, relation, e);
  }

  /** Files, brokers, registries and state that is lost, and the end of the task: the same tick may succeed later. */
  private static boolean outside(RuntimeException e) {
    TaskContext task = TaskContext.get();
    return e instanceof UncheckedIOException || e instanceof SourceStalled || e instanceof StateLost || task != null && task.isInterrupted();
  }

  private static String message(Throwable e) {
    String text = e instanceof SqlError ? e.getMessage() : e.toString();
    return text.length() <= MESSAGE_MAX ? text : text.substring(0, MESSAGE_MAX) + "…";
  }

  /** The operator, or 0. */
  public int node() { return node; }

  /** The relation whose changes could not be written, or 0. */
  public int relation() { return relation; }
}
