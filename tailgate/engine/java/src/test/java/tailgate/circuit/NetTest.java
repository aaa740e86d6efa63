package tailgate.circuit;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tailgate.sources.Decoder;
import tailgate.operators.Operators;

/** Net changes in memory and, beyond a limit, in files; much that waits for one operator. */
class NetTest {
  private static final StructType ROW = schema("k int");
  private static final ArrowChanges.Form FORM = ArrowChanges.Form.of(ROW);

  private static UnsafeRow unsafe(int k) { return UnsafeProjection.create(ROW).apply(new GenericInternalRow(new Object[] {k})); }

  @Test void filesHoldWhatMemoryHolds(@TempDir Path folder) throws Exception {
    for (long memory : new long[] {Net.MEMORY_MAX, 10_000}) {
      Net net = new Net(FORM, memory);
      Bag expected = new Bag();
      Random random = new Random(3);
      for (int i = 0; i < 20_000; i++) {
        int k = random.nextInt(3000), weight = random.nextInt(5) - 2;
        net.add(unsafe(k), weight);
        if (weight != 0) expected.add(row(k), weight);
      }
      Sent sent = net.sent(7, folder.resolve("results").toString());
      assertEquals(memory < Net.MEMORY_MAX ? Sent.FILE : Node.Edge.RELATION, sent.kind());
      byte[] stream = sent.kind() == Sent.FILE
          ? Files.readAllBytes(Path.of(new String(sent.bytes(), StandardCharsets.UTF_8)))
          : sent.bytes();
      assertEquals(expected, changes(ROW, stream));
      assertEquals(expected.size(), sent.n());
    }
  }

  /** A relation never has a row between two changes of a join. */
  @Test void aRowThatIsAddedAndRemovedIsNotRepeated() throws Exception {
    Net net = new Net(FORM, Net.MEMORY_MAX);
    net.add(unsafe(1), 1);
    net.add(unsafe(1), -1);
    assertNull(net.repeated(7));
    net.add(unsafe(2), -1);
    net.add(unsafe(2), 1);
    net.add(unsafe(3), 1);
    Sent repeated = net.repeated(7);
    assertEquals(1, repeated.n());
    assertTrue(texts(repeated.bytes()).contains("2|0"));
  }

  /** Most columns are copied from the bytes of the rows; the result is that of Spark's writer. */
  @Test void allTypesAreAsSparkWritesThem(@TempDir Path folder) throws Exception {
    StructType types = schema("a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h date, i timestamp, j timestamp_ntz,"
        + " k string, l binary, m decimal(10, 2), n decimal(18, 0), o decimal(19, 3), p decimal(38, 10), q struct<x: int, y: string>,"
        + " r array<string>, s bigint");
    ArrowChanges.Form form = ArrowChanges.Form.of(types);
    Random random = new Random(5);
    UnsafeProjection projection = UnsafeProjection.create(types);
    ArrowWriter writer = ArrowWriter.create(types.add("__weight", DataTypes.LongType, false), "UTC", false, false);
    ByteArrayOutputStream expected = new ByteArrayOutputStream();
    Net whole = new Net(form, Net.MEMORY_MAX), parts = new Net(form, 20_000);
    for (int n = 0; n < 500; n++) {
      Object[] values = new Object[types.length()];
      for (int i = 0; i + 1 < values.length; i++) values[i] = random.nextInt(5) == 0 ? null : value(types.apply(i).dataType(), random);
      values[values.length - 1] = (long) n;  // all rows are distinct
      UnsafeRow row = projection.apply(new GenericInternalRow(values));
      whole.add(row, n % 3 - 4);
      parts.add(row, n % 3 - 4);
      writer.write(new JoinedRow(row, new GenericInternalRow(new Object[] {n % 3 - 4L})));
    }
    writer.finish();
    try (var root = writer.root(); var stream = new ArrowStreamWriter(root, null, Channels.newChannel(expected))) {
      stream.writeBatch();
    }
    Sent file = parts.sent(7, folder.resolve("results").toString());
    List<String> rows = texts(expected.toByteArray());
    assertEquals(rows, texts(whole.sent(7, folder.toString()).bytes()));
    assertEquals(rows, texts(Files.readAllBytes(Path.of(new String(file.bytes(), StandardCharsets.UTF_8)))));
  }

