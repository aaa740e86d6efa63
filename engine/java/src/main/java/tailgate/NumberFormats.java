package tailgate;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * to_char and to_number: numbers by a pattern, in the C locale. The twin of sql/compute/numberformats.py, which explains it.
 *
 * <p>Called by generated code ({@link Functions}); arguments are not NULL.
 */
public final class NumberFormats {
  private static final String[] WORDS = "EEEE FM MI PL PR RN SG SP TH fm mi pl pr rn sg sp th 0 9 . , B D G L S V b d g l s v eeee".split(" ");
  private static final ConcurrentHashMap<UTF8String, NumberFormats> PARSED = new ConcurrentHashMap<>();
  private static final int PARSED_MAX = 1000;

  /** `kind` is empty for a text. */
  private record Piece(String kind, String text) {}

  private final List<Piece> pieces = new ArrayList<>();
  private final Set<String> flags = new HashSet<>();
  private int pre, post, multi, zeroStart = -1, zeroEnd, beforeSign;
  private boolean signFirst;

  private NumberFormats(String text) {
    for (int at = 0; at < text.length(); ) {
      if (text.charAt(at) == '"') {
        for (at++; at < text.length() && text.charAt(at) != '"'; at++) {
          if (text.charAt(at) == '\\' && at + 1 < text.length()) at++;
          pieces.add(new Piece("", String.valueOf(text.charAt(at))));
        }
        at++;
        continue;
      }
      int here = at;
      String word = Arrays.stream(WORDS).filter(w -> text.startsWith(w, here)).findFirst().orElse(null);
      if (word == null) {
        if (text.charAt(at) == '\\' && at + 1 < text.length() && text.charAt(at + 1) == '"') at++;
        pieces.add(new Piece("", String.valueOf(text.charAt(at++))));
        continue;
      }
      String kind = word.equals("th") || word.equals("rn") ? word : word.toUpperCase(Locale.ROOT);
      add(kind);
      pieces.add(new Piece(kind, word));
      at += word.length();
    }
  }

  private static SqlError error(String message) { return new SqlError("42601", message); }

  private boolean any(String... names) { return Arrays.stream(names).anyMatch(flags::contains); }

