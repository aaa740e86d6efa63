package tailgate;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** Two numbers as a value of the state, in as few bytes as hold them. */
record Two(long first, long second) {
  static Two of(byte[] value) {
    int cut = 1 + value[0];
    return new Two(State.weight(Arrays.copyOfRange(value, 1, cut)), State.weight(Arrays.copyOfRange(value, cut, value.length)));
  }

  byte[] bytes() {
    byte[] a = State.weight(first), b = State.weight(second);
    return ByteBuffer.allocate(1 + a.length + b.length).put((byte) a.length).put(a).put(b).array();
  }
}
