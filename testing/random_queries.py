"""Random queries over given tables, which the engine can maintain, determined by a random source."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tailgate.lake.types import BOOL, FLOAT8, INT2, INT4, INT8, TEXT, TIMESTAMP, Field, Type

Value = Any
Row = tuple[Value, ...]


@dataclass(frozen=True)
class Table:
    """A random table.

    `key` has the positions of the key columns; without a key, rows may be duplicated.

    An `append_only` table is a topic that is not stored.
    """

    id: int
    name: str
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None = None
    append_only: bool = False


TYPES: tuple[Type, ...] = (INT4, INT8, TEXT, BOOL, FLOAT8, TIMESTAMP, Type("numeric", (10, 2)), INT2)
VARIANCES = "var_pop var_samp variance stddev_pop stddev_samp stddev".split()
REGRESSIONS = """
    corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
""".split()
LARGEST = {"int2": 2**15 - 1, "int4": 2**31 - 1, "int8": 2**63 - 1}
START = datetime(2026, 1, 1)
JOINS = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@dataclass(frozen=True)
class Name:
    """An expression in scope, as SQL text, with its type."""

    sql: str
    type: Type


class Writer:
    """A generator of one query. `most` limits the relations in FROM."""

    most = 4

    def __init__(self, source: random.Random, relations: tuple[Table, ...], errors: bool, determined: bool = False) -> None:
        self.random = source
        self.relations = relations
        self.errors = errors
        self.determined = determined  # the result is unique: only equal rows may tie, because PostgreSQL's order of ties is arbitrary

    def query(self, depth: int = 0) -> str:
        tables, scope = self.sources(depth)
        where = f" WHERE {self.condition(scope)}" if self.random.random() < 0.6 else ""
        if self.random.random() < 0.5:
            return self.grouped(tables, where, scope)
        outputs = [self.expression(self.random.choice(TYPES[:6]), scope) for _ in range(self.random.randint(1, 3))]
        outputs += [n.sql for n in self.random.sample(scope, min(2, len(scope)))]
        choice = self.random.random()
        if choice < 0.1:
            return f"SELECT DISTINCT {self.named(outputs)} FROM {tables}{where}"
        if choice < 0.35:
            return self.cut(outputs, f"FROM {tables}{where}")
        if choice < 0.65:
            # two such functions may number equal rows in different ways
            if self.random.random() < 0.25:
                return self.first_ranks(outputs, scope, f"FROM {tables}{where}")
            outputs += [self.windowed(scope) for _ in range(1 if self.determined else self.random.randint(1, 3))]
        return f"SELECT {self.named(outputs)} FROM {tables}{where}"

    def cut(self, outputs: list[str], source: str) -> str:
        """Generates a query with LIMIT, DISTINCT ON or FETCH FIRST WITH TIES."""
        r = self.random
        least = len(outputs) if self.determined else 0
        order = [f"{i + 1}{self.direction()}" for i in r.sample(range(len(outputs)), r.randint(least, len(outputs)))]
        by = f" ORDER BY {', '.join(order)}" if order else ""
        offset = f" OFFSET {r.randint(0, 4)}" if r.random() < 0.4 else ""
        choice = r.random()
        if choice < 0.3:
            on = [o.split()[0] for o in order[: r.randint(1, 2)]] or ["1"]
            return f"SELECT DISTINCT ON ({', '.join(on)}) {self.named(outputs)} {source}{by}"
        if choice < 0.5 and order:
            keys = ", ".join(order[: r.randint(1, len(order))])  # WITH TIES includes all ties
            return f"SELECT {self.named(outputs)} {source} ORDER BY {keys} FETCH FIRST {r.randint(1, 4)} ROWS WITH TIES"
        return f"SELECT {self.named(outputs)} {source}{by} LIMIT {r.randint(0, 6)}{offset}"

    def first_ranks(self, outputs: list[str], scope: list[Name], source: str) -> str:
        r = self.random
        split = f"PARTITION BY {r.choice(scope).sql} " if r.random() < 0.6 else ""
        name = "rank" if self.determined else r.choice(["row_number", "rank", "dense_rank"])
        number = f"{name}() OVER ({split}ORDER BY {r.choice(scope).sql}{self.direction()})"
        test = r.choice(["n <= 2", "n < 3", "n = 1", "2 >= n", "n > 1"])
        return f"SELECT * FROM (SELECT {self.named(outputs)}, {number} AS n {source}) AS ranked WHERE {test}"

    def windowed(self, scope: list[Name]) -> str:
        """Generates a window function.

        PostgreSQL orders ties arbitrarily. With `determined`, equal rows therefore have equal
        results.
        """
        r = self.random
        split = f"PARTITION BY {r.choice(scope).sql} " if r.random() < 0.6 else ""
        all_columns = [n.sql for n in scope]
        whole = self.determined or r.random() < 0.3
        keys = r.sample(all_columns, len(all_columns)) if whole else r.sample(all_columns, r.randint(0, min(2, len(all_columns))))
        order = f"ORDER BY {', '.join(k + self.direction() for k in keys)} " if keys else ""
        choice = r.random()
        if choice < 0.2:
            loose = f"ORDER BY {r.choice(scope).sql}{self.direction()} "
            name = r.choice(["rank", "dense_rank", "percent_rank", "cume_dist"])
            return f"{name}() OVER ({split}{loose})"
        if choice < 0.3:
            return f"{r.choice(['row_number()', 'ntile(3)'])} OVER ({split}{order})"
        if choice < 0.45:
            value = r.choice(scope).sql
            arguments = r.choice([value, f"{value}, 2", f"{value}, {r.choice(['0', '-1', 's00.a'])}"])
            return f"{r.choice(['lag', 'lead'])}({arguments if 's00.a' not in arguments else value}) OVER ({split}{order})"
        if choice < 0.6:
            value = r.choice(scope).sql
            call = r.choice([f"first_value({value})", f"last_value({value})", f"nth_value({value}, 2)"])
            return f"{call} OVER ({split}{order}{self.frame(bool(keys))})"
        call = r.choice(
            ["count(*)", f"count({r.choice(scope).sql})", f"sum({self.expression(INT4, scope)})", f"avg({self.expression(INT8, scope)})"]
        )
        numbers = [n for n in scope if n.type.name in ("int2", "int4", "int8", "numeric") and not n.type.general]
        if r.random() < 0.3 and numbers:
            where = f" FILTER (WHERE {self.condition(scope, 1)})" if r.random() < 0.3 else ""
            ends = [f"{n} PRECEDING" for n in (1, 3)] + ["CURRENT ROW", "1 FOLLOWING", "2 FOLLOWING"]
            start = r.randint(0, len(ends) - 1)
            first = r.choice(["UNBOUNDED PRECEDING", ends[start]])
            last = r.choice([ends[r.randint(start, len(ends) - 1)], "UNBOUNDED FOLLOWING"])
            if first == "1 FOLLOWING" and last == "CURRENT ROW":
                last = "UNBOUNDED FOLLOWING"
            if "PRECEDING" in first and "PRECEDING" in last and first != "UNBOUNDED PRECEDING":
                last = "CURRENT ROW"
            key = f"ORDER BY {r.choice(numbers).sql}{self.direction()} "
            exclude = r.choice(["", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"])
            return f"{call}{where} OVER ({split}{key}{r.choice(['RANGE', 'GROUPS'])} BETWEEN {first} AND {last}{exclude})"
        ordered = [n for n in scope if n.type.name != "bool"]
        call = r.choice([call, f"min({r.choice(ordered).sql})" if ordered else call, f"array_agg({r.choice(scope).sql})", "bool_or(true)"])
        return f"{call} OVER ({split}{order}{self.frame(bool(keys))})"

    def frame(self, sorted: bool) -> str:
        r = self.random
        if r.random() < 0.3:
            return ""
        mode = r.choice(["ROWS", "RANGE", "GROUPS"] if sorted else ["RANGE"])
        ends = ["UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "3 FOLLOWING", "UNBOUNDED FOLLOWING"]
        if mode == "RANGE":
            ends = [e for e in ends if e[0] not in "123"]
        start = r.randint(0, len(ends) - 2)
        exclude = r.choice(["", "", "", " EXCLUDE CURRENT ROW"])
        return f"{mode} BETWEEN {ends[start]} AND {ends[r.randint(max(start, 1), len(ends) - 1)]}{exclude}"

    def combined(self, depth: int = 0) -> str:
        """Generates a set operation."""
        types = [self.random.choice(TYPES) for _ in range(self.random.randint(1, 3))]
        operator = self.random.choice(["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        left, right = self.part(types, depth), self.part(types, depth)
        return f"({left}) {operator} ({right})" if self.random.random() < 0.5 else f"{left} {operator} {right}"

    def part(self, types: list[Type], depth: int) -> str:
        choice = self.random.random()
        if choice < 0.15 and depth < 2:
            return f"SELECT * FROM ({self.combined(depth + 1)}) AS c{depth}"
        if choice < 0.3:
            rows = ", ".join(f"({', '.join(self.literal(t) for t in types)})" for _ in range(self.random.randint(1, 3)))
            return f"SELECT * FROM (VALUES {rows}) AS w{depth}"
        if choice < 0.4:
            return f"SELECT {self.named([self.literal(t) for t in types])}"
        tables, scope = self.sources(1)
        where = f" WHERE {self.condition(scope)}" if self.random.random() < 0.5 else ""
        return f"SELECT {self.named([self.expression(t, scope, 1) for t in types])} FROM {tables}{where}"

    def grouped(self, tables: str, where: str, scope: list[Name]) -> str:
        keys = [n.sql for n in self.random.sample(scope, min(self.random.randint(0, 2), len(scope)))]
        if self.random.random() < 0.2:
            keys.append(self.expression(INT4, scope))
        calls = [self.aggregate(scope) for _ in range(self.random.randint(1, 3))]
        numbers = [str(i + 1) for i in range(len(keys))]
        group = f" GROUP BY {', '.join(numbers)}" if keys else ""
        if keys and len(set(keys)) == len(keys) and self.random.random() < 0.25:
            inner = ", ".join(numbers)
            sets = [
                f"ROLLUP ({inner})",
                f"CUBE ({inner})",
                f"GROUPING SETS (({inner}), {numbers[-1]}, ())",
                f"{numbers[0]}, ROLLUP ({inner})",
            ]
            group = f" GROUP BY {self.random.choice(sets)}"
            columns = [k for k in keys if k.count(".") == 1 and k.replace(".", "").isalnum()]
            if columns:
                calls.append(f"grouping({', '.join(columns)})")
        having = (
            f" HAVING count(*) {self.random.choice(['>', '<', '<>'])} {self.random.randint(0, 3)}" if self.random.random() < 0.3 else ""
        )
        return f"SELECT {self.named(keys + calls)} FROM {tables}{where}{group}{having}"

    def named(self, expressions: Sequence[str]) -> str:
        return ", ".join(f"{e} AS o{i}" for i, e in enumerate(expressions))

    def aggregate(self, scope: list[Name]) -> str:
        where = f" FILTER (WHERE {self.condition(scope, 1)})" if self.random.random() < 0.15 else ""
        return self.call(scope) + where

    def call(self, scope: list[Name]) -> str:
        r = self.random
        choice = r.random()
        distinct = "DISTINCT " if r.random() < 0.2 else ""
        if choice < 0.1:
            return "count(*)"
        if choice < 0.25:
            return f"count({distinct}{r.choice(scope).sql})"
        if choice < 0.4:
            ordered = [n for n in scope if n.type.name != "bool"]
            if ordered:
                return f"{r.choice(['min', 'max'])}({r.choice(ordered).sql})"
        if choice < 0.6:
            type = r.choice([INT4, INT8, TYPES[6], FLOAT8])
            return f"{r.choice(['sum', 'avg'])}({distinct}{self.expression(type, scope)})"
        if choice < 0.65:
            return f"{r.choice(['bool_and', 'bool_or', 'every'])}({distinct}{self.expression(BOOL, scope)})"
        if choice < 0.7:
            return f"{r.choice(['bit_and', 'bit_or', 'bit_xor'])}({distinct}{self.expression(INT4, scope)})"
        if choice < 0.77:
            value = self.expression(r.choice([INT4, TYPES[6]]), scope)
            return f"{r.choice(VARIANCES)}({distinct}{r.choice([value, f'({value} % 100)::float8'])})"
        if choice < 0.82:
            # PostgreSQL loses digits of large numbers.
            return f"{r.choice(REGRESSIONS)}({self.expression(INT4, scope)} % 100, {self.expression(INT4, scope)} % 100)"
        return self.ordered_call(scope, distinct)

    def ordered_call(self, scope: list[Name], distinct: str) -> str:
        """Generates an aggregate with ORDER BY."""
        r = self.random
        kind = r.choice(["array_agg", "string_agg", "mode", "percentile_cont", "percentile_disc"])
        if kind.startswith("percentile"):
            value = r.choice(scope).sql if kind == "percentile_disc" else self.expression(INT4, scope)
            return f"{kind}({r.choice([0, 0.25, 0.5, 0.9, 1])}) WITHIN GROUP (ORDER BY {value}{self.direction()})"
        if kind == "mode":
            return f"mode() WITHIN GROUP (ORDER BY {r.choice(scope).sql}{self.direction()})"
        value = f"({self.expression(TEXT, scope)})::text" if kind == "string_agg" else r.choice(scope).sql
        delimiter = ", '-'" if kind == "string_agg" else ""
        keys = [] if distinct else [f"{n.sql}{self.direction()}" for n in r.sample(scope, r.randint(0, min(2, len(scope))))]
        keys.append(f"{value}{self.direction() if distinct else ''}")  # so that only equal values tie
        return f"{kind}({distinct}{value}{delimiter} ORDER BY {', '.join(keys)})"

    def direction(self) -> str:
        return self.random.choice(["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"])

    # ---- FROM -----------------------------------------------------------------------------------

    def sources(self, depth: int) -> tuple[str, list[Name]]:
        parts: list[tuple[str, list[Name]]] = []
        for i in range(min(self.random.choice([1, 1, 2, 2, 3, 4]), self.most)):
            alias = f"s{depth}{i}"
            table = self.random.choice(self.relations)
            if self.random.random() < 0.05:
                rows = ", ".join(f"({self.literal(INT4)}, {self.literal(TEXT)})" for _ in range(self.random.randint(1, 4)))
                parts.append((f"(VALUES {rows}) AS {alias}(p0, p1)", [Name(f"{alias}.p0", INT4), Name(f"{alias}.p1", TEXT)]))
            elif depth < 2 and self.random.random() < 0.2:
                inner = Writer(self.random, self.relations, self.errors, self.determined)
                columns = self.random.sample(table.columns, self.random.randint(1, len(table.columns)))
                chosen = [Name(f"x.{c.name}", c.type) for c in columns]
                computed = inner.expression(INT4, [Name(f"x.{c.name}", c.type) for c in table.columns])
                names = ", ".join(f"{n.sql} AS p{j}" for j, n in enumerate(chosen))
                parts.append(
                    (
                        f"(SELECT {names}, {computed} AS q FROM {table.name} AS x) AS {alias}",
                        [*(Name(f"{alias}.p{j}", n.type) for j, n in enumerate(chosen)), Name(f"{alias}.q", INT4)],
                    )
                )
            else:
                parts.append((f"{table.name} AS {alias}", [Name(f"{alias}.{c.name}", c.type) for c in table.columns]))
        text, scope = parts[0]
        crossed = False
        for other, names in parts[1:]:
            word, condition = self.random.choice(JOINS), self.join_condition(scope, names)
            if condition is None or self.random.random() < 0.1:
                if crossed:
                    continue  # a cross product of more than two relations is mostly waste
                crossed = True
                condition = self.condition(scope + names) if self.random.random() < 0.7 else None
            text = f"{text} CROSS JOIN {other}" if condition is None else f"{text} {word} {other} ON {condition}"
            scope = scope + names
        return text, scope

    def join_condition(self, left: list[Name], right: list[Name]) -> str | None:
        """Generates a join condition. Returns None if no two columns have comparable types."""
        condition = self.equality(left, right)
        if condition is not None and self.random.random() < 0.3:
            condition += f" AND {self.condition(left + right)}"
        return condition

    def halves(self) -> str:
        """Generates a join that outputs left columns only, so that it may become a semi or anti join."""
        table, other = self.random.choice(self.relations), self.random.choice(self.relations)
        left = [Name(f"l.{c.name}", c.type) for c in table.columns]
        right = [Name(f"r.{c.name}", c.type) for c in other.columns]
        condition = self.join_condition(left, right)
        if condition is None or self.random.random() < 0.2:
            condition = self.condition(left + right)
        where = f" WHERE {self.condition(left)}" if self.random.random() < 0.3 else ""
        return f"SELECT {self.named([n.sql for n in left])} FROM {table.name} AS l JOIN {other.name} AS r ON {condition}{where}"

    def equality(self, left: list[Name], right: list[Name]) -> str | None:
        """Generates an equality. Returns None if no two columns have comparable types."""
        families = [{"int2", "int4", "int8"}, {"text"}, {"numeric"}, {"timestamp"}]
        pairs = [(a, b) for a in left for b in right for f in families if a.type.name in f and b.type.name in f]
        if not pairs:
            return None
        a, b = self.random.choice(pairs)
        one = a.sql if self.random.random() < 0.8 or a.type.name not in ("int4", "int8") else f"({a.sql} + 1)"
        if self.random.random() < 0.1:
            return f"{one} IS NOT DISTINCT FROM {b.sql}"
        return f"{one} = {b.sql}" if self.random.random() < 0.5 else f"{b.sql} = {one}"

    # ---- expressions ----------------------------------------------------------------------------

    def condition(self, scope: list[Name], depth: int = 0) -> str:
        choice = self.random.random()
        if depth < 2 and choice < 0.25:
            return f"({self.condition(scope, depth + 1)} {self.random.choice(['AND', 'OR'])} {self.condition(scope, depth + 1)})"
        if choice < 0.32:
            return f"NOT ({self.condition(scope, depth + 1)})"
        if choice < 0.42:
            return f"{self.random.choice(scope).sql} IS {self.random.choice(['', 'NOT '])}NULL"
        a = self.random.choice(scope)
        if choice < 0.5:
            return f"{a.sql} IS DISTINCT FROM {self.random.choice([n for n in scope if n.type == a.type]).sql}"
        if choice < 0.56 and a.type.name in ("int4", "int8"):
            return f"{a.sql} IN (1, 2, {self.random.randint(-3, 5)})"
        return f"{a.sql} {self.random.choice(['=', '<>', '<', '<=', '>', '>='])} {self.expression(a.type, scope)}"

    def expression(self, type: Type, scope: list[Name], depth: int = 0) -> str:
        """Generates an expression of a type, or of one with an implicit cast to it."""
        same = [n.sql for n in scope if n.type.name == type.name]
        choice = self.random.random()
        if depth < 2 and choice < 0.1:
            then, otherwise = self.expression(type, scope, depth + 1), self.expression(type, scope, depth + 1)
            return f"CASE WHEN {self.condition(scope, 1)} THEN {then} ELSE {otherwise} END"
        if depth < 2 and choice < 0.17:
            return f"coalesce({self.expression(type, scope, depth + 1)}, {self.expression(type, scope, depth + 1)})"
        if depth < 2 and choice < 0.45:
            computed = self.computed(type, scope, depth + 1)
            if computed is not None:
                return computed
        return self.random.choice(same) if same and choice < 0.9 else self.literal(type)

    def computed(self, type: Type, scope: list[Name], depth: int) -> str | None:
        name = type.name
        if name in ("int4", "int8", "numeric", "float8"):
            a, b = self.expression(type, scope, depth), self.expression(type, scope, depth)
            sign = self.random.choice(["+", "-", "*", "/"] if self.errors else ["+", "-"])
            if name in ("int4", "int8") and self.errors and self.random.random() < 0.1:
                return f"({self.expression(TEXT, scope, depth)})::{type}"
            return f"({a} {sign} {b})"
        if name == "text":
            choices = [
                f"({self.expression(TEXT, scope, depth)} || {self.expression(TEXT, scope, depth)})",
                f"upper({self.expression(TEXT, scope, depth)})",
            ]
            return self.random.choice([*choices, f"({self.expression(INT4, scope, depth)})::text"])
        if name == "bool":
            return f"({self.condition(scope, depth)})"
        if name == "timestamp":
            return f"date_trunc('{self.random.choice(['hour', 'day', 'month'])}', {self.expression(TIMESTAMP, scope, depth)})"
        return None

    def literal(self, type: Type) -> str:
        r = self.random
        if type.name in LARGEST:
            return str(r.randint(0, 5)) if type == INT4 else f"{r.randint(0, 5)}::{type}"
        if type.name == "text":
            return r.choice(["'a'", "'b'", "''", "'7'"])
        if type.name == "bool":
            return r.choice(["true", "false", "NULL::boolean"])
        if type.name == "float8":
            return f"{r.choice(['0.5', '2', '1e3'])}::double precision"
        if type.name == "timestamp":
            return f"timestamp '2026-01-0{r.randint(1, 3)} 0{r.randint(0, 9)}:00:00'"
        if type.name == "timestamptz":
            return f"timestamptz '2026-01-01 0{r.randint(0, 9)}:00:00+00'"
        if type.name == "date":
            return f"date '2026-01-0{r.randint(1, 5)}'"
        return f"{r.randint(0, 5)}.{r.randint(0, 9)}{r.randint(0, 9)}"
