package tailgate.formats.json;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.formats.Format;
import tailgate.functions.json.Jsonb;
import tailgate.functions.numeric.NumberInput;
import tailgate.functions.numeric.Numbers;
import tailgate.functions.text.Utf8;
import tailgate.functions.time.TimeInput;

/**
 * A JSON object as a struct of declared columns, read by name in one pass. Undeclared members are
 * skipped, missing ones are NULL, and a value of another type makes the message a dead letter.
 *
 * <p>A number type takes a JSON number (an integer type takes integers only). Text, dates and
 * timestamps take a string, binary a string in base64, a struct an object, and an array an array. A
 * text column whose metadata has {@code "jsonb": true} takes any value, as canonical text.
 */
public final class JsonColumnsFormat extends Format {
  private static final long serialVersionUID = 1;
  private final StructType columns;
  private transient Map<StructType, Fields> fields;
  private transient FlatJson flat;

  /** The fields of a struct, their indexes by name, and which of them are jsonb. */
  private record Fields(Map<String, Integer> indexes, StructField[] fields, boolean[] jsonb) {
    static Fields of(StructType type) {
      Map<String, Integer> indexes = new HashMap<>();
      boolean[] jsonb = new boolean[type.length()];
      for (int i = 0; i < jsonb.length; i++) {
        indexes.put(type.apply(i).name(), i);
        jsonb[i] = type.apply(i).metadata().contains("jsonb");
      }
      return new Fields(indexes, type.fields(), jsonb);
    }
  }

  public JsonColumnsFormat(StructType columns) {
    this.columns = columns;
    checkSupported(columns);
  }

  private static void checkSupported(DataType type) {
    if (type instanceof StructType s) {
      for (StructField f : s.fields()) checkSupported(f.dataType());
    } else if (type instanceof ArrayType a) {
      checkSupported(a.elementType());
    } else if (!isScalar(type)) {
      throw new IllegalArgumentException("JSON cannot be read as " + type.catalogString());
    }
  }

  private static boolean isScalar(DataType type) {
    return type instanceof NumericType || type instanceof StringType || type == DataTypes.BooleanType
        || type == DataTypes.BinaryType || type == DataTypes.DateType || type == DataTypes.TimestampType
        || type == DataTypes.TimestampNTZType;
  }

  @Override public DataType type() { return columns; }

  @Override public Object decode(byte[] bytes) {
    Utf8.checked(bytes);
    if (fields == null) open();
    Object[] values = flat.values(bytes);
    return values != null ? new GenericInternalRow(values) : parsed(bytes);
  }

  private void open() {
    fields = new IdentityHashMap<>();
    flat = new FlatJson(columns, fields(columns).jsonb);
  }

  private Fields fields(StructType type) { return fields.computeIfAbsent(type, Fields::of); }

  /** Returns the row of any message, or throws its error. */
  Object parsed(byte[] bytes) {
    if (fields == null) open();
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
    if (p.currentToken() != JsonToken.START_OBJECT) throw JsonTypes.mismatch(p, name, type);
    Fields f = fields(type);
    Object[] values = new Object[f.fields.length];
    while (p.nextToken() != JsonToken.END_OBJECT) {
      Integer i = f.indexes.get(p.currentName());
      p.nextToken();
      if (i == null) p.skipChildren();
      else if (f.jsonb[i]) values[i] = UTF8String.fromBytes(Jsonb.canonical(p, 64));
      else values[i] = value(p, f.fields[i].dataType(), f.fields[i].name());
    }
    return new GenericInternalRow(values);
  }

  private Object value(JsonParser p, DataType type, String name) throws IOException {
    JsonToken token = p.currentToken();
    if (token == JsonToken.VALUE_NULL) return null;
    if (type instanceof StructType s) return struct(p, s, name);
    if (type instanceof ArrayType a) return array(p, a, name);
    if (type == DataTypes.BooleanType && token.isBoolean()) return token == JsonToken.VALUE_TRUE;
    if (type instanceof IntegralType && token == JsonToken.VALUE_NUMBER_INT) return integer(p, type);
    if (type instanceof NumericType && !(type instanceof IntegralType) && token.isNumeric()) return number(p, type);
    if (token == JsonToken.VALUE_STRING) return string(p, type, name);
    throw JsonTypes.mismatch(p, name, type);
  }

  private Object array(JsonParser p, ArrayType type, String name) throws IOException {
    if (p.currentToken() != JsonToken.START_ARRAY) throw JsonTypes.mismatch(p, name, type);
    List<Object> elements = new ArrayList<>();
    while (p.nextToken() != JsonToken.END_ARRAY) elements.add(value(p, type.elementType(), name));
    return new GenericArrayData(elements.toArray());
  }

  private static Object integer(JsonParser p, DataType type) throws IOException {
    if (p.getNumberType() == JsonParser.NumberType.BIG_INTEGER) return Numbers.of(new BigDecimal(p.getText()), type);
    long value = p.getLongValue();
    if (type == DataTypes.LongType) return value;
    if (type == DataTypes.IntegerType && value == (int) value) return (int) value;
    return Numbers.of(BigDecimal.valueOf(value), type);
  }

  private static Object number(JsonParser p, DataType type) throws IOException {
    if (type instanceof DecimalType d) {
      Decimal value = Numbers.parseShort(
          p.getTextCharacters(), p.getTextOffset(), p.getTextLength(), d.precision(), d.scale());
      if (value != null) return value;
      return NumberInput.toNumeric(UTF8String.fromString(p.getText()), d.precision(), d.scale());
    }
    return floating(UTF8String.fromString(p.getText()), type);
  }

  static Object floating(UTF8String text, DataType type) {
    if (type == DataTypes.DoubleType) return NumberInput.toFloat8(text);
    return NumberInput.toFloat4(text);
  }

  private static Object string(JsonParser p, DataType type, String name) throws IOException {
    if (type instanceof StringType) {
      byte[] ascii = Utf8.ascii(p.getTextCharacters(), p.getTextOffset(), p.getTextLength());
      if (ascii != null) return UTF8String.fromBytes(ascii);
      return Utf8.text(p.getText());
    }
    UTF8String text = Utf8.text(p.getText());
    if (type == DataTypes.BinaryType) return p.getBinaryValue();
    Object time = time(text, type);
    if (time == null) throw JsonTypes.mismatch(p, name, type);
    return time;
  }

  /** Returns a date or timestamp, or null for another type. */
  static Object time(UTF8String text, DataType type) {
    if (type == DataTypes.DateType) return TimeInput.toDate(text);
    if (type == DataTypes.TimestampType) return TimeInput.toTimestamptz(text);
    if (type == DataTypes.TimestampNTZType) return TimeInput.toTimestamp(text);
    return null;
  }
}
