"""Random names, expressions and queries for a role with few privileges.

`grammar` builds statements of them.

All relations have the columns n (bigint) and name (text), so that most statements are valid. The
names of boss's relations are fixed (`VICTIM`); those of the roles are numbered (`lo.t0`). An
expression may read any relation.
"""

from __future__ import annotations

import random
from collections.abc import Callable

# Objects of boss that hold the canary. The attackers may create objects in the schema public.
VICTIM = (
    "salaries", "public.salaries", "own.m", "own.bad", "own.kept", "kept", "m", "own.hidden", "hidden", "own.m_errors", "own.bad_errors",
)  # fmt: skip
GRANTED = ("own.names", "own.calls", "own.open", "own.calls_m")  # with a grant of SELECT; none shows the canary
PARTLY = ("own.part", "own.part_v", "own.part_m")  # with privileges on columns: SELECT (name); n shows the canary
WRITTEN = ("own.open", "own.hidden", "own.part", "own.part_v")  # with privileges to write
OTHERS = ("word", "own.word", "clicks", "own.clicks", "own.sink", "own.sub", "own.far", "own.clicks_dead_letters", "own.m_n_idx")
SCHEMAS = ("lo", "he")
KINDS = {"t": 2, "v": 3, "m": 2}  # number of relations of a role, by the first letter of their names


