"""to_char: numbers by a pattern, in the C locale.

A pattern is read into pieces (`parsed`); writing follows PostgreSQL's processor digit by digit: its answers in odd cases come from that.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, NUM_processor() and what it calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

from lake.errors import TailgateError, of
from sql.compute.registry import own

WORDS = "EEEE FM MI PL PR RN SG SP TH fm mi pl pr rn sg sp th 0 9 . , B D G L S V b d g l s v eeee".split()
KINDS = {w: w.upper() for w in WORDS} | {"TH": "TH", "th": "th", "RN": "RN", "rn": "rn"}
EXACT = Context(prec=2000)


@dataclass
class Pattern:
    """Pieces (kind, text) and what follows from all of them: PostgreSQL's NUMDesc."""

    pieces: list[tuple[str, str]] = field(default_factory=list)
    pre: int = 0
    post: int = 0
    multi: int = 0
    zero_start: int = -1
    zero_end: int = 0
    sign_first: bool | None = None  # S: before the number, or behind it
    before_sign: int = 0
    flags: set[str] = field(default_factory=set)  # FM . S MI PL PR RN V EEEE 0


def _error(message: str) -> TailgateError:
    return of("42601", message)


@lru_cache(maxsize=256)
def parsed(text: str) -> Pattern:
    found, at = Pattern(), 0
    while at < len(text):
        if text[at] == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += text[at] == "\\" and at + 1 < len(text)
                found.pieces.append(("", text[at]))
                at += 1
            at += 1
            continue
        word = next((w for w in WORDS if text.startswith(w, at)), None)
        if word is None:
            at += text[at] == "\\" and text[at + 1 : at + 2] == '"'
            found.pieces.append(("", text[at]))
            at += 1
            continue
        _add(found, KINDS[word])
        found.pieces.append((KINDS[word], word))
        at += len(word)
    return found


