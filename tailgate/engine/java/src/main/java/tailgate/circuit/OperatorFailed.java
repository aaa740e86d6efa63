package tailgate.circuit;

import java.io.UncheckedIOException;
import org.apache.spark.TaskContext;
import tailgate.errors.SqlError;
import tailgate.sources.SourceStalled;
import tailgate.state.StateLost;

/**
 * An operator, or the output of a relation, threw an exception that no input should cause: a defect
 * of the engine.
 *
 * <p>It ends the tick before anything is committed. The driver then repeats the tick without the
 * views that depend on the failed part.
 */
public final class OperatorFailed extends RuntimeException {
  private static final long serialVersionUID = 1;
  private static final int MESSAGE_MAX = 500;  // characters; a message may quote a row
  private final int node, relation;

  private OperatorFailed(int node, int relation, Throwable cause) {
    super(message(cause), cause);
    this.node = node;
    this.relation = relation;
  }

  /**
   * Returns the exception to throw for one that an operator threw: an {@link OperatorFailed}, or
   * the exception itself if the operator did not cause it.
   */
  static RuntimeException of(Operator operator, Throwable e) { return of(operator.id, 0, e); }

  /**
   * Returns the exception to throw for one that occurred while the changes of a relation were
   * written.
   */
  static RuntimeException of(int relation, Throwable e) { return of(0, relation, e); }

  private static RuntimeException of(int node, int relation, Throwable e) {
    if (e instanceof RuntimeException r && (e instanceof OperatorFailed || outside(r))) return r;
    return new OperatorFailed(node, relation, e);
  }

  /**
   * Returns whether the cause is outside the engine: files, brokers, registries, lost state, or the
   * end of the task. The same tick may succeed later.
   */
  private static boolean outside(RuntimeException e) {
    TaskContext task = TaskContext.get();
    return e instanceof UncheckedIOException || e instanceof SourceStalled
        || e instanceof StateLost || task != null && task.isInterrupted();
  }

  private static String message(Throwable e) {
    String text = e instanceof SqlError ? e.getMessage() : e.toString();
    return text.length() <= MESSAGE_MAX ? text : text.substring(0, MESSAGE_MAX) + "…";
  }

  /** Returns the operator, or 0. */
  public int node() { return node; }

  /** Returns the relation whose changes could not be written, or 0. */
  public int relation() { return relation; }
}
