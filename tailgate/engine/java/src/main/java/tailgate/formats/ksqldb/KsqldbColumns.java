package tailgate.formats.ksqldb;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * The columns of a key or a value of ksqlDB.
 *
 * @param names by ksqlDB's spelling
 * @param types by PostgreSQL's names: bool, int4, int8, float8, numeric, text, bytea, date, time,
 *     timestamp, jsonb
 * @param nested descriptors of the types of arrays, maps and structures ({@code KsqldbConversion}), or null
 * @param struct the columns in their stored form
 */
record KsqldbColumns(String[] names, String[] types, String[] nested, StructType struct) implements Serializable {
  /** Returns the columns of a specification: an array of objects with name, type, spark and possibly nested. */
  static KsqldbColumns of(JsonNode columns) {
    String[] names = new String[columns.size()];
    String[] types = new String[columns.size()];
    String[] nested = new String[columns.size()];
    StructType struct = new StructType();
    for (int i = 0; i < names.length; i++) {
      names[i] = columns.get(i).get("name").asText();
      types[i] = columns.get(i).get("type").asText();
      if (columns.get(i).has("nested")) nested[i] = columns.get(i).get("nested").asText();
      struct = struct.add("c" + i, DataType.fromDDL(columns.get(i).get("spark").asText()));
    }
    return new KsqldbColumns(names, types, nested, struct);
  }

  int size() { return names.length; }

  DataType spark(int column) { return struct.apply(column).dataType(); }

  /** Returns the indexes of the columns by name and, unless another column has it, by lower-case name. */
  Map<String, Integer> indexes() {
    Map<String, Integer> indexes = new HashMap<>();
    for (int i = names.length - 1; i >= 0; i--) indexes.put(folded(names[i]), i);
    for (int i = 0; i < names.length; i++) indexes.put(names[i], i);
    return indexes;
  }

  static String folded(String name) { return name.toLowerCase(Locale.ROOT); }
}
