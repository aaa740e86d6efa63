"""Random queries with all kinds of subqueries over three small tables with NULLs, determined by a seed.

The result of a query, as a bag, does not depend on the order of evaluation. LIMIT appears only with
a total order. Expressions that may fail on some rows (a division, a subquery with two rows) are
generated only with `errors`.
"""

from __future__ import annotations

import random

TABLES = {
    "r": (("a", "int4"), ("b", "int4"), ("c", "text")),
    "s": (("a", "int4"), ("b", "int8"), ("d", "text")),
    "t": (("a", "int4"), ("e", "int4")),
}
Row = tuple[object, ...]
Name = tuple[str, str]  # SQL text, type


def rows(source: random.Random, most: int = 7) -> dict[str, list[Row]]:
    """Returns rows for each table: few different values, NULLs and duplicates.

    `r` and others may be empty.
    """

    def value(type: str) -> object:
        if source.random() < 0.2:
            return None
        return source.choice(["x", "y", ""]) if type == "text" else source.randint(0, 3)

    return {
        name: [tuple(value(t) for _, t in columns) for _ in range(source.choice([0, 1, 3, 5, most]))] for name, columns in TABLES.items()
    }


class Writer:
    """A generator of queries."""

    def __init__(self, source: random.Random, *, errors: bool = False, depth: int | None = None, whole: bool = False) -> None:
        """Sets the options of the generated queries.

        `errors` allows expressions that may fail on some rows. `depth` limits the nesting. With
        `whole`, LATERAL subqueries often compute from all rows at once: windows, set operations,
        joined aggregates.
        """
        self.random, self.errors, self.whole, self.aliases = source, errors, whole, 0
        self.depth = depth or source.choice([1, 1, 1, 2])

    def query(self) -> str:
        if self.whole and self.random.random() < 0.3:
            return self.beside()
        choice, depth = self.random.random(), self.depth
        if choice < 0.12:
            name = self.alias()
            inner, columns = self.select([], depth, self.random.randint(1, 2))
            outer, _ = self.select([], depth, self.random.randint(1, 2), cte=(name, columns))
            hint = self.random.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "])
            return f"WITH {name} AS {hint}({inner}) {outer}"
        if choice < 0.25:
            return self.grouped([], depth)
        if choice < 0.33:
            types = [self.type() for _ in range(self.random.randint(1, 2))]
            one, other = (self.select([], depth, types=types)[0] for _ in range(2))
            return f"{one} {self.set_operation()} {other}"
        return self.select([], depth, self.random.randint(1, 3))[0]

    def set_operation(self) -> str:
        return self.random.choice(["UNION", "UNION ALL"])

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def type(self) -> str:
        return self.random.choice(["int4", "int4", "text", "bool"])

    # ---- SELECT ---------------------------------------------------------------------------------

    def select(
        self, outer: list[Name], depth: int, width: int = 1, types: list[str] | None = None, cte: tuple[str, list[Name]] | None = None
    ) -> tuple[str, list[Name]]:
        """Generates a query. Returns it with its columns."""
        types = types or [self.type() for _ in range(width)]
        sources, scope = self.sources(outer, depth, cte)
        visible = scope + outer
        outputs = [self.expression(t, visible, depth) for t in types]
        names = [f"o{self.alias()}" for _ in types]
        text = (
            "SELECT "
            + ("DISTINCT " if self.random.random() < 0.1 else "")
            + ", ".join(f"{o} AS {n}" for o, n in zip(outputs, names, strict=True))
        )
        text += f" FROM {sources}"
        if self.random.random() < 0.75:
            text += f" WHERE {self.condition(visible, depth)}"
        return text, list(zip(names, types, strict=True))

    def grouped(self, outer: list[Name], depth: int, types: tuple[str, ...] = ()) -> str:
        sources, scope = self.sources(outer, depth)
        keys = self.random.sample(scope, min(len(scope), self.random.randint(1, 2)))
        calls = [self.aggregate(scope, outer) for _ in range(self.random.randint(1, 2))]
        outputs = [k for k, _ in keys] + calls
        if depth and self.random.random() < 0.5:
            outputs.append(self.scalar(self.type(), keys + outer, depth - 1))
        text = "SELECT " + ", ".join(f"{o} AS o{self.alias()}" for o in outputs) + f" FROM {sources}"
        if self.random.random() < 0.5:
            text += f" WHERE {self.condition(scope + outer, depth)}"
        text += " GROUP BY " + ", ".join(k for k, _ in keys)
        if self.random.random() < 0.5:
            call = self.random.choice(["count(*)", *(f"max({n})" for n, t in scope if t == "int4")])
            text += f" HAVING {call} {self.sign()} " + (
                self.scalar("int4", keys + outer, depth - 1) if depth and self.random.random() < 0.6 else str(self.random.randint(0, 3))
            )
        return text

    def aggregate(self, scope: list[Name], outer: list[Name]) -> str:
        choice = self.random.random()
        numbers = [n for n, t in scope if t in ("int4", "int8")]
        if choice < 0.3 or not numbers:
            return "count(*)"
        number = self.random.choice(numbers)
        if choice < 0.4 and outer:
            others = [n for n, t in outer if t in ("int4", "int8")]
            if others:
                number = f"{number} + {self.random.choice(others)}"
        return f"{self.random.choice(['sum', 'min', 'max', 'count', 'count'])}({number})"

    # ---- FROM -----------------------------------------------------------------------------------

    def sources(self, outer: list[Name], depth: int, cte: tuple[str, list[Name]] | None = None) -> tuple[str, list[Name]]:
        text, scope = self.item(outer, depth, cte)
        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            choice = self.random.random()
            if choice < 0.25 and depth:
                inner, columns = self.lateral(scope, outer, depth)
                name = self.alias()
                qualified = [(f"{name}.{c}", t) for c, t in columns]
                if self.random.random() < 0.5:
                    text = f"{text}, LATERAL ({inner}) AS {name}"
                else:
                    on = "true" if self.random.random() < 0.6 else self.simple(scope + qualified)
                    text = f"{text} {self.random.choice(['', 'LEFT '])}JOIN LATERAL ({inner}) AS {name} ON {on}"
                scope = scope + qualified
                continue
            item, columns = self.item(outer, depth, cte)
            if choice < 0.4:
                text = f"{text} CROSS JOIN {item}"
            else:
                kind = self.random.choice(["", "", "LEFT ", "RIGHT ", "FULL "])
                on = self.equality(scope, columns) if kind == "FULL " or self.random.random() < 0.7 else self.simple(scope + columns)
                if kind == "" and depth and self.random.random() < 0.3:
                    on += f" AND {self.condition(scope + columns + outer, depth - 1)}"
                text = f"{text} {kind}JOIN {item} ON {on}"
            scope = scope + columns
        return text, scope

    def item(self, outer: list[Name], depth: int, cte: tuple[str, list[Name]] | None = None) -> tuple[str, list[Name]]:
        name = self.alias()
        if cte is not None and self.random.random() < 0.6:
            return f"{cte[0]} AS {name}", [(f"{name}.{c}", t) for c, t in cte[1]]
        if depth and self.random.random() < 0.2:
            inner, columns = self.select(outer, depth - 1, self.random.randint(1, 2))
            return f"({inner}) AS {name}", [(f"{name}.{c}", t) for c, t in columns]
        if self.random.random() < 0.08:
            cells = ", ".join(f"({self.value('int4', outer)}, {self.random.randint(0, 3)})" for _ in range(self.random.randint(1, 3)))
            return f"(VALUES {cells}) AS {name}(v, w)", [(f"{name}.v", "int4"), (f"{name}.w", "int4")]
        table = self.random.choice(list(TABLES))
        return f"{table} AS {name}", [(f"{name}.{c}", t) for c, t in TABLES[table]]

    def lateral(self, scope: list[Name], outer: list[Name], depth: int) -> tuple[str, list[Name]]:
        if self.whole and self.random.random() < 0.4:
            return self.random.choice((self.ranked, self.both, self.counted))(scope + outer, depth - 1)
        choice = self.random.random()
        if choice < 0.25:
            return self.top(scope + outer, depth - 1)
        if choice < 0.4:
            return f"SELECT {self.expression('int4', scope + outer, 0)} AS e", [("e", "int4")]
        if choice < 0.6:
            sources, own = self.sources(scope + outer, depth - 1)
            call = self.aggregate(own, scope + outer)
            return f"SELECT {call} AS n FROM {sources} WHERE {self.condition(own + scope + outer, depth - 1)}", [("n", "int8")]
        return self.select(scope + outer, depth - 1, self.random.randint(1, 2))

    def beside(self) -> str:
        """Generates a join of each row of a table with a lateral subquery."""
        table, name = self.random.choice(list(TABLES)), self.alias()
        scope = [(f"{name}.{c}", t) for c, t in TABLES[table]]
        inner, columns = self.random.choice((self.ranked, self.both, self.counted, self.top))(scope, 0)
        shown = ", ".join([scope[0][0], *(f"l.{c}" for c, _ in columns)])
        joined = self.random.choice([f", LATERAL ({inner}) AS l", f" LEFT JOIN LATERAL ({inner}) AS l ON true"])
        return f"SELECT {shown} FROM {table} AS {name}{joined}"

    def ranked(self, outer: list[Name], depth: int) -> tuple[str, list[Name]]:
        """Generates a subquery that ranks the rows of a table."""
        own = [("q.a", "int4"), ("q.e", "int4")]
        rank = self.random.choice(["rank() OVER (ORDER BY q.e)", "count(*) OVER (PARTITION BY q.e)", "dense_rank() OVER (ORDER BY q.a)"])
        return f"SELECT q.a, {rank} AS n FROM t AS q WHERE {self.correlated(own, outer, depth)}", [("a", "int4"), ("n", "int8")]

    def both(self, outer: list[Name], depth: int) -> tuple[str, list[Name]]:
        """Generates a set operation; one side or both refer to outer columns."""
        one, other = (self.correlated([(f"{q}.a", "int4"), (f"{q}.b", "int4")], outer, depth) for q in ("q", "z"))
        kind = self.random.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
        return f"SELECT q.a FROM r AS q WHERE {one} {kind} SELECT z.a FROM s AS z WHERE {other}", [("a", "int4")]

    def counted(self, outer: list[Name], depth: int) -> tuple[str, list[Name]]:
        """Generates a joined aggregate without GROUP BY, which has a row for empty input, too."""
        own = [("q.a", "int4"), ("q.e", "int4")]
        inner = f"SELECT count(*) AS n, max(q.e) AS m FROM t AS q WHERE {self.correlated(own, outer, depth)}"
        kind = self.random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
        return f"SELECT z.a, y.n FROM ({inner}) AS y {kind} r AS z ON z.a = y.n OR y.m IS NULL", [("a", "int4"), ("n", "int8")]

    def top(self, outer: list[Name], depth: int) -> tuple[str, list[Name]]:
        """Generates a subquery with LIMIT and a total order."""
        table = self.random.choice(list(TABLES))
        name = self.alias()
        columns = [(f"{name}.{c}", t) for c, t in TABLES[table]]
        order = ", ".join(f"{c}{self.random.choice(['', ' DESC'])}" for c, _ in self.random.sample(columns, len(columns)))
        shown = ", ".join(f"{c} AS o{i}" for i, (c, _) in enumerate(columns))
        where = self.correlated(columns, outer, depth)
        offset = f" OFFSET {self.random.randint(0, 1)}" if self.random.random() < 0.3 else ""
        text = f"SELECT {shown} FROM {table} AS {name} WHERE {where} ORDER BY {order} LIMIT {self.random.randint(1, 2)}{offset}"
        return text, [(f"o{i}", t) for i, (_, t) in enumerate(columns)]

    # ---- subqueries -----------------------------------------------------------------------------

    def correlated(self, own: list[Name], outer: list[Name], depth: int) -> str:
        """Generates a condition that is usually correlated."""
        if outer and self.random.random() < 0.75:
            tie = self.equality(own, outer)
            return tie if self.random.random() < 0.6 else f"{tie} AND {self.condition(own + outer, depth)}"
        return self.condition(own + outer, depth)

    def scalar(self, type: str, outer: list[Name], depth: int) -> str:
        """Generates a scalar subquery. It has one row at most, unless it may fail."""
        choice = self.random.random()
        sources, own = self.sources(outer, depth)
        if (type == "int4" and choice < 0.6) or type not in ("int4", "text"):
            numbers = [n for n, t in own if t == "int4"] or ["1"]
            call = self.random.choice([f"max({self.random.choice(numbers)})", f"min({self.random.choice(numbers)})", "count(*)::int"])
            if outer and self.random.random() < 0.1:
                others = [n for n, t in outer if t == "int4"]
                if others:
                    call = f"max({self.random.choice(others)} + {self.random.choice(numbers)})"
            if type == "bool":
                call = f"{call} {self.sign()} {self.random.randint(0, 2)}"
            elif type == "text":
                call = f"({call})::text"
            elif self.random.random() < 0.2:
                call = f"coalesce({call}, 7)"
            having = f" HAVING count(*) {self.sign()} {self.random.randint(0, 2)}" if self.random.random() < 0.15 else ""
            return f"(SELECT {call} FROM {sources} WHERE {self.correlated(own, outer, depth)}{having})"
        if choice < 0.85 or not self.errors:
            candidates = [n for n, t in own if t == type] or [self.literal(type)]
            shown = self.random.choice(candidates)
            if choice < 0.75 or shown.startswith("'") or shown.isdigit():
                return f"(SELECT {shown} FROM {sources} WHERE {self.correlated(own, outer, depth)} ORDER BY 1 LIMIT 1)"
            return f"(SELECT DISTINCT {shown} FROM {sources} WHERE {self.correlated(own, outer, depth)} ORDER BY {shown} DESC LIMIT 1)"
        return f"({self.select(outer, depth, types=[type])[0]})"

    def predicate(self, outer: list[Name], depth: int) -> str:
        choice, negation = self.random.random(), self.random.choice(["", "NOT "])
        if choice < 0.4:
            if self.random.random() < 0.2:
                return f"{negation}EXISTS ({self.grouped(outer, depth)})"
            sources, own = self.sources(outer, depth)
            return f"{negation}EXISTS (SELECT 1 FROM {sources} WHERE {self.correlated(own, outer, depth)})"
        if choice < 0.75:
            if self.random.random() < 0.2:
                types = [self.type(), self.type()]
                inner = self.select(outer, depth, types=types)[0]
                return f"({self.value(types[0], outer)}, {self.value(types[1], outer)}) {negation}IN ({inner})"
            type = self.random.choice(["int4", "int4", "text"])
            return f"{self.value(type, outer)} {negation}IN ({self.column(type, outer, depth)})"
        if choice < 0.9:
            word = self.random.choice(["ANY", "ALL", "SOME"])
            return f"{self.value('int4', outer)} {self.sign()} {word} ({self.column('int4', outer, depth)})"
        return f"{self.value('int4', outer)} {self.sign()} {self.scalar('int4', outer, depth)}"

    def column(self, type: str, outer: list[Name], depth: int) -> str:
        """Generates a query with one column."""
        choice = self.random.random()
        if choice < 0.1:
            inner, columns = self.top(outer, depth)
            candidates = [c for c, t in columns if t == type]
            if candidates:
                return f"SELECT {candidates[0]} FROM ({inner}) AS {self.alias()}"
        if choice < 0.2:
            one, other = (self.select(outer, depth, types=[type])[0] for _ in range(2))
            return f"{one} {self.set_operation()} {other}"
        if choice < 0.35 and type == "int4":
            sources, own = self.sources(outer, depth)
            numbers = [n for n, t in own if t == "int4"] or ["1"]
            return (
                f"SELECT max({self.random.choice(numbers)}) FROM {sources} WHERE {self.correlated(own, outer, depth)} GROUP BY {own[0][0]}"
            )
        return self.select(outer, depth, types=[type])[0]

    # ---- expressions ----------------------------------------------------------------------------

    def sign(self) -> str:
        return self.random.choice(["=", "<>", "<", "<=", ">", ">="])

    def literal(self, type: str) -> str:
        if type == "text":
            return self.random.choice(["'x'", "'y'"])
        return self.random.choice(["true", "false"]) if type == "bool" else str(self.random.randint(0, 3))

    def value(self, type: str, scope: list[Name]) -> str:
        candidates = [n for n, t in scope if t == type]
        return self.random.choice(candidates) if candidates and self.random.random() < 0.85 else self.literal(type)

    def expression(self, type: str, scope: list[Name], depth: int) -> str:
        choice = self.random.random()
        if depth and choice < 0.3:
            if type == "bool":
                return self.predicate(scope, depth - 1)
            return self.scalar(type, scope, depth - 1)
        if type == "bool":
            return self.simple(scope) if choice < 0.9 else "true"
        if choice < 0.4:
            return f"coalesce({self.value(type, scope)}, {self.literal(type)})"
        if choice < 0.5:
            return f"CASE WHEN {self.condition(scope, max(depth - 1, 0))} THEN {self.value(type, scope)} ELSE {self.value(type, scope)} END"
        if self.errors and type == "int4" and choice < 0.55:
            return f"({self.random.randint(0, 5)} / {self.value(type, scope)})"
        if type == "int4" and choice < 0.65:
            return f"{self.value(type, scope)} + {self.value(type, scope)}"
        return self.value(type, scope)

    def equality(self, left: list[Name], right: list[Name]) -> str:
        families = (("int4", "int8"), ("text",), ("bool",))
        pairs = [(a, b) for a, t in left for b, u in right if any(t in f and u in f for f in families)]
        if not pairs:
            return "true"
        a, b = self.random.choice(pairs)
        return f"{a} = {b}" if self.random.random() < 0.8 else f"{b} = {a}"

    def simple(self, scope: list[Name]) -> str:
        choice = self.random.random()
        name, type = self.random.choice(scope)
        if choice < 0.15:
            return f"{name} IS {self.random.choice(['', 'NOT '])}NULL"
        if type == "int8":
            return f"{name} {self.sign()} {self.random.randint(0, 3)}"
        return f"{name} {self.sign()} {self.value(type, scope)}"

    def condition(self, scope: list[Name], depth: int) -> str:
        choice = self.random.random()
        if choice < 0.2:
            return f"({self.condition(scope, depth)} {self.random.choice(['AND', 'OR'])} {self.condition(scope, depth)})"
        if choice < 0.27:
            return f"NOT ({self.condition(scope, depth)})"
        if depth and choice < 0.75:
            return self.predicate(scope, depth - 1)
        return self.simple(scope)