def _add(p: Pattern, kind: str) -> None:
    flags = p.flags
    if "EEEE" in flags:
        raise _error('"EEEE" must be the last pattern used')
    match kind:
        case "9" | "0":
            if "PR" in flags:
                raise _error(f'"{kind}" must be ahead of "PR"')
            if kind == "9" and "V" in flags:
                p.multi += 1
                return
            if kind == "0" and "0" not in flags and "." not in flags:
                flags.add("0")
                p.zero_start = p.pre
            if "." in flags:
                p.post += 1
            else:
                p.pre += 1
            if kind == "0":
                p.zero_end = p.pre + p.post
        case "." | "D":
            if "." in flags:
                raise _error("multiple decimal points")
            if "V" in flags:
                raise _error('cannot use "V" and decimal point together')
            flags.add(".")
        case "FM" | "RN" | "rn":
            flags.add(kind.upper())
        case "S":
            if "S" in flags:
                raise _error('cannot use "S" twice')
            if flags & {"PL", "MI", "PR"}:
                raise _error('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
            flags.add("S")
            p.sign_first = "." not in flags
            p.before_sign = p.pre
        case "MI" | "PL" | "SG":
            if "S" in flags:
                raise _error(f'cannot use "S" and "{kind}" together')
            flags |= {"MI", "PL"} if kind == "SG" else {kind}
        case "PR":
            if flags & {"S", "PL", "MI"}:
                raise _error('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
            flags.add("PR")
        case "V":
            if "." in flags:
                raise _error('cannot use "V" and decimal point together')
            flags.add("V")
        case "EEEE":
            if flags & {"FM", "S", "PR", "MI", "PL", "RN", "V"}:
                raise _error('"EEEE" is incompatible with other formats')
            flags.add("EEEE")


@own("numeric", "text", to="text", name="to_char_numeric")
def of_numeric(value: Decimal, text: str) -> str:
    return _shown(value, parsed(text)) if text else ""


@own("float8", "text", to="text", name="to_char_float8")
def of_float8(value: float, text: str) -> str:
    return _of_float(value, text, 15)


@own("float4", "text", to="text", name="to_char_float4")
def of_float4(value: float, text: str) -> str:
    return _of_float(value, text, 6)


def _of_float(value: float, text: str, digits: int) -> str:
    if not text:
        return ""
    p = parsed(text)
    if value != value or value in (float("inf"), float("-inf")):
        if "EEEE" in p.flags:
            return " " + "#" * (p.pre + 1) + "." + "#" * (p.post + 4)
        if "RN" not in p.flags:
            shown = "NaN" if value != value else "Infinity"
            return _written(p, p.post, "-" if value < 0 else "+", *_filled(p.pre, shown, p.post))
    exact = Decimal(value) if value == value and abs(value) != float("inf") else Decimal(0)
    if "EEEE" in p.flags or "RN" in p.flags:
        return _shown(Decimal(repr(value)) if "EEEE" not in p.flags else exact, p)
    post = p.post
    if "V" not in p.flags:
        whole = len(f"{abs(value):.0f}")
        post = 0 if whole >= digits else min(post, digits - whole)
    return _shown(exact, p, post, binary=True)


def _shown(value: Decimal, p: Pattern, post: int | None = None, *, binary: bool = False) -> str:
    post = p.post if post is None else post
    if "RN" in p.flags:
        return _roman(value, p)
    if "EEEE" in p.flags:
        return _scientific(value, p.post)
    pre = p.pre
    if "V" in p.flags:
        value, pre = EXACT.multiply(value, Decimal(10) ** p.multi), pre + p.multi
    rounding = "ROUND_HALF_EVEN" if binary else ROUND_HALF_UP
    digits = format(value.quantize(Decimal(1).scaleb(-post), rounding=rounding, context=EXACT), "f")
    sign = "-" if digits.startswith("-") else "+"
    if not binary and not any(c in "123456789" for c in digits):
        sign = "+"
    return _written(p, post, sign, *_filled(pre, digits.removeprefix("-"), p.post), pre=pre)


def _filled(pre: int, digits: str, post: int) -> tuple[str, int]:
    """The digits, and how many places before them are free; signs of number where they have no room."""
    whole = len(digits.split(".")[0])
    if whole <= pre:
        return digits, pre - whole
    return "#" * pre + "." + "#" * post, 0


def _scientific(value: Decimal, post: int) -> str:
    if not value:
        shown = format(Decimal(0), f".{post}e") if post else "0e+0"
    shown = format(value, f".{post}e") if value else "0" + ("." + "0" * post if post else "") + "e+0"
    if value:
        rounded = EXACT.create_decimal(value)
        exponent = rounded.adjusted()
        mantissa = rounded.scaleb(-exponent, EXACT).quantize(Decimal(1).scaleb(-post), rounding=ROUND_HALF_UP, context=EXACT)
        if abs(mantissa) >= 10:
            exponent += 1
            mantissa = rounded.scaleb(-exponent, EXACT).quantize(Decimal(1).scaleb(-post), rounding=ROUND_HALF_UP, context=EXACT)
        shown = f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    else:
        shown = shown.replace("e+0", "e+00")
    return shown if shown.startswith("-") else " " + shown


ROMANS = tuple(zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "M CM D CD C XC L XL X IX V IV I".split(), strict=True))


def roman(number: int) -> str:
    out = ""
    for value, letters in ROMANS:
        out += letters * (number // value)
        number %= value
    return out


def _roman(value: Decimal, p: Pattern) -> str:
    number = int(value.quantize(Decimal(1), rounding=ROUND_HALF_UP, context=EXACT))
    shown = roman(number) if 1 <= number <= 3999 else "#" * 15
    out = ""
    for kind, text in p.pieces:
        if kind in ("RN", "rn"):
            made = shown if kind == "RN" else shown.lower()
            out += made if "FM" in p.flags else made.rjust(15)
        elif not kind:
            out += text
    return out


def _written(p: Pattern, post: int, sign: str, number: str, spaces: int, pre: int | None = None) -> str:
    """NUM_processor: each piece in turn; `at` is the place in the number, `curr` that in the pattern's digits."""
    pre = p.pre if pre is None else pre
    flags, fill, zero, point = p.flags, "FM" in p.flags, "0" in p.flags, "." in p.flags
    bracket, sign_first = "PR" in flags, p.sign_first
    if flags & {"PL", "MI"}:
        wrote = not ("PL" in flags and "MI" not in flags)
    else:
        if sign != "-" and fill:
            bracket = False
        wrote = sign == "+" and fill and "S" not in flags
        if sign_first and pre == p.before_sign:
            sign_first = False
    count = post + pre - 1
    last: int | None = None
    if fill and point:
        last = _relevant(number)
        if last is not None and p.zero_end > spaces:
            last = max(last, min(len(number) - 1, p.zero_end - spaces))
    if not wrote and spaces == 0:
        count += 1
    out: list[str] = []
    at = curr = 0
    inside = False
    at_point = last is not None and last < len(number) and number[last] == "."

    def predecimal() -> bool:
        return not zero and at == 0 and number[:1] == "0" and post != 0

    for kind, text in p.pieces:
        match kind:
            case "9" | "0" | "." | "D":
                inside = False
                if not wrote and (curr >= spaces or (zero and p.zero_start == curr)) and (not predecimal() or at_point):
                    if "S" in flags:
                        if sign_first:
                            out.append(sign)
                            wrote = True
                    else:
                        if bracket:
                            out.append(" " if sign == "+" else "<")
                        elif sign == "-" or not fill:
                            out.append("-" if sign == "-" else " ")
                        wrote = True
                if curr < spaces and (p.zero_start > curr or not zero):
                    out.append("" if fill else " ")
                elif zero and curr < spaces and p.zero_start <= curr:
                    out.append("0")
                    inside = True
                else:
                    char = number[at : at + 1]
                    if char == ".":
                        out.append(".")
                    elif last is not None and at > last and kind != "0":
                        pass
                    elif predecimal():
                        out.append(" " if not fill else "0" if at_point else "")
                    elif char:
                        out.append(char)
                        inside = True
                    at += bool(char)
                end = count + bool(spaces) + point
                if last is not None and last == at:
                    end = curr
                if curr + 1 == end:
                    if wrote and bracket:
                        out.append(" " if sign == "+" else ">")
                    elif "S" in flags and not sign_first:
                        out.append(sign)
                curr += 1
            case "," | "G":
                out.append("," if inside else "" if fill else " ")
            case "L":
                out.append(" ")
            case "TH" | "th":
                if number[:1] != "#" and sign != "-" and not point:
                    ending = ordinal(number)
                    out.append(ending.upper() if kind == "TH" else ending)
            case "MI":
                out.append("-" if sign == "-" else "" if fill else " ")
            case "PL":
                out.append("+" if sign == "+" else "" if fill else " ")
            case "SG":
                out.append(sign)
            case "":
                out.append(text)
    return "".join(out)


def _relevant(number: str) -> int | None:
    """Where the last digit behind the point that is no zero stands; of the point if there is none."""
    point = number.find(".")
    if point < 0:
        return None
    stripped = number.rstrip("0")
    return max(len(stripped) - 1, point)


def ordinal(number: str) -> str:
    """st, nd, rd or th."""
    last = number[-1:]
    if not last.isdigit():
        raise of("22P02", f'"{number}" is not a number')
    if len(number) > 1 and number[-2] == "1":
        return "th"
    return {"1": "st", "2": "nd", "3": "rd"}.get(last, "th")
