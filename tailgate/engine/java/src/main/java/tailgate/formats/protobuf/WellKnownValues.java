package tailgate.formats.protobuf;

import java.math.BigDecimal;
import java.time.Instant;
import tailgate.errors.SqlError;

/** The values of messages google.protobuf.Timestamp and google.protobuf.Duration. */
final class WellKnownValues {
  private static final long TIMESTAMP_MIN_S = -62_135_596_800L;  // 0001-01-01
  private static final long TIMESTAMP_MAX_S = 253_402_300_799L;  // 9999-12-31 23:59:59
  private static final long DURATION_MAX_S = 315_576_000_000L;  // 10,000 years
  private static final int NANOS_MAX = 999_999_999;

  private WellKnownValues() {}

  private static long seconds(Object[] fields) { return fields[0] == null ? 0 : (Long) fields[0]; }

  private static int nanos(Object[] fields) { return fields[1] == null ? 0 : (Integer) fields[1]; }

  /** Returns a Timestamp in microseconds since 1970. */
  static long timestampMicros(Object[] fields) {
    long seconds = seconds(fields);
    int nanos = nanos(fields);
    if (seconds < TIMESTAMP_MIN_S || seconds > TIMESTAMP_MAX_S || nanos < 0 || nanos > NANOS_MAX) {
      throw new SqlError("22008", "timestamp out of range: " + seconds + " s and " + nanos + " ns");
    }
    return seconds * 1_000_000 + nanos / 1000;
  }

  /** Returns a Timestamp as text, with nanoseconds. */
  static String timestampText(Object[] fields) {
    timestampMicros(fields);  // checks the range
    return Instant.ofEpochSecond(seconds(fields), nanos(fields)).toString();
  }

  /** Returns a Duration in microseconds. */
  static long durationMicros(Object[] fields) {
    long seconds = seconds(fields);
    int nanos = nanos(fields);
    boolean mixedSigns = seconds > 0 && nanos < 0 || seconds < 0 && nanos > 0;
    if (Math.abs(seconds) > DURATION_MAX_S || Math.abs((long) nanos) > NANOS_MAX || mixedSigns) {
      throw new SqlError("22008", "interval out of range: " + seconds + " s and " + nanos + " ns");
    }
    return seconds * 1_000_000 + nanos / 1000;
  }

  /** Returns a Duration as text: decimal seconds, then {@code s}. */
  static String durationText(Object[] fields) {
    durationMicros(fields);  // checks the range
    BigDecimal seconds = BigDecimal.valueOf(seconds(fields)).add(BigDecimal.valueOf(nanos(fields), 9));
    return seconds.stripTrailingZeros().toPlainString() + "s";
  }
}
