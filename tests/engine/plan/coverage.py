"""The features of SQL that a query uses, and the set of all that views support.

Without the aggregate whose groups stay: its result depends on rows that have left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tailgate.engine.plan.circuit.operators import KEEPS_GROUPS
from tailgate.sql import plan
from tailgate.sql.functions.aggregates import MAINTAINED
from tailgate.sql.functions.windows import ROWS as WINDOW_FUNCTIONS
from tailgate.sql.plan.rewriting import columns_of, conjuncts
from tailgate.sql.plan.rewriting import walk as parts_of
from tailgate.sql.plan.traversal import scalars_of, walk
from testing.reference.evaluation import CLOCKS

# features that the plan does not show, found by a pattern in the text
TEXT = {
    "NATURAL JOIN": r"\bNATURAL\b", "USING": r"\bUSING \(", "WITH": r"^WITH\b", "LATERAL": r"\bLATERAL\b", "EXISTS": r"\bEXISTS \(",
    "IN (SELECT)": r"\bIN \((SELECT|\()", "ANY": r"\bANY \(", "ALL": r"\bALL \(", "GROUPING SETS": r"\bGROUPING SETS\b",
    "ROLLUP": r"\bROLLUP\b", "CUBE": r"\bCUBE\b", "HAVING": r"\bHAVING\b", "DISTINCT ON": r"\bDISTINCT ON\b", "WITH TIES": r"\bWITH TIES\b",
    "OFFSET": r"\bOFFSET\b", "WINDOW": r"\bWINDOW win\b", "tumble": r"\btumble\(", "hop": r"\bhop\(", "session": r"\bsession\(",
    "date_bin": r"\bdate_bin\(", "scalar subquery": r"[=<>] \(SELECT", "subquery in FROM": r"(FROM|JOIN) \(SELECT",
    "a view of views": r"\b(FROM|JOIN) [vo]\d+\b",
}  # fmt: skip
JOINS = ("inner", "left", "right", "full", "cross", "semi", "anti")
SETS = "generate_series unnest jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys hop".split()
EVERY = frozenset(
    (
        *TEXT,
        *(f"{kind} join" for kind in JOINS),
        *(f"{kind} join without equality" for kind in JOINS if kind != "cross"),
        *(f"{kind} join with more conditions" for kind in JOINS if kind != "cross"),
        *(f"{kind}{more}" for kind in ("INTERSECT", "EXCEPT") for more in ("", " ALL")),
        "UNION", "VALUES", "WHERE", "DISTINCT", "GROUP BY", "aggregate without groups", "top-k", "top-k of each key", "self join",
        "aggregate of DISTINCT", "aggregate with ORDER BY", "aggregate with FILTER", "aggregate of an aggregate",
        *(f"{f}()" for f in MAINTAINED if f != KEEPS_GROUPS), *(f"{f.name}() OVER" for f in WINDOW_FUNCTIONS), "aggregate OVER",
        *(f"{mode} frame" for mode in ("rows", "range", "groups")), "EXCLUDE", *(f"{f} in FROM" for f in SETS), "WITH ORDINALITY",
        "LEFT JOIN of a function", "the clock", "WITH RECURSIVE",
    )
)  # fmt: skip


def features(query: str, relation: plan.Relation) -> set[str]:
    """Returns the members of EVERY that a query uses."""
    matches = {name for name, pattern in TEXT.items() if re.search(pattern, query)}
    return matches | {f for node in walk(relation) for f in of_node(node)}


def of_node(node: plan.Relation) -> Iterator[str]:
    if any(isinstance(s, plan.Call) and s.function.name in CLOCKS for top in scalars_of(node) for s in parts_of(top)):
        yield "the clock"
    match node:
        case plan.Join():
            yield f"{node.kind} join"
            if node.condition is not None:
                equal = [c for c in conjuncts(node.condition) if equates(c, len(node.left.columns))]
                if not equal:
                    yield f"{node.kind} join without equality"
                elif len(equal) < len(conjuncts(node.condition)):
                    yield f"{node.kind} join with more conditions"
            scans = [{n.relation for n in walk(side) if isinstance(n, plan.Scan)} for side in (node.left, node.right)]
            if scans[0] & scans[1]:
                yield "self join"
        case plan.SetOperation(kind=kind, all=all):
            yield f"{kind.upper()}{' ALL' if all else ''}"
        case plan.UnionAll():
            yield "UNION"
        case plan.Values():
            yield "VALUES"
        case plan.Filter():
            yield "WHERE"
        case plan.Distinct():
            yield "DISTINCT"
        case plan.TopK(keys=keys):
            yield "top-k of each key" if keys else "top-k"
        case plan.Limit():
            yield "top-k"
        case plan.Reduce(input=input, keys=keys, aggregates=calls):
            yield "GROUP BY" if keys else "aggregate without groups"
            if any(isinstance(n, plan.Reduce) for n in walk(input)):
                yield "aggregate of an aggregate"
            for call in calls:
                yield f"{call.function.name}()"
                yield from (
                    f"aggregate {name}" for name, on in (("of DISTINCT", call.distinct), ("with FILTER", call.filter is not None)) if on
                )
                if call.order and call.arguments:
                    yield "aggregate with ORDER BY"
        case plan.Window(calls=windows):
            for window in windows:
                yield "aggregate OVER" if window.function.kind == "aggregate" else f"{window.function.name}() OVER"
                yield f"{window.frame.mode} frame"
                if window.frame.exclude != "no others":
                    yield "EXCLUDE"
        case plan.Recursive():
            yield "WITH RECURSIVE"
        case plan.Generate():
            yield f"{node.function.name} in FROM"
            if node.ordinality:
                yield "WITH ORDINALITY"
            if node.kind == "left":
                yield "LEFT JOIN of a function"


def equates(condition: plan.Scalar, width: int) -> bool:
    """Returns whether an equality compares an expression of the left input with one of the right."""
    if not isinstance(condition, plan.Call) or condition.function.name != "=":
        return False
    sides = [{i < width for i in columns_of(a)} for a in condition.arguments]
    return sides in ([{True}, {False}], [{False}, {True}])
