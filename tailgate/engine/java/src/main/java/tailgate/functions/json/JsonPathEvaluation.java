package tailgate.functions.json;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;
import tailgate.functions.json.JsonPath.Node;
import tailgate.functions.json.JsonbTree.JsonNumber;
import tailgate.functions.numeric.General;
import tailgate.functions.numeric.GeneralNumerics;
import tailgate.functions.numeric.NumberInput;
import tailgate.functions.text.BoundedMatcher;

/**
 * Evaluates a jsonpath on a tree of {@link JsonbTree}. A condition is true, false or unknown (null).
 * {@code tailgate/sql/compute/jsonb/path_evaluation.py} computes the same and names the source.
 */
final class JsonPathEvaluation {
  private static final String MEMBER = "2203A";
  private static final String ARRAY = "22039";
  private static final String OBJECT = "2203C";
  private static final String NUMBER = "2203B";
  private static final String SUBSCRIPT = "22033";
  private static final String NON_NUMERIC = "22036";
  static final String SINGLETON = "22038";
  private static final long INFINITE_LEVEL = 1L << 31;
  private static final long READS_MAX = 200_000_000;  // characters that a regular expression reads
  private static final int DOUBLE_DIGITS = 15;
  private static final long BASE_FACTOR = 10_000_000_000L;  // of the number of a base in the ids of keyvalue()

  /** An error that conditions and silent calls suppress. */
  static final class PathError extends RuntimeException {
    final transient SqlError error;

    PathError(String sqlstate, String message) {
      super(message, null, false, false);
      this.error = new SqlError(sqlstate, message);
    }
  }

  /** Takes items one by one. Returns whether more are wanted. */
  interface Sink {
    boolean accept(Object item);
  }

  /**
   * The place of an evaluation: the value of {@code @}, the size of the innermost array with subscripts, and
   * the value that contains the items, with its number.
   */
  private record Place(Object current, int size, boolean forgiving, Object base, long baseNumber) {
    Place at(Object item) { return new Place(item, size, forgiving, base, baseNumber); }

    Place inside(int elements) { return new Place(current, elements, forgiving, base, baseNumber); }

    Place forgivingAll() { return new Place(current, size, true, base, baseNumber); }

    Place in(Object newBase, long number) { return new Place(current, size, forgiving, newBase, number); }
  }

  private final JsonPath path;
  private final Object root;
  private final Map<?, ?> variables;
  private long lastNumber = 1;  // of the objects that keyvalue() has made

  JsonPathEvaluation(JsonPath path, Object root, Map<?, ?> variables) {
    this.path = path;
    this.root = root;
    this.variables = variables;
  }

  /** Passes the items of the path to a sink. Throws {@link PathError}. */
  void items(Sink sink) { chain(start(), List.of(path.item()), root, path.lax(), sink); }

  private Place start() { return new Place(root, -1, path.lax(), root, 0); }

  private boolean items(Place place, Node node, Object value, Sink sink) {
    return chain(place, List.of(node), value, path.lax(), sink);
  }

  private boolean following(Place place, List<Node> rest, Object item, Sink sink) {
    return rest.isEmpty() ? sink.accept(item) : chain(place, rest, item, path.lax(), sink);
  }

  private boolean ofElements(Place place, List<Node> nodes, List<?> elements, Sink sink) {
    for (Object element : elements) if (!chain(place, nodes, element, false, sink)) return false;
    return true;
  }

