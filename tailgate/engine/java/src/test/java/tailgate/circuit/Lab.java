package tailgate.circuit;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.channels.Channels;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.spark.sql.*;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import tailgate.aggregates.AggregateCall;
import tailgate.functions.Functions;
import tailgate.operators.Operators;
import tailgate.rows.SortKey;
import tailgate.state.DurableFiles;

/** A session, batches made of values, and ticks whose changes are values again. */
public final class Lab {
  public static final StructType KAFKA = new StructType().add("key", "binary")
      .add("value", "binary").add("topic", "string").add("partition", "int")
      .add("offset", "long").add("timestamp", "timestamp").add("timestampType", "int");
  private static SparkSession spark;

  public static synchronized SparkSession spark() {
    if (spark == null) {
      String streaming = "spark.sql.streaming.";
      spark = SparkSession.builder().master("local[2]").appName("test")
          .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
          .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
          .config("spark.sql.session.timeZone", "UTC").config("spark.sql.adaptive.enabled", "false")
          .config(streaming + "checkpointFileManagerClass",
              "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager")
          .config(streaming + "stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
          .config(streaming + "stateStore.checkpointFormatVersion", "2")
          .config(streaming + "stateStore.rocksdb.changelogCheckpointing.enabled", "true")
          .config(streaming + "stateStore.rocksdb.trackTotalNumberOfRows", "false")
          .config("spark.hadoop.fs.file.impl", DurableFiles.class.getName())
          .getOrCreate();
      spark.sparkContext().setLogLevel("ERROR");
      Functions.register(spark);
    }
    return spark;
  }

  /** A relation without rows, to write shapes over. */
  public static Dataset<Row> empty(StructType schema) {
    return spark().createDataFrame(
        new org.apache.spark.api.java.JavaSparkContext(spark().sparkContext()).<Row>emptyRDD(),
        schema);
  }

  public static StructType schema(String ddl) { return StructType.fromDDL(ddl); }

  public static byte[] utf8(String text) { return text == null ? null : text.getBytes(java.nio.charset.StandardCharsets.UTF_8); }

  public static Row record(String channel, long offset, byte[] key, byte[] value) {
    return RowFactory.create(key, value, channel, 0, offset, new java.sql.Timestamp(1000), 0);
  }

  /** One record of weighted rows for a source with the Arrow decoder. */
  public static Row arrow(String channel, StructType row, List<Weighted> rows) {
    ArrowWriter writer = ArrowWriter.create(row.add("__weight", "long", false), "UTC", true, false);
    try (var root = writer.root(); var bytes = new ByteArrayOutputStream();
        var stream = new ArrowStreamWriter(root, null, Channels.newChannel(bytes))) {
      for (Weighted w : rows) {
        Object[] values = Arrays.copyOf(w.row.toArray(), row.length() + 1);
        for (int i = 0; i < row.length(); i++)
          values[i] = CatalystTypeConverters.createToCatalystConverter(row.apply(i).dataType())
              .apply(values[i]);
        values[row.length()] = w.weight;
        writer.write(new org.apache.spark.sql.catalyst.expressions.GenericInternalRow(values));
      }
      writer.finish();
      stream.start();
      stream.writeBatch();
      stream.end();
      return record(channel, 0, null, bytes.toByteArray());
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  public static Operator upsert(StructType row, int[] key) { return Operators.upsert(row, key, row.length()); }

  /** An aggregation whose functions have one column each, or none: -1. */
  public static Operator reduce(StructType row, int[] group, String[] functions, int[] columns, StructType results) {
    if (functions.length != columns.length || functions.length != results.length())
      throw new IllegalArgumentException("as many functions as columns and results");
    AggregateCall[] calls = new AggregateCall[functions.length];
    for (int i = 0; i < calls.length; i++)
      calls[i] = new AggregateCall(functions[i],
          columns[i] < 0 ? new int[0] : new int[] {columns[i]}, results.apply(i).dataType(), false,
          -1, new SortKey[0], 0);
    return Operators.reduce(row, group, calls, false, -1, 0);
  }

  public record Weighted(List<Object> row, long weight) {}

  public static Weighted plus(Object... row) { return new Weighted(Arrays.asList(row), 1); }

  public static Weighted minus(Object... row) { return new Weighted(Arrays.asList(row), -1); }

  public static List<Object> row(Object... values) { return Arrays.asList(values); }

  /** Rows and weights. */
  public static final class Bag extends HashMap<List<Object>, Long> {
    public Bag add(List<Object> row, long weight) {
      if (merge(row, weight, Long::sum) == 0) remove(row);
      return this;
    }

    public static Bag of(Object... rows) {
      Bag bag = new Bag();
      for (Object r : rows) {
        @SuppressWarnings("unchecked") List<Object> row = (List<Object>) r;
        bag.add(row, 1);
      }
      return bag;
    }
  }

  /** A running circuit: its state and the sums of its relations. */
  public static final class Running {
    public Circuit circuit;
    Path folder;
    int partitions;
    String ids = "";
    /** Whether records arrive in the order in which they are passed. */
    boolean inOrder;
    /** The time of the next tick. */
    public long time;
    public final Map<Integer, Bag> relations = new HashMap<>();
    public TickResult last;

    public Running(Circuit circuit, int partitions) {
      this.circuit = circuit;
      this.partitions = partitions;
      try {
        this.folder = Files.createTempDirectory("state");
      } catch (java.io.IOException e) {
        throw new java.io.UncheckedIOException(e);
      }
    }

    /** A circuit whose records arrive in the order in which they are passed. */
    public static Running ordered(Circuit circuit, int partitions) {
      Running running = new Running(circuit, partitions);
      running.inOrder = true;
      return running;
    }

    public Bag relation(int id) { return relations.computeIfAbsent(id, r -> new Bag()); }

    /** Runs a tick and lets it enter the log. */
    public TickResult tick(Row... records) {
      TickResult result = advance(records);
      for (int i = 0; i < result.relations().length; i++) {
        Bag net = changes(circuit.relations.get(result.relations()[i]), result.changes(i));
        if (net.size() != result.rows(i)) throw new AssertionError("not consolidated: " + net);
        net.forEach(relation(result.relations()[i])::add);
      }
      return result;
    }

    /** Runs a tick that does not enter the log. */
    public TickResult attempt(Row... records) {
      Dataset<Row> batch = spark().createDataFrame(Arrays.asList(records), KAFKA);
      return circuit.tick(inOrder ? batch.coalesce(1) : batch.repartition(2), folder.toString(), time, ids, partitions);
    }

    /** Runs a tick that enters the log, and leaves its changes to the caller. */
    public TickResult advance(Row... records) {
      TickResult result = attempt(records);
      ids = result.stateIds();
      time++;
      return last = result;
    }

    /** Returns the number of entries that an operator had in its state after the last tick, if it ran in it. */
    public long entries(int node) { return last.entries(node); }

    /** Moves the state to another number of partitions. */
    public void move(int to) {
      try {
        Path other = Files.createTempDirectory("state");
        ids = new ObjectMapper().readTree(circuit.repartition(spark(), folder.toString(), ids, partitions, other.toString(), to, time))
            .get("state").asText();
        folder = other;
        partitions = to;
      } catch (Exception e) {
        throw new AssertionError(e);
      }
    }

    /** Unloads all stores, like a restart: their state is then read from files. */
    public void restart() { StateStore.stop(); }
  }

  public static Bag changes(StructType schema, byte[] stream) {
    Bag bag = new Bag();
    try (var allocator = ArrowUtils.rootAllocator().newChildAllocator("test", 0, Long.MAX_VALUE);
        var reader = new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)) {
      var root = reader.getVectorSchemaRoot();
      while (reader.loadNextBatch()) {
        ColumnarBatch batch = new ColumnarBatch(root.getFieldVectors().stream()
            .map(ArrowColumnVector::new).toArray(ColumnVector[]::new), root.getRowCount());
        for (int i = 0; i < root.getRowCount(); i++) {
          InternalRow row = batch.getRow(i).copy();
          Object[] values = new Object[schema.length()];
          for (int c = 0; c < values.length; c++)
            values[c] = row.isNullAt(c) ? null
                : CatalystTypeConverters.createToScalaConverter(schema.apply(c).dataType())
                .apply(row.get(c, schema.apply(c).dataType()));
          if (row.getLong(schema.length()) == 0) throw new AssertionError("a weight of zero");
          bag.add(Arrays.asList(values), row.getLong(schema.length()));
        }
      }
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    return bag;
  }
}
