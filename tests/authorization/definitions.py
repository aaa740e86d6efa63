"""Random statements that define objects: views, functions, tables, indexes, endpoints, sources and sinks."""

from __future__ import annotations

from tests.authorization.expressions import WRITTEN, Expressions

# Names of temporary views; objects of boss and of the attackers have them, too.
TEMPORARY = ("salaries", "word", "clicks", "m", "hidden", "v0", "t0", "open", "sub", "far", "sink")


class Definitions(Expressions):
    """A generator of definitions."""

    def temporary(self) -> str:
        name = self.of(*TEMPORARY)
        if self.r.random() < 0.2:
            return f"DROP VIEW IF EXISTS pg_temp.{name} CASCADE"
        return f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {self.within(self.query)}"

    def hidden(self) -> list[str]:
        """Generates a temporary view and a change of the object with its name, which belongs to boss or to nobody."""
        name, schema = self.of(*TEMPORARY), self.of("", "public.")
        change = self.of(
            f"GRANT SELECT ON {schema}{name} TO low", f"GRANT USAGE ON SECRET {name} TO low", f"ALTER SECRET {name} AS 'x'",
            f"COMMENT ON VIEW {name} IS 'x'", f"DROP VIEW {schema}{name}", f"CREATE OR REPLACE VIEW {schema}{name} AS SELECT 1 AS n",
        )  # fmt: skip
        return [f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT 1::bigint AS n, 'x' AS name", change]

    def view(self) -> list[str] | str:
        replaces = self.of("OR REPLACE ", "OR REPLACE ", "")
        name = self.some((6, lambda: self.own("v")), (1, self.name), (0.5, lambda: "kept"))
        return f"CREATE {replaces}VIEW {name} AS {self.within(self.query)}"

    def materialized(self) -> str:
        name = self.some((6, lambda: self.own("m")), (1, self.name))
        return f"CREATE {self.of('OR REPLACE ', 'OR REPLACE ', '')}MATERIALIZED VIEW {name} AS {self.within(self.query)}"

    def function(self) -> str:
        letter = self.of("f", "f", "g", "h")
        head, body, returns = {
            "f": ("()", f"SELECT {self.within(self.number)}", "bigint"),
            "g": ("(a bigint)", f"SELECT a + {self.within(self.number)}", "bigint"),
            "h": ("()", self.within(self.query), "TABLE (n bigint, name text)"),
        }[letter]
        if letter == "g" and self.r.random() < 0.3:
            head = f"(a bigint DEFAULT {self.call()})"
        name = self.some((6, lambda: self.own(letter)), (1, lambda: self.of(f"own.{letter}", f"public.{letter}0")))
        wrapped = self.of(f"'{body.replace(chr(39), chr(39) * 2)}'", f"$${body}$$")
        if letter == "f" and self.r.random() < 0.2:
            return f"CREATE OR REPLACE FUNCTION {name}{head} RETURNS {returns} LANGUAGE SQL RETURN ({body})"
        return f"CREATE OR REPLACE FUNCTION {name}{head} RETURNS {returns} LANGUAGE SQL {self.of('', 'STRICT ', 'STABLE ')}AS {wrapped}"

    def table(self) -> str:
        default = f" DEFAULT {self.some((1, lambda: self.text()), (1, self.call))}" if self.r.random() < 0.2 else ""
        check = f", CHECK ({self.truth()})" if self.r.random() < 0.15 else ""
        name = self.some((5, lambda: self.own("t")), (1, self.name))
        if self.r.random() < 0.2:
            return f"CREATE TABLE IF NOT EXISTS {name} AS {self.query()}"
        if self.r.random() < 0.1:
            return f"ALTER TABLE {name} ADD COLUMN IF NOT EXISTS more text DEFAULT {self.text()}"
        return f"CREATE TABLE IF NOT EXISTS {name} (n bigint PRIMARY KEY, name text{default}{check})"

    def endpoint(self) -> str:
        name, path = self.own("e"), self.of("/a", "/b")
        target = self.some((1, lambda: self.own("t")), (1, lambda: self.of(*WRITTEN)))
        returning = f"RETURNING {self.of('n', 'name', '1 AS x')}"
        return self.some(
            (2, lambda: f"CREATE OR REPLACE ENDPOINT {name} GET '{path}/:id' AS SELECT x.n, :id AS id FROM ({self.query()}) AS x"),
            (1, lambda: f"CREATE OR REPLACE ENDPOINT {name} POST '{path}' AS INSERT INTO {target} VALUES (:n, :name) {returning}"),
            (1, lambda: f"CREATE OR REPLACE ENDPOINT {name} PATCH '{path}' AS UPDATE {target} SET name = :name WHERE n = :n {returning}"),
            (0.5, lambda: f"CREATE OR REPLACE ENDPOINT {name} DELETE '{path}' AS DELETE FROM {target} WHERE {self.truth()} {returning}"),
        )

    def kafka(self) -> str:
        into = "INTO KAFKA BROKER 'k' TOPIC 't'"
        sasl = "BROKER 'k', SASL MECHANISMS 'PLAIN', SASL USERNAME 'u', SASL PASSWORD"
        return self.some(
            (2, lambda: f"CREATE SINK {self.own('k')} FROM {self.name()} {into} KEY (n) NOT ENFORCED FORMAT JSON ENVELOPE UPSERT"),
            (2, lambda: f"CREATE SINK {self.own('k')} FROM ({self.query()}) {into} FORMAT JSON ENVELOPE DEBEZIUM"),
            (1, lambda: f"CREATE SOURCE {self.own('s')} FROM KAFKA BROKER 'k' TOPIC 't' FORMAT TEXT"),
            (1, lambda: f"CREATE SOURCE {self.own('s')} FROM KAFKA CONNECTION {self.name()} (TOPIC 't') FORMAT TEXT"),
            (1, lambda: f"CREATE SINK {self.own('k')} FROM {self.own('m')} INTO KAFKA CONNECTION {self.name()} (TOPIC 't') FORMAT JSON"),
            (1, lambda: f"CREATE SECRET {self.own('w')} AS 'x'"),
            (1, self.endpoint),
            (1, lambda: f"{self.of('CREATE TOKEN t0 FOR', 'CREATE TOKEN t1 FOR')} {self.of('low', 'boss', 'helper')}"),
            (1, lambda: f"DROP TOKEN {self.of('', 'IF EXISTS ')}{self.of('t0', 't1')} FOR {self.of('low', 'boss', 'helper')}"),
            (1, lambda: f"ALTER SECRET {self.of('', 'IF EXISTS ')}{self.name()} AS 'x'"),
            (1, lambda: f"CREATE CONNECTION {self.own('c')} TO KAFKA ({sasl} SECRET {self.name()})"),
            (1, lambda: f"VALIDATE CONNECTION {self.name()}"),
            (1, lambda: f"{self.of('PAUSE SOURCE', 'RESUME SOURCE', 'CANCEL BACKFILL')} {self.name()}"),
            (1, lambda: f"{self.of('RETRY', 'DELETE')} DEAD LETTERS OF {self.name()}"),
            (1, lambda: f"ALTER SOURCE {self.name()} {self.of('REFRESH SCHEMA', 'RESUME AT EARLIEST')}"),
        )  # fmt: skip

    def ksqldb(self) -> str:
        stream, type = self.of("s0", "s1", "own.s"), self.of("address", "d")
        columns = "(k VARCHAR KEY, n BIGINT) WITH (kafka_topic = 't', value_format = 'json')"
        return self.some(
            (2, lambda: f"CREATE {self.of('', 'OR REPLACE ')}STREAM {stream} {columns}"),
            (1, lambda: f"ALTER STREAM {stream} ADD COLUMN c{self.r.randrange(9)} INT"),
            (1, lambda: f"{self.of('TERMINATE', 'PAUSE', 'RESUME')} {self.of('ALL', 'CTAS_OWN_0', 'CSAS_S0_1')}"),
            (1, lambda: self.of(f"CREATE TYPE IF NOT EXISTS {type} AS STRUCT<a INT>", f"CREATE TYPE {type} AS ENUM ('a', 'b')")),
            (0.5, lambda: f"CREATE TYPE {type} AS (n bigint, name text)"),
            (1, lambda: self.of(f"DROP TYPE `{type.upper()}`", f"DROP TYPE IF EXISTS {type}", f"ALTER TYPE {type} ADD VALUE 'c'")),
            (1, lambda: self.of(f"CREATE DOMAIN {type} AS int", f"ALTER DOMAIN {type} ADD CHECK (VALUE > 0)", f"DROP DOMAIN {type}")),
            (0.5, lambda: self.of("CREATE SOURCE CONNECTOR c WITH ('connector.class' = 'x')", "DROP CONNECTOR c")),
            (0.8, lambda: self.of("DEFINE x = 'y'", "ASSERT TOPIC t TIMEOUT 1 SECONDS")),
        )

    def indexes(self) -> str:
        unique, name, condition = self.of("", "UNIQUE "), self.of("", "i0 ", "i1 "), f" WHERE {self.truth(('n',))}" * self.r.randrange(2)
        return self.some(
            (1, lambda: f"CREATE INDEX ON {self.name()} (n)"),
            (1, lambda: f"CREATE {unique}INDEX {name}ON {self.own('t')} (name){condition}"),
            (1, lambda: f"CREATE {unique}INDEX {name}ON {self.own('t')} (({self.number(('n',))})){condition}"),
            (1, lambda: f"CREATE {unique}INDEX {name}ON {self.own('t')} (lower(name), n){condition}"),
        )
