package tailgate.aggregates;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Locale;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.functions.text.BitStrings;

/**
 * bit_and, bit_or and bit_xor of bit strings, which are texts of the digits 0 and 1: computed from the
 * number of values of each length that have each bit set.
 */
final class BitStringTotals extends Accumulator {
  private final int column;
  private final String operation;
  /** The number of values with each length, then the number of those that have each bit set. */
  private final TreeMap<Integer, long[]> totals = new TreeMap<>();

  BitStringTotals(AggregateCall call) {
    if (call.result != DataTypes.StringType) throw none(call);
    this.column = call.columns[0];
    this.operation = call.function.substring("bit_".length());
  }

  @Override public void add(InternalRow row, long weight) {
    if (row.isNullAt(column)) return;
    byte[] bits = row.getUTF8String(column).getBytes();
    long[] change = new long[bits.length + 1];
    change[0] = weight;
    for (int i = 0; i < bits.length; i++) if (bits[i] == '1') change[i + 1] = weight;
    add(bits.length, change);
  }

  private void add(int length, long[] change) {
    long[] total = totals.computeIfAbsent(length, n -> new long[n + 1]);
    boolean isZero = true;
    for (int i = 0; i < total.length; i++) {
      total[i] += change[i];
      isZero &= total[i] == 0;
    }
    if (isZero) totals.remove(length);
  }

  @Override public void merge(Accumulator change, GroupValues values) { ((BitStringTotals) change).totals.forEach(this::add); }

  @Override public boolean isZero() { return totals.isEmpty(); }

  @Override public Object result(long rows, GroupValues values) {
    if (totals.isEmpty()) return null;
    if (totals.size() > 1) throw BitStrings.differentSizes(operation.toUpperCase(Locale.ROOT));
    long[] total = totals.firstEntry().getValue();
    byte[] bits = new byte[total.length - 1];
    for (int i = 0; i < bits.length; i++) {
      long ones = total[i + 1];
      boolean isSet = switch (operation) {
        case "and" -> ones == total[0];
        case "or" -> ones != 0;
        default -> (ones & 1) != 0;
      };
      bits[i] = (byte) (isSet ? '1' : '0');
    }
    return UTF8String.fromBytes(bits);
  }

  @Override public void write(DataOutput out) throws IOException {
    out.writeInt(totals.size());
    for (var total : totals.entrySet()) {
      out.writeInt(total.getKey());
      for (long number : total.getValue()) out.writeLong(number);
    }
  }

  @Override public void read(DataInput in) throws IOException {
    totals.clear();
    for (int count = in.readInt(); count > 0; count--) {
      long[] total = new long[in.readInt() + 1];
      for (int i = 0; i < total.length; i++) total[i] = in.readLong();
      totals.put(total.length - 1, total);
    }
  }
}
