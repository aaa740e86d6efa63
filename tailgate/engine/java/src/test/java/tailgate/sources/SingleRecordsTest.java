package tailgate.sources;

import static org.junit.jupiter.api.Assertions.*;

import java.util.Set;
import org.junit.jupiter.api.Test;

class SingleRecordsTest {
  private static SingleRecords ofTable() {
    SingleRecords singles = new SingleRecords();
    singles.set(Set.of("events"), Set.of());
    return singles;
  }

  @Test void fewRecordsHaveATickEach() {
    SingleRecords singles = ofTable();
    for (int record = 0; record < 100; record++) {
      assertTrue(singles.allow(1));
      singles.ticked(1);
    }
    assertFalse(singles.allow(0));
    assertFalse(singles.allow(SingleRecords.most()));
  }

  @Test void recordsThatShareATickCount() {
    SingleRecords singles = ofTable();
    singles.ticked(1_000);  // more than may have a tick each
    assertFalse(singles.allow(5), "five records every 25 ms are more than 50 per second");
    assertFalse(singles.fetchesAtOnce());
  }
}