  private void add(String kind) {
    if (any("EEEE")) throw error("\"EEEE\" must be the last pattern used");
    switch (kind) {
      case "9", "0" -> {
        if (any("PR")) throw error("\"" + kind + "\" must be ahead of \"PR\"");
        if (kind.equals("9") && any("V")) {
          multi++;
          return;
        }
        if (kind.equals("0") && !any("0", ".")) {
          flags.add("0");
          zeroStart = pre;
        }
        if (any(".")) post++;
        else pre++;
        if (kind.equals("0")) zeroEnd = pre + post;
      }
      case ".", "D" -> {
        if (any(".")) throw error("multiple decimal points");
        if (any("V")) throw error("cannot use \"V\" and decimal point together");
        flags.add(".");
      }
      case "FM", "RN", "rn" -> flags.add(kind.toUpperCase(Locale.ROOT));
      case "S" -> {
        if (any("S")) throw error("cannot use \"S\" twice");
        if (any("PL", "MI", "PR")) throw error("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
        flags.add("S");
        signFirst = !any(".");
        beforeSign = pre;
      }
      case "MI", "PL", "SG" -> {
        if (any("S")) throw error("cannot use \"S\" and \"" + kind + "\" together");
        flags.addAll(kind.equals("SG") ? List.of("MI", "PL") : List.of(kind));
      }
      case "PR" -> {
        if (any("S", "PL", "MI")) throw error("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together");
        flags.add("PR");
      }
      case "V" -> {
        if (any(".")) throw error("cannot use \"V\" and decimal point together");
        flags.add("V");
      }
      case "EEEE" -> {
        if (any("FM", "S", "PR", "MI", "PL", "RN", "V")) throw error("\"EEEE\" is incompatible with other formats");
        flags.add("EEEE");
      }
      default -> {}
    }
  }

  private static NumberFormats parsed(UTF8String pattern) {
    NumberFormats found = PARSED.get(pattern);
    if (found != null) return found;
    if (PARSED.size() >= PARSED_MAX) PARSED.clear();
    NumberFormats made = new NumberFormats(pattern.toString());
    PARSED.put(pattern.clone(), made);
    return made;
  }

  public static UTF8String toCharNumeric(Decimal value, UTF8String pattern) {
    if (pattern.numBytes() == 0) return pattern;
    NumberFormats p = parsed(pattern);
    return Strings.text(p.shown(value.toJavaBigDecimal(), p.post, false));
  }

  public static UTF8String toCharFloat8(double value, UTF8String pattern) { return of(value, Casts.shown(value), pattern, 15); }

  public static UTF8String toCharFloat4(float value, UTF8String pattern) { return of(value, Casts.shown(value), pattern, 6); }

  private static UTF8String of(double value, String shortest, UTF8String pattern, int digits) {
    if (pattern.numBytes() == 0) return pattern;
    NumberFormats p = parsed(pattern);
    boolean special = Double.isNaN(value) || Double.isInfinite(value);
    if (special && p.any("EEEE")) return Strings.text(" " + "#".repeat(p.pre + 1) + "." + "#".repeat(p.post + 4));
    if (special && !p.any("RN")) return Strings.text(p.written(p.pre, p.post, value < 0 ? '-' : '+', Double.isNaN(value) ? "NaN" : "Infinity"));
    BigDecimal exact = special ? BigDecimal.ZERO : new BigDecimal(value);
    if (p.any("EEEE", "RN")) return Strings.text(p.shown(p.any("EEEE") || special ? exact : new BigDecimal(shortest), p.post, false));
    int post = p.post;
    if (!p.any("V")) {
      int whole = exact.abs().setScale(0, RoundingMode.HALF_EVEN).toPlainString().length();
      post = whole >= digits ? 0 : Math.min(post, digits - whole);
    }
    return Strings.text(p.shown(exact, post, true, 1 / value < 0 && value == 0));
  }

  private String shown(BigDecimal value, int post, boolean binary) { return shown(value, post, binary, false); }

  private String shown(BigDecimal value, int post, boolean binary, boolean negativeZero) {
    if (any("RN")) return roman(value);
    if (any("EEEE")) return scientific(value);
    int width = pre;
    if (any("V")) {
      value = value.movePointRight(multi);
      width += multi;
    }
    BigDecimal rounded = value.setScale(post, binary ? RoundingMode.HALF_EVEN : RoundingMode.HALF_UP);
    char sign = rounded.signum() < 0 || binary && (value.signum() < 0 || negativeZero) ? '-' : '+';
    return written(width, post, sign, rounded.abs().toPlainString());
  }

  private String scientific(BigDecimal value) {
    String sign = value.signum() < 0 ? "" : " ";
    if (value.signum() == 0) return " 0" + (post > 0 ? "." + "0".repeat(post) : "") + "e+00";
    int exponent = value.precision() - value.scale() - 1;
    BigDecimal mantissa = value.movePointLeft(exponent).setScale(post, RoundingMode.HALF_UP);
    if (mantissa.abs().compareTo(BigDecimal.TEN) >= 0) mantissa = value.movePointLeft(++exponent).setScale(post, RoundingMode.HALF_UP);
    return sign + mantissa.toPlainString() + "e" + (exponent < 0 ? "-" : "+") + String.format("%02d", Math.abs(exponent));
  }

  static String roman(int number) {
    int[] values = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
    String[] letters = "M CM D CD C XC L XL X IX V IV I".split(" ");
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < values.length; i++)
      for (; number >= values[i]; number -= values[i]) out.append(letters[i]);
    return out.toString();
  }

