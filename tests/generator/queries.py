"""Generates random queries with every clause of SELECT over tables and views.

The result of a query, as a bag of rows, is unique. Therefore LIMIT, DISTINCT ON and window
functions that count rows appear only where the order determines the result, apart from equal rows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.generator.calls import NAMES_MAX, Calls, constant
from tests.generator.expressions import COMPARED, DEPTH, Expressions, Name, Scope
from tests.generator.signatures import Signature
from tests.generator.trees import Node, expression, fixed, listed, node, optional

SHOWN = (
    "int4", "int4", "text", "text", "int8", "numeric", "float8", "bool", "date", "timestamp", "timestamptz", "interval", "jsonb", "uuid",
    "inet", "macaddr", "varbit",
    "int2", "float4", "bytea", "time", "timetz", "int4[]", "text[]", "bool", "int4", "text",
)  # fmt: skip
INEXACT = ("numeric", "float8", "float4")  # types whose last digits may differ in the outermost select list


@dataclass(frozen=True)
class Relation:
    """A table or view. `key` is a column that identifies a row."""

    name: str
    columns: tuple[tuple[str, str], ...]
    key: str | None = None


@dataclass(frozen=True)
class Source:
    """An item of FROM.

    `key` holds columns that identify a row. None means that even all columns do not; rows that are
    equal are then interchangeable.
    """

    node: Node
    scope: Scope


@dataclass(frozen=True)
class Query:
    """A generated query.

    `columns` are the types of its outputs; `sorted` says that the order is fixed.
    """

    node: Node
    columns: list[str]
    sorted: bool = False


@dataclass
class Queries:
    random: random.Random
    relations: tuple[Relation, ...]
    parameters: list[tuple[str, str | None]] | None = None
    windows: bool = True
    used: set[Signature] = field(default_factory=set)
    clauses: set[str] = field(default_factory=set)
    _aliases: int = 0
    _ctes: list[Relation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.expressions = Expressions(self.random, self._subquery, self.parameters, self.used)
        self.calls = Calls(self.random, self.parameters, self.used, self.clauses)

    def query(self) -> Query:
        """Generates a complete query."""
        r = self.random
        types = [r.choice(SHOWN) for _ in range(r.choice([1, 1, 2, 2, 3, 4]))]
        depth = r.choice([1, 1, 2, 2, 3])
        clauses, before = self._with(depth), list(self._ctes)
        try:
            exact = r.random() < 0.7
            body = self._top(types, depth, exact)
        finally:
            self._ctes = before[: len(before) - len(clauses)]
        if clauses:
            self.clauses.add("WITH")
            return Query(node("query", optional("WITH ", listed(clauses), " "), body.node), body.columns, body.sorted)
        return body

    def _top(self, types: list[str], depth: int, exact: bool) -> Query:
        r = self.random
        luck = r.random()
        if luck < 0.12:
            return Query(self._combined(types, [], depth), types)
        if luck < 0.2:
            return Query(self._values(types, [], depth), types)
        if luck < 0.26:
            relation = r.choice(self.relations)
            self.clauses.add("TABLE")
            return Query(node("query", f"TABLE {relation.name}"), [t for _, t in relation.columns])
        if luck < 0.36:
            return self._sorted(types, depth)
        return Query(self.select(types, [], depth, exact=exact), types)

    def _subquery(self, types: list[str], scope: Scope, depth: int) -> Node:
        """Generates a query for an expression; if it has to be scalar, it returns one row at most."""
        if depth <= 0:
            return node("query", "SELECT ", listed([self.expressions.expression(t, scope, 0) for t in types], least=len(types)))
        r = self.random
        if len(types) == 1 and r.random() < 0.5:
            source = self._from(scope, depth - 1)
            where = self._where(source.scope + scope, depth - 1)
            call = self.calls.aggregate(types[0], source.scope, depth - 1)
            if call is not None:
                return node("query", "SELECT ", call, " FROM ", source.node, where)
        inner = self.select(types, scope, depth - 1)
        self.clauses.add("LIMIT 1")
        order = ", ".join(f"{i + 1}" for i in range(len(types)))
        return node("query", "SELECT * FROM (", inner, f") AS q ORDER BY {order} LIMIT 1")

    def alias(self) -> str:
        self._aliases += 1
        return f"q{self._aliases}"

    # ---- WITH, set operations, VALUES -----------------------------------------------------------

    def _with(self, depth: int) -> list[Node]:
        out: list[Node] = []
        for _ in range(self.random.choice([0, 0, 0, 0, 0, 1, 1, 2])):
            types = [self.random.choice(SHOWN) for _ in range(self.random.randint(1, 3))]
            name = self.alias()
            columns = tuple((f"c{i}", t) for i, t in enumerate(types))
            hint = self.random.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "])
            inner = self._combined(types, [], depth - 1) if self.random.random() < 0.2 else self.select(types, [], max(depth - 1, 1))
            out.append(node("cte", f"{name} ({', '.join(c for c, _ in columns)}) AS {hint}(", inner, ")"))
            self._ctes.append(Relation(name, columns))
        return out

    def _combined(self, types: list[str], outer: Scope, depth: int) -> Node:
        r = self.random
        word = r.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "UNION ALL", "INTERSECT ALL", "EXCEPT ALL"])
        self.clauses.add(word)
        sides = []
        for _ in range(2):
            nested = depth > 1 and r.random() < 0.2
            side = self._combined(types, outer, depth - 1) if nested else self.select(types, outer, max(depth - 1, 0))
            sides.append(node("query", "(", side, ")") if nested or r.random() < 0.6 else side)
        return node("query", sides[0], f" {word} ", sides[1])

    def _values(self, types: list[str], outer: Scope, depth: int) -> Node:
        self.clauses.add("VALUES")
        rows = []
        for _ in range(self.random.randint(1, 3)):
            cells = [self.expressions.expression(t, outer, self.random.randint(0, 1)) for t in types]
            rows.append(node("row", "(", listed(cells, least=len(cells)), ")"))
        return node("query", "VALUES ", listed(rows))

    def _sorted(self, types: list[str], depth: int) -> Query:
        """Generates a query sorted by all its outputs, with or without LIMIT and OFFSET."""
        r = self.random
        inner = self.select(types, [], depth, labelled=True)
        order = list(range(len(types)))
        r.shuffle(order)
        keys = [node("key", f"{i + 1}" if r.random() < 0.5 else f"o{i}", self.calls.direction()) for i in order]
        parts = [fixed(" ORDER BY ", listed(keys))]
        if r.random() < 0.7:
            parts.append(optional(self._cut()))
        return Query(node("query", "SELECT * FROM (", inner, ") AS q", *parts), types, True)

    def _cut(self) -> str:
        r = self.random
        self.clauses.add("LIMIT")
        count, skipped = r.randint(0, 5), r.randint(0, 3)
        return r.choice(
            [
                f" LIMIT {count}",
                f" LIMIT {count} OFFSET {skipped}",
                f" OFFSET {skipped} ROWS",
                f" OFFSET {skipped} FETCH NEXT {count} ROWS ONLY",
                f" FETCH FIRST {count} ROWS WITH TIES",
                " FETCH FIRST ROW ONLY",
                " LIMIT ALL",
                f" LIMIT {count} + 1",
            ]
        )

    def select(self, types: list[str], outer: Scope, depth: int, *, exact: bool = True, labelled: bool = False) -> Node:
        """Generates a SELECT with columns of these types."""
        r = self.random
        if depth <= 0 and r.random() < 0.4:
            return node("query", "SELECT ", self._outputs([self.expressions.expression(t, outer, 1) for t in types], labelled))
        source = self._from(outer, depth)
        where = self._where(source.scope + outer, depth)
        luck = r.random()
        if luck < 0.25:
            return self._grouped(types, source, where, outer, depth, labelled)
        if luck < 0.35 and self.windows:
            return self._windowed(types, source, where, outer, depth, labelled)
        distinct = ""
        if r.random() < 0.1:
            distinct, exact = "DISTINCT ", True
            self.clauses.add("DISTINCT")
        outputs = [self.expressions.expression(t, source.scope + outer, depth, exact=exact or t not in INEXACT) for t in types]
        if distinct and r.random() < 0.4 and not outer:
            return self._distinct_on(types, outputs, source, where)
        return node("query", f"SELECT {distinct}", self._outputs(outputs, labelled), " FROM ", source.node, where)

    def _distinct_on(self, types: list[str], outputs: list[Node], source: Source, where: Node) -> Node:
        self.clauses.add("DISTINCT ON")
        on = ", ".join(f"o{i}" for i in range(self.random.randint(1, len(outputs))))
        order = ", ".join(f"o{i}{self.calls.direction()}" for i in range(len(outputs)))
        inner = node("query", "SELECT ", self._outputs(outputs, True), " FROM ", source.node, where)
        return node("query", f"SELECT DISTINCT ON ({on}) * FROM (", inner, f") AS q ORDER BY {order}")

    def _outputs(self, outputs: list[Node], labelled: bool) -> Node:
        out = []
        for i, output in enumerate(outputs):
            label = f" AS o{i}" if labelled else self.random.choice(["", "", f" AS l{i}", f' AS "L {i}"'])
            out.append(node("output", output, label))
        return listed(out, least=len(out))

    def _where(self, scope: Scope, depth: int) -> Node:
        if self.random.random() < 0.5:
            return node("clause")
        self.clauses.add("WHERE")
        return optional(" WHERE ", self.expressions.condition(scope, depth))

    # ---- GROUP BY -------------------------------------------------------------------------------

    def _grouped(self, types: list[str], source: Source, where: Node, outer: Scope, depth: int, labelled: bool) -> Node:
        r = self.random
        self.clauses.add("GROUP BY")
        names = [n for n in source.scope if n.exact]
        keys = r.sample(names, min(len(names), r.choice([0, 1, 1, 2])))
        if r.random() < 0.25:
            of = r.choice(COMPARED)
            keys.append(Name(self.expressions.expression(of, source.scope, 1), of))
        keys = [k for k in keys if not constant(k.node.text)]
        calls = [c for c in (self._aggregate_name(source.scope, depth) for _ in range(r.randint(1, 2))) if c is not None]
        aggregates = [self.calls.aggregate(t, source.scope, depth - 1) if r.random() < 0.5 else None for t in types]
        scope = [*keys, *calls]
        if self.windows and r.random() < 0.1:
            call = self.calls.window(r.choice(["int8", "int4", "numeric"]), scope)
            aggregates = [w if w is not None or t != call.type else call.node for t, w in zip(types, aggregates, strict=True)]
        outputs = [w if w is not None else self.expressions.expression(t, scope, 1) for t, w in zip(types, aggregates, strict=True)]
        parts: list[Node | str] = ["SELECT ", self._outputs(outputs, labelled), " FROM ", source.node, where]
        if keys:
            parts.append(self._keys([k.node for k in keys]))
        elif r.random() < 0.1:
            parts.append(optional(" GROUP BY ()"))
        if r.random() < 0.3:
            self.clauses.add("HAVING")
            parts.append(optional(" HAVING ", self.expressions.condition(scope, 1)))
        return node("query", *parts)

    def _keys(self, keys: list[Node]) -> Node:
        r, plain = self.random, listed(keys)
        if r.random() < 0.8:
            return optional(" GROUP BY ", plain)
        self.clauses.add("GROUPING SETS")
        word = r.choice(["ROLLUP (", "CUBE (", "GROUPING SETS ((), ", "GROUPING SETS ("])
        return optional(f" GROUP BY {word}", plain, ")")

    def _aggregate_name(self, scope: Scope, depth: int) -> Name | None:
        type = self.random.choice(["int8", "int8", "int4", "text", "numeric", "bool", "date", "float8", "jsonb", "int4[]", "text[]"])
        call = self.calls.aggregate(type, scope, depth - 1)
        return None if call is None else Name(call, type)

    # ---- windows --------------------------------------------------------------------------------

    def _windowed(self, types: list[str], source: Source, where: Node, outer: Scope, depth: int, labelled: bool) -> Node:
        self.clauses.add("OVER")
        calls = [self.calls.window(t, source.scope, counting=i == 0) if self.random.random() < 0.6 else None for i, t in enumerate(types)]
        scope = source.scope + [c for c in calls if c is not None] + outer
        outputs = [c.node if c is not None else self.expressions.expression(t, scope, 1) for t, c in zip(types, calls, strict=True)]
        return node("query", "SELECT ", self._outputs(outputs, labelled), " FROM ", source.node, where)

    # ---- FROM -----------------------------------------------------------------------------------

    def _from(self, outer: Scope, depth: int) -> Source:
        r = self.random
        source = self._item(outer, depth)
        for _ in range(r.choice([0, 0, 0, 1, 1, 2]) if depth > 0 else r.choice([0, 0, 1])):
            if len(source.scope) > NAMES_MAX:
                break
            source = self._joined(source, outer, depth)
        return source

    def _joined(self, left: Source, outer: Scope, depth: int) -> Source:
        r = self.random
        if depth > 0 and r.random() < 0.15:
            return self._lateral(left, outer, depth)
        right = self._item(outer, depth - 1)
        scope = left.scope + right.scope
        kind = r.choice(["JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ","])
        self.clauses.add(kind)
        equal = self._equality(left.scope, right.scope)
        if kind in ("CROSS JOIN", ",") or (equal is None and kind == "FULL JOIN"):
            kind = "CROSS JOIN" if kind != "," else ","
            return Source(node("from", left.node, f"{kind} " if kind == "," else f" {kind} ", right.node), scope)
        on: Node = equal if equal is not None else self.expressions.condition(scope, 1)
        if equal is not None and r.random() < 0.3 and kind != "FULL JOIN":
            on = expression("bool", "(", listed([equal, self.expressions.condition(scope + outer, 1)], " AND "), ")")
        return Source(node("from", left.node, f" {kind} ", right.node, " ON ", on), scope)

    def _equality(self, left: Scope, right: Scope) -> Node | None:
        pairs = [(a, b) for a in left for b in right if a.type == b.type and a.exact and b.exact and a.type not in ("float4", "float8")]
        if not pairs:
            return None
        a, b = self.random.choice(pairs)
        sign = self.random.choice(["=", "=", "=", "=", "IS NOT DISTINCT FROM"])
        return expression("bool", a.node, f" {sign} ", b.node)

    def _lateral(self, left: Source, outer: Scope, depth: int) -> Source:
        self.clauses.add("LATERAL")
        types = [self.random.choice(SHOWN) for _ in range(self.random.randint(1, 2))]
        name = self.alias()
        inner = self.select(types, left.scope + outer, depth - 1, labelled=True)
        scope = left.scope + [Name(expression(t, f"{name}.o{i}"), t) for i, t in enumerate(types)]
        word = self.random.choice([" CROSS JOIN LATERAL (", " LEFT JOIN LATERAL ("])
        on = " ON true" if "LEFT" in word else ""
        return Source(node("from", left.node, word, inner, f") AS {name}{on}"), scope)

    def _item(self, outer: Scope, depth: int) -> Source:
        r, name = self.random, self.alias()
        luck = r.random()
        if depth > 0 and luck < 0.15:
            types = [r.choice(SHOWN) for _ in range(r.randint(1, 3))]
            inner = self.select(types, [], depth - 1, labelled=True)
            self.clauses.add("subquery in FROM")
            return Source(node("from", "(", inner, f") AS {name}"), [Name(expression(t, f"{name}.o{i}"), t) for i, t in enumerate(types)])
        if luck < 0.2:
            types = [r.choice(SHOWN) for _ in range(r.randint(1, 2))]
            rows = self._values(types, [], 0)
            columns = ", ".join(f"v{i}" for i in range(len(types)))
            scope = [Name(expression(t, f"{name}.v{i}"), t) for i, t in enumerate(types)]
            return Source(node("from", "(", rows, f") AS {name} ({columns})"), scope)
        if luck < 0.27:
            return self._function(name)
        if self._ctes and luck < 0.5:
            relation = r.choice(self._ctes)
        else:
            relation = r.choice(self.relations)
        scope = [Name(expression(t, f"{name}.{c}"), t) for c, t in relation.columns]
        return Source(node("from", f"{relation.name} AS {name}"), scope)

    def _function(self, name: str) -> Source:
        """Generates a call of a set-returning function with constant arguments."""
        self.clauses.add("function in FROM")
        r = self.random
        text, type = r.choice(
            [
                ("generate_series(1, 3)", "int4"),
                ("generate_series(5, 1, -2)", "int4"),
                ("generate_series(1::int8, 2)", "int8"),
                ("generate_series('2024-01-30'::timestamp, '2024-03-01', '10 days')", "timestamp"),
                ("unnest(ARRAY['a', 'b', NULL])", "text"),
                ("unnest('{1,2,2}'::int4[])", "int4"),
                ("jsonb_array_elements('[1, {\"a\": 2}, null]')", "jsonb"),
                ('jsonb_object_keys(\'{"a": 1, "b": 2}\')', "text"),
                ("regexp_split_to_table('a b c', ' ')", "text"),
                ("string_to_table('a,b', ',')", "text"),
            ]
        )
        if r.random() < 0.3:
            scope = [Name(expression(type, f"{name}.v"), type), Name(expression("int8", f"{name}.n"), "int8")]
            return Source(node("from", f"{text} WITH ORDINALITY AS {name} (v, n)"), scope)
        return Source(node("from", f"{text} AS {name} (v)"), [Name(expression(type, f"{name}.v"), type)])


__all__ = ["DEPTH", "Queries", "Query", "Relation"]
