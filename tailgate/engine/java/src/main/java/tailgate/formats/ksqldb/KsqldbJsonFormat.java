package tailgate.formats.ksqldb;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.formats.Format;
import tailgate.formats.json.JsonTypes;
import tailgate.functions.json.Jsonb;
import tailgate.functions.ksqldb.KsqldbConversion;
import tailgate.functions.text.Utf8;

/**
 * ksqlDB's JSON: an object whose members are columns, or the value of the only column.
 *
 * <p>Names match regardless of case; a name that is equal comes first. Members without a column are
 * skipped, and missing ones are NULL. A number may be a string. A text takes any value: of an
 * object its JSON, with the members sorted by name, of an array the texts of its elements, {@code [a, 1]}, of a number with
 * a fraction or an exponent the text of its BigDecimal.
 *
 * <p>Source: ksqlDB 0.29, documentation, "Serialization formats", "JSON".
 */
final class KsqldbJsonFormat extends Format {
  private static final long serialVersionUID = 1;
  private final KsqldbColumns columns;
  private final boolean wrapped;
  private transient Map<String, Integer> indexes;

  KsqldbJsonFormat(KsqldbColumns columns, boolean wrapped) {
    this.columns = columns;
    this.wrapped = wrapped;
  }

  @Override public DataType type() { return columns.struct(); }

  @Override public Object decode(byte[] bytes) {
    Utf8.checked(bytes);
    try (JsonParser p = Jsonb.FACTORY.createParser(bytes)) {
      JsonToken token = p.nextToken();
      if (token == null) throw Jsonb.invalid();
      Object[] values = token == JsonToken.VALUE_NULL ? null : wrapped ? object(p) : new Object[] {value(p, 0)};
      if (p.nextToken() != null) throw Jsonb.invalid();
      return values == null ? null : new GenericInternalRow(values);
    } catch (IOException e) {
      throw Jsonb.invalid(e);
    } catch (NumberFormatException e) {  // the exponent is out of range
      throw Jsonb.numericOverflow();
    }
  }

  private Object[] object(JsonParser p) throws IOException {
    if (p.currentToken() != JsonToken.START_OBJECT) throw JsonTypes.mismatch(p, "the value", columns.struct());
    if (indexes == null) indexes = columns.indexes();
    Object[] values = new Object[columns.size()];
    while (p.nextToken() != JsonToken.END_OBJECT) {
      String name = p.currentName();
      Integer i = indexes.get(name);
      if (i == null) i = indexes.get(KsqldbColumns.folded(name));
      p.nextToken();
      if (i == null) p.skipChildren();
      else values[i] = value(p, i);
    }
    return values;
  }

  private Object value(JsonParser p, int column) throws IOException {
    JsonToken token = p.currentToken();
    if (token == JsonToken.VALUE_NULL) return null;
    String type = columns.types()[column];
    DataType spark = columns.spark(column);
    switch (type) {
      case "text": return text(p, token);
      case "jsonb": return jsonb(p, columns.nested()[column]);
      case "bool":
        if (token.isBoolean()) return token == JsonToken.VALUE_TRUE;
        break;
      default:
        if (token == JsonToken.VALUE_STRING) return KsqldbValues.ofText(p.getText(), type, spark);
        if (!token.isNumeric() || type.equals("bytea")) break;
        if (token == JsonToken.VALUE_NUMBER_INT && p.getNumberType() != JsonParser.NumberType.BIG_INTEGER) {
          return KsqldbValues.ofLong(p.getLongValue(), type, spark);
        }
        if (type.equals("float8")) return Double.parseDouble(p.getText());
        return KsqldbValues.ofNumber(p.getDecimalValue(), type, spark);
    }
    throw JsonTypes.mismatch(p, columns.names()[column], spark);
  }

  /** Returns a value as jsonb, in the form of its type if there is one. */
  private static UTF8String jsonb(JsonParser p, String type) throws IOException {
    UTF8String json = UTF8String.fromBytes(Jsonb.canonical(p, 64));
    return type == null ? json : KsqldbConversion.ksqldbConvert(json, UTF8String.fromString(type));
  }

  private static UTF8String text(JsonParser p, JsonToken token) throws IOException {
    if (token == JsonToken.VALUE_STRING) {
      byte[] ascii = Utf8.ascii(p.getTextCharacters(), p.getTextOffset(), p.getTextLength());
      return ascii != null ? UTF8String.fromBytes(ascii) : Utf8.text(p.getText());
    }
    return Utf8.text(textOf(p, token));
  }

  private static String textOf(JsonParser p, JsonToken token) throws IOException {
    if (token == JsonToken.START_ARRAY) {
      StringJoiner elements = new StringJoiner(", ", "[", "]");
      while (p.nextToken() != JsonToken.END_ARRAY) elements.add(textOf(p, p.currentToken()));
      return elements.toString();
    }
    if (token == JsonToken.START_OBJECT) return json(p, token);
    return token == JsonToken.VALUE_NUMBER_FLOAT ? p.getDecimalValue().toString() : p.getText();
  }

  /** Returns the JSON of a value without blanks. */
  private static String json(JsonParser p, JsonToken token) throws IOException {
    switch (token) {
      case START_OBJECT -> {
        Map<String, String> members = new TreeMap<>();
        while (p.nextToken() != JsonToken.END_OBJECT) {
          String name = p.currentName();
          members.put(name, json(p, p.nextToken()));
        }
        StringJoiner out = new StringJoiner(",", "{", "}");
        members.forEach((name, value) -> out.add(quoted(name) + ":" + value));
        return out.toString();
      }
      case START_ARRAY -> {
        StringJoiner out = new StringJoiner(",", "[", "]");
        while (p.nextToken() != JsonToken.END_ARRAY) out.add(json(p, p.currentToken()));
        return out.toString();
      }
      case VALUE_STRING -> {
        return quoted(p.getText());
      }
      default -> {
        return textOf(p, token);
      }
    }
  }

  private static String quoted(String text) { return new String(Jsonb.quoted(text), StandardCharsets.UTF_8); }
}
