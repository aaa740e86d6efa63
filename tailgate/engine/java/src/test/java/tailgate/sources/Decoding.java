package tailgate.sources;

import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.circuit.Node;
import tailgate.rows.Change;
import tailgate.rows.Steps;

/** Measures decoding: the records of one source, repeatedly, in a task of Spark. For bench/decode.py. */
public final class Decoding {
  private Decoding() {}

  private record Work(Node.Source source, byte[] values, double seconds) implements Serializable {}

  /**
   * Returns {rows, nanoseconds of the task's CPU, nanoseconds by the clock, nanoseconds of CPU of
   * decoding alone}. `values`: messages, each with key and value after their lengths of four bytes.
   * `seconds`: CPU time; the first half warms up the compiler and does not count.
   */
  public static double[] measured(SparkSession session, Decoder decoder, Dataset<Row> shape, byte[] values, double seconds) {
    Work work = new Work(new Node.Source("t", decoder, new Steps(shape), "dead letter"), values, seconds);
    return new JavaSparkContext(session.sparkContext()).parallelize(List.of(work), 1).map(Decoding::run).collect().get(0);
  }

  private static double[] run(Work work) {
    List<InternalRow> records = new ArrayList<>();
    for (ByteBuffer in = ByteBuffer.wrap(work.values); in.hasRemaining(); ) {
      byte[] key = new byte[in.getInt()], value = new byte[in.getInt()];
      in.get(key);
      in.get(value);
      records.add(new GenericInternalRow(
          new Object[] {key.length == 0 ? null : key, value, UTF8String.fromString("t"), 0,
          (long) records.size(), 1_000_000L, 0}));
    }
    List<Change> rows = new ArrayList<>();
    double[] decoding = timed(work.seconds, records, r -> work.source.decoder.decode(r, Decoder.HISTORY, 0, (row, weight) -> {}));
    double[] whole = timed(work.seconds, records, r -> {
      rows.clear();
      work.source.rows(r, 0, 0, (row, weight, order) -> rows.add(new Change(row.copy(), weight, order)));
    });
    return new double[] {whole[0], whole[1], whole[2], decoding[1] * whole[0] / decoding[0]};
  }

  private static double[] timed(double seconds, List<InternalRow> records, java.util.function.Consumer<InternalRow> use) {
    var threads = ManagementFactory.getThreadMXBean();
    long began = threads.getCurrentThreadCpuTime(), half = began + (long) (seconds * 5e8),
        end = began + (long) (seconds * 1e9), cpu = began, wall = System.nanoTime(), now = began,
        n = 0;
    for (boolean counting = false; now < end; now = threads.getCurrentThreadCpuTime()) {
      if (!counting && now > half) {
        counting = true;
        n = 0;
        cpu = now;
        wall = System.nanoTime();
      }
      for (int i = 0; i < 20; i++) for (InternalRow r : records) use.accept(r);
      n += 20L * records.size();
    }
    return new double[] {n, now - cpu, System.nanoTime() - wall};
  }
}