  /**
   * Passes the items of a chain of accessors on a value. {@code unwrap}: the first one applies to the
   * elements of an array. Returns whether more are wanted.
   */
  private boolean chain(Place place, List<Node> nodes, Object value, boolean unwrap, Sink sink) {
    Node node = nodes.get(0);
    List<Node> rest = nodes.subList(1, nodes.size());
    if (node.isCondition()) {
      Boolean holds = condition(place, node, value);
      return following(place, rest, holds == null ? JsonbTree.NULL : holds, sink);
    }
    List<?> elements = value instanceof List<?> list ? list : null;
    switch (node.kind()) {
      case "path": {
        List<Node> all = new ArrayList<>(node.arguments());
        all.addAll(rest);
        return chain(place, all, value, unwrap, sink);
      }
      case "root": return following(place.in(root, 0), rest, root, sink);
      case "current": return following(place, rest, place.current, sink);
      case "null": return following(place, rest, JsonbTree.NULL, sink);
      case "true": return following(place, rest, true, sink);
      case "false": return following(place, rest, false, sink);
      case "number": return following(place, rest, new JsonNumber(node.text()), sink);
      case "string": return following(place, rest, node.text(), sink);
      case "last": return following(place, rest, new JsonNumber(String.valueOf(place.size - 1)), sink);
      case "variable": {
        Object variable = variables.get(node.text());
        if (variable == null) throw new SqlError("42704", "could not find jsonpath variable \"" + node.text() + "\"");
        return following(place.in(variables, 1), rest, variable, sink);
      }
      case "arithmetic": return arithmetic(place, node, value, item -> following(place, rest, item, sink));
      case "key": {
        if (value instanceof Map<?, ?> map) {
          Object member = map.get(node.text());
          if (member != null) return following(place, rest, member, sink);
          if (!place.forgiving) throw new PathError(MEMBER, "JSON object does not contain key \"" + node.text() + "\"");
        } else if (unwrap && elements != null) {
          return ofElements(place, nodes, elements, sink);
        } else if (!place.forgiving) {
          throw new PathError(MEMBER, "jsonpath member accessor can only be applied to an object");
        }
        return true;
      }
      case "any_key": {
        if (value instanceof Map<?, ?> map) {
          for (Object member : map.values()) if (!following(place, rest, member, sink)) return false;
        } else if (unwrap && elements != null) {
          return ofElements(place, nodes, elements, sink);
        } else if (!place.forgiving) {
          throw new PathError(OBJECT, "jsonpath wildcard member accessor can only be applied to an object");
        }
        return true;
      }
      case "all_elements": {
        if (elements != null) {
          for (Object element : elements) if (!following(place, rest, element, sink)) return false;
          return true;
        }
        if (path.lax()) return following(place, rest, value, sink);
        if (!place.forgiving) throw new PathError(ARRAY, "jsonpath wildcard array accessor can only be applied to an array");
        return true;
      }
      case "subscripts": {
        if (elements != null || path.lax()) return subscripts(place, node, rest, value, sink);
        if (!place.forgiving) throw new PathError(ARRAY, "jsonpath array accessor can only be applied to an array");
        return true;
      }
      case "any_level": {
        String[] levels = node.text().split(" ");
        long first = level(levels[0]);
        Place forgiving = place.forgivingAll();
        if (first == 0 && !following(forgiving, rest, value, sink)) return false;
        return deeper(value, 1, first, level(levels[1]), item -> following(forgiving, rest, item, sink));
      }
      case "filter": {
        if (unwrap && elements != null) return ofElements(place, nodes, elements, sink);
        boolean holds = Boolean.TRUE.equals(condition(place.at(value), node.argument(0), value));
        return !holds || following(place, rest, value, sink);
      }
      default: {
        boolean ofArrays = node.text().equals("type") || node.text().equals("size");
        if (unwrap && elements != null && !ofArrays) return ofElements(place, nodes, elements, sink);
        if (node.text().equals("size") && elements == null && place.forgiving && !path.lax()) return true;  // no item
        if (node.text().equals("keyvalue")) return keyValues(place, rest, value, sink);
        return following(place, rest, applied(place, node.text(), value), sink);
      }
    }
  }

  private boolean keyValues(Place place, List<Node> rest, Object value, Sink sink) {
    if (!(value instanceof Map<?, ?> map)) {
      throw new PathError(OBJECT, "jsonpath item method .keyvalue() can only be applied to an object");
    }
    long id = map.isEmpty() ? 0 : place.baseNumber * BASE_FACTOR + JsonbLayout.offset(map, place.base);
    for (Map.Entry<?, ?> member : map.entrySet()) {
      Map<String, Object> item = new TreeMap<>(JsonbTree.KEY_ORDER);
      item.put("id", new JsonNumber(String.valueOf(id)));
      item.put("key", member.getKey());
      item.put("value", member.getValue());
      if (!following(place.in(item, ++lastNumber), rest, item, sink)) return false;
    }
    return true;
  }

  private static long level(String text) { return text.equals("-1") ? INFINITE_LEVEL : Long.parseLong(text); }

  /** Passes the values below a value, down to a level. Level INFINITE_LEVEL as the first one means the leaves. */
  private static boolean deeper(Object value, long level, long first, long last, Sink sink) {
    boolean isContainer = value instanceof Map || value instanceof List;
    if (level > last || !isContainer) return true;
    for (Object item : value instanceof Map<?, ?> map ? map.values() : (List<?>) value) {
      boolean isLeaf = !(item instanceof Map) && !(item instanceof List);
      boolean isPassed = level >= first || first == last && first == INFINITE_LEVEL && isLeaf;
      if (isPassed && !sink.accept(item)) return false;
      if (!deeper(item, level + 1, first, last, sink)) return false;
    }
    return true;
  }

