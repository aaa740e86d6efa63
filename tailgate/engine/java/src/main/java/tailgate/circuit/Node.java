package tailgate.circuit;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import tailgate.errors.SqlError;
import tailgate.rows.Change;
import tailgate.rows.RowSink;
import tailgate.rows.Steps;
import tailgate.sources.Decoder;

/** A source or an operator of a circuit, with its outgoing edges. */
public abstract class Node implements Serializable, Cloneable {
  private static final long serialVersionUID = 1;
  public int id;
  public List<Edge> out = new ArrayList<>();
  /** Relations that receive an error of this node. */
  public int[] errors;
  /** The edges along which changes are sent one by one, and those along which a batch is sent edge by edge ({@link Tick#flush}). */
  List<Edge> direct = List.of(), batched = List.of();

  /** Returns this node without edges, for another circuit. Both share generated code. */
  Node copy() {
    try {
      Node copy = (Node) clone();
      copy.out = new ArrayList<>();
      copy.direct = copy.batched = List.of();
      copy.errors = null;
      return copy;
    } catch (CloneNotSupportedException e) {
      throw new AssertionError(e);
    }
  }

  /** An edge from a node to an operator's port or to a relation. */
  public static final class Edge implements Serializable {
    private static final long serialVersionUID = 1;
    /** The port of an edge that ends in a relation. */
    static final int RELATION = -1;
    final Steps linear;
    public final int to, port;
    /** Relations that receive an error of this edge. */
    public int[] errors;
    /** Index of the operator `to` in {@link Circuit#order}. */
    int index = -1;
    /** Whether both ends are in the same loop. */
    boolean inLoop;

    Edge(Steps linear, int to, int port) {
      this.linear = linear;
      this.to = to;
      this.port = port;
    }

    /** Returns this edge, for another circuit. Both share generated code. */
    Edge copy() { return new Edge(linear, to, port); }
  }

  /** A source: decodes the records of a channel to rows. */
  public static final class Source extends Node {
    private static final long serialVersionUID = 1;
    public final String channel;
    public final Decoder decoder;
    final Steps shape;
    List<Edge> dead = new ArrayList<>();
    final String onError;

    public Source(String channel, Decoder decoder, Steps shape, String onError) {
      this.onError = onError;
      this.channel = channel;
      this.decoder = decoder;
      this.shape = shape;
    }

    @Override Node copy() {
      Source copy = (Source) super.copy();
      copy.dead = new ArrayList<>();
      return copy;
    }

    /**
     * Passes the rows of one record, with its {@link Change#order}. `time`: of the tick. If the decoder or an
     * expression throws, rows passed before do not count.
     */
    public void rows(InternalRow kafka, long time, long order, RowSink to) {
      long tick = channel.startsWith(Circuit.FILL) ? Decoder.HISTORY : time;
      try {
        decoder.decode(kafka, tick, order, (row, weight) -> {
          UnsafeRow shaped = shape.apply(row);
          if (shaped != null && weight != 0) to.add(shaped, weight, order);
        });
      } catch (StackOverflowError e) {
        throw SqlError.tooDeep();
      }
    }
  }
}
