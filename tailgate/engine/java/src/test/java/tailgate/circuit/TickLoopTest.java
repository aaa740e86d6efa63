package tailgate.circuit;

import static org.junit.jupiter.api.Assertions.*;
import static tailgate.circuit.Lab.*;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.*;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tailgate.rows.Change;
import tailgate.sources.Decoder;
import tailgate.sources.InboxSource;
import tailgate.sources.KafkaReader;
import tailgate.state.State;
import tailgate.state.StateLost;

/** The driver's requests to the loop, and the loop's answers. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class TickLoopTest {
  private static final int CHANNEL = 2;
  private static final long COMMITTED = 49;  // of 50 entries, the last one is not

  /** The driver's side: a loop over one inbox, its socket, and the state of the last committed tick. */
  private static final class Driver implements AutoCloseable {
    final Path inbox, state;
    final TickLoop loop;
    final SocketChannel channel;
    final DataInputStream in;
    final int partitions;
    long entries, time;
    String ids = "";
    JsonNode ends, result;
    byte[] changes;

    Driver(Circuit circuit, int partitions) throws IOException { this(circuit, partitions, Files.createTempDirectory("state")); }

    Driver(Circuit circuit, int partitions, Path state) throws IOException {
      Path folder = Files.createTempDirectory("loop");
      inbox = Files.createDirectory(folder.resolve("inbox"));
      this.state = state;
      this.partitions = partitions;
      loop = new TickLoop(spark(), folder.resolve("socket").toString(), inbox.toString(), 0, 600_000, 0);
      loop.use(circuit);
      channel = SocketChannel.open(StandardProtocolFamily.UNIX);
      channel.connect(UnixDomainSocketAddress.of(folder.resolve("socket")));
      in = new DataInputStream(Channels.newInputStream(channel));
    }

    /** Writes an entry of the inbox with one record. */
    void write(org.apache.spark.sql.Row record) throws IOException {
      try (DataOutputStream out = new DataOutputStream(Files.newOutputStream(inbox.resolve(Long.toString(++entries))))) {
        byte[] topic = utf8(record.getString(CHANNEL)), value = (byte[]) record.get(1);
        out.writeInt(topic.length);
        out.write(topic);
        out.writeInt(-1);
        out.writeInt(value.length);
        out.write(value);
        out.writeInt(0);
        out.writeLong(0);
        out.writeLong(0);
        out.writeInt(-1);
      }
      InboxSource.advance(inbox.toString(), entries);
    }

    List<String> news() throws IOException {
      send(new byte[] {'W'});
      assertEquals('N', in.read());
      List<String> failed = new ArrayList<>();
      new ObjectMapper().readTree(in.readNBytes(in.readInt())).forEach(name -> failed.add(name.textValue()));
      return failed;
    }

    /** Runs a tick. Returns whether it succeeded. */
    boolean tick() throws IOException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      DataOutputStream out = new DataOutputStream(bytes);
      out.write('T');
      out.writeLong(++time);
      out.writeInt(partitions);
      for (String text : List.of(state.toString(), ids)) {
        out.writeInt(utf8(text).length);
        out.write(utf8(text));
      }
      send(bytes.toByteArray());
      if (in.read() != 'R') return false;
      ends = new ObjectMapper().readTree(in.readNBytes(in.readInt()));
      byte[] message = in.readNBytes(in.readInt());
      int head = ByteBuffer.wrap(message).getInt();
      result = new ObjectMapper().readTree(Arrays.copyOfRange(message, 4, 4 + head));
      changes = Arrays.copyOfRange(message, 4 + head, message.length);
      return true;
    }

    /** Writes an entry with a record, and runs a tick that reads it. */
    void read(org.apache.spark.sql.Row record) throws IOException {
      write(record);
      news();
      assertTrue(tick());
    }

    void commit() throws IOException {
      ids = result.get("state").textValue();
      send(new byte[] {'C'});
    }

    private void send(byte[] bytes) throws IOException { channel.write(ByteBuffer.wrap(bytes)); }

    @Override public void close() throws IOException {
      loop.close();
      channel.close();
    }
  }

  private static Circuit sums() {
    Circuit c = new Circuit();
    c.source(1, "a", Decoder.arrow(CircuitTest.PAGES), empty(CircuitTest.PAGES));
    c.operator(2, CircuitTest.sums());
    c.edge(1, empty(CircuitTest.PAGES), 2, 0);
    c.relation(1, CircuitTest.SUMS, 0);
    c.output(2, empty(CircuitTest.SUMS), 1);
    c.seal();
    return c;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aTickThatIsNotCommittedIsRepeated(int partitions) throws IOException {
    try (Driver driver = new Driver(sums(), partitions)) {
      driver.write(arrow("a", CircuitTest.PAGES, List.of(plus(1, 10))));
      assertEquals(List.of(), driver.news());
      assertTrue(driver.tick());
      assertEquals(1, driver.ends.get("inbox").intValue());
      Bag first = changes(CircuitTest.SUMS, driver.changes);
      assertEquals(Bag.of(row(1, 10L, 1L)), first);
      driver.write(arrow("a", CircuitTest.PAGES, List.of(plus(1, 5))));
      driver.news();
      assertTrue(driver.tick());
      assertEquals(1, driver.ends.get("inbox").intValue(), "without what came after the first attempt");
      assertEquals(first, changes(CircuitTest.SUMS, driver.changes), "the same records over the same state");
      driver.commit();
      driver.news();
      assertTrue(driver.tick());
      assertEquals(2, driver.ends.get("inbox").intValue());
      assertEquals(new Bag().add(row(1, 10L, 1L), -1).add(row(1, 15L, 2L), 1), changes(CircuitTest.SUMS, driver.changes));
    }
  }

  @Test
  void aTickWithoutRecordsOfTheCircuitDoesNotOpenTheState() throws IOException {
    try (Driver driver = new Driver(sums(), 1)) {
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(1, 10))));
      driver.commit();
      String ids = driver.ids;
      driver.read(arrow("of no source", CircuitTest.PAGES, List.of(plus(1, 10))));
      assertEquals(2, driver.ends.get("inbox").intValue());
      assertEquals(ids, driver.result.get("state").textValue());
      assertTrue(driver.result.get("relations").isEmpty());
      driver.commit();
      driver.write(arrow("of no source", CircuitTest.PAGES, List.of(plus(1, 10))));
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(1, 5))));
      assertNotEquals(ids, driver.result.get("state").textValue());
      assertEquals(new Bag().add(row(1, 10L, 1L), -1).add(row(1, 15L, 2L), 1), changes(CircuitTest.SUMS, driver.changes));
    }
  }

  @Test
  void aCircuitWithoutOperatorsDoesNotWriteTheState() throws IOException {
    Circuit stateless = new Circuit();
    stateless.source(1, "a", Decoder.arrow(CircuitTest.PAGES), empty(CircuitTest.PAGES));
    stateless.relation(1, CircuitTest.PAGES, 0);
    stateless.output(1, empty(CircuitTest.PAGES), 1);
    stateless.seal();
    try (Driver driver = new Driver(sums(), 1)) {
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(1, 10))));
      driver.commit();
      String ids = driver.ids;
      driver.loop.use(stateless);
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(2, 5))));
      assertEquals(Bag.of(row(2, 5)), changes(CircuitTest.PAGES, driver.changes));
      assertEquals(ids, driver.result.get("state").textValue());
      driver.commit();
      driver.loop.use(sums());
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(1, 5))));
      assertEquals(new Bag().add(row(1, 10L, 1L), -1).add(row(1, 15L, 2L), 1), changes(CircuitTest.SUMS, driver.changes));
    }
  }

  @Test
  void aTickThatFailsTellsWhyAndTheNextOneSucceeds() throws IOException {
    try (Driver driver = new Driver(sums(), 1)) {
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(1, 10))));
      driver.commit();
      String ids = driver.ids;
      driver.ids = ids.replaceAll("\"ids\":\\[\"[^\"]*\"", "\"ids\":[\"unknown\"");
      driver.write(arrow("a", CircuitTest.PAGES, List.of(plus(1, 5))));
      driver.news();
      assertFalse(driver.tick());
      assertInstanceOf(StateLost.class, driver.loop.failure(""));
      driver.ids = ids;
      driver.loop.wake();
      driver.news();
      assertTrue(driver.tick());
      assertEquals(2, driver.ends.get("inbox").intValue());
    }
  }

  @Test
  void aReaderThatFailsIsNamedAndRemoved() throws IOException {
    try (Driver driver = new Driver(sums(), 1)) {
      driver.news();
      assertTrue(driver.tick());  // that of the clock
      driver.commit();
      KafkaReader gone = new KafkaReader("gone", "127.0.0.1:1", List.of("t"), Map.of("security.protocol", "PLAINTEXT"));
      driver.loop.add("gone", gone, "{\"t\":{\"0\":0}}");
      assertEquals(List.of("gone"), driver.news());
      assertNotNull(driver.loop.failure("gone"));
      assertTrue(driver.tick());
      assertTrue(driver.ends.get("readers").isEmpty());
    }
  }

  /** Fails when a row's value is negative, after it has written to the state. */
  private static final class Faulty extends Operator {
    private static final long serialVersionUID = 1;

    @Override public StructType[] ports() { return new StructType[] {CircuitTest.PAGES}; }

    @Override public StructType output() { return CircuitTest.PAGES; }

    @Override public byte[] key(int port, UnsafeRow row) { return State.NONE; }

    @Override public void run(Tick tick, List<List<Change>> input) {
      for (Change c : input.get(0)) {
        try (State.Entries entries = tick.state.entries(id, 0, utf8("count"))) {
          while (entries.next()) {}
        }
        long count = tick.state.weigh(id, 0, utf8("count"), State.NONE, c.weight());
        if (c.row().getInt(1) < 0) throw new IllegalStateException("negative");
        tick.emit(this, new GenericInternalRow(new Object[] {c.row().getInt(0), (int) count}), 1);
      }
    }
  }

  private static Circuit faulty() {
    Circuit c = new Circuit();
    c.source(1, "a", Decoder.arrow(CircuitTest.PAGES), empty(CircuitTest.PAGES));
    c.operator(2, new Faulty());
    c.edge(1, empty(CircuitTest.PAGES), 2, 0);
    c.relation(1, CircuitTest.PAGES, 0);
    c.output(2, empty(CircuitTest.PAGES), 1);
    c.seal();
    return c;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void anOperatorThatThrowsLeavesNoChangeOfTheState(int partitions) throws IOException {
    try (Driver driver = new Driver(faulty(), partitions)) {
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(1, 10))));
      driver.commit();
      driver.write(arrow("a", CircuitTest.PAGES, List.of(plus(2, -1))));
      driver.news();
      for (int attempt = 0; attempt < 2; attempt++) {
        assertFalse(driver.tick());
        assertInstanceOf(OperatorFailed.class, driver.loop.failure(""));
      }
      driver.loop.use(sums());  // as if the views of the operator were stopped
      assertTrue(driver.tick());
      driver.commit();
      driver.loop.use(faulty());
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(3, 1))));
      assertEquals(Bag.of(row(3, 2)), changes(CircuitTest.PAGES, driver.changes), "of the failed rows nothing was counted");
    }
  }

  /** Sums of each k, with these shapes of the edges. */
  private static Circuit filtered(Dataset<Row> pages, Dataset<Row> sums) {
    Circuit c = new Circuit();
    c.source(1, "a", Decoder.arrow(CircuitTest.PAGES), pages);
    c.operator(2, CircuitTest.sums());
    c.edge(1, pages, 2, 0);
    c.relation(1, CircuitTest.SUMS, 0);
    c.output(2, sums, 1);
    c.seal();
    return c;
  }

  @Test
  void aNewCircuitKeepsTheExpressionsOfUnchangedEdgesOnly() throws IOException {
    Dataset<Row> pages = empty(CircuitTest.PAGES), sums = empty(CircuitTest.SUMS);
    Circuit first = filtered(pages, sums), second = filtered(pages, sums.where("k > 1"));
    first.warm(spark(), 1, null);
    try (Driver driver = new Driver(first, 1)) {
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(1, 10), plus(2, 20))));
      driver.commit();
      second.warm(spark(), 1, first);
      driver.loop.use(second);
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(1, 1), plus(2, 1))));
      assertEquals(new Bag().add(row(2, 20L, 1L), -1).add(row(2, 21L, 2L), 1), changes(CircuitTest.SUMS, driver.changes));
    }
  }

  @Test
  void aTickHasNoJobAndTheNextLoopContinuesItsState() throws IOException {
    String ids;
    Path state;
    var jobs = spark().sparkContext().dagScheduler().nextJobId();
    try (Driver driver = new Driver(sums(), 1)) {
      state = driver.state;
      for (int n = 1; n <= 50; n++) {
        driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(1, 10))));
        if (n % 10 != 0) driver.commit();  // the others are repeated
      }
      ids = driver.ids;
    }
    assertEquals(jobs, spark().sparkContext().dagScheduler().nextJobId());
    try (Driver driver = new Driver(sums(), 1, state)) {
      driver.ids = ids;
      driver.read(arrow("a", CircuitTest.PAGES, List.of(plus(1, 1))));
      Bag after = changes(CircuitTest.SUMS, driver.changes);
      assertEquals(new Bag().add(row(1, COMMITTED * 10, COMMITTED), -1).add(row(1, COMMITTED * 10 + 1, COMMITTED + 1), 1), after);
    }
  }
}