  private boolean subscripts(Place place, Node node, List<Node> rest, Object value, Sink sink) {
    List<?> elements = value instanceof List<?> list ? list : List.of(value);
    for (Node subscript : node.arguments()) {
      Place inside = place.inside(elements.size());
      int first = subscript(inside, subscript.argument(0), value);
      int last = subscript.arguments().size() > 1 ? subscript(inside, subscript.argument(1), value) : first;
      if (!place.forgiving && (first < 0 || first > last || last >= elements.size())) {
        throw new PathError(SUBSCRIPT, "jsonpath array subscript is out of bounds");
      }
      for (int i = Math.max(first, 0); i <= Math.min(last, elements.size() - 1); i++) {
        if (!following(place, rest, elements.get(i), sink)) return false;
      }
    }
    return true;
  }

  private int subscript(Place place, Node node, Object value) {
    List<Object> results = new ArrayList<>();
    items(place, node, value, results::add);
    if (results.size() != 1 || !(results.get(0) instanceof JsonNumber number)) {
      throw new PathError(SUBSCRIPT, "jsonpath array subscript is not a single numeric value");
    }
    BigInteger integer = number.value().toBigInteger();
    if (integer.bitLength() > 31) throw new PathError(SUBSCRIPT, "jsonpath array subscript is out of integer range");
    return integer.intValue();
  }

  /** Passes the items of an operand. In lax mode arrays are unwrapped. */
  private boolean operand(Place place, Node node, Object value, Sink sink) {
    return items(place, node, value, item -> {
      if (!path.lax() || !(item instanceof List<?> list)) return sink.accept(item);
      for (Object element : list) if (!sink.accept(element)) return false;
      return true;
    });
  }

  private List<Object> operands(Place place, Node node, Object value) {
    List<Object> results = new ArrayList<>();
    operand(place, node, value, results::add);
    return results;
  }

  // ---- numbers ----------------------------------------------------------------------------------

  private boolean arithmetic(Place place, Node node, Object value, Sink sink) {
    String sign = node.text();
    if (node.arguments().size() == 1) {
      return operand(place, node.argument(0), value, item -> {
        if (item instanceof JsonNumber number) return sink.accept(sign.equals("-") ? number(number.value().negate()) : number);
        throw new PathError(NUMBER, "operand of unary jsonpath operator " + sign + " is not a numeric value");
      });
    }
    BigDecimal left = single(place, node, 0, value);
    BigDecimal right = single(place, node, 1, value);
    BigDecimal result;
    try {
      result = operate(sign, General.of(left), General.of(right)).value();
    } catch (SqlError e) {
      throw new PathError(e.sqlstate(), e.getMessage());
    }
    return sink.accept(number(result));
  }

  private BigDecimal single(Place place, Node node, int side, Object value) {
    List<Object> results = operands(place, node.argument(side), value);
    if (results.size() == 1 && results.get(0) instanceof JsonNumber number) return number.value();
    String name = side == 0 ? "left" : "right";
    throw new PathError(SINGLETON, name + " operand of jsonpath operator " + node.text() + " is not a single numeric value");
  }

  private static General operate(String sign, General a, General b) {
    return switch (sign) {
      case "+" -> GeneralNumerics.generalAdd(a, b);
      case "-" -> GeneralNumerics.generalSubtract(a, b);
      case "*" -> GeneralNumerics.generalMultiply(a, b);
      case "/" -> GeneralNumerics.generalDivide(a, b);
      default -> GeneralNumerics.generalRemainder(a, b);
    };
  }

  private static JsonNumber number(BigDecimal value) { return new JsonNumber(value.toPlainString()); }

  private Object applied(Place place, String name, Object value) {
    switch (name) {
      case "type": return typeName(value);
      case "size": {
        if (value instanceof List<?> list) return new JsonNumber(String.valueOf(list.size()));
        if (path.lax()) return new JsonNumber("1");
        throw new PathError(ARRAY, "jsonpath item method .size() can only be applied to an array");
      }
      case "double": return toDouble(value);
      default:
    }
    if (!(value instanceof JsonNumber number)) {
      throw new PathError(NON_NUMERIC, "jsonpath item method ." + name + "() can only be applied to a numeric value");
    }
    return number(switch (name) {
      case "abs" -> number.value().abs();
      case "floor" -> number.value().setScale(0, RoundingMode.FLOOR);
      default -> number.value().setScale(0, RoundingMode.CEILING);
    });
  }

