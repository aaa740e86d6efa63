package tailgate.operators;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/**
 * An immutable map of each lane to its highest position ({@link ChangeEvent}). There is one lane,
 * or one for each server or domain in the GTIDs.
 */
record LanePositions(Map<String, byte[]> of) {
  static final LanePositions NONE = new LanePositions(Map.of());

  boolean isEmpty() { return of.isEmpty(); }

  /** Returns whether the positions are equal. */
  boolean same(LanePositions other) {
    return of.keySet().equals(other.of.keySet())
        && of.entrySet().stream().allMatch(e -> Arrays.equals(e.getValue(), other.of.get(e.getKey())));
  }

  /**
   * Returns whether the event is at or before its lane's position. Events without a position are
   * not.
   */
  boolean reached(ChangeEvent event) {
    return event.position() != null && of.containsKey(event.lane())
        && ChangeEvent.compare(event.position(), of.get(event.lane())) <= 0;
  }

  /** Returns a copy with the position of this event, which must be the highest of its lane. */
  LanePositions with(ChangeEvent event) {
    if (event.position() == null) return this;
    Map<String, byte[]> now = new TreeMap<>(of);
    now.put(event.lane(), event.position());
    return new LanePositions(now);
  }

  void write(DataOutput out) throws IOException {
    out.writeShort(of.size());
    for (var lane : of.entrySet()) {
      out.writeUTF(lane.getKey());
      out.writeShort(lane.getValue().length);
      out.write(lane.getValue());
    }
  }

  static LanePositions read(DataInput in) throws IOException {
    int n = in.readUnsignedShort();
    if (n == 0) return NONE;
    Map<String, byte[]> of = new TreeMap<>();
    for (int i = 0; i < n; i++) {
      String lane = in.readUTF();
      byte[] position = new byte[in.readUnsignedShort()];
      in.readFully(position);
      of.put(lane, position);
    }
    return new LanePositions(of);
  }
}
