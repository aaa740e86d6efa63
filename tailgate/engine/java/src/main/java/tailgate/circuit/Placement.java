package tailgate.circuit;

import java.util.*;
import java.util.stream.Stream;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.ExecutorCacheTaskLocation;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The executors that may run the partitions of a stage at once: of each partition, the one that has its state open. If others have
 * too few partitions, they may also run those that an executor has beyond its share.
 *
 * <p>Otherwise an executor that replaces another one would remain without work: Spark waits for the executor that is preferred, by
 * default for 3 s, which is longer than most ticks take.
 */
final class Placement {
  private Placement() {}

  /**
   * Returns the executors for each partition; none stands for any executor.
   *
   * @param open of each partition, the executor that has its state open, or null
   * @param executors all that run
   */
  static List<List<String>> of(List<String> open, Collection<String> executors) {
    int least = Math.max(1, open.size() / Math.max(1, executors.size()));
    List<String> idle = executors.stream().filter(e -> Collections.frequency(open, e) < least).toList();
    Map<String, Integer> partitions = new HashMap<>();
    List<List<String>> places = new ArrayList<>();
    for (String executor : open) {
      if (executor == null) places.add(List.of());
      else if (partitions.merge(executor, 1, Integer::sum) <= least) places.add(List.of(executor));
      else places.add(Stream.concat(Stream.of(executor), idle.stream()).toList());
    }
    return places;
  }

  /** Returns the executors of a cluster that run, by the names of Spark's preferred locations; none with a local master. */
  static List<String> executors() {
    return CollectionConverters.asJava(SparkEnv.get().blockManager().master().getMemoryStatus()).keySet().stream()
        .filter(manager -> !manager.isDriver())
        .map(manager -> new ExecutorCacheTaskLocation(manager.host(), manager.executorId()).toString()).sorted().toList();
  }
}