  private static Object toDouble(Object value) {
    if (!(value instanceof JsonNumber) && !(value instanceof String)) {
      throw new PathError(NON_NUMERIC, "jsonpath item method .double() can only be applied to a string or numeric value");
    }
    double result = Double.NaN;
    try {
      result = NumberInput.toFloat8(UTF8String.fromString(value instanceof JsonNumber n ? n.text() : (String) value));
    } catch (SqlError e) {
      // not a number, which is reported below
    }
    if (Double.isFinite(result)) {
      if (value instanceof JsonNumber) return value;
      BigDecimal digits = new BigDecimal(result).round(new MathContext(DOUBLE_DIGITS, RoundingMode.HALF_EVEN)).stripTrailingZeros();
      return number(digits);
    }
    throw new PathError(NON_NUMERIC, value instanceof JsonNumber
        ? "numeric argument of jsonpath item method .double() is out of range for type double precision"
        : "string argument of jsonpath item method .double() is not a valid representation of a double precision number");
  }

  private static String typeName(Object value) {
    if (value == JsonbTree.NULL) return "null";
    if (value instanceof Boolean) return "boolean";
    if (value instanceof JsonNumber) return "number";
    return value instanceof String ? "string" : value instanceof List ? "array" : "object";
  }

  // ---- conditions -------------------------------------------------------------------------------

  private Boolean condition(Place place, Node node, Object value) {
    switch (node.kind()) {
      case "and", "or": {
        boolean decisive = node.kind().equals("or");
        Boolean left = condition(place, node.argument(0), value);
        if (left != null && left == decisive) return left;
        Boolean right = condition(place, node.argument(1), value);
        if (right != null && right == decisive) return right;
        return left == null || right == null ? null : Boolean.valueOf(!decisive);
      }
      case "not": {
        Boolean inner = condition(place, node.argument(0), value);
        return inner == null ? null : Boolean.valueOf(!inner);
      }
      case "unknown": return condition(place, node.argument(0), value) == null;
      case "exists": return exists(place, node.argument(0), value);
      default: return ofPairs(place, node, value);
    }
  }

  /** Returns whether the path has items. Throws {@link PathError}. */
  boolean exists() { return hasItems(start(), path.item(), root); }

  private Boolean exists(Place place, Node node, Object value) {
    try {
      return hasItems(place, node, value);
    } catch (PathError e) {
      return null;
    }
  }

  /**
   * Returns whether a path has items. In lax mode, errors behind the first one do not count, nor those
   * of the operand of a sign.
   */
  private boolean hasItems(Place place, Node node, Object value) {
    if (path.lax() && node.kind().equals("arithmetic") && node.arguments().size() == 1) {
      return operands(place, node.argument(0), value).stream().anyMatch(JsonNumber.class::isInstance);
    }
    boolean[] results = {false};
    items(place, node, value, item -> {
      results[0] = true;
      return !path.lax();
    });
    return results[0];
  }

  /** Returns whether a condition holds for a pair of items of both operands. In strict mode, all pairs are tested. */
  private Boolean ofPairs(Place place, Node node, Object value) {
    List<Object> lefts;
    List<Object> rights = new ArrayList<>();
    try {
      lefts = operands(place, node.argument(0), value);
      if (node.kind().equals("compare")) rights = operands(place, node.argument(1), value);
      else items(place, node.argument(1), value, rights::add);
    } catch (PathError e) {
      return null;
    }
    boolean holds = false;
    boolean isUnknown = false;
    for (Object a : lefts) {
      for (Object b : rights) {
        Boolean result = ofPair(node, a, b);
        if (result == null && !path.lax()) return null;
        if (Boolean.TRUE.equals(result) && path.lax()) return true;
        holds |= Boolean.TRUE.equals(result);
        isUnknown |= result == null;
      }
    }
    return holds ? Boolean.TRUE : isUnknown ? null : Boolean.FALSE;
  }

  private static Boolean ofPair(Node node, Object a, Object b) {
    if (node.kind().equals("compare")) return compared(node.text(), a, b);
    if (!(a instanceof String text)) return null;
    if (node.kind().equals("starts")) return b instanceof String prefix ? Boolean.valueOf(text.startsWith(prefix)) : null;
    return BoundedMatcher.find(BoundedMatcher.matcher(node.pattern(), text, READS_MAX), 0);
  }

  private static Boolean compared(String sign, Object a, Object b) {
    int order;
    if (a == JsonbTree.NULL && b == JsonbTree.NULL) order = 0;
    else if (a == JsonbTree.NULL || b == JsonbTree.NULL) return sign.equals("!=");
    else if (a instanceof JsonNumber x && b instanceof JsonNumber y) order = x.value().compareTo(y.value());
    else if (a instanceof Boolean x && b instanceof Boolean y) order = x.compareTo(y);
    else if (a instanceof String x && b instanceof String y) order = UTF8String.fromString(x).compareTo(UTF8String.fromString(y));
    else return null;
    return switch (sign) {
      case "==" -> order == 0;
      case "!=" -> order != 0;
      case "<" -> order < 0;
      case "<=" -> order <= 0;
      case ">" -> order > 0;
      default -> order >= 0;
    };
  }
}