class Expressions:
    """A generator of expressions and queries. `schema` is the role's schema."""

    def __init__(self, choose: random.Random, schema: str) -> None:
        self.r, self.schema = choose, schema
        self.depth = 0
        self.defining = False  # within a definition: limits references to other definitions, whose size would grow with each layer

    # ---- names ----------------------------------------------------------------------------------

    def some(self, *weighted: tuple[float, Callable[[], str]]) -> str:
        (chosen,) = self.r.choices([f for _, f in weighted], [w for w, _ in weighted])
        return chosen()

    def of(self, *texts: str) -> str:
        return self.r.choice(texts)

    def own(self, letter: str) -> str:
        """Returns the name of an object of this role, sometimes of the other attacker."""
        schema = self.schema if self.r.random() < 0.85 else self.of(*SCHEMAS)
        return f"{schema}.{letter}{self.r.randrange(KINDS.get(letter, 2))}"

    def own_relation(self) -> str:
        if self.defining:
            return self.own(self.r.choices("tmv", (6, 3, 1))[0])
        return self.own(self.of("t", "v", "m"))

    def within(self, text: Callable[[], str]) -> str:
        """Generates a part of a definition."""
        self.defining = True
        try:
            return text()
        finally:
            self.defining = False

    def relation(self) -> str:
        """Returns the name of a relation with rows."""
        return self.some(
            (8, self.own_relation),
            (1.5, lambda: self.of(*VICTIM)),
            (2, lambda: self.of(*GRANTED)),
            (0.7, lambda: self.of(*PARTLY)),
            (0.5, lambda: self.of("salaries", "m", "word", "clicks", "hidden", "v0", "t0")),
            (0.3, lambda: self.of(*OTHERS)),
        )

    def name(self) -> str:
        """Returns the name of any object."""
        return self.some(
            (3, lambda: self.own(self.of("t", "v", "m", "s", "k", "b", "w", "c", "f", "i"))),
            (3, lambda: self.of(*VICTIM, *OTHERS)),
            (1, lambda: self.of(*GRANTED, *PARTLY)),
            (2, lambda: self.of("salaries", "word", "clicks", "m", "hidden", "v0", "pg_temp.salaries", "pg_temp.v0")),
        )

    # ---- expressions ----------------------------------------------------------------------------

    def number(self, columns: tuple[str, ...] = ()) -> str:
        if self.depth > 3:
            return columns[0] if columns else str(self.r.randrange(5))
        self.depth += 1
        try:
            return self.some(
                (3, lambda: f"{self.of(*columns)}" if columns else str(self.r.randrange(9))),
                (1, lambda: f"{self.r.randrange(100)}::bigint"),
                (1, lambda: f"({self.number(columns)} {self.of('+', '-', '*')} {self.number(columns)})"),
                (3, lambda: f"({self.one_value('max(x.n)::bigint')})"),
                (1, lambda: f"({self.one_value('sum(length(x.name))::bigint')})"),
                (1.5, lambda: self.call()),
                (0.6, lambda: f"coalesce({self.number(columns)}, {self.number(columns)})"),
                (0.6, lambda: f"CASE WHEN {self.truth(columns)} THEN {self.number(columns)} ELSE {self.number(columns)} END"),
                (0.4, lambda: f"abs({self.number(columns)})"),
                (0.3, lambda: f"({self.text(columns)})::bigint"),
                (
                    0.3,
                    lambda: (
                        f"(array({self.query()}))[1]"
                        if self.r.random() < 0.2
                        else f"cardinality(array(SELECT x.n FROM {self.relation()} AS x))"
                    ),
                ),
            )
        finally:
            self.depth -= 1

    def text(self, columns: tuple[str, ...] = ()) -> str:
        names = tuple(c.replace(".n", ".name") for c in columns if c.endswith(".n"))
        if self.depth > 3:
            return "'x'"
        self.depth += 1
        try:
            return self.some(
                (2, lambda: self.of(*names) if names else "'y'"),
                (1, lambda: f"({self.number(columns)})::text"),
                (2, lambda: f"({self.one_value('max(x.name)')})"),
                (1, lambda: f"({self.one_value(self.of('string_agg(x.n::text, chr(44))', 'min(x.n::text)', 'max(x.name || x.n)'))})"),
                (0.7, lambda: f"concat({self.text(columns)}, {self.number(columns)})"),
                (0.4, lambda: f"jsonb_build_object('k', {self.number(columns)})::text"),
                (0.3, lambda: f"upper({self.text(columns)})"),
                (0.3, lambda: f"encode(({self.text(columns)})::bytea, {self.of(chr(39) + 'hex' + chr(39), chr(39) + 'base64' + chr(39))})"),
            )
        finally:
            self.depth -= 1

    def truth(self, columns: tuple[str, ...] = ()) -> str:
        return self.some(
            (2, lambda: f"{self.number(columns)} {self.of('<', '>=', '=', '<>')} {self.number(columns)}"),
            (1, lambda: f"EXISTS (SELECT FROM {self.relation()} AS x WHERE x.n > {self.number(('x.n',))})"),
            (1, lambda: f"{self.number(columns)} IN (SELECT x.n FROM {self.relation()} AS x)"),
            (0.5, lambda: f"{self.number(columns)} > ANY (SELECT x.n FROM {self.relation()} AS x)"),
            (0.5, lambda: f"{self.text(columns)} IS NOT NULL"),
            (0.5, lambda: self.of("true", "1 = 1")),
        )

    def one_value(self, what: str) -> str:
        return f"SELECT {what} FROM {self.source()} AS x"

    def call(self) -> str:
        """Generates a call of a function that other statements may have created."""
        if self.defining and self.r.random() < 0.6:
            return str(self.r.randrange(9))
        return self.some(
            (3, lambda: f"{self.own('f')}()"),
            (1, lambda: f"{self.own('g')}({self.r.randrange(9)}::bigint)"),
            (1, lambda: "own.f()"),
            (0.5, lambda: self.of("own.g()", "f0()", "own.g(1::bigint)")),
        )

    # ---- queries --------------------------------------------------------------------------------

    def source(self) -> str:
        if self.depth > 3:
            return self.relation()
        return self.some(
            (6, self.relation),
            (1, lambda: f"({self.query()})"),
            (0.7, lambda: f"{self.own('h')}()"),
            (0.3, lambda: "own.h()"),
        )

    def query(self) -> str:
        """Generates a query with the columns n and name."""
        if self.depth > 3:
            return f"SELECT n, name FROM {self.relation()}"
        self.depth += 1
        try:
            return self.some(
                (5, self.select),
                (1, self.joined),
                (0.7, lambda: f"TABLE {self.relation()}"),
                (0.7, lambda: f"VALUES ({self.number()}, {self.text()})"),
                (0.7, lambda: f"({self.select()}) {self.of('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT')} ({self.select()})"),
                (0.7, lambda: f"WITH c AS ({self.query()}) SELECT c.n, c.name FROM c"),
                (0.4, lambda: f"SELECT max(a.n)::bigint AS n, min(a.name) AS name FROM {self.source()} AS a GROUP BY a.n"),
                (0.3, lambda: f"SELECT DISTINCT ON (a.n) a.n, a.name FROM {self.source()} AS a ORDER BY a.n"),
                (0.3, lambda: f"SELECT sum(a.n) OVER (ORDER BY a.n)::bigint AS n, a.name FROM {self.source()} AS a"),
            )
        finally:
            self.depth -= 1

    def select(self) -> str:
        a = ("a.n",)
        head = f"SELECT {self.some((3, lambda: 'a.n'), (2, lambda: self.number(a)))} AS n, "
        head += f"{self.some((3, lambda: 'a.name'), (1, lambda: self.text(a)))} AS name FROM {self.source()} AS a"
        tail = f" WHERE {self.truth(a)}" if self.r.random() < 0.5 else ""
        if self.r.random() < 0.2:
            tail += f" ORDER BY {self.number(a)}"
        if self.r.random() < 0.2:
            tail += f" LIMIT {self.some((3, lambda: str(self.r.randrange(5))), (1, self.number))}"
        if self.r.random() < 0.1:
            tail += f" OFFSET {self.some((3, lambda: str(self.r.randrange(2))), (1, self.number))}"
        return head + tail

    def joined(self) -> str:
        a, ab = ("a.n",), ("a.n", "b.n")
        kind = self.of("JOIN", "LEFT JOIN", "FULL JOIN", "CROSS JOIN", ", LATERAL")
        right = f"(SELECT {self.number(a)} AS n, x.name FROM {self.source()} AS x)" if "LATERAL" in kind else self.source()
        condition = "" if kind in ("CROSS JOIN", ", LATERAL") else f" ON {self.of('a.n = b.n', 'a.name = b.name', 'true')}"
        return f"SELECT {self.number(ab)} AS n, b.name FROM {self.source()} AS a {kind} {right} AS b{condition}"

    def time(self) -> str:
        return self.some(
            (2, self.number),
            (1, lambda: f"{1 << 60}"),
            (1, lambda: "now()"),
            (1, lambda: f"({self.one_value('max(x.n)')})"),
            (1, self.call),
        )
