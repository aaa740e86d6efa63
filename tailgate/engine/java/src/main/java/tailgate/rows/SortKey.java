package tailgate.rows;

import java.io.Serializable;

/** A column to sort by. */
public record SortKey(int column, boolean descending, boolean nullsFirst) implements Serializable {
  /** Returns the sort keys that these arrays hold, which are of equal length. */
  public static SortKey[] of(int[] columns, boolean[] descending, boolean[] nullsFirst) {
    SortKey[] keys = new SortKey[columns.length];
    for (int i = 0; i < keys.length; i++) keys[i] = new SortKey(columns[i], descending[i], nullsFirst[i]);
    return keys;
  }
}
