package tailgate;

import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;

/** Places in a database's log as text that sorts as they do. Called by generated code ({@link Functions}). */
public final class Positions {
  private Positions() {}

  /** The number's digits behind as many zeros as make them `width`; 22023 below zero. */
  public static UTF8String of(long number, int width) {
    if (number < 0) throw new SqlError("22023", "a position below zero: " + number);
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