  /** Returns a value as Catalyst stores it. */
  private static Object value(DataType type, Random random) {
    byte[] bytes = new byte[random.nextInt(20)];
    random.nextBytes(bytes);
    if (type instanceof DecimalType d) {
      BigInteger digits = new BigInteger(random.nextInt((int) (3.3 * d.precision())), random);
      return Decimal.apply(new BigDecimal(random.nextBoolean() ? digits : digits.negate(), d.scale()), d.precision(), d.scale());
    }
    if (type instanceof StructType)
      return new GenericInternalRow(new Object[] {random.nextInt(), random.nextBoolean() ? null : UTF8String.fromString("ü")});
    if (type instanceof ArrayType) return new GenericArrayData(new Object[] {null, UTF8String.fromString("x".repeat(random.nextInt(5)))});
    return switch (type.typeName()) {
      case "boolean" -> random.nextBoolean();
      case "byte" -> (byte) random.nextInt();
      case "short" -> (short) random.nextInt();
      case "integer", "date" -> random.nextInt();
      case "float" -> random.nextFloat();
      case "double" -> -random.nextDouble();
      case "string" -> UTF8String.fromString("ä".repeat(bytes.length));
      case "binary" -> bytes;
      default -> random.nextLong();
    };
  }

  /** Returns the schema, and the rows as texts, sorted. */
  private static List<String> texts(byte[] stream) throws Exception {
    List<String> rows = new ArrayList<>();
    try (var allocator = ArrowUtils.rootAllocator().newChildAllocator("test", 0, Long.MAX_VALUE);
        var reader = new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)) {
      var root = reader.getVectorSchemaRoot();
      while (reader.loadNextBatch())
        for (int i = 0; i < root.getRowCount(); i++) {
          StringJoiner row = new StringJoiner("|");
          for (var vector : root.getFieldVectors())
            row.add(vector.getObject(i) instanceof byte[] bytes ? Arrays.toString(bytes) : String.valueOf(vector.getObject(i)));
          rows.add(row.toString());
        }
      Collections.sort(rows);
      rows.add(root.getSchema().toString());
    }
    return rows;
  }

  /** A stream that cannot be written, as on a full disk, releases the memory outside the heap. */
  @Test void aFailureReleasesItsMemory() throws Exception {
    OutputStream full = new OutputStream() {
      @Override public void write(int b) throws IOException { throw new IOException("No space left on device"); }
    };
    long before = ArrowUtils.rootAllocator().getAllocatedMemory();
    assertThrows(IOException.class, () -> {
      try (ArrowChanges stream = new ArrowChanges(FORM, Channels.newChannel(full))) {
        stream.write(new byte[][] {unsafe(1).getBytes()}, new long[] {1}, 1);
      }
    });
    assertEquals(before, ArrowUtils.rootAllocator().getAllocatedMemory());
  }

  @Test void nothingIsNothing(@TempDir Path folder) throws Exception {
    Net net = new Net(FORM, 500);
    for (int k = 0; k < 100; k++) net.add(unsafe(k), 1);
    for (int k = 0; k < 100; k++) net.add(unsafe(k), -1);
    assertNull(net.sent(7, folder.resolve("results").toString()));
    try (var left = Files.list(folder.resolve("results"))) {
      assertEquals(0, left.count());
    }
  }

  /** One change on the left meets 300,000 rows on the right: more than may wait for the next operator, and than is sent as bytes. */
  @Test void oneRowWithManyPartners() throws Exception {
    int n = 300_000;
    StructType left = schema("k int, name string"), right = schema("k int, v int"),
        pairs = schema("k int, name string, k2 int, v int"), sums = schema("s bigint, n bigint");
    Circuit c = new Circuit();
    c.source(1, "left", Decoder.arrow(left), empty(left));
    c.source(2, "right", Decoder.arrow(right), empty(right));
    c.operator(3, Operators.join("inner", left, new int[] {0}, right, new int[] {0}, new boolean[1], new boolean[2], new boolean[2], null));
    c.edge(1, empty(left), 3, 0);
    c.edge(2, empty(right), 3, 1);
    c.relation(1, pairs, 0);
    c.output(3, empty(pairs), 1);
    c.operator(4, reduce(pairs, new int[] {}, new String[] {"sum", "count"}, new int[] {3, -1}, sums));
    c.edge(3, empty(pairs), 4, 0);
    c.relation(2, sums, 0);
    c.output(4, empty(sums), 2);
    c.seal();
    Running r = new Running(c, 1);
    for (int from = 0; from < n; from += 100_000) {
      List<Weighted> rows = new ArrayList<>();
      for (int i = from; i < from + 100_000; i++) rows.add(plus(1, i));
      r.advance(arrow("right", right, rows));
    }
    TickResult result = r.advance(arrow("left", left, List.of(plus(1, "x".repeat(100)))));
    assertNull(result.changes(0));
    Path file = Path.of(result.file(0));
    assertEquals(n, result.rows(0));
    assertTrue(Files.size(file) > Net.MEMORY_MAX / 4);
    assertEquals(Bag.of(row((long) n * (n - 1) / 2, (long) n)), positive(changes(sums, result.changes(1))));
    Files.delete(file);
  }

  private static Bag positive(Bag bag) {
    bag.values().removeIf(w -> w < 0);
    return bag;
  }
}
