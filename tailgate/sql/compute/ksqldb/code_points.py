"""Sets of code points, as ranges: the classes of Java's regular expressions and their names.

Source: documentation of java.util.regex.Pattern; Unicode's general categories.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby

MAX = 0x10FFFF
Ranges = tuple[tuple[int, int], ...]  # in order, without gaps of no code point between two of them


def ranges(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the union of ranges.

    >>> ranges([(5, 9), (1, 2), (3, 3)])
    ((1, 3), (5, 9))
    """
    joined: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(high, joined[-1][1])
        else:
            joined.append((low, high))
    return tuple(joined)


def of_text(text: str) -> Ranges:
    """Returns the set of the characters of a text."""
    return ranges((ord(char), ord(char)) for char in text)


def complement(of: Ranges) -> Ranges:
    """Returns the code points that a set does not have.

    >>> complement(((0, 9), (11, 1114111)))
    ((10, 10),)
    """
    gaps, begin = [], 0
    for low, high in of:
        if low > begin:
            gaps.append((begin, low - 1))
        begin = high + 1
    return tuple(gaps) if begin > MAX else (*gaps, (begin, MAX))


def intersection(one: Ranges, other: Ranges) -> Ranges:
    return complement(ranges((*complement(one), *complement(other))))


def folded(of: Ranges, *, all_languages: bool) -> Ranges:
    """Returns a set with the other case of its letters, those of ASCII or of all languages. The latter takes time for each code point."""
    if not all_languages:
        lower, upper = intersection(of, LOWER), intersection(of, UPPER)
        return ranges((*of, *((a - 32, b - 32) for a, b in lower), *((a + 32, b + 32) for a, b in upper)))
    texts = (chr(point) for low, high in of for point in range(low, high + 1))
    return ranges((*of, *of_text("".join(form for text in texts for form in (text.lower(), text.upper()) if len(form) == 1))))


def written(of: Ranges) -> str:
    """Returns a set as a class of Python's and RE2's regular expressions.

    >>> written(((45, 45), (97, 122)))
    '[\\\\-a-z]'
    """
    if not of:
        return f"[^{chr(0)}-{chr(MAX)}]"
    negated = complement(of)
    if len(negated) < len(of) and negated:
        return f"[^{_listed(negated)}]"
    return f"[{_listed(of)}]"


def _listed(of: Ranges) -> str:
    return "".join(_character(low) + (f"-{_character(high)}" if high > low else "") for low, high in of)


def _character(point: int) -> str:
    char = chr(point)
    return f"\\{char}" if char in r"\]^-[&~|" else char


@lru_cache
def category(name: str) -> Ranges | None:
    """Returns the code points of a general category such as L or Lu, or None if there is no such category."""
    points = tuple(pair for full, pairs in _categories() if full.startswith(name) for pair in pairs)
    return ranges(points) or None


@lru_cache
def _categories() -> tuple[tuple[str, Ranges], ...]:
    """Returns the code points of each general category."""
    of: dict[str, list[tuple[int, int]]] = {}
    begin = 0
    for name, group in groupby(map(unicodedata.category, map(chr, range(MAX + 1)))):
        end = begin + len(list(group))
        of.setdefault(name, []).append((begin, end - 1))
        begin = end
    return tuple((name, tuple(pairs)) for name, pairs in of.items())


LOWER, UPPER = ((97, 122),), ((65, 90),)
DIGIT, WORD = ((48, 57),), ranges(((48, 57), (65, 90), (95, 95), (97, 122)))
SPACE = of_text(" \t\n\x0b\f\r")
HORIZONTAL = ranges((*of_text(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), (0x2000, 0x200A)))
VERTICAL = of_text("\n\x0b\f\r\x85\u2028\u2029")
LINE_ENDS = of_text("\n\r\x85\u2028\u2029")
ALPHABETIC, GRAPH = ranges((*LOWER, *UPPER)), ((33, 126),)
# the classes \p{…} of ASCII
NAMED = {
    "Lower": LOWER,
    "Upper": UPPER,
    "ASCII": ((0, 127),),
    "Alpha": ALPHABETIC,
    "Digit": DIGIT,
    "Alnum": ranges((*ALPHABETIC, *DIGIT)),
    "Punct": intersection(GRAPH, complement(ranges((*ALPHABETIC, *DIGIT)))),
    "Graph": GRAPH,
    "Print": ((32, 126),),
    "Blank": of_text(" \t"),
    "Cntrl": ranges(((0, 31), (127, 127))),
    "XDigit": ranges(((48, 57), (65, 70), (97, 102))),
    "Space": SPACE,
}
# the letters of classes outside of brackets; in upper case they mean the other characters
LETTERS = {"d": DIGIT, "w": WORD, "s": SPACE, "h": HORIZONTAL, "v": VERTICAL}
CASED = ("Lu", "Ll", "Lt")  # categories of which each means all of them without regard to case


def of_property(name: str, *, ignore_case: bool) -> Ranges | None:
    """Returns the class of a property, a name of ASCII or a general category; None for another one.

    >>> of_property("IsDigit", ignore_case=False), of_property("gc=Zp", ignore_case=False), of_property("Upper", ignore_case=True)
    (None, ((8233, 8233),), ((65, 90), (97, 122)))
    """
    key, _, value = name.rpartition("=")
    if key and key not in ("general_category", "gc"):
        return None
    if ignore_case and name in ("Lower", "Upper"):
        return ALPHABETIC
    short = value.removeprefix("Is")
    if ignore_case and short in CASED:
        return ranges(pair for each in CASED for pair in category(each) or ())
    return (None if key or short != value else NAMED.get(value)) or (category(short) if len(short) in (1, 2) else None)
