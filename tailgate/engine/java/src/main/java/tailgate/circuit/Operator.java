package tailgate.circuit;

import java.util.List;
import java.util.function.LongUnaryOperator;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import tailgate.errors.SqlError;
import tailgate.rows.Change;
import tailgate.rows.Columns;
import tailgate.state.State;

/**
 * A stateful step of a circuit: it receives changes at its ports and emits the resulting changes.
 *
 * <p>The sum of an operator's output is a function of the sum of its input. Unless it is {@link #ordered}, it does not
 * depend on the order of the input or its division into ticks. Weights may be negative for a while: a view
 * that is being filled receives live changes before the history that they change.
 */
public abstract class Operator extends Node {
  private static final long serialVersionUID = 1;
  /** Index in {@link Circuit#order}. */
  int index;
  /** Number of operators on the longest path above this one. */
  int level;

  /** Number of ports. */
  int inputs;

  /** The operators of the {@link Loops loop} that this one belongs to, in the order in which they run, or null. */
  Operator[] loop;

  /** The projection of the output to rows of batches, or null without {@link #batched} edges. */
  Columns batch;

  /** Whether an operator that this one sends its output to is {@link #sequential}. */
  public boolean stepwise;

  /** Whether the output reaches a relation of which ticks of a single record report rows that are repeated ({@link Circuit#repeats}). */
  public boolean repeats;

  @Override Node copy() {
    Operator copy = (Operator) super.copy();
    copy.stepwise = copy.repeats = false;
    copy.loop = null;
    return copy;
  }

  /** Returns the columns of each port. */
  public abstract StructType[] ports();

  /** Returns the columns of the output. */
  public abstract StructType output();

  /**
   * Returns the key by which a change is partitioned: all changes of a key are in one partition.
   */
  public abstract byte[] key(int port, UnsafeRow row);

  /** Returns whether a change goes to all partitions, whatever its key. */
  public boolean everywhere(int port, UnsafeRow row) { return false; }

  /**
   * Returns whether the operator also runs in ticks without input, in the partition of its empty
   * key.
   */
  public boolean always() { return false; }

  /** Returns whether the operator runs in every tick and partition. */
  public boolean everywhere() { return false; }

  /**
   * Returns the change of port 0 that deletes the row with this key, or null if the operator does not
   * keep rows by keys that the port begins with.
   */
  public UnsafeRow deletion(Object... key) { return null; }

  /**
   * Returns the key whose partition has an entry of the state, as {@link #key} returns it, or null if each partition has
   * the entry, with another value. Throws 0A000 if entries cannot be moved to other partitions.
   */
  public byte[] owner(int port, byte[] key, byte[] row) {
    String name = getClass().getSimpleName();
    throw new SqlError("0A000", "the state of operator " + id + " (" + name + ") cannot be moved to other partitions");
  }

  /** Receives entries of the state. `owner`: as {@link #owner} returns it. */
  public interface Moved { void accept(byte[] owner, State.Entry entry); }

  /**
   * Passes an entry of a partition on, with the key whose partition it belongs to.
   *
   * @param number makes a number that is unique within this partition unique among all partitions, and keeps the order
   */
  public void move(State from, State.Entry entry, LongUnaryOperator number, Moved to) {
    to.accept(owner(entry.port(), entry.key(), entry.row()), entry);
  }

  /** Returns the value of an entry that each partition has, from its values in two of them. */
  public byte[] merged(int port, byte[] one, byte[] other) { throw new UnsupportedOperationException(getClass().getName()); }

  /**
   * Returns whether the output depends on the order of the input. Such an operator receives all
   * changes of a tick at once.
   */
  public boolean ordered() { return false; }

  /** Returns whether the operator receives the changes of an upsert one by one, not only their sum. */
  public boolean sequential() { return ordered(); }

  /** Returns the port that closes a loop, of which this operator is the head; otherwise -1. */
  public int feedback() { return -1; }

  /** Compiles the generated code that the first change would compile. */
  public void compile() {}

  /** Returns an empty collection of changes for {@link Pending#run}. */
  public Pending pending() { return new PendingChanges(this); }

  /**
   * Processes changes, by port. Emits results with {@link Tick#emit} and {@link Tick#fail}. It is not
   * called if {@link #pending} returns a collection of another class.
   */
  public void run(Tick tick, List<List<Change>> input) { throw new UnsupportedOperationException(getClass().getName()); }
}
