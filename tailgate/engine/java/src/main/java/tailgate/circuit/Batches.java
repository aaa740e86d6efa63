package tailgate.circuit;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * Passes the batches of a query to a Python thread of the driver, one at a time.
 *
 * <pre>   query's thread:   call(rows, number) ─────────► runs the tick ──────────► returns
 *                                 │                   ▲          │               ▲
 *   Python's thread:          next() ──► Batch.ticked(circuit, …) └─► … ──► Batch.done()</pre>
 *
 * <p>A tick runs in the query's thread, because Spark's tasks use the session and local properties
 * of that thread. PySpark's foreachBatch would instead call Python through a server socket that
 * Py4J opens without authentication.
 */
public final class Batches implements VoidFunction2<Dataset<Row>, Long> {
  // Spark's interface is serializable, but a query's function stays in the driver
  private static final long serialVersionUID = 1;
  private transient Batch offered;
  private transient boolean ended;

  /** One batch, for which the query's thread waits. */
  public static final class Batch {
    private final BlockingQueue<Runnable> work = new LinkedBlockingQueue<>();
    private final Dataset<Row> rows;
    private final long number;
    private boolean done;  // used by the query's thread only

    private Batch(Dataset<Row> rows, long number) {
      this.rows = rows;
      this.number = number;
    }

    public long number() { return number; }

    /** Runs {@link Circuit#ticked} on this batch in the query's thread. Throws its exceptions. */
    public byte[] ticked(Circuit circuit, String statePath, long time, String stateIds, int partitions) throws Throwable {
      FutureTask<byte[]> tick = new FutureTask<>(() -> circuit.ticked(rows, statePath, time, stateIds, partitions));
      work.add(tick);
      try {
        return tick.get();
      } catch (ExecutionException e) {
        throw e.getCause();
      }
    }

    /** Ends the batch, so that the query continues. */
    public void done() { work.add(() -> done = true); }

    /**
     * Runs submitted work until the batch is done. An interrupt, which stops the query, takes
     * effect after that.
     */
    private void serve() {
      boolean interrupted = false;
      while (!done) {
        try {
          work.take().run();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      if (interrupted) Thread.currentThread().interrupt();
    }
  }

  /** Called by Spark; returns when the batch is done. */
  @Override
  public void call(Dataset<Row> rows, Long number) {
    Batch batch = new Batch(rows, number);
    synchronized (this) {
      if (ended) throw new IllegalStateException("batch " + number + " comes after the end of its query");
      offered = batch;
      notifyAll();
    }
    batch.serve();
  }

  /** Waits for the next batch. Returns null when the query has ended. */
  public synchronized Batch next() throws InterruptedException {
    while (offered == null && !ended) wait();
    Batch batch = offered;
    offered = null;
    return batch;
  }

  /** Records that the query has ended: {@link #next} returns null from now on. */
  public synchronized void end() {
    ended = true;
    if (offered != null) offered.done();
    offered = null;
    notifyAll();
  }
}
