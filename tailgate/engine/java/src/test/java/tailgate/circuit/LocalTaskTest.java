package tailgate.circuit;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that Spark's code runs in a task that was not scheduled. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class LocalTaskTest {
  private final SparkContext context = spark().sparkContext();

  @Test
  void theListenersRunBeforeTheResultIsReturned() throws Exception {
    List<String> events = new ArrayList<>();
    events.add(LocalTask.run(context, context.getLocalProperties(), () -> {
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) t -> events.add("store released"));
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) t -> events.add("scan closed"));
      return "result";
    }));
    assertEquals(List.of("scan closed", "store released", "result"), events);
    assertNull(TaskContext.get());
  }

  @Test
  void aFailureIsThrownAfterTheListenersOfTheTask() {
    List<String> events = new ArrayList<>();
    IllegalStateException failure = new IllegalStateException("wrong");
    assertSame(failure, assertThrows(IllegalStateException.class, () -> LocalTask.run(context, context.getLocalProperties(), () -> {
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) t -> events.add("completed"));
      TaskContext.get().addTaskFailureListener((TaskFailureListener) (t, e) -> events.add(e.getMessage()));
      throw failure;
    })));
    assertEquals(List.of("wrong", "completed"), events);
    assertNull(TaskContext.get());
  }

  @Test
  void nothingOfOneTaskIsLeftInTheNext() throws Exception {
    int[] completed = new int[1];
    for (int n = 1; n <= 3; n++) {
      LocalTask.run(context, context.getLocalProperties(), () -> TaskContext.get().addTaskCompletionListener((TaskCompletionListener) t -> completed[0]++));
      assertEquals(n, completed[0], "listeners are called once");
    }
  }

  @Test
  void aTaskReadsBroadcastsAndSettings() throws Exception {
    Broadcast<String> shipped = context.broadcast("value", Stages.tag(String.class));
    context.setLocalProperty("spark.sql.session.timeZone", "Asia/Tokyo");
    try {
      assertEquals("value Asia/Tokyo", LocalTask.run(context, context.getLocalProperties(), () -> shipped.value() + " " + org.apache.spark.sql.internal.SQLConf.get().sessionLocalTimeZone()));
      shipped.unpersist(true);
      assertEquals("value", LocalTask.run(context, context.getLocalProperties(), shipped::value), "read again from its blocks, whose locks are released");
    } finally {
      context.setLocalProperty("spark.sql.session.timeZone", null);
      shipped.destroy();
    }
  }
}
