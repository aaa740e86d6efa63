package tailgate.circuit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.stream.Stream;
import tailgate.state.Snapshots;
import tailgate.state.State;

/** The result of a tick: the net changes of relations, and the ids of the new state. */
public final class TickResult {
  private static final ObjectMapper JSON = new ObjectMapper();
  private final List<Sent> relations, repeated;
  private final String stateIds;
  private final Map<String, Long> counters;
  private final int[] forgotten;
  private final long due;
  private final List<Sent> statistics;
  private final Map<Integer, Long> released;
  private final List<Failure> failures;
  private final Map<Integer, Long> took;

  /**
   * Rows that failed with the same message: in the edge to a node or relation, which continues with NULL, or records of
   * a source that could not be decoded, with `port` {@link Sent#KEY} or {@link Sent#VALUE}.
   */
  public record Failure(int to, int port, String message, long rows) {}

  TickResult(List<Sent> relations, List<Sent> repeated, String stateIds, Map<String, Long> counters, int[] forgotten, long due,
      List<Sent> statistics, Map<Integer, Long> released, List<Failure> failures, Map<Integer, Long> took) {
    this.relations = relations;
    this.repeated = repeated;
    this.stateIds = stateIds;
    this.counters = counters;
    this.forgotten = forgotten;
    this.due = due;
    this.statistics = statistics;
    this.released = released;
    this.failures = failures;
    this.took = took;
  }

  /**
   * Returns the ids of the relations that changed, ascending. The methods below take an index into
   * this array.
   */
  public int[] relations() { return relations.stream().mapToInt(Sent::to).toArray(); }

  /**
   * Returns an Arrow IPC stream: the relation's columns and `__weight` int64, never zero; equal
   * rows are one row. Null if it is in {@link #file}.
   */
  public byte[] changes(int i) { return relations.get(i).kind() == Sent.FILE ? null : relations.get(i).bytes(); }

  /**
   * Returns the name of the file with a large stream, which the receiver removes. Null if
   * {@link #changes} returns the stream.
   */
  public String file(int i) {
    return relations.get(i).kind() == Sent.FILE
        ? new String(relations.get(i).bytes(), StandardCharsets.UTF_8) : null;
  }

  /** Returns the number of rows in the stream. */
  public long rows(int i) { return relations.get(i).n(); }

  /** Returns the opaque ids to pass to the next tick. */
  public String stateIds() { return stateIds; }

  /**
   * Returns `<source>.records`, `.dead_letters`, `.bytes` and `.last_message` (the newest time in
   * ms) for each source that read records, and `<operator>.late_rows` for each operator that dropped late rows.
   */
  public Map<String, Long> counters() { return counters; }

  /**
   * Returns the circuit's forgotten nodes that no longer have state. They need not be passed again.
   */
  public int[] forgotten() { return forgotten; }

  /** Returns the time in ms at which a tick is needed even without input, or `Long.MAX_VALUE`. */
  public long due() { return due; }

  /**
   * Returns the relations from which groups of windows were removed by their retention, each with the time in ms at or before
   * which all of these windows ended.
   */
  public Map<Integer, Long> released() { return released; }

  /** Returns the failures of the tick, of each partition. */
  public List<Failure> failures() { return failures; }

  /**
   * Returns for each operator that ran: node, partition, whether the
   * {@link State#received sum of its input} is known, and the sum as two numbers.
   */
  public long[][] sums() {
    return statistics.stream().map(s -> {
      ByteBuffer in = ByteBuffer.wrap(s.bytes());
      int at = 8 * Statistics.SUMMED;
      return new long[] {s.to(), s.n(), in.getLong(at), in.getLong(at + 8), in.getLong(at + 16)};
    }).toArray(long[][]::new);
  }

  /** Returns the number of entries in the state of an operator, if it ran in the tick; otherwise 0. */
  long entries(int operator) {
    return statistics.stream().filter(s -> s.to() == operator)
        .mapToLong(s -> ByteBuffer.wrap(s.bytes()).getLong(8 * Statistics.ENTRIES)).sum();
  }

  /**
   * Returns the whole result in one message, since every call from the driver is a round trip:
   * length of the JSON (4 bytes, big-endian), JSON, the streams of the relations, and those of rows that are repeated, which the
   * single record of the tick has removed and added again.
   *
   * <pre>   {"relations": [[id, rows, bytes of its stream, null or the file], …], "state": …, "counters": {…},
   * "repeated": [[id, bytes of its stream], …], "forgotten": […], "due": …, "sums": […], "lineage": n, "released": {…},
   * "failures": [[node or relation, port, message, rows], …], "took": [[step, nanoseconds], …]}</pre>
   *
   * <p>A step is "decode", "level n" or "state"; of several partitions, the longest counts.
   */
  byte[] message() {
    ObjectNode head = JSON.createObjectNode();
    ArrayNode all = head.putArray("relations");
    for (int i = 0; i < relations.size(); i++) {
      byte[] changes = changes(i);
      all.addArray().add(relations.get(i).to()).add(rows(i)).add(changes == null ? 0 : changes.length).add(file(i));
    }
    ArrayNode again = head.putArray("repeated");
    for (Sent s : repeated) again.addArray().add(s.to()).add(s.bytes().length);
    head.put("state", stateIds).put("due", due).put("lineage", Snapshots.lineage());
    ObjectNode counts = head.putObject("counters");
    counters.forEach(counts::put);
    ObjectNode until = head.putObject("released");
    released.forEach((relation, time) -> until.put(Integer.toString(relation), time));
    ArrayNode failed = head.putArray("failures");
    for (Failure f : failures) failed.addArray().add(f.to()).add(f.port()).add(f.message()).add(f.rows());
    ArrayNode steps = head.putArray("took");
    took.forEach((step, nanos) ->
        steps.addArray().add(step == Sent.DECODING ? "decode" : step == Sent.COMMITTING ? "state" : "level " + step).add(nanos));
    ArrayNode gone = head.putArray("forgotten");
    for (int node : forgotten) gone.add(node);
    ArrayNode sums = head.putArray("sums");
    for (long[] sum : sums()) {
      ArrayNode one = sums.addArray();
      for (long n : sum) one.add(n);
    }
    try {
      byte[] json = JSON.writeValueAsBytes(head);
      int size = Stream.concat(relations.stream(), repeated.stream()).mapToInt(sent -> sent.kind() == Sent.FILE ? 0 : sent.bytes().length)
          .reduce(4 + json.length, Math::addExact);
      ByteBuffer message = ByteBuffer.allocate(size).putInt(json.length).put(json);
      for (int i = 0; i < relations.size(); i++) if (changes(i) != null) message.put(changes(i));
      for (Sent s : repeated) message.put(s.bytes());
      return message.array();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
