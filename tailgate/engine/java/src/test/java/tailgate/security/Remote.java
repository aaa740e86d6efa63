package tailgate.security;

import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/** Looks up secrets in a task, for tests of a cluster. */
public final class Remote {
  private Remote() {}

  /** Returns a secret as a task sees it, after the id of its process. */
  public static String text(SparkSession session, String number) {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(session.sparkContext());
    return context.parallelize(List.of(number), 1).map(n -> ProcessHandle.current().pid() + " " + Secrets.text(n)).first();
  }
}
