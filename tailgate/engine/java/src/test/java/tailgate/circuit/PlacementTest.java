package tailgate.circuit;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class PlacementTest {
  @Test void aPartitionRunsWhereItsStateIsOpen() {
    assertEquals(List.of(List.of("b"), List.of("a")), Placement.of(List.of("b", "a"), List.of("a", "b")));
    assertEquals(List.of(List.of("a"), List.of("b"), List.of("a")), Placement.of(List.of("a", "b", "a"), List.of("a", "b")));
  }

  @Test void anIdleExecutorMayRunThoseBeyondTheShareOfAnother() {
    assertEquals(List.of(List.of("a"), List.of("a", "b")), Placement.of(List.of("a", "a"), List.of("a", "b")));
    assertEquals(List.of(List.of("a"), List.of("b"), List.of("a", "c"), List.of("b", "c")),
        Placement.of(List.of("a", "b", "a", "b"), List.of("a", "b", "c")));
  }

  @Test void moreExecutorsThanPartitions() {
    assertEquals(List.of(List.of("a"), List.of("b")), Placement.of(List.of("a", "b"), List.of("a", "b", "c")));
    assertEquals(List.of(List.of("a"), List.of("a", "b", "c")), Placement.of(List.of("a", "a"), List.of("a", "b", "c")));
  }

  @Test void stateThatIsNotOpenOrOpenInTheDriver() {
    assertEquals(List.of(List.of(), List.of("a")), Placement.of(Arrays.asList(null, "a"), List.of("a", "b")));
    assertEquals(List.of(List.of("driver"), List.of("driver")), Placement.of(List.of("driver", "driver"), List.of()));
  }
}
