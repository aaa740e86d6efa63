"""Compares PostgreSQL's answer to a statement with Tailgate's, and returns a verdict.

same        equal rows                        refused    not supported by Tailgate (0A000, 42883)
failed      both end in an error              limit      a limit that only Tailgate has (54000, 54001)
evaluated   a row fails on one server only: SQL leaves open for which rows an expression is evaluated
more        Tailgate answers a statement that PostgreSQL refuses, as documented

Any other verdict is a short description of the defect. It contains nothing that changes while the
statement is shrunk. docs/sql/differences.md lists the differences that are allowed.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from decimal import Decimal, InvalidOperation

from tailgate.lake.types import FACTS
from tests.generator.servers import Answer, Result

BY_OID = {f.oid: f.name for f in FACTS.values()} | {f.array_oid: f.name + "[]" for f in FACTS.values()}
AGREED = frozenset({"same", "refused", "failed", "limit", "evaluated", "more"})
INTERNAL = ("XX000", "58000")
REFUSED = ("0A000", "42883")
LIMITS = ("54000", "54001")
# Errors of PostgreSQL for statements that Tailgate supports.
MORE = ("FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",)
# Errors of constraints. Tailgate checks all rows of a statement together, so it may report another one than PostgreSQL.
OF_CONSTRAINTS = ("23502", "23505")
# Messages of errors about a row's values whose SQLSTATE is not in class 21 or 22 and not 54000, with which PostgreSQL
# reports values that are too large.
OF_ROWS = (
    "timestamps cannot be binned into intervals containing months or years",
    "invalid Unicode escape",
    "null character not permitted",
    "searching for elements in multidimensional arrays is not supported",
)
BINARY = frozenset("int2 int4 int8 bool text varchar bpchar bytea date timestamp timestamptz uuid".split())  # unique binary form
TEXT, NAME = FACTS["text"].oid, FACTS["name"].oid  # a parameter of type name counts as text
TOLERANCE = {"float8": 1e-11, "float4": 1e-5}
NUMERIC_DIGITS = Decimal("1e-13")


def verdict(theirs: Answer, ours: Answer, *, sorted: bool = False, binary: bool = False) -> str:
    if ours.hung:
        return "hang"
    if ours.disconnected:
        return "crash"
    if ours.sqlstate in INTERNAL:
        return f"internal error {ours.sqlstate}"
    if theirs.hung or theirs.disconnected or theirs.sqlstate in ("57014", "53200", "54001"):
        return "same"  # PostgreSQL's answer cannot be compared
    if ours.failed:
        return _failed(theirs, ours)
    if theirs.failed:
        if of_rows(theirs):
            return "evaluated"
        return "more" if theirs.message.startswith(MORE) else f"rows, not {theirs.sqlstate}"
    return compared(theirs, ours, sorted=sorted, binary=binary)


def of_rows(answer: Answer) -> bool:
    """Returns whether the error is about the values of a row."""
    text = answer.message.endswith("of jsonpath input")  # a syntax error in the text of a jsonpath
    format = answer.sqlstate == "42601" and (text or not answer.message.startswith(("syntax error", "each ", "VALUES ", "SELECT ")))
    return answer.sqlstate[:2] in ("21", "22") or answer.sqlstate == "54000" or answer.message.startswith(OF_ROWS) or format


def _failed(theirs: Answer, ours: Answer) -> str:
    if ours.sqlstate in REFUSED and theirs.sqlstate != "42883":
        return "refused"
    if ours.sqlstate in LIMITS:
        return "limit"
    if theirs.failed and (theirs.sqlstate == ours.sqlstate or of_rows(theirs) or of_rows(ours)):
        return "failed"
    if theirs.sqlstate in OF_CONSTRAINTS and ours.sqlstate in OF_CONSTRAINTS:
        return "failed"
    if theirs.message.startswith(MORE) and ours.sqlstate in OF_CONSTRAINTS:
        return "more"
    if of_rows(ours):
        return "evaluated"
    return f"error {ours.sqlstate}, not {theirs.sqlstate or 'rows'}"


def compared(theirs: Answer, ours: Answer, *, sorted: bool = False, binary: bool = False) -> str:
    parameters = [[TEXT if t == NAME else t for t in answer.parameters] for answer in (theirs, ours)]
    if parameters[0] != parameters[1]:
        return f"types of parameters: {_names(ours.parameters)}, not {_names(theirs.parameters)}"
    if [t.split()[0] for t in theirs.tags] != [t.split()[0] for t in ours.tags]:
        return f"tags: {ours.tags}, not {theirs.tags}"
    if len(theirs.results) != len(ours.results):
        return "number of results"
    for one, other in zip(theirs.results, ours.results, strict=True):
        verdict = _results(one, other, sorted=sorted, binary=binary)
        if verdict != "same":
            return verdict
    if Counter(theirs.copied.splitlines()) != Counter(ours.copied.splitlines()):
        return "copied rows"
    return "same"


def _names(oids: list[int]) -> list[str]:
    return [BY_OID.get(t, str(t)) for t in oids]


def _results(theirs: Result, ours: Result, *, sorted: bool, binary: bool) -> str:
    if theirs.names != ours.names:
        return "names of columns"
    if theirs.types != ours.types:
        return f"types of columns: {_names(ours.types)}, not {_names(theirs.types)}"
    types = [t if not binary else "bytes" if t in BINARY else "unknown" for t in _names(theirs.types)]
    one, other = ([tuple(normal(v, t) for v, t in zip(row, types, strict=True)) for row in a.rows] for a in (theirs, ours))
    if len(one) != len(other):
        return "number of rows"
    if one == other or (not sorted and Counter(one) == Counter(other)):
        return "same"
    if sorted and Counter(one) == Counter(other):
        return "order of rows"
    if not any(t.removesuffix("[]") in ("float4", "float8", "numeric") for t in types):
        return "rows"
    return "same" if _close(one, other, types) else "rows"


def normal(value: bytes | None, type: str) -> object:
    """Returns a value in a form in which equal values compare equal, whatever their text."""
    if value is None or type == "bytes":
        return value
    text = value.decode(errors="replace")
    try:
        match type:
            case "unknown":
                return True
            case "numeric":
                return "NaN" if text == "NaN" else Decimal(text).normalize()
            case "float4" | "float8":
                number = float(text)
                return "NaN" if math.isnan(number) else number
            case "jsonb":
                return json.dumps(json.loads(text, parse_float=_number, parse_int=_number), sort_keys=True)
            case "numeric[]" | "float8[]" | "float4[]":
                return tuple("NULL" if v == "NULL" else "NaN" if v == "NaN" else Decimal(v).normalize() for v in text[1:-1].split(",") if v)
            case "bpchar":
                return text.rstrip(" ")
    except (ValueError, InvalidOperation):
        pass
    return text


def _number(text: str) -> str:
    return str(Decimal(text).normalize() + 0)


def _close(one: list[tuple[object, ...]], other: list[tuple[object, ...]], types: list[str]) -> bool:
    """Returns whether the rows can be paired so that partners differ in their last digits only."""
    left = list(other)
    for row in one:
        for i, candidate in enumerate(left):
            if all(_alike(a, b, t) for a, b, t in zip(row, candidate, types, strict=True)):
                del left[i]
                break
        else:
            return False
    return True


def _alike(a: object, b: object, type: str) -> bool:
    if a == b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_alike(x, y, type.removesuffix("[]")) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=TOLERANCE.get(type, 1e-11), abs_tol=1e-12)
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return a.is_finite() and b.is_finite() and abs(a - b) <= max(abs(a) * NUMERIC_DIGITS, NUMERIC_DIGITS)
    return False