  private String roman(BigDecimal value) {
    BigDecimal number = value.setScale(0, RoundingMode.HALF_UP);
    boolean fits = number.signum() > 0 && number.compareTo(BigDecimal.valueOf(3999)) <= 0;
    String shown = fits ? roman(number.intValue()) : "#".repeat(15);
    StringBuilder out = new StringBuilder();
    for (Piece piece : pieces) {
      if (piece.kind.isEmpty()) out.append(piece.text);
      else if (piece.kind.equalsIgnoreCase("RN")) {
        String made = piece.kind.equals("RN") ? shown : shown.toLowerCase(Locale.ROOT);
        out.append(any("FM") ? made : " ".repeat(Math.max(15 - made.length(), 0)) + made);
      }
    }
    return out.toString();
  }

  /** NUM_processor: each piece in turn; `at` is the place in the number, `curr` that in the pattern's digits. */
  private String written(int pre, int post, char sign, String number) {
    int whole = number.indexOf('.') < 0 ? number.length() : number.indexOf('.'), spaces = Math.max(pre - whole, 0);
    if (whole > pre) number = "#".repeat(pre) + "." + "#".repeat(this.post);
    boolean fill = any("FM"), zero = any("0"), point = any("."), bracket = any("PR"), signed = any("S"), first = signFirst, wrote;
    if (any("PL", "MI")) wrote = any("MI");
    else {
      if (sign != '-' && fill) bracket = false;
      wrote = sign == '+' && fill && !signed;
      if (first && pre == beforeSign) first = false;
    }
    int count = post + pre - 1, last = -1;
    if (fill && point && number.indexOf('.') >= 0) {
      last = Math.max(number.replaceAll("0+$", "").length() - 1, number.indexOf('.'));
      if (zeroEnd > spaces) last = Math.max(last, Math.min(number.length() - 1, zeroEnd - spaces));
    }
    if (!wrote && spaces == 0) count++;
    boolean inside = false, atPoint = last >= 0 && number.charAt(last) == '.';
    StringBuilder out = new StringBuilder();
    int at = 0, curr = 0;
    for (Piece piece : pieces) {
      switch (piece.kind) {
        case "9", "0", ".", "D" -> {
          inside = false;
          boolean predecimal = !zero && at == 0 && number.startsWith("0") && post != 0;
          if (!wrote && (curr >= spaces || zero && zeroStart == curr) && (!predecimal || atPoint)) {
            if (signed) {
              if (first) {
                out.append(sign);
                wrote = true;
              }
            } else {
              if (bracket) out.append(sign == '+' ? ' ' : '<');
              else if (sign == '-' || !fill) out.append(sign == '-' ? '-' : ' ');
              wrote = true;
            }
          }
          if (curr < spaces && (zeroStart > curr || !zero)) out.append(fill ? "" : " ");
          else if (zero && curr < spaces) {
            out.append('0');
            inside = true;
          } else if (at < number.length()) {
            char c = number.charAt(at);
            if (c == '.') out.append('.');
            else if (last >= 0 && at > last && !piece.kind.equals("0")) out.append("");
            else if (predecimal) out.append(!fill ? " " : atPoint ? "0" : "");
            else {
              out.append(c);
              inside = true;
            }
            at++;
          }
          int end = count + (spaces > 0 ? 1 : 0) + (point ? 1 : 0);
          if (last >= 0 && last == at) end = curr;
          if (curr + 1 == end) {
            if (wrote && bracket) out.append(sign == '+' ? ' ' : '>');
            else if (signed && !first) out.append(sign);
          }
          curr++;
        }
        case ",", "G" -> out.append(inside ? "," : fill ? "" : " ");
        case "L" -> out.append(' ');
        case "TH", "th" -> {
          if (!number.startsWith("#") && sign != '-' && !point) out.append(piece.kind.equals("TH") ? ordinal(number).toUpperCase(Locale.ROOT) : ordinal(number));
        }
        case "MI" -> out.append(sign == '-' ? "-" : fill ? "" : " ");
        case "PL" -> out.append(sign == '+' ? "+" : fill ? "" : " ");
        case "SG" -> out.append(sign);
        case "" -> out.append(piece.text);
        default -> {}
      }
    }
    return out.toString();
  }

