"""Generates random statements around random queries.

The kinds are prepared statements, cursors, COPY, views, writes, TAIL and mutated texts. A case has
a tree and the steps that run it. The steps are the same on both servers, or Tailgate has its own
and the answer is converted to that of PostgreSQL (the rows of a TAIL become the rows of its query).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tailgate.sql.lexer.tokens import tokens
from tests.generator.answers import verdict
from tests.generator.expressions import Expressions, Name
from tests.generator.queries import Queries, Relation
from tests.generator.servers import Answer, Server
from tests.generator.signatures import Signature
from tests.generator.trees import Node, expression, fixed, listed, node, optional
from tests.generator.values import quoted

HERE = "§"  # placeholder for the tree's text in a step
PARAMETER = re.compile(r"\$([0-9]+)")
PLAIN = (
    "int4", "text", "int8", "bool", "date", "timestamp", "timestamptz", "interval", "jsonb", "uuid", "inet", "macaddr", "varbit", "int2",
    "bytea", "time", "timetz", "int4[]",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A generated statement.

    `theirs` and `ours` are the steps on PostgreSQL and Tailgate, with HERE in place of the tree;
    empty `ours` means the same steps. `cleanup` runs afterwards. `values` are the parameters of a
    prepared statement. `follows` means that Tailgate answers with the rows of a TAIL.
    """

    kind: str
    tree: Node
    theirs: tuple[str, ...] = (HERE,)
    ours: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()
    values: tuple[str | None, ...] | None = None
    sorted: bool = False
    binary: bool = False
    follows: bool = False
    used: frozenset[Signature] = field(default=frozenset(), compare=False)
    clauses: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def text(self) -> str:
        return "; ".join(step.replace(HERE, self.tree.text) for step in self.ours or self.theirs)

    def run(self, server: Server, *, ours: bool) -> Answer:
        if self.values is not None:
            numbers = [int(n) for n in PARAMETER.findall(self.tree.text)]
            return server.prepared(self.tree.text, list(self.values[: max(numbers, default=0)]), results=(1,) if self.binary else ())
        steps = self.ours if ours and self.ours else self.theirs
        answer = server.run((s.replace(HERE, self.tree.text) for s in steps), self.cleanup)
        return unfollowed(answer) if ours and self.follows else answer

    def verdict(self, theirs: Answer, ours: Answer) -> str:
        if self.kind == "explain" and not ours.failed:
            return "same"
        if self.kind == "mutated" and theirs.failed and ours.sqlstate[:2] in ("42", "0A", "22", "3F"):
            return "failed"
        return verdict(theirs, ours, sorted=self.sorted, binary=self.binary)


def unfollowed(answer: Answer) -> Answer:
    """Converts the last result, a TAIL's snapshot, to plain rows.

    Drops the columns for time and diff, and repeats each row `diff` times.
    """
    if answer.failed or not answer.results:
        return answer
    last = answer.results[-1]
    rows = [row[2:] for row in last.rows for _ in range(int(row[1] or b"0"))]
    return Answer([replace(last, names=last.names[2:], types=last.types[2:], rows=rows)], ["SELECT"])


