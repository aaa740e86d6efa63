package tailgate;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A JSON object as a struct of declared columns, read by name in one pass: what is not declared is skipped, what is missing is NULL, and a value of another type makes the record
 * a dead letter.
 *
 * <p>Numbers for numbers (whole ones for whole columns), strings for text and for dates and times (as PostgreSQL reads them), strings in base64 for binary, objects for
 * structs, arrays for arrays. A column of text whose metadata has `"jsonb": true` takes any value, as canonical text.
 */
final class JsonColumns extends Format {
  private static final long serialVersionUID = 1;
  private final StructType columns;
  private transient Map<StructType, Map<String, Integer>> places;

  JsonColumns(StructType columns) {
    this.columns = columns;
    for (StructField f : columns.fields()) check(f.dataType());
  }

  private static void check(DataType type) {
    if (type instanceof StructType s) for (StructField f : s.fields()) check(f.dataType());
    else if (type instanceof ArrayType a) check(a.elementType());
    else if (!(type instanceof NumericType || type instanceof StringType || type == DataTypes.BooleanType || type == DataTypes.BinaryType || type == DataTypes.DateType
        || type == DataTypes.TimestampType || type == DataTypes.TimestampNTZType)) throw new IllegalArgumentException("no " + type.catalogString() + " in JSON");
  }

  @Override DataType type() { return columns; }

  @Override Object decode(byte[] bytes) {
    Utf8.checked(bytes);
    if (places == null) places = new IdentityHashMap<>();
    try (JsonParser p = Jsonb.FACTORY.createParser(bytes)) {
      JsonToken token = p.nextToken();
      if (token == null) throw Jsonb.invalid();
      Object row = token == JsonToken.VALUE_NULL ? null : struct(p, columns, "the value");
      if (p.nextToken() != null) throw Jsonb.invalid();
      return row;
    } catch (IOException e) {
      throw Jsonb.invalid(e);
    }
  }

  private InternalRow struct(JsonParser p, StructType type, String name) throws IOException {
    if (p.currentToken() != JsonToken.START_OBJECT) throw mismatch(p, type, name);
    Map<String, Integer> places = this.places.computeIfAbsent(type, JsonColumns::places);
    Object[] values = new Object[type.length()];
    while (p.nextToken() != JsonToken.END_OBJECT) {
      Integer at = places.get(p.currentName());
      p.nextToken();
      if (at == null) p.skipChildren();
      else values[at] = value(p, type.apply(at).dataType(), type.apply(at).name(), type.apply(at).metadata());
    }
    return new GenericInternalRow(values);
  }

  private static Map<String, Integer> places(StructType type) {
    Map<String, Integer> places = new HashMap<>();
    for (int i = 0; i < type.length(); i++) places.put(type.apply(i).name(), i);
    return places;
  }

  private Object value(JsonParser p, DataType type, String name, Metadata metadata) throws IOException {
    JsonToken token = p.currentToken();
    if (metadata.contains("jsonb")) return UTF8String.fromBytes(Jsonb.canonical(p, 64));
    if (token == JsonToken.VALUE_NULL) return null;
    if (type instanceof StructType s) return struct(p, s, name);
    if (type instanceof ArrayType a) {
      if (token != JsonToken.START_ARRAY) throw mismatch(p, type, name);
      List<Object> elements = new ArrayList<>();
      while (p.nextToken() != JsonToken.END_ARRAY) elements.add(value(p, a.elementType(), name, Metadata.empty()));
      return new GenericArrayData(elements.toArray());
    }
    if (type == DataTypes.BooleanType && token.isBoolean()) return token == JsonToken.VALUE_TRUE;
    if (type instanceof IntegralType && token == JsonToken.VALUE_NUMBER_INT) return whole(p, type, name);
    if (type instanceof NumericType && !(type instanceof IntegralType) && token.isNumeric()) return number(p, type);
    if (token == JsonToken.VALUE_STRING) return text(p, type, name);
    throw mismatch(p, type, name);
  }

  private static Object whole(JsonParser p, DataType type, String name) throws IOException {
    if (p.getNumberType() == JsonParser.NumberType.BIG_INTEGER) return Numbers.of(new BigDecimal(p.getText()), type);
    long value = p.getLongValue();
    if (type == DataTypes.LongType) return value;
    if (type == DataTypes.IntegerType && value == (int) value) return (int) value;
    return Numbers.of(BigDecimal.valueOf(value), type);
  }

  private static Object number(JsonParser p, DataType type) throws IOException {
    UTF8String text = UTF8String.fromString(p.getText());
    if (type == DataTypes.DoubleType) return TextInput.toFloat8(text);
    if (type == DataTypes.FloatType) return TextInput.toFloat4(text);
    DecimalType d = (DecimalType) type;
    return TextInput.toNumeric(text, d.precision(), d.scale());
  }

  private static Object text(JsonParser p, DataType type, String name) throws IOException {
    UTF8String text = UTF8String.fromString(p.getText());
    if (type instanceof StringType) {
      Utf8.checked(text.getBytes());
      return text;
    }
    if (type == DataTypes.DateType) return TimeInput.toDate(text);
    if (type == DataTypes.TimestampType) return TimeInput.toTimestamptz(text);
    if (type == DataTypes.TimestampNTZType) return TimeInput.toTimestamp(text);
    if (type == DataTypes.BinaryType) return p.getBinaryValue();
    throw mismatch(p, type, name);
  }

  private static SqlError mismatch(JsonParser p, DataType type, String name) throws IOException {
    String given = switch (p.currentToken()) {
      case START_OBJECT -> "object";
      case START_ARRAY -> "array";
      case VALUE_STRING -> "string";
      case VALUE_TRUE, VALUE_FALSE -> "boolean";
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> "number";
      default -> throw Jsonb.invalid();
    };
    return new SqlError("22P02", "column \"" + name + "\" is of type " + type.catalogString() + " but the value is a JSON " + given);
  }
}
