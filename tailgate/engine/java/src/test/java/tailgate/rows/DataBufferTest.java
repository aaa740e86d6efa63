package tailgate.rows;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** A buffer that is used again, compared with the streams of Java. */
class DataBufferTest {
  @Test void eachUseHasItsOwnBytes() throws IOException {
    DataBuffer buffer = new DataBuffer();
    for (int length : new int[] {0, 200, 3, 70_000, 1}) {
      byte[] more = new byte[length];
      new Random(length).nextBytes(more);
      DataBuffer.Writer writer = out -> {
        out.writeLong(-length);
        out.write(more);
        out.writeShort(length);
        out.writeDouble(0.5);
        out.writeUTF("äöü");
      };
      ByteArrayOutputStream expected = new ByteArrayOutputStream();
      writer.write(new DataOutputStream(expected));
      byte[] bytes = buffer.encode(writer);
      assertArrayEquals(expected.toByteArray(), bytes);
      buffer.decode(bytes, in -> {
        assertEquals(-length, in.readLong());
        byte[] read = new byte[length];
        in.readFully(read);
        assertArrayEquals(more, read);
        assertEquals((short) length, in.readShort());
        assertEquals(0.5, in.readDouble());
        assertEquals("äöü", in.readUTF());
      });
    }
  }

  @Test void theEndIsAnError() {
    DataBuffer buffer = new DataBuffer();
    buffer.decode(new byte[100], in -> in.readLong());
    assertThrows(UncheckedIOException.class, () -> buffer.decode(new byte[7], in -> in.readLong()));
    assertThrows(UncheckedIOException.class, () -> buffer.decode(new byte[1], in -> in.readUnsignedShort()));
  }
}
