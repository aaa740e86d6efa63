package tailgate.circuit;

import java.util.Properties;
import java.util.concurrent.Callable;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.resource.ResourceInformation;
import org.apache.spark.storage.BlockInfo$;
import org.apache.spark.util.SparkUncaughtExceptionHandler;
import scala.Option;

/**
 * Runs work in the calling thread as if it were a Spark task of this process. Scheduling a job of one
 * task takes longer than an ordinary tick.
 *
 * <pre>   context ──► work ──► fails? its failure listeners ──► completion listeners ──► memory released</pre>
 *
 * <p>Every piece of work has a task context of its own, because Spark registers a completion listener
 * for each store that a task opens and for each scan of a store.
 */
final class LocalTask {
  private LocalTask() {}

  /** Returns the result of the work, or throws its exception, after the listeners of the task. `properties` are those of the task. */
  static <T> T run(SparkContext context, Properties properties, Callable<T> work) throws Exception {
    long id = BlockInfo$.MODULE$.NON_TASK_WRITER();  // blocks are locked as by the driver's threads
    SparkEnv env = SparkEnv.get();
    TaskMemoryManager memory = new TaskMemoryManager(env.memoryManager(), id);
    TaskContextImpl task = new TaskContextImpl(0, 0, 0, id, 0, 1, memory, properties, env.metricsSystem(), TaskMetrics.empty(), 1,
        scala.collection.immutable.Map$.MODULE$.<String, ResourceInformation>empty());
    TaskContext$.MODULE$.setTaskContext(task);
    Throwable failure = null;
    try {
      return work.call();
    } catch (Throwable e) {
      failure = e;
      task.markTaskFailed(e);
      if (e instanceof VirtualMachineError && !(e instanceof StackOverflowError)) new SparkUncaughtExceptionHandler(true).uncaughtException(Thread.currentThread(), e);
      throw e;
    } finally {
      try {
        task.markTaskCompleted(Option.apply(failure));
      } finally {
        memory.cleanUpAllAllocatedMemory();
        TaskContext$.MODULE$.unset();
      }
    }
  }
}
