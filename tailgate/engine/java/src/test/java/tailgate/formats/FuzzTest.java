package tailgate.formats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import tailgate.errors.SqlError;

/**
 * Damaged messages of every format. A decoder returns a value or throws SqlError, in time and
 * memory that the message's length bounds, and decodes valid messages afterwards.
 *
 * <p>TAILGATE_FUZZ is the number of messages; TAILGATE_SEED repeats a run.
 */
class FuzzTest {
  private static final int MESSAGES = Integer.parseInt(System.getenv().getOrDefault("TAILGATE_FUZZ", "20000"));
  private static final long SEED =
      Long.parseLong(System.getenv().getOrDefault("TAILGATE_SEED", "" + System.nanoTime() % 1_000_000));
  // Memory that a decoder may allocate for a message.
  private static final long BYTES = 64L << 20;
  private static final long BYTES_PER_BYTE = 1000;
  // CPU time that a decoder may take for a message: a thousand times that of a valid one.
  private static final long MILLIS = 2_000;
  private static final long MILLIS_PER_MEGABYTE = 5_000;
  private static final long HEAP_GROWTH = 64L << 20;  // bytes, of the whole run
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private static final class Outcome {
    private int decoded;
    private int refused;
  }

  private final Random random = new Random(SEED);
  private final Mutator mutator = new Mutator(random);
  private final Map<String, Outcome> outcomes = new TreeMap<>();
  private long slowestMillis;
  private long largestBytes;

  @Test
  void damagedMessages() throws IOException {
    try (StubRegistry registry = new StubRegistry()) {
      List<FuzzSubject> subjects = FuzzSubject.all(registry);
      Map<FuzzSubject, List<String>> decoded = new HashMap<>();
      for (FuzzSubject s : subjects) decoded.put(s, s.decoded());
      long heap = 0;
      for (int i = 0; i < MESSAGES; i++) {
        FuzzSubject s = subjects.get(i % subjects.size());
        decode(s, i, mutator.mutate(s.messages().get(random.nextInt(s.messages().size()))));
        if (i == MESSAGES / 10) heap = usedHeap();
      }
      System.out.println("fuzz: slowest " + slowestMillis + " ms, largest " + largestBytes + " bytes of memory");
      for (FuzzSubject s : subjects) assertEquals(decoded.get(s), s.decoded(), s.name() + " decodes after errors");
      assertTrue(usedHeap() < heap + HEAP_GROWTH, "memory does not grow");
    }
    outcomes.forEach((name, o) -> {
      System.out.println("fuzz: " + name + ": " + o.decoded + " decoded, " + o.refused + " refused");
      assertTrue(o.refused > 0, name);
    });
  }

  private void decode(FuzzSubject s, int i, byte[] message) {
    Outcome outcome = outcomes.computeIfAbsent(s.name(), n -> new Outcome());
    long allocatedBefore = THREADS.getCurrentThreadAllocatedBytes();
    long cpuBefore = THREADS.getCurrentThreadCpuTime();
    try {
      s.format().decode(message);
      outcome.decoded++;
    } catch (SqlError e) {
      outcome.refused++;
    } catch (Throwable e) {
      throw new AssertionError(e + describe(s, i, message), e);
    }
    long bytes = THREADS.getCurrentThreadAllocatedBytes() - allocatedBefore;
    long millis = (THREADS.getCurrentThreadCpuTime() - cpuBefore) / 1_000_000;
    slowestMillis = Math.max(slowestMillis, millis);
    largestBytes = Math.max(largestBytes, bytes);
    if (bytes > BYTES + BYTES_PER_BYTE * message.length) fail(bytes + " bytes of memory" + describe(s, i, message));
    if (millis > MILLIS + MILLIS_PER_MEGABYTE * message.length / 1_000_000) {
      fail(millis + " ms" + describe(s, i, message));
    }
  }

  private static String describe(FuzzSubject s, int i, byte[] message) {
    String bytes = Base64.getEncoder().encodeToString(Arrays.copyOf(message, Math.min(message.length, 300)));
    return ": seed " + SEED + ", message " + i + " of " + s.name() + ", " + message.length + " bytes: " + bytes;
  }

  private static long usedHeap() {
    System.gc();
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }
}
