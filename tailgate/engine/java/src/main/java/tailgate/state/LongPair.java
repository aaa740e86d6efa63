package tailgate.state;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** A value of the state that consists of two numbers, encoded in as few bytes as possible. */
public record LongPair(long first, long second) {
  public static LongPair of(byte[] value) {
    int cut = 1 + value[0];
    return new LongPair(State.weight(Arrays.copyOfRange(value, 1, cut)), State.weight(Arrays.copyOfRange(value, cut, value.length)));
  }

  public byte[] bytes() {
    byte[] a = State.weight(first), b = State.weight(second);
    return ByteBuffer.allocate(1 + a.length + b.length).put((byte) a.length).put(a).put(b).array();
  }
}
