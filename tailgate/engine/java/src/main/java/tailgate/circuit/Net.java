package tailgate.circuit;

import java.io.*;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.Utils;
import tailgate.rows.RowMap;
import tailgate.rows.Rows;

/**
 * The net changes of one relation in one tick: each row once, with a non-zero weight.
 *
 * <p>Above a size limit they are written to local files, partitioned by the hash of the row, and
 * summed one partition at a time. The result is then a file, too.
 */
final class Net {
  static final long MEMORY_MAX = 64L << 20;
  private static final int PARTS = 32, OVERHEAD = 96;   // overhead of a map entry in bytes, in addition to the row
  private static final int ARROW_BATCH_ROWS = 1 << 16, FIRST_BYTES = 1 << 10;
  // a batch is allocated outside the heap, with room for twice as much
  private static final long ARROW_BATCH_BYTES = 16 << 20;
  private final ArrowChanges.Form form;
  private final long memory;
  private RowMap<long[]> rows = new RowMap<>();
  private long size;
  private Path folder;
  private DataOutputStream[] parts;

  Net(ArrowChanges.Form form, long memory) {
    this.form = form;
    this.memory = memory;
  }

  /** Adds a change. The caller may reuse the row. */
  void add(UnsafeRow row, long weight) {
    long[] sum = rows.computeIfAbsent(row, () -> new long[2]);  // the weight, and the first change
    if (sum[0] == 0) size += row.getSizeInBytes() + OVERHEAD;
    if (sum[1] == 0) sum[1] = weight;
    sum[0] += weight;
    if (size > memory) spill();
  }

  /**
   * Returns an Arrow stream of the rows that are removed and then added again, with the weight 0. Returns null if there are none.
   * A row that is added and then removed is none of them: it is one between two changes of a join, which the relation never has.
   */
  Sent repeated(int relation) {
    if (parts != null) return null;  // there are few rows in a tick of one record
    try {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      long n = write(Channels.newChannel(bytes), true);
      return n == 0 ? null : new Sent(Sent.REPEATED, relation, bytes.toByteArray(), n);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Returns an Arrow stream of the rows and `__weight`: as bytes, or as the name of a file below
   * `results`. Returns null if nothing changed.
   */
  Sent sent(int relation, String results) {
    try {
      if (parts == null) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream((int) Math.min(FIRST_BYTES + size, ARROW_BATCH_BYTES));
        long n = write(Channels.newChannel(bytes), false);
        return n == 0 ? null : new Sent(Node.Edge.RELATION, relation, bytes.toByteArray(), n);
      }
      spill();
      for (DataOutputStream part : parts) part.close();
      Path file = Files.createDirectories(Path.of(results)).resolve(UUID.randomUUID() + ".arrow");
      long n;
      try (WritableByteChannel out = Files.newByteChannel(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
        n = write(out, false);
      }
      Files.delete(folder);
      if (n == 0) Files.delete(file);
      return n == 0 ? null : new Sent(Sent.FILE, relation, file.toString().getBytes(StandardCharsets.UTF_8), n);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void spill() {
    try {
      if (parts == null) {
        folder = Files.createTempDirectory(scratch(), "tailgate-net");
        parts = new DataOutputStream[PARTS];
        for (int i = 0; i < PARTS; i++) parts[i] = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(part(i)), 1 << 16));
      }
      for (RowMap.Entry<long[]> e : rows) {
        if (e.value[0] == 0) continue;
        DataOutputStream out = parts[Math.floorMod(Rows.hash(e.key, 7), PARTS)];
        out.writeInt(e.key.length);
        out.write(e.key);
        out.writeLong(e.value[0]);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    rows = new RowMap<>();
    size = 0;
  }

  /** Returns Spark's folder for temporary files of this process, or that of the JVM without Spark. */
  private static Path scratch() {
    SparkEnv env = SparkEnv.get();
    return Path.of(env == null ? System.getProperty("java.io.tmpdir") : Utils.getLocalDir(env.conf()));
  }

  private Path part(int i) { return folder.resolve(Integer.toString(i)); }

  private void read(int i) throws IOException {
    rows = new RowMap<>();
    try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(part(i)), 1 << 16))) {
      while (true) {
        byte[] row;
        try {
          row = new byte[in.readInt()];
        } catch (EOFException e) {
          break;
        }
        in.readFully(row);
        rows.computeIfAbsent(Rows.row(row, form.columns().length()), () -> new long[1])[0] += in.readLong();
      }
    }
    Files.delete(part(i));
  }

  private long write(WritableByteChannel out, boolean repeated) throws IOException {
    try (ArrowChanges stream = new ArrowChanges(form, out)) {
      long n = 0;
      for (int i = 0; i < (parts == null ? 1 : PARTS); i++) {
        if (parts != null) read(i);
        n += write(stream, repeated);
      }
      stream.end();
      return n;
    }
  }

  /** Writes the rows that are repeated, or those with a weight. */
  private long write(ArrowChanges stream, boolean repeated) throws IOException {
    byte[][] batch = new byte[Math.min(rows.size(), ARROW_BATCH_ROWS)][];
    long[] weights = new long[batch.length];
    long n = 0, bytes = 0;
    int inBatch = 0;
    for (RowMap.Entry<long[]> e : rows) {
      if (repeated ? e.value[0] != 0 || e.value[1] >= 0 : e.value[0] == 0) continue;
      batch[inBatch] = e.key;
      weights[inBatch++] = e.value[0];
      bytes += e.key.length;
      n++;
      if (inBatch == batch.length || bytes > ARROW_BATCH_BYTES) {
        stream.write(batch, weights, inBatch);
        inBatch = 0;
        bytes = 0;
      }
    }
    if (inBatch > 0) stream.write(batch, weights, inBatch);
    return n;
  }
}
