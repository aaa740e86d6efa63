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
  private transient Map<StructType, Fields> known;

  /** Of a struct: the place of each name, and what is there. */
  private record Fields(Map<String, Integer> places, StructField[] fields, boolean[] jsonb) {
    static Fields of(StructType type) {
      Map<String, Integer> places = new HashMap<>();
      boolean[] jsonb = new boolean[type.length()];
      for (int i = 0; i < jsonb.length; i++) {
        places.put(type.apply(i).name(), i);
        jsonb[i] = type.apply(i).metadata().contains("jsonb");
      }
      return new Fields(places, type.fields(), jsonb);
    }
  }

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
    if (known == null) known = new IdentityHashMap<>();
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
    Fields of = known.computeIfAbsent(type, Fields::of);
    Object[] values = new Object[of.fields.length];
    while (p.nextToken() != JsonToken.END_OBJECT) {
      Integer at = of.places.get(p.currentName());
      p.nextToken();
      if (at == null) p.skipChildren();
      else if (of.jsonb[at]) values[at] = UTF8String.fromBytes(Jsonb.canonical(p, 64));
      else values[at] = value(p, of.fields[at].dataType(), of.fields[at].name());
    }
    return new GenericInternalRow(values);
  }

  private Object value(JsonParser p, DataType type, String name) throws IOException {
    JsonToken token = p.currentToken();
    if (token == JsonToken.VALUE_NULL) return null;
    if (type instanceof StructType s) return struct(p, s, name);
    if (type instanceof ArrayType a) {
      if (token != JsonToken.START_ARRAY) throw mismatch(p, type, name);
      List<Object> elements = new ArrayList<>();
      while (p.nextToken() != JsonToken.END_ARRAY) elements.add(value(p, a.elementType(), name));
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
    if (type instanceof DecimalType d) {
      Decimal few = Numbers.few(p.getTextCharacters(), p.getTextOffset(), p.getTextLength(), d.precision(), d.scale());
      return few != null ? few : TextInput.toNumeric(UTF8String.fromString(p.getText()), d.precision(), d.scale());
    }
    UTF8String text = UTF8String.fromString(p.getText());
    return type == DataTypes.DoubleType ? TextInput.toFloat8(text) : (Object) TextInput.toFloat4(text);
  }

  private static Object text(JsonParser p, DataType type, String name) throws IOException {
    if (type instanceof StringType) {
      byte[] ascii = Utf8.ascii(p.getTextCharacters(), p.getTextOffset(), p.getTextLength());
      return ascii != null ? UTF8String.fromBytes(ascii) : Utf8.text(p.getText());
    }
    UTF8String text = Utf8.text(p.getText());
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
