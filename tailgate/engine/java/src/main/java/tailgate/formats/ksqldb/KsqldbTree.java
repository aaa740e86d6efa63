package tailgate.formats.ksqldb;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.formats.Format;
import tailgate.functions.json.JsonbConstruction;
import tailgate.functions.json.JsonbTree;
import tailgate.functions.json.JsonbTree.JsonNumber;
import tailgate.functions.ksqldb.KsqldbConversion;

/**
 * Conversion of the trees of Avro and Protobuf ({@code AvroTree}, {@code ProtobufTree}) to the stored
 * forms of columns. Names match regardless of case; a name that is equal comes first.
 */
final class KsqldbTree {
  private KsqldbTree() {}

  /** Returns the columns of a record; those that it lacks are NULL. */
  static InternalRow row(KsqldbColumns columns, Map<?, ?> record) {
    Map<String, Object> folded = new TreeMap<>();
    record.forEach((name, value) -> folded.put(((String) name).toLowerCase(Locale.ROOT), value));
    Object[] values = new Object[columns.size()];
    for (int i = 0; i < values.length; i++) {
      String name = columns.names()[i];
      values[i] = value(columns, i, record.containsKey(name) ? record.get(name) : folded.get(KsqldbColumns.folded(name)));
    }
    return new GenericInternalRow(values);
  }

  /** Returns the only column. */
  static InternalRow alone(KsqldbColumns columns, Object value) {
    return new GenericInternalRow(new Object[] {value(columns, 0, value)});
  }

  private static Object value(KsqldbColumns columns, int column, Object value) {
    if (value == null) return null;
    String type = columns.types()[column];
    DataType spark = columns.spark(column);
    switch (type) {
      case "text":
        if (value instanceof UTF8String text) return text;
        if (value instanceof Number || value instanceof Boolean) return UTF8String.fromString(value.toString());
        return UTF8String.fromString(KsqldbConversion.text(jsonb(value)));
      case "jsonb":
        UTF8String json = JsonbTree.text(jsonb(value));
        String nested = columns.nested()[column];
        return nested == null ? json : KsqldbConversion.ksqldbConvert(json, UTF8String.fromString(nested));
      case "bool":
        if (value instanceof Boolean) return value;
        break;
      case "bytea":
        if (value instanceof byte[]) return value;
        break;
      default:
        if (value instanceof Integer || value instanceof Long) return KsqldbValues.ofLong(((Number) value).longValue(), type, spark);
        if (value instanceof Number number) {
          if (type.equals("float8")) return number.doubleValue();
          return KsqldbValues.ofNumber(decimal(number), type, spark);
        }
    }
    if (value instanceof UTF8String text) return KsqldbValues.ofText(text.toString(), type, spark);
    throw Format.malformed("a value of column " + columns.names()[column] + " is not of type " + spark.catalogString());
  }

  private static BigDecimal decimal(Number number) {
    try {
      return number instanceof BigDecimal decimal ? decimal : new BigDecimal(number.toString());
    } catch (NumberFormatException e) {
      throw Format.malformed(number + " is not a number");
    }
  }

  /** Returns a tree of jsonb; bytes are base64. */
  private static Object jsonb(Object value) {
    if (value == null) return JsonbTree.NULL;
    if (value instanceof Boolean) return value;
    if (value instanceof byte[] bytes) return Base64.getEncoder().encodeToString(bytes);
    if (value instanceof Double || value instanceof Float) {
      return JsonbTree.read(JsonbConstruction.jsonbOfFloat8(((Number) value).doubleValue()));
    }
    if (value instanceof BigDecimal decimal) return new JsonNumber(decimal.toPlainString());
    if (value instanceof Number) return new JsonNumber(value.toString());
    if (value instanceof List<?> list) {
      List<Object> out = new ArrayList<>();
      for (Object item : list) out.add(jsonb(item));
      return out;
    }
    if (value instanceof Map<?, ?> map) {
      Map<String, Object> out = new TreeMap<>(JsonbTree.KEY_ORDER);
      map.forEach((key, item) -> out.put((String) key, jsonb(item)));
      return out;
    }
    return value.toString();
  }
}