class Statements:
    """A generator of cases. `case(n)` returns the n-th case of the seed."""

    def __init__(self, seed: str, relations: tuple[Relation, ...], written: tuple[Relation, ...]) -> None:
        self.seed, self.relations, self.written = seed, relations, written

    def case(self, number: int, attempt: int = 0) -> Case:
        r = random.Random(f"{self.seed}/{number}/{attempt}")
        kinds, weights = zip(*KINDS.items(), strict=True)
        maker: Callable[[Statements, random.Random], Case] = r.choices(kinds, weights)[0]
        return maker(self, r)

    def _queries(self, r: random.Random, parameters: list[tuple[str, str | None]] | None = None) -> Queries:
        return Queries(r, self.relations, parameters)

    # ---- reading --------------------------------------------------------------------------------

    def select(self, r: random.Random) -> Case:
        queries = self._queries(r)
        query = queries.query()
        return Case("select", query.node, sorted=query.sorted, **_covered(queries))

    def prepared(self, r: random.Random) -> Case:
        """Generates a query for the extended protocol, where parameter types are inferred."""
        parameters: list[tuple[str, str | None]] = []
        queries = self._queries(r, parameters)
        query = queries.query()
        values = tuple(v for _, v in parameters)
        return Case("prepared", query.node, values=values, sorted=query.sorted, binary=r.random() < 0.3, **_covered(queries))

    def executed(self, r: random.Random) -> Case:
        """Generates a PREPARE with an EXECUTE."""
        parameters: list[tuple[str, str | None]] = []
        queries = self._queries(r, parameters)
        query = queries.query()
        types = f" ({', '.join(t for t, _ in parameters)})" if parameters else ""
        arguments = ", ".join("NULL" if v is None else quoted(v) for _, v in parameters)
        steps = (f"PREPARE p{types} AS {HERE}", f"EXECUTE p{f' ({arguments})' if arguments else ''}")
        return Case("executed", query.node, steps, cleanup=("DEALLOCATE ALL",), sorted=query.sorted, **_covered(queries))

    def cursor(self, r: random.Random) -> Case:
        queries = self._queries(r)
        types = [r.choice(PLAIN) for _ in range(r.randint(1, 3))]
        query = queries._sorted(types, r.randint(1, 2))
        moves = ["2", "ALL", "NEXT", "PRIOR", "FIRST", "LAST", "BACKWARD 2", "BACKWARD ALL", "FORWARD 3", "ABSOLUTE 2", "ABSOLUTE -1",
            "RELATIVE 2", "RELATIVE -1", "RELATIVE 0", "0"]  # fmt: skip
        fetched = tuple(f"{r.choice(['FETCH', 'FETCH', 'MOVE'])} {r.choice(moves)} FROM c" for _ in range(r.randint(1, 4)))
        steps = ("BEGIN", f"DECLARE c SCROLL CURSOR FOR {HERE}", *fetched, "CLOSE c", "COMMIT")
        return Case("cursor", query.node, steps, sorted=True, **_covered(queries))

    def copied(self, r: random.Random) -> Case:
        queries = self._queries(r)
        inner = queries.select([r.choice(PLAIN) for _ in range(r.randint(1, 3))], [], r.randint(1, 2))
        options = r.choice(["", " WITH (FORMAT csv)", " WITH (FORMAT csv, HEADER, FORCE_QUOTE *)", " WITH (NULL 'none', DELIMITER '|')"])
        return Case("copied", inner, (f"COPY ({HERE}) TO STDOUT{options}",), **_covered(queries))

    def view(self, r: random.Random) -> Case:
        queries = self._queries(r)
        types = [r.choice(PLAIN) for _ in range(r.randint(1, 3))]
        inner = queries.select(types, [], r.randint(1, 2), labelled=True)
        word = r.choice(["VIEW", "TEMP VIEW"])
        steps = (f"CREATE {word} v AS {HERE}", "SELECT * FROM v", "SELECT count(*) FROM v AS a, v AS b")
        return Case("view", inner, steps, cleanup=("DROP VIEW IF EXISTS v",), **_covered(queries))

    def follower(self, r: random.Random) -> Case:
        queries = self._queries(r)
        inner = queries.select([r.choice(PLAIN) for _ in range(r.randint(1, 3))], [], r.randint(1, 2), labelled=True)
        word = r.choice(["TAIL", "SUBSCRIBE"])
        ours = ("BEGIN", f"DECLARE c CURSOR FOR {word} ({HERE})", "FETCH ALL c WITH (timeout = '0s')", "COMMIT")
        return Case("follower", inner, ours=ours, follows=True, **_covered(queries))

    def explain(self, r: random.Random) -> Case:
        queries = self._queries(r)
        return Case("explain", queries.query().node, (f"EXPLAIN {HERE}",), **_covered(queries))

    def function(self, r: random.Random) -> Case:
        """Generates a SQL function and a query that calls it for the rows of a table."""
        relation = r.choice(self.relations)
        columns = r.sample(relation.columns, min(2, len(relation.columns)))
        result = r.choice(PLAIN)
        scope = [Name(expression(t, f"a{i}"), t) for i, (_, t) in enumerate(columns)]
        used: set[Signature] = set()
        body = Expressions(r, used=used).expression(result, scope, 2)
        arguments = ", ".join(f"a{i} {t}" for i, (_, t) in enumerate(columns))
        strict = r.choice(["", "", " STRICT"])
        steps = (
            f"CREATE FUNCTION f({arguments}) RETURNS {result} LANGUAGE SQL IMMUTABLE{strict} RETURN {HERE}",
            f"SELECT f({', '.join(c for c, _ in columns)}) FROM {relation.name}",
        )
        return Case("function", body, steps, cleanup=("DROP FUNCTION IF EXISTS f",), used=frozenset(used))

    # ---- writing, in a block that is rolled back ------------------------------------------------

    def insert(self, r: random.Random) -> Case:
        relation, queries = r.choice(self.written), self._queries(r)
        columns = [c for c in relation.columns if c[0] == relation.key or r.random() < 0.7] or list(relation.columns)
        types = [t for _, t in columns]
        plain = r.random() < 0.6
        inner = queries._values(types, [], 0) if plain else queries.select(types, [], 1)
        conflict = ""
        if relation.key is not None:
            others = [c for c, _ in columns if c != relation.key]
            conflict = r.choice(["", f" ON CONFLICT ({relation.key}) DO NOTHING", " ON CONFLICT DO NOTHING"])
            if others and r.random() < 0.4:
                conflict = f" ON CONFLICT ({relation.key}) DO UPDATE SET {others[0]} = excluded.{others[0]}"
        if conflict and not plain:  # the first row with a key is inserted
            order = ", ".join(str(i + 1) for i in range(len(types)))
            inner = node("query", "SELECT * FROM (", inner, ") AS o", fixed(f" ORDER BY {order}"))
        target = f"INSERT INTO {relation.name} ({', '.join(c for c, _ in columns)}) "
        tree = node("write", target, inner, conflict, optional(" RETURNING *"))
        return self._write("insert", tree, relation, queries)

    def update(self, r: random.Random) -> Case:
        relation, queries = r.choice(self.written), self._queries(r)
        scope = [Name(expression(t, f"{relation.name}.{c}"), t) for c, t in relation.columns]
        changed = r.sample([c for c in relation.columns if c[0] != relation.key], 1)
        sets = [node("set", f"{c} = ", queries.expressions.expression(t, scope, 2)) for c, t in changed]
        where = optional(" WHERE ", queries.expressions.condition(scope, 2))
        tree = node("write", f"UPDATE {relation.name} SET ", listed(sets), where, optional(" RETURNING *"))
        return self._write("update", tree, relation, queries)

    def delete(self, r: random.Random) -> Case:
        relation, queries = r.choice(self.written), self._queries(r)
        scope = [Name(expression(t, f"{relation.name}.{c}"), t) for c, t in relation.columns]
        where = node("clause", " WHERE ", queries.expressions.condition(scope, 3))
        tree = node("write", f"DELETE FROM {relation.name}", where, optional(" RETURNING *"))
        return self._write("delete", tree, relation, queries)

    def _write(self, kind: str, tree: Node, relation: Relation, queries: Queries) -> Case:
        steps = ("BEGIN", HERE, f"SELECT * FROM {relation.name}", "ROLLBACK")
        return Case(kind, tree, steps, **_covered(queries))

    # ---- mutated statements ---------------------------------------------------------------------

    def mutated(self, r: random.Random) -> Case:
        """Generates a text with a token added, removed or replaced."""
        queries = self._queries(r)
        parts = [t.text for t in tokens(queries.query().node.text) if t.kind not in ("end", "error")]
        for _ in range(r.choice([1, 1, 2])):
            at = r.randrange(len(parts))
            match r.choice(["drop", "twice", "swap", "other"]):
                case "drop":
                    del parts[at]
                case "twice":
                    parts.insert(at, parts[at])
                case "swap":
                    other = r.randrange(len(parts))
                    parts[at], parts[other] = parts[other], parts[at]
                case "other":
                    parts[at] = r.choice(parts)
            if not parts:
                parts = ["SELECT"]
        return Case("mutated", node("text", listed([node("token", p) for p in parts], " ")))


KINDS = {
    Statements.select: 50,
    Statements.prepared: 14,
    Statements.executed: 4,
    Statements.cursor: 4,
    Statements.copied: 3,
    Statements.view: 4,
    Statements.follower: 4,
    Statements.explain: 1,
    Statements.function: 3,
    Statements.insert: 4,
    Statements.update: 3,
    Statements.delete: 2,
    Statements.mutated: 8,
}


def _covered(queries: Queries) -> dict[str, frozenset]:  # type: ignore[type-arg]
    return {"used": frozenset(queries.used), "clauses": frozenset(queries.clauses)}
