package tailgate.functions.numeric;

import java.util.Locale;

/**
 * Writes one number by a pattern: PostgreSQL's NUM_processor(), followed step by step so that odd
 * patterns have the same results.
 */
final class NumberWriter {
  private final NumberPattern pattern;
  private final int fractionDigits;
  private final char sign;
  private final String number;
  private final int leadingBlanks;  // positions of the pattern before the number's first digit
  private final boolean fillMode;
  private final boolean zeroPadded;
  private final boolean hasPoint;
  private final boolean anchoredSign;  // S
  private final boolean bracketed;  // PR
  private final boolean signFirst;
  private final int lastRelevant;  // index of the number's last digit that is written, or -1 for all
  private final int positions;
  private final StringBuilder out = new StringBuilder();
  private boolean signWritten;
  private boolean insideNumber;
  private int position;  // in the pattern's digits
  private int index;  // in the number

  /**
   * @param integerDigits positions before the decimal point
   * @param sign {@code +} or {@code -}
   * @param digits the number without its sign, or NaN or Infinity
   */
  NumberWriter(NumberPattern pattern, int integerDigits, int fractionDigits, char sign, String digits) {
    this.pattern = pattern;
    this.fractionDigits = fractionDigits;
    this.sign = sign;
    fillMode = pattern.has("FM");
    zeroPadded = pattern.has("0");
    hasPoint = pattern.has(".");
    anchoredSign = pattern.has("S");
    int length = digits.indexOf('.') < 0 ? digits.length() : digits.indexOf('.');
    leadingBlanks = Math.max(integerDigits - length, 0);
    number = length <= integerDigits ? digits : "#".repeat(integerDigits) + "." + "#".repeat(pattern.fractionDigits);
    boolean separateSign = pattern.has("PL", "MI");
    if (separateSign) signWritten = pattern.has("MI");
    else signWritten = sign == '+' && fillMode && !anchoredSign;
    bracketed = pattern.has("PR") && (separateSign || sign == '-' || !fillMode);
    signFirst = pattern.signFirst && (separateSign || integerDigits != pattern.digitsBeforeSign);
    lastRelevant = lastRelevant();
    positions = fractionDigits + integerDigits - 1 + (!signWritten && leadingBlanks == 0 ? 1 : 0);
  }

  private int lastRelevant() {
    int point = number.indexOf('.');
    if (!fillMode || !hasPoint || point < 0) return -1;
    int last = Math.max(number.replaceAll("0+$", "").length() - 1, point);
    if (pattern.zeroEnd <= leadingBlanks) return last;
    return Math.max(last, Math.min(number.length() - 1, pattern.zeroEnd - leadingBlanks));
  }

  String write() {
    for (NumberPattern.Part part : pattern.parts) {
      switch (part.keyword()) {
        case "9", "0", ".", "D" -> writeDigit(part.keyword());
        case ",", "G" -> out.append(insideNumber ? "," : fillMode ? "" : " ");
        case "L" -> out.append(' ');
        case "TH", "th" -> {
          if (!number.startsWith("#") && sign != '-' && !hasPoint) {
            String ending = Numerals.ordinalEnding(number);
            out.append(part.keyword().equals("TH") ? ending.toUpperCase(Locale.ROOT) : ending);
          }
        }
        case "MI" -> out.append(sign == '-' ? "-" : fillMode ? "" : " ");
        case "PL" -> out.append(sign == '+' ? "+" : fillMode ? "" : " ");
        case "SG" -> out.append(sign);
        case "" -> out.append(part.text());
        default -> {}
      }
    }
    return out.toString();
  }

  private void writeDigit(String keyword) {
    insideNumber = false;
    boolean omittedZero = !zeroPadded && index == 0 && number.startsWith("0") && fractionDigits != 0;
    boolean endsAtPoint = lastRelevant >= 0 && number.charAt(lastRelevant) == '.';
    boolean numberBegins = position >= leadingBlanks || zeroPadded && pattern.zeroStart == position;
    if (!signWritten && numberBegins && (!omittedZero || endsAtPoint)) writeLeadingSign();
    if (position < leadingBlanks && (pattern.zeroStart > position || !zeroPadded)) {
      out.append(fillMode ? "" : " ");
    } else if (zeroPadded && position < leadingBlanks) {
      out.append('0');
      insideNumber = true;
    } else if (index < number.length()) {
      char c = number.charAt(index);
      if (c == '.') {
        out.append('.');
      } else if (lastRelevant >= 0 && index > lastRelevant && !keyword.equals("0")) {
        out.append("");
      } else if (omittedZero) {
        out.append(!fillMode ? " " : endsAtPoint ? "0" : "");
      } else {
        out.append(c);
        insideNumber = true;
      }
      index++;
    }
    int end = positions + (leadingBlanks > 0 ? 1 : 0) + (hasPoint ? 1 : 0);
    if (lastRelevant >= 0 && lastRelevant == index) end = position;
    if (position + 1 == end) writeTrailingSign();
    position++;
  }

  private void writeLeadingSign() {
    if (anchoredSign) {
      if (!signFirst) return;
      out.append(sign);
    } else if (bracketed) {
      out.append(sign == '+' ? ' ' : '<');
    } else if (sign == '-' || !fillMode) {
      out.append(sign == '-' ? '-' : ' ');
    }
    signWritten = true;
  }

  private void writeTrailingSign() {
    if (signWritten && bracketed) out.append(sign == '+' ? ' ' : '>');
    else if (anchoredSign && !signFirst) out.append(sign);
  }
}
