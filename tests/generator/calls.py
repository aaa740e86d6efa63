"""Generates random calls of aggregates and window functions."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from tests.generator import signatures
from tests.generator.expressions import Expressions, Name, Scope
from tests.generator.signatures import Signature
from tests.generator.trees import Node, expression, fixed, listed, node, optional

NAMES_MAX = 12  # limit of the columns in an ORDER BY


@dataclass
class Calls:
    """The calls of one query. Adds the signatures and clauses that it uses to `used` and `clauses`."""

    random: random.Random
    parameters: list[tuple[str, str | None]] | None
    used: set[Signature]
    clauses: set[str]

    def direction(self) -> str:
        return self.random.choice(["", "", "", " DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST", " NULLS LAST"])

    # ---- SELECT ---------------------------------------------------------------------------------

    def aggregate(self, type: str, scope: Scope, depth: int) -> Node | None:
        """Generates an exact aggregate of a type; None if no aggregate returns the type."""
        r = self.random
        signature = signatures.pick(signatures.AGGREGATES, type, r, exact=True)
        if signature is None:
            return None
        self.used.add(signature)
        expressions = Expressions(r, None, self.parameters, self.used)
        types = signature.arguments
        depth = min(depth, 1)
        name = signature.name
        if name in ("mode", "percentile_disc"):
            order = node(
                "clause", " WITHIN GROUP (ORDER BY ", expressions.expression(_ordered(signature), scope, depth), self.direction(), ")"
            )
            direct = node("clause", r.choice(["0", "0.25", "0.5", "1"]) if name != "mode" else "")
            if type.endswith("[]") and name == "percentile_disc":
                direct = node("clause", "ARRAY[0.2, 0.5]::float8[]")
            return expression(type, f"{name}(", direct, ")", order, self._filter(expressions, scope))
        if not types:
            return expression(type, "count(*)", self._filter(expressions, scope))
        arguments = [expressions.expression(t, scope, depth) for t in types]
        if any(constant(a.text) for a in arguments) and r.random() < 0.8 and not scope:
            return None
        distinct, order = "", node("clause")
        if name in ("array_agg", "string_agg", "jsonb_agg", "jsonb_object_agg"):
            keys = [node("key", a, self.direction()) for a in arguments]
            if name == "string_agg":
                arguments[1] = expression(types[1], "','" if type == "text" else "'\\x00'::bytea")
                keys = keys[:1]
            order = fixed(" ORDER BY ", listed(keys))
        elif r.random() < 0.2:
            distinct = "DISTINCT "
        return expression(type, f"{name}({distinct}", listed(arguments, least=len(arguments)), order, ")", self._filter(expressions, scope))

    def _filter(self, expressions: Expressions, scope: Scope) -> Node:
        if self.random.random() < 0.8:
            return node("clause")
        self.clauses.add("FILTER")
        return optional(" FILTER (WHERE ", expressions.condition(scope, 1), ")")

    def window(self, type: str, scope: Scope, *, counting: bool = True) -> Name:
        """Generates a window function call.

        With `counting`, it may be a function that counts rows. Without, it may not, because two
        such calls can number equal rows differently.
        """
        r = self.random
        expressions = Expressions(r, None, self.parameters, self.used)
        names = [n for n in scope if n.exact]
        split = node("clause")
        if names and r.random() < 0.6:
            split = optional("PARTITION BY ", listed([n.node for n in r.sample(names, r.randint(1, min(2, len(names))))]), " ")
        luck = r.random()
        total = [node("key", n.node, self.direction()) for n in names]
        if counting and luck < 0.6 and 0 < len(total) <= NAMES_MAX:
            r.shuffle(total)
            order = fixed("ORDER BY ", listed(total))
            value = expressions.expression(type, scope, 1)
            numbers = {
                "int8": ["row_number()", "rank()", "dense_rank()"],
                "float8": ["percent_rank()", "cume_dist()"],
                "int4": ["ntile(3)"],
            }
            if type in numbers and r.random() < 0.5:
                return Name(expression(type, r.choice(numbers[type]), " OVER (", split, order, ")"), type, type != "float8")
            call = r.choice(["lag({}, 1)", "lead({})", "first_value({})", "last_value({})", "nth_value({}, 2)", "lag({}, 2, NULL)"])
            before, after = call.split("{}")
            frame = optional(self._frame(rows=True)) if r.random() < 0.5 else node("clause")
            return Name(expression(type, before, value, after, " OVER (", split, order, frame, ")"), type)
        call = self.aggregate(type, scope, 1)
        for _ in range(3):
            if call is None or "DISTINCT" in call.text or "WITHIN" in call.text or "ORDER BY" in call.text:
                call = self.aggregate(type, scope, 1)
        if call is None or "DISTINCT" in call.text or "WITHIN" in call.text or "ORDER BY" in call.text:
            call = expression("int8", "count(*)")
            type = "int8"
        keys = [node("key", n.node, self.direction()) for n in r.sample(names, min(len(names), r.randint(0, 2)))]
        order = optional("ORDER BY ", listed(keys)) if keys else node("clause")
        frame = optional(self._frame(rows=False)) if r.random() < 0.3 and keys else node("clause")
        return Name(expression(type, call, " OVER (", split, order, frame, ")"), type)

    def _frame(self, *, rows: bool) -> str:
        r = self.random
        mode = r.choice(["ROWS", "ROWS", "RANGE", "GROUPS"]) if rows else r.choice(["RANGE", "GROUPS"])
        ends = ["UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "2 FOLLOWING", "UNBOUNDED FOLLOWING"]
        if mode == "RANGE":
            ends = [ends[0], ends[3], ends[6]]
        start = r.randint(0, len(ends) - 2)
        exclude = r.choice(["", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS"]) if rows else ""
        return f" {mode} BETWEEN {ends[start]} AND {ends[r.randint(max(start, 1), len(ends) - 1)]}{exclude}"


def _ordered(signature: Signature) -> str:
    return signature.arguments[-1]


def constant(text: str) -> bool:
    """Returns whether a GROUP BY key is a plain number (an output position) or contains no column."""
    return re.search(r"[a-z]\w*\.\w", text) is None
