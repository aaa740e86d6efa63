package tailgate.functions.text;

import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * Positions in a database's log, as text with the same order. Generated code calls the function
 * ({@code Functions}).
 */
public final class LogPositions {
  private LogPositions() {}

  /**
   * Returns a number padded with zeros to at least {@code width} digits. Throws 22023 if it is
   * negative.
   */
  public static UTF8String of(long number, int width) {
    if (number < 0) throw new SqlError("22023", "log position is negative: " + number);
    int length = width;
    for (long rest = number, digits = 1; ; rest /= 10, digits++) {
      if (digits > length) length = (int) digits;
      if (rest < 10) break;
    }
    byte[] text = new byte[length];
    Arrays.fill(text, (byte) '0');
    for (long rest = number; rest > 0; rest /= 10) text[--length] = (byte) ('0' + rest % 10);
    return UTF8String.fromBytes(text);
  }
}
