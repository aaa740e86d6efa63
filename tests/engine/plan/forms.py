"""Random views in forms: at least one form for each relation and aggregate of the language.

Everything follows from a seed. A world has two random tables, a topic that is not stored, a table
with a column of every type (`w`), the three tables of the random subqueries, and those of `edges`.
Views take the forms in turn, so a run with as many views as forms has each of them, for any seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tailgate.lake.types import BOOL, FLOAT8, INT4, INT8, TEXT, Type
from tailgate.sql.plan import JoinKind
from testing.random_queries import REGRESSIONS, VARIANCES, Name, Table, Writer
from tests.engine.plan import edges
from tests.engine.plan.wide_world import EQUAL, EXOTIC, SORTED, SUBQUERY_MAX
from tests.sql import random_subqueries

Form = tuple[str, JoinKind | None]  # a query, and the kind that replaces its inner joins


class Forms:
    """A generator of queries: `forms(n)` is the n-th one, and `n` determines its form."""

    def __init__(self, source: random.Random, relations: Sequence[Table]) -> None:
        self.random = source
        self.relations = tuple(t for t in relations if t.name.startswith("t") and len(t.name) > 1)
        self.small = tuple(t for t in relations if t.name in random_subqueries.TABLES)
        self.n = 0

    def writer(self, *, errors: bool | None = None) -> Writer:
        return Writer(self.random, self.relations, self.random.random() < 0.5 if errors is None else errors)

    def __call__(self, n: int) -> Form:
        cycle, place = divmod(n, len(FORMS))
        form = FORMS[place]
        self.n = cycle * FORMS.count(form) + FORMS[:place].count(form)
        result = form(self)
        return result if isinstance(result, tuple) else (result, None)

    def turn(self, choices: Sequence[str], step: int = 1, more: int = 0) -> str:
        """Returns the next of the choices, in turn."""
        return choices[(self.n * step + more) % len(choices)]

    # ---- SELECT --------------------------------------------------------------------------------------------------------------------

    def any(self) -> str:
        return self.writer().query()

    def combined(self) -> str:
        """Returns a set operation; the kinds take turns."""
        writer = self.writer()
        types = [self.random.choice((INT4, TEXT, BOOL, FLOAT8)) for _ in range(self.random.randint(1, 2))]
        sign = self.turn(["UNION", "INTERSECT", "EXCEPT", "UNION ALL", "INTERSECT ALL", "EXCEPT ALL"])
        return f"({writer.part(types, 0)}) {sign} ({writer.part(types, 0)})"

    def cut(self) -> str:
        writer = self.writer()
        tables, scope = writer.sources(1)
        outputs = [n.sql for n in self.random.sample(scope, min(2, len(scope)))] + [writer.expression(INT4, scope)]
        source = f"FROM {tables}"
        order = f"1{writer.direction()}, 2{writer.direction()}"
        match self.n % 5:
            case 0:
                return f"SELECT DISTINCT ON (1) {writer.named(outputs)} {source} ORDER BY {order}"
            case 1:
                size, skipped = self.random.randint(1, 4), self.random.choice(["", "OFFSET 1 ", "OFFSET 2 "])
                return f"SELECT {writer.named(outputs)} {source} ORDER BY 1{writer.direction()} {skipped}FETCH FIRST {size} ROWS WITH TIES"
            case 2:
                size, skipped = self.random.randint(1, 4), self.random.randint(1, 4)
                return f"SELECT {writer.named(outputs)} {source} ORDER BY {order} LIMIT {size} OFFSET {skipped}"
            case 3:
                return f"SELECT {writer.named(outputs)} {source} ORDER BY {order} OFFSET {self.random.randint(1, 4)}"
        return f"SELECT DISTINCT {writer.named(outputs)} {source}"

    def ranked(self) -> str:
        writer = self.writer()
        tables, scope = writer.sources(1)
        return writer.first_ranks([n.sql for n in self.random.sample(scope, min(2, len(scope)))], scope, f"FROM {tables}")

    def sets(self) -> str:
        """Returns a query with GROUPING SETS, ROLLUP or CUBE."""
        writer = self.writer()
        tables, scope = writer.sources(1)
        keys = self.random.sample(scope, min(2, len(scope)))
        names = [n.sql for n in keys]
        both = ", ".join(names)
        sets = self.turn([f"ROLLUP ({both})", f"CUBE ({both})", f"GROUPING SETS (({both}), ({names[-1]}), ())"])
        calls = [writer.aggregate(scope), f"grouping({both})"]
        having = " HAVING count(*) > 1" if self.random.random() < 0.3 else ""
        return f"SELECT {writer.named([*names, *calls])} FROM {tables} GROUP BY {sets}{having}"

    def aggregates(self) -> str:
        """Returns a query with six aggregates; all aggregates take turns."""
        writer = self.writer()
        tables, scope = self.random.choice((lambda: writer.sources(1), self.wide, self.narrow))()
        keys = self.few_groups(scope)
        calls = [self.aggregate(self.turn(AGGREGATES, 6, i), writer, scope) for i in range(6)]
        group = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
        return f"SELECT {writer.named(keys + calls)} FROM {tables}{group}"

    def few_groups(self, scope: list[Name]) -> list[str]:
        """Returns GROUP BY expressions for which most groups have several rows."""
        numbers = [n.sql for n in scope if n.type.name in ("int2", "int4", "int8")]
        choice = self.random.random()
        if choice < 0.25:
            return []
        if choice < 0.75 and numbers:
            return [f"{self.random.choice(numbers)} % {self.random.randint(2, 3)}"]
        return [n.sql for n in self.random.sample(scope, self.random.randint(1, min(2, len(scope))))]

    def wide(self) -> tuple[str, list[Name]]:
        columns = [Name(f"w.{name}", dict(EXOTIC)[name]) for name in SORTED if name not in ("g", "tm", "vc", "ms")]
        return "w", columns

    def narrow(self) -> tuple[str, list[Name]]:
        """Returns a table with few values in many copies, and its columns."""
        return "e", [Name(f"e.{name}", type) for name, type in edges.TABLES["e"] if name not in ("iv", "at", "until")]

    def aggregate(self, call: str, writer: Writer, scope: list[Name]) -> str:
        def value(type: Type) -> str:
            return writer.expression(type, scope, 1)

        def sorted_one() -> str:
            return self.random.choice([n.sql for n in scope if n.type.name != "bool"] or ["1"])

        interval = f"{scope[0].sql[0]}.iv" if scope[0].sql[:2] in ("w.", "e.") else "interval '90 minutes'"
        parts = {
            "int": value(INT4), "other": value(INT4), "long": value(INT8), "num": value(Type("numeric", (10, 2))), "float": value(FLOAT8),
            "bool": value(BOOL), "text": value(TEXT), "any": self.random.choice(scope).sql, "sorted": sorted_one(),
            "way": writer.direction(), "by": sorted_one(), "interval": interval,
        }  # fmt: skip
        where = f" FILTER (WHERE {writer.condition(scope, 1)})" if self.random.random() < 0.3 else ""
        return call.format(**parts) + where

    def windows(self) -> str:
        """Returns a query with two window functions in turn, and a random one."""
        writer = self.writer()
        tables, scope = writer.sources(1)
        outputs = [n.sql for n in self.random.sample(scope, min(2, len(scope)))]
        split = f"PARTITION BY {self.random.choice(scope).sql} " if self.random.random() < 0.7 else ""
        sorts = ", ".join(n.sql + writer.direction() for n in self.random.sample(scope, min(2, len(scope))))
        frame = writer.frame(True)
        calls = []
        for i in range(2):
            call = self.aggregate_free(self.turn(WINDOWS, 2, i), writer, scope)
            calls.append(f"{call} OVER (win{'' if call.startswith(RANKING) else f' {frame}'})" if frame else f"{call} OVER win")
        calls.append(writer.windowed(scope))
        return f"SELECT {writer.named(outputs + calls)} FROM {tables} WINDOW win AS ({split}ORDER BY {sorts})"

    def aggregate_free(self, call: str, writer: Writer, scope: list[Name]) -> str:
        return call.format(any=self.random.choice(scope).sql, int=writer.expression(INT4, scope, 1))

    # ---- joins ---------------------------------------------------------------------------------------------------------------------

    def joined(self) -> str:
        """Returns a join; the kinds take turns, with and without equality and more conditions."""
        writer = self.writer()
        word = self.turn(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT JOIN"])
        few = word == "LEFT JOIN" or self.random.random() < 0.4  # small tables, with many outer rows and NULLs
        left, right = (self.random.choice(self.small if few else self.relations) for _ in range(2))
        scopes = [[Name(f"{a}.{c.name}", c.type) for c in t.columns] for a, t in (("l", left), ("r", right))]
        both = scopes[0] + scopes[1]
        on = writer.condition(both) if self.n % 3 == 2 else f"l.a = r.a{'' if self.n % 3 else f' AND {writer.condition(both)}'}"
        outputs = [n.sql for n in self.random.sample(both, min(4, len(both)))]
        alone = f" WHERE {self.random.choice(scopes[1]).sql} IS NULL" if word == "LEFT JOIN" and self.random.random() < 0.5 else ""
        return f"SELECT {writer.named(outputs)} FROM {left.name} AS l {word} {right.name} AS r ON {on}{alone}"

    def halves(self) -> Form:
        """Returns a semi or anti join with a random condition."""
        return Writer(self.random, self.relations, False).halves(), ("semi", "anti")[self.n % 2]

    def edge(self) -> str:
        return edges.filled(self.turn(edges.EDGES), self.random)

    def natural(self) -> str:
        left, right = (self.random.choice(["r", "s", "t"]) for _ in range(2))
        word = self.turn(["", "LEFT ", "RIGHT ", "FULL "])
        join = f"NATURAL {word}JOIN {right} AS y" if self.n % 2 else f"{word}JOIN {right} AS y USING (a)"
        return f"SELECT * FROM (SELECT a, count(*) AS n FROM {left} GROUP BY a) AS x {join}"

    def starred(self) -> str:
        """Returns an inner join of two to four tables, some with a key.

        Two of three queries aggregate one table, in groups of another.
        """
        r, writer, grouped = self.random, self.writer(errors=False), self.n % 3 != 1
        keyed = [t for t in self.relations if t.key] or list(self.relations)
        bags = [t for t in self.relations if not t.key]
        tables = [r.choice(bags), r.choice(keyed)] if grouped else [r.choice(self.relations) for _ in range(3)]
        tables += [r.choice(keyed) for _ in range(r.random() < 0.3)]
        r.shuffle(tables)
        scopes = [[Name(f"x{i}.{c.name}", c.type) for c in t.columns] for i, t in enumerate(tables)]
        source = f"{tables[0].name} AS x0"
        for i, table in enumerate(tables[1:], 1):
            more = f" AND {writer.condition([*scopes[0], *scopes[i]], 1)}" if r.random() < 0.1 else ""
            source += f" {'LEFT ' * (r.random() < 0.1)}JOIN {table.name} AS x{i} ON x{r.randrange(i)}.a = x{i}.a{more}"
        if not grouped:
            return f"SELECT {writer.named([r.choice(scope).sql for scope in scopes])} FROM {source}"
        of = next(i for i, t in enumerate(tables) if t in bags)
        by = r.choice([i for i in range(len(tables)) if i != of])
        keys = r.choice([[r.choice(scopes[by]).sql], [f"x{by}.a"], [f"x{of}.a", r.choice(scopes[by]).sql], []])
        exact = r.random() < 0.8
        calls = [self.measure(scopes[of], exact) for _ in range(3)]
        group = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
        return f"SELECT {writer.named(keys + calls)} FROM {source}{group}"

    def measure(self, scope: list[Name], exact: bool) -> str:
        """Returns an aggregate. With `exact`, it can be combined from partial aggregates."""
        r, of = self.random, self.random.choice(scope)
        calls = ["count({})", "count(*)", "max({})", "min({})"] if of.type.name != "bool" else ["bool_and({})", "bool_or({})"]
        if of.type.name in ("int2", "int4", "int8", "numeric", *(() if exact else ("float8",))):
            calls += ["sum({})", "sum({})", "avg({})", *(() if exact else ("sum(DISTINCT {})",))]
        where = f" FILTER (WHERE {r.choice(scope).sql} IS NOT NULL)" if r.random() < 0.2 else ""
        return r.choice(calls).format(of.sql) + where

    # ---- subqueries ----------------------------------------------------------------------------------------------------------------

    def subquery(self) -> str:
        while True:
            text = random_subqueries.Writer(self.random, errors=self.random.random() < 0.3, depth=1).query()
            if len(text) <= SUBQUERY_MAX and "SELECT" in text[6:]:
                return text

    def predicate(self) -> str:
        """Returns a query with a subquery in a condition; the kinds take turns."""
        own = random_subqueries.Writer(self.random, depth=1)
        outer = [(f"q.{c}", t) for c, t in random_subqueries.TABLES["r"]]
        kind = self.n % 6
        inner = own.column("int4", outer if self.random.random() < 0.7 else [], 0)
        negation, sign = self.random.choice(["", "NOT "]), own.sign()
        tests = (
            f"{negation}EXISTS ({inner})", f"q.a {negation}IN ({inner})", f"q.b {sign} ANY ({inner})", f"q.b {sign} ALL ({inner})",
            f"q.b {sign} {own.scalar('int4', outer, 0)}", f"(q.a, q.b) {negation}IN (SELECT a, e FROM t WHERE t.e <> q.a)",
        )  # fmt: skip
        shown = f", {tests[kind]} AS p" if self.random.random() < 0.3 else ""
        where = "" if shown else f" WHERE {tests[kind]}"
        return f"SELECT q.a, q.b{shown} FROM r AS q{where}"

    def lateral(self) -> str:
        """Returns a LATERAL join with the first rows for each row."""
        r, word = self.random, self.turn([", LATERAL", " LEFT JOIN LATERAL"])
        on = "" if word.startswith(",") else " ON true"
        order = f"y.b{r.choice(['', ' DESC'])}, y.d"
        inner = f"SELECT y.b, y.d FROM s AS y WHERE y.a {r.choice(['=', '<'])} x.a ORDER BY {order} LIMIT {r.randint(1, 2)}"
        return f"SELECT x.a, x.c, l.b, l.d FROM r AS x{word} ({inner}) AS l{on}"

    def common(self) -> str:
        """Returns a CTE that is read twice, an INTERSECT, or an aggregate of an aggregate."""
        if self.n % 4 == 1:
            return f"SELECT a FROM r INTERSECT{' ALL' if self.n % 8 == 5 else ''} SELECT a FROM s"
        if self.n % 4 == 3:
            return "SELECT q.n, count(*) AS times, max(q.a) AS m FROM (SELECT a, count(*) AS n FROM r GROUP BY a) AS q GROUP BY q.n"
        own = random_subqueries.Writer(self.random, depth=1)
        inner = own.select([], 0, types=["int4", "text"])[0]
        hint = self.turn(["", "MATERIALIZED ", "NOT MATERIALIZED "])
        return f"WITH c (p, q) AS {hint}({inner}) SELECT x.p, x.q, count(*) AS n FROM c AS x JOIN c AS y ON x.p = y.p GROUP BY 1, 2"

    def recursive(self) -> str:
        """Returns a recursive query over a graph of few nodes, which has cycles. UNION and UNION ALL take turns."""
        r, sign = self.random, self.turn(["UNION", "UNION ALL"])
        base, step = r.choice("rs"), r.choice("rs")
        endless = sign == "UNION" and r.random() < 0.5
        word = r.choice(["JOIN", "JOIN", "LEFT JOIN"])
        next = f"SELECT x.a, {'q.d' if endless else 'q.d + 1'} FROM q {word} {step} AS x ON x.b = q.n{'' if endless else ' WHERE q.d < 3'}"
        outputs = r.choice(["n, d FROM q", "n, count(*) AS c, min(d) AS m FROM q GROUP BY n"])
        return f"WITH RECURSIVE q(n, d) AS (SELECT a, 0 FROM {base} {sign} {next}) SELECT {outputs}"

    # ---- functions in FROM, time ---------------------------------------------------------------------------------------------------

    def generated(self) -> str:
        call, names = self.turn(SETS), ("v", "v2")
        two = "each" in call
        ordinal = " WITH ORDINALITY" if self.random.random() < 0.5 else ""
        aliases = ", ".join([*names[: 1 + two], *(["place"] if ordinal else [])])
        joined = f", {call}" if self.random.random() < 0.5 else f" LEFT JOIN LATERAL {call}"
        on = "" if joined.startswith(",") else " ON true"
        source = f"FROM w{joined}{ordinal} AS e({aliases}){on}"
        if self.random.random() < 0.3:
            return f"SELECT w.k, count(e.v) AS c, max(w.n) AS m {source} GROUP BY w.k"
        return f"SELECT w.k, w.x, {', '.join('e.' + g for g in aliases.split(', '))} {source}"

    def windowed(self) -> str:
        """Returns a query with tumble, hop, session or date_bin."""
        r, time = self.random, self.random.choice(["ts", "tz"])
        size, every = r.choice([30, 60, 75]), r.choice([15, 30, 50])
        match self.n % 4:
            case 0:
                relation = f"tumble(w, {time}, interval '{size} minutes')"
            case 1:
                relation = f"hop(w, {time}, interval '{every} minutes', interval '{size} minutes')"
            case 2:
                relation = f"session(w, {time}, interval '{size} minutes'{r.choice(['', ', k', ', x'])})"
            case _:
                zone = "" if time == "ts" else "tz"
                bin = f"date_bin(interval '{size} minutes', {time}, timestamp{zone} '2026-01-01 00:05')"
                return f"SELECT {bin} AS at, count(*) AS n, sum(n) AS s FROM w GROUP BY 1"
        if r.random() < 0.5:
            return f"SELECT k, window_start, window_end, {time} FROM {relation}"
        return f"SELECT k, window_start, window_end, count(*) AS c, max(n) AS m FROM {relation} GROUP BY 1, 2, 3"

    def timed(self) -> str:
        """Returns a query that compares the clock with times of rows."""
        r = self.random
        conditions = (
            "now() < tz", "tz > now() - interval '2 hours'", "mz_now() BETWEEN ms AND ms + 7200000",
            "ts + interval '1 hour' <= localtimestamp", "mz_now() >= ms AND localtimestamp < ts",
            "mz_now() < ms AND localtimestamp < ts AND now() >= tz",
            "now() - tz < interval '90 minutes'", "mz_now() >= ms AND mz_now() < ms + 9000000", "ts + iv > localtimestamp",
        )  # fmt: skip
        where = self.turn(conditions)
        more = f" AND k {r.choice(['<', '>', '='])} {r.randint(0, 4)}" if r.random() < 0.3 else ""
        match r.randint(0, 3):
            case 0:
                return f"SELECT k, count(*) AS c, max(n) AS m FROM w WHERE {where}{more} GROUP BY k"
            case 1:
                return f"SELECT x.k, x.x, y.a FROM (SELECT * FROM w WHERE {where}) AS x LEFT JOIN r AS y ON y.a = x.k"
            case 2:
                return f"SELECT k, x, n FROM w WHERE {where}{more} ORDER BY n DESC, k LIMIT 2"
        return f"SELECT k, x, tz FROM w WHERE {where}{more}"

    def typed(self) -> str:
        """Returns a query that uses a column as a key; the types take turns."""
        r, column, other = self.random, self.turn(EQUAL), self.turn(SORTED)
        last = self.turn(["k", "x", "n"])
        return r.choice(
            (
                f"SELECT {column}, count(*) AS c, count(DISTINCT {other}) AS e, min({other}) AS l, max({other}) AS m FROM w GROUP BY 1",
                f"SELECT DISTINCT {column}, {last} FROM w",
                f"SELECT x.{column}, y.{other} FROM w AS x JOIN w AS y ON x.{column} = y.{column} AND x.k < y.k",
                f"SELECT x.k, y.{column} FROM w AS x FULL JOIN (SELECT {column}, n FROM w WHERE k > 1) AS y ON x.{column} = y.{column}",
                f"SELECT {column} FROM w WHERE k < 3 EXCEPT ALL SELECT {column} FROM w WHERE k > 1",
                f"SELECT k, {column}, lag({column}) OVER (PARTITION BY k ORDER BY {other}, {last}, n) AS p FROM w",
                f"SELECT array_agg({other} ORDER BY {other}, n) AS g, max_by({column}, {other}) AS b FROM w"
                if column in SORTED
                else f"SELECT k, {column} FROM w ORDER BY {other} FETCH FIRST 3 ROWS WITH TIES",
            )
        )

    def over(self, views: Sequence[Table]) -> str:
        """Returns a query over views and a table."""
        writer = Writer(self.random, (*views, self.random.choice(self.relations)), self.random.random() < 0.5)
        writer.most = 2
        return writer.query()


FORMS: tuple[Callable[[Forms], str | Form], ...] = (
    Forms.aggregates, Forms.joined, Forms.edge, Forms.windows, Forms.predicate, Forms.edge, Forms.generated, Forms.windowed, Forms.edge,
    Forms.timed, Forms.typed, Forms.edge, Forms.cut, Forms.aggregates, Forms.edge, Forms.combined, Forms.halves, Forms.edge, Forms.subquery,
    Forms.any, Forms.edge, Forms.sets, Forms.natural, Forms.edge, Forms.lateral, Forms.ranked, Forms.edge, Forms.starred, Forms.aggregates,
    Forms.edge, Forms.joined, Forms.windows, Forms.edge, Forms.generated, Forms.common, Forms.edge, Forms.typed, Forms.starred,
    Forms.recursive,
)  # fmt: skip
SETS = (
    "generate_series(0, w.k)", "generate_series(w.k, 6, 2)", "unnest(w.a)", "unnest(w.b)", "jsonb_array_elements(w.j)",
    "jsonb_array_elements_text(w.j)", "jsonb_each(w.o)", "jsonb_each_text(w.o)", "jsonb_object_keys(w.o)", "generate_series(3, 0, w.k)",
)  # fmt: skip
RANKING = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead")
WINDOWS = (
    "row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)", "lag({any})", "lead({any}, 2)",
    "first_value({any})", "last_value({any})", "nth_value({any}, 2)", "sum({int})", "count(*)", "avg({int})", "min({int})", "max({int})",
    "array_agg({any})", "count({any})", "lag({any}, 2, {any})", "ntile({int})", "nth_value({any}, {int})",
)  # fmt: skip
AGGREGATES = (
    "count(*)", "count({any})", "count(DISTINCT {any})", "sum({int})", "sum({long})", "sum({num})", "sum({float})", "sum(DISTINCT {int})",
    "avg({int})", "avg({num})", "avg({float})", "min({sorted})", "max({sorted})", "bool_and({bool})", "bool_or({bool})", "every({bool})",
    "bit_and({int})", "bit_or({int})", "bit_xor({int})", *(f"bit_{o}({{int}}::bit(5))" for o in ("and", "or", "xor")),
    *(f"{v}({{num}})" for v in VARIANCES), "stddev(({int} % 100)::float8)",
    *(f"{v}({{int}} % 100, {{other}} % 100)" for v in REGRESSIONS), "array_agg({any} ORDER BY {by}{way}, {any})",
    "array_agg(DISTINCT {sorted})", "string_agg({text}, '-' ORDER BY {text}{way})", "string_agg(DISTINCT {text}, ',')",
    "jsonb_agg({int} ORDER BY {by}{way}, {int})", "json_agg({text})", "jsonb_object_agg({text}, {int})", "json_object_agg({text}, {int})",
    "json_object_agg(coalesce({text}, ''), {text})", "mode() WITHIN GROUP (ORDER BY {sorted})",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY {int}{way})", "percentile_disc(0.9) WITHIN GROUP (ORDER BY {sorted}{way})",
    "any_value({any})", "max_by({any}, {by})", "range_agg(int4range({int} % 20, {int} % 20 + 3))",
    "range_intersect_agg(int4range({int} % 4, {int} % 4 + 3))",
    "min_by({any}, {by})", "latest_by_offset({any}, {long})", "earliest_by_offset({any}, {long})",
    "sum({interval})", "avg(DISTINCT {num})", "sum(DISTINCT {float})", "count(DISTINCT {num})",
)  # fmt: skip