  /** st, nd, rd or th. */
  static String ordinal(String number) {
    char last = number.charAt(number.length() - 1);
    if (!Character.isDigit(last)) throw new SqlError("22P02", "\"" + number + "\" is not a number");
    if (number.length() > 1 && number.charAt(number.length() - 2) == '1') return "th";
    return last == '1' ? "st" : last == '2' ? "nd" : last == '3' ? "rd" : "th";
  }

  // ---- from text ----------------------------------------------------------------------------------------------------------------

  public static Decimal toNumber(UTF8String text, UTF8String pattern, int precision, int scale) {
    if (pattern.numBytes() == 0) return null;
    NumberFormats p = parsed(pattern);
    if (p.any("RN")) throw new SqlError("0A000", "\"RN\" not supported for input");
    if (p.any("EEEE")) throw new SqlError("0A000", "\"EEEE\" not supported for input");
    String digits = new Reader(text.toString(), p).read().trim();
    BigDecimal value;
    try {
      value = new BigDecimal(digits);
    } catch (NumberFormatException e) {
      throw new SqlError("22P02", "invalid input syntax for type numeric: \"" + digits + "\"");
    }
    if (p.any("V")) value = value.movePointLeft(p.multi);
    else if (p.pre + p.post > 0 && value.signum() != 0 && value.precision() - value.scale() > p.pre) throw new SqlError("22003", "numeric field overflow");
    return (Decimal) Numbers.of(value, DataTypes.createDecimalType(precision, scale));
  }

  /** NUM_processor reading: `at` is the place in the text. */
  private static final class Reader {
    private final String text;
    private final NumberFormats p;
    private final StringBuilder digits = new StringBuilder();
    private int at, before, behind;
    private char sign = ' ';
    private boolean point;

    Reader(String text, NumberFormats p) {
      this.text = text;
      this.p = p;
    }

    private char peek() { return at < text.length() ? text.charAt(at) : 0; }

    String read() {
      for (Piece piece : p.pieces) {
        if (at >= text.length()) break;
        switch (piece.kind) {
          case "9", "0", ".", "D" -> {
            digit(piece.kind);
            at++;
          }
          case ",", "G" -> at += peek() == ',' ? 1 : 0;
          case "L" -> eat(1);
          case "TH", "th" -> eat(2);
          case "MI", "PL", "SG" -> {
            if ((piece.kind.equals("MI") ? "-" : piece.kind.equals("PL") ? "+" : "+-").indexOf(peek()) >= 0) sign = text.charAt(at++);
            else eat(1);
          }
          case "" -> at++;
          default -> {}
        }
      }
      return sign + (digits.length() > 0 && digits.charAt(digits.length() - 1) == '.' ? digits.substring(0, digits.length() - 1) : digits.toString());
    }

    private void eat(int count) { for (; count > 0 && at < text.length() && "0123456789.,+-".indexOf(peek()) < 0; count--) at++; }

    private void digit(String kind) {
      boolean read = false, signed = p.any("S");
      if (peek() == ' ') at++;
      if (at >= text.length()) return;
      if (sign == ' ' && (kind.equals("0") || kind.equals("9")) && before + behind == 0) {
        if (signed && p.signFirst) {
          if (peek() == '+' || peek() == '-') sign = text.charAt(at++);
        } else if (peek() == '-' || p.any("PR") && peek() == '<') {
          sign = '-';
          at++;
        } else if (peek() == '+') sign = text.charAt(at++);
      }
      if (at >= text.length()) return;
      if (peek() >= '0' && peek() <= '9') {
        if (point && behind == p.post) return;
        digits.append(peek());
        if (point) behind++;
        else before++;
        read = true;
      } else if (p.any(".") && !point && peek() == '.') {
        digits.append('.');
        point = read = true;
      }
      if (sign == ' ' && before + behind > 0) {
        if (signed && read && at + 1 < text.length() && !Character.isDigit(text.charAt(at + 1))) {
          if ("+-".indexOf(text.charAt(at + 1)) >= 0) sign = text.charAt(++at);
        } else if (!read && p.any("PL", "MI") && "+-".indexOf(peek()) >= 0) sign = peek();
      }
    }
  }
}
