"""Random statements of every kind for a role with few privileges, some of which try to read more.

A clause that takes an expression gets one that may read any relation (`expressions`). A clause that
takes a name gets any name, including that of a temporary view. Most statements are valid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.authorization.definitions import Definitions
from tests.authorization.expressions import WRITTEN

ROLES = ("low", "helper", "boss", "tailgate", "PUBLIC", "staff")


@dataclass(frozen=True)
class Step:
    """One statement.

    `follows` means that it may run forever. `parameters` are sent with the extended protocol.
    """

    text: str
    follows: bool = False
    parameters: tuple[str, ...] | None = None


class Grammar(Definitions):
    def statements(self) -> list[Step]:
        """Generates one statement, or a few related ones."""
        statement = self.r.choices(list(WEIGHTS), list(WEIGHTS.values()))[0](self)
        steps = [
            Step(step) if isinstance(step, str) else step for step in ([statement] if isinstance(statement, (str, Step)) else statement)
        ]
        return [replace(step, follows=step.follows or " AS OF " in step.text) for step in steps]  # AS OF a future time may wait long

    def reads(self) -> str:
        as_of = f" AS OF {self.of('', 'AT LEAST ')}{self.time()}" if self.r.random() < 0.15 else ""
        return self.query() + as_of

    def parameters(self) -> Step:
        """Generates a query for the extended protocol, with binary results."""
        text = self.of(
            "SELECT a.n, $1::text AS name FROM {} AS a", "SELECT $1::text, ({})", "SELECT a.name FROM {} AS a WHERE a.n = $1::bigint"
        )
        inside = self.one_value("max(x.n)::bigint") if "({})" in text else self.source()
        return Step(text.format(inside), parameters=(str(self.r.randrange(9)),))

    def looks_up(self) -> Step | str:
        relation = self.of("salaries", "own.m", "own.open", "own.part_m", self.own("t"))
        if self.r.random() < 0.5:
            return Step(f"SELECT name FROM {relation} WHERE n = $1", parameters=(str(self.r.randrange(3)),))
        return f"SELECT n, name FROM {relation} WHERE n = {self.r.randrange(3)}"

    def follows(self) -> Step:
        what = self.some((2, self.relation), (2, lambda: f"({self.query()})"))
        if self.r.random() < 0.2:
            relation = self.of("s0", "s1", "salaries", self.relation())  # most of the latter have a schema, which ksqlDB does not know
            return Step(f"SELECT * FROM {relation} EMIT CHANGES{self.of('', ' LIMIT 2')}", follows=True)
        if self.r.random() < 0.5:
            as_of = f" AS OF {self.time()}" if self.r.random() < 0.4 else ""
            return Step(f"TAIL {what}{self.of('', ' WITH (SNAPSHOT)', ' WITH (PROGRESS)')}{as_of}", follows=True)
        up_to = f" UP TO {self.time()}" if self.r.random() < 0.5 else ""
        as_of = f" AS OF {self.time()}" if self.r.random() < 0.3 else ""
        return Step(f"SUBSCRIBE {what}{as_of}{up_to}", follows=True)

    def cursor(self) -> list[Step]:
        hold = self.of("", "", " WITH HOLD")
        what = self.some((3, self.query), (1, lambda: f"TAIL {self.relation()}"), (1, lambda: f"TAIL ({self.query()}) AS OF {self.time()}"))
        fetch = self.of("FETCH ALL c", "FETCH 2 FROM c", "FETCH 1 c WITH (timeout = '0.01s')", "MOVE 1 c", "FETCH BACKWARD 1 c")
        texts = ["BEGIN", f"DECLARE c {self.of('', 'BINARY ', 'SCROLL ')}CURSOR{hold} FOR {what}"]
        if self.r.random() < 0.2:
            texts.append(f"SET ROLE {self.of(*ROLES)}")
        texts += [fetch, self.of("COMMIT", "ROLLBACK", "CLOSE c")]
        return [
            *(Step(t, follows="TAIL" in what and t.startswith(("FETCH", "MOVE"))) for t in texts),
            Step("FETCH ALL c"),
            Step("CLOSE ALL"),
            Step("ROLLBACK"),
        ]

    def prepared(self) -> list[str]:
        body = self.some(
            (2, self.query),
            (1, lambda: "SELECT $1::text, $2::bigint"),
            (1, lambda: f"INSERT INTO {self.own('t')} VALUES ($2, $1)"),
            (1, lambda: f"SELECT a.n + $2, $1 FROM {self.source()} AS a"),
        )
        arguments = f"({self.text()}, {self.number()})" if "$2" in body else ""
        types = "(text, bigint)" if "$2" in body else ""
        return [f"PREPARE p {types} AS {body}", f"EXECUTE p {arguments}", f"EXECUTE p {arguments}", "DEALLOCATE p"]

    def code(self) -> str | list[str]:
        """Generates DO, or a temporary function and its call."""
        if self.r.random() < 0.2:
            got = self.of("SELECT max(x.name) INTO f FROM {} AS x", "INSERT INTO {} VALUES (1) RETURNING name INTO f").format(self.source())
            caught = self.of("", "EXCEPTION WHEN others THEN GET STACKED DIAGNOSTICS g = MESSAGE_TEXT; ")
            create = f"CREATE FUNCTION pg_temp.f(OUT f text, OUT g text) LANGUAGE plpgsql AS $do$ BEGIN {got}; {caught}END $do$"
            return ["BEGIN", create, self.of("RESET ROLE", f"SET ROLE {self.of(*ROLES)}"), "SELECT * FROM pg_temp.f()", "COMMIT"]
        inner = self.some(
            (2, lambda: f"RAISE EXCEPTION '%', {self.one_value('max(x.name)')}"),
            (2, lambda: f"PERFORM count(*) FROM {self.source()} AS a"),
            (1, lambda: f"IF EXISTS ({self.query()}) THEN RAISE NOTICE 'rows'; END IF"),
            (1, lambda: f"EXECUTE 'INSERT INTO {self.target()} VALUES (1)'"),
            (1, lambda: f"FOR r IN {self.query()} LOOP RAISE NOTICE '%', found; END LOOP"),
        )
        return f"DO $do$ DECLARE r record; BEGIN {inner}; {self.of('', 'EXCEPTION WHEN others THEN RAISE; ')}END $do$"

    def copies(self) -> Step | str:
        options = self.of("", " (FORMAT csv)", " (FORMAT binary)", " CSV HEADER")
        return self.some(
            (2, lambda: f"COPY ({self.query()}) TO STDOUT{options}"), (1, lambda: f"COPY {self.relation()} TO STDOUT{options}")
        )

    def copies_in(self) -> str:
        return f"COPY {self.some((2, lambda: self.own('t')), (1, self.relation))} FROM STDIN"

    def target(self) -> str:
        return self.some((5, lambda: self.own("t")), (3, lambda: self.of(*WRITTEN)), (1, self.relation))

    def returning(self) -> str:
        return f" RETURNING {self.of('*', 'n', 'name', self.number(), self.text())}" if self.r.random() < 0.4 else ""

    def inserts(self) -> str:
        rows = self.some(
            (2, self.query),
            (2, lambda: f"VALUES ({self.number()}, {self.text()})"),
            (0.5, lambda: "DEFAULT VALUES"),
            (0.5, lambda: self.of(f"(name) SELECT {self.text()}", f"(n) VALUES ({self.number()})")),
        )
        conflict = self.some(
            (3, lambda: ""),
            (1, lambda: " ON CONFLICT DO NOTHING"),
            (0.5, lambda: f" ON CONFLICT (lower(name), n) WHERE {self.truth(('n',))} DO UPDATE SET n = excluded.n"),
            (1, lambda: f" ON CONFLICT (n) DO UPDATE SET name = {self.text()} WHERE {self.truth()}"),
        )
        first = "WITH w AS (DELETE FROM own.hidden RETURNING *) " if len(rows) % 10 == 0 else ""
        return f"{first}INSERT INTO {self.target()} {rows}{conflict}{self.returning()}"

    def updates(self) -> str:
        table = self.target()
        if self.r.random() < 0.2:
            return f"MERGE INTO {table} AS a USING {self.source()} AS b ON a.n = b.n WHEN MATCHED THEN UPDATE SET name = {self.text()}"
        if self.r.random() < 0.4:
            using = f" USING {self.source()} AS b" if self.r.random() < 0.3 else ""
            return f"DELETE FROM {table} AS a{using} WHERE {self.truth(('a.n',))}{self.returning()}"
        of, value = (f" FROM {self.source()} AS b", self.text(("b.n",))) if self.r.random() < 0.3 else ("", self.text(("a.n",)))
        return f"UPDATE {table} AS a SET name = {value}{of} WHERE {self.truth(('a.n',))}{self.returning()}"

    def shows(self) -> str:
        name = self.name()
        return self.of(
            "SHOW MATERIALIZED VIEWS FROM own", "SHOW MATERIALIZED VIEWS", "SHOW SOURCES FROM own", "SHOW SINKS FROM own",
            "SHOW SUBSCRIPTIONS FROM own", "SHOW ERRORS", f"SHOW ERRORS FROM {name}", "SHOW SECRETS FROM own", "SHOW CONNECTIONS",
            "SHOW OBJECTS", f"SHOW CREATE VIEW {name}", f"SHOW CREATE MATERIALIZED VIEW {name}", f"SHOW CREATE SINK {name}",
            f"SHOW COLUMNS FROM {name}",
            f"SHOW INDEXES FROM {name}", "SHOW ALL", "SHOW search_path", "SHOW TOPICS", "PRINT 't' FROM BEGINNING", "SHOW FUNCTIONS",
            "SHOW TABLES", f"SHOW CREATE CONNECTION {name}", f"SHOW CREATE SOURCE {name}", f"SHOW CREATE SUBSCRIPTION {name}",
            "SHOW SCHEMAS", "SHOW DATABASES", f"SHOW CREATE FUNCTION {self.of('own.f', 'own.h', self.own('f'))}", "SHOW VIEWS LIKE '%'",
        )  # fmt: skip

    def explains(self) -> str:
        return self.some(
            (2, lambda: f"EXPLAIN {self.of('', 'ANALYZE ', '(FORMAT JSON) ')}{self.some((2, self.query), (1, self.inserts))}"),
            (1, lambda: f"EXPLAIN MATERIALIZED VIEW {self.name()}"),
            (1, lambda: f"EXPLAIN CREATE MATERIALIZED VIEW x AS {self.query()}"),
            (0.5, lambda: f"EXPLAIN VALUE SCHEMA FOR SINK {self.name()}"),
            (0.5, lambda: f"EXPLAIN TAIL {self.relation()}"),
            (0.5, lambda: f"EXPLAIN SELECT * FROM {self.of('s0', 's1', 'salaries')} EMIT CHANGES"),
        )

    def catalog(self) -> str:
        relation = self.of(
            "pg_stat_activity", "pg_class", "pg_attribute", "pg_attrdef", "pg_proc", "pg_views", "pg_matviews", "pg_indexes", "pg_roles",
            "pg_user", "pg_authid", "pg_shadow", "pg_constraint", "pg_depend", "pg_description", "pg_settings", "pg_stats",
            "pg_statistic", "pg_type",
            "information_schema.columns", "information_schema.tables", "information_schema.views", "information_schema.routines",
            "tailgate.sources", "tailgate.sinks", "tailgate.materialized_views", "tailgate.secrets", "tailgate.connections",
            "tailgate.subscriptions", "tailgate.tables", "pg.made_roles", "pg.pg_class",
        )  # fmt: skip
        return self.some(
            (3, lambda: f"SELECT * FROM {relation}"),
            (
                1,
                lambda: (
                    f"SELECT pg_get_viewdef('{self.name()}'::regclass), {self.of('current_user', 'version()', 'current_schemas(true)')}"
                ),
            ),
            (1, lambda: f"SELECT * FROM {relation} AS a, {self.relation()} AS b"),
            (1, lambda: f"SELECT (SELECT count(*) FROM {relation}), has_table_privilege('{self.name()}', 'SELECT')"),
            (1, lambda: f"SELECT obj_description('{self.name()}'::regclass), pg_relation_size('{self.name()}'), col_description(1, 1)"),
            (1, lambda: "SELECT usename, state, query FROM pg_stat_activity"),
            (1, lambda: "SELECT pg_cancel_backend(pid), pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'boss'"),
            (
                0.5,
                lambda: f"SELECT set_config('{self.of('role', 'search_path', 'tailgate.as_of')}', '{self.of('boss', 'own', '1')}', false)",
            ),
        )

    def settings(self) -> list[str] | str:
        return self.some(
            (3, lambda: f"SET ROLE {self.of(*ROLES)}"),
            (1, lambda: f"SET SESSION AUTHORIZATION {self.of(*ROLES)}"),
            (3, lambda: f"SET search_path = {self.of('lo, public', 'own, public', 'public', 'he, lo', 'own, lo, he', 'pg_temp, public')}"),
            (1, lambda: f"SET tailgate.as_of = '{self.r.randrange(10**12)}'"),
            (1, lambda: "RESET ALL"),
            (1, lambda: "RESET tailgate.as_of"),
            (1, lambda: "DISCARD ALL"),
            (0.5, lambda: "SET transaction_read_only = off"),
            (0.5, lambda: f"SET session_replication_role = {self.of('replica', 'origin')}"),
            (1, lambda: self.of("LISTEN changes", "NOTIFY changes, 'x'", "UNLISTEN *")),
            (0.5, lambda: f"CREATE EXTENSION {self.of('', 'IF NOT EXISTS ')}plpgsql"),
            (0.5, lambda: f"SET CONSTRAINTS {self.of('ALL', self.own('t') + '_pkey')} {self.of('DEFERRED', 'IMMEDIATE')}"),
        )

    def watches(self) -> str:
        objective, alert = self.own("o"), self.own("a")
        url = "NOTIFY WEBHOOK 'http://127.0.0.1:9/'"
        return self.some(
            (3, lambda: f"CREATE OBJECTIVE {self.of('', 'IF NOT EXISTS ')}{objective} ON {self.name()} (FRESHNESS p95 '5 s')"),
            (2, lambda: f"CREATE ALERT {alert} AS {self.within(self.query)}"),
            (1, lambda: f"CREATE ALERT {alert} ON {objective} {url}"),
            (1, lambda: f"ALTER SYSTEM {self.of('RESET ALL', 'SET work_mem = 1', 'RESET watch.webhook')}"),
            (1, lambda: f"SILENCE {alert} UNTIL {self.of('now()', chr(39) + '2100-01-01' + chr(39))}"),
            (1, lambda: f"DROP {self.of('OBJECTIVE', 'ALERT')} IF EXISTS {self.of(objective, alert, self.name())}"),
            (1, lambda: self.of("SHOW OBJECTIVES", "SHOW ALERTS", "SELECT * FROM tailgate.alerts", "SELECT * FROM tailgate.objectives")),
        )

    def blocks(self) -> list[str]:
        inside = [
            self.some((3, self.reads), (2, self.inserts), (1, self.updates), (1, lambda: f"TRUNCATE {self.target()}")) for _ in range(2)
        ]
        if self.r.random() < 0.4:
            inside = [inside[0], "SAVEPOINT a", inside[1], "ROLLBACK TO a", "RELEASE a"]
        mode = self.of("", " ISOLATION LEVEL SERIALIZABLE", " READ ONLY")
        return [f"{self.of('BEGIN', 'START TRANSACTION')}{mode}", *inside, self.of("COMMIT", "ROLLBACK")]

    def maintenance(self) -> str:
        name = self.name()
        return self.of(
            f"REFRESH MATERIALIZED VIEW {self.of('', 'CONCURRENTLY ')}{name}", f"{self.of('VACUUM', 'ANALYZE')} {name}",
            f"REINDEX TABLE {name}", f"CLUSTER {name} USING i0", "CHECKPOINT", f"LOCK TABLE {name} IN EXCLUSIVE MODE",
        )  # fmt: skip

    def subscriptions(self) -> list[Step] | Step | str:
        sub = self.some((4, lambda: self.own("b")), (1, lambda: "own.sub"))
        wait = Step(f"FETCH 5 FROM SUBSCRIPTION {sub} WITH (timeout = '0.01s')", follows=True)
        kind = self.r.randrange(4)
        if kind == 0:
            return f"CREATE SUBSCRIPTION {sub} FROM {self.relation()}"
        if kind == 1:
            return f"DROP SUBSCRIPTION IF EXISTS {sub}"
        return [wait, Step(f"ACKNOWLEDGE {sub} UP TO {self.time()}"), Step(f"ACKNOWLEDGE {sub} UP TO {1000 + self.r.randrange(9)}")]

    def changes(self) -> str:
        kind = self.of("VIEW", "MATERIALIZED VIEW", "TABLE", "SOURCE", "SINK", "SECRET", "CONNECTION", "SUBSCRIPTION", "INDEX")
        name = self.name()
        function = self.of("own.f()", "own.h()", self.own("f"), self.own("g"))
        return self.some(
            (2, lambda: f"ALTER {kind} {self.of('', 'IF EXISTS ')}{name} RENAME TO {self.of('v0', 'v1', 't1', 'mine', 'salaries')}"),
            (2, lambda: f"ALTER {kind} {name} SET SCHEMA {self.of('lo', 'he', 'own', 'public')}"),
            (1, lambda: f"ALTER {kind} {name} OWNER TO {self.of('low', 'helper', 'staff', 'boss')}"),
            (2, lambda: f"DROP {kind} {self.of('', 'IF EXISTS ')}{name}{self.of('', ' CASCADE')}"),
            (1, lambda: f"DROP FUNCTION {self.of('', 'IF EXISTS ')}{function}{self.of('', ' CASCADE')}"),
            (1, lambda: f"COMMENT ON {kind} {name} IS 'x'"),
            (0.5, lambda: f"ALTER TABLE {name} {self.of('DISABLE', 'ENABLE')} TRIGGER ALL"),
            (0.5, lambda: f"COMMENT ON COLUMN {name}.n IS 'x'"),
            (0.5, lambda: f"COMMENT ON FUNCTION {self.of('own.f()', self.own('f'))} IS 'x'"),
            (0.5, lambda: f"ALTER FUNCTION {self.of('own.f()', self.own('f'))} OWNER TO {self.of('low', 'helper', 'boss')}"),
            (0.3, lambda: f"COMMENT ON EXTENSION plpgsql IS {self.of('NULL', chr(39) + 'PL/pgSQL procedural language' + chr(39))}"),
            (0.5, lambda: f"COMMENT ON SCHEMA {self.of('lo', 'own', 'public')} IS 'x'"),
            (0.5, lambda: f"ALTER SCHEMA {self.of('lo', 'he', 'own')} {self.of('RENAME TO boss', 'OWNER TO helper', 'OWNER TO boss')}"),
            (0.3, lambda: f"CREATE SCHEMA {self.of('boss', 'x')}"),
            (0.3, lambda: f"DROP SCHEMA {self.of('own', 'public')} CASCADE"),
            (0.3, lambda: f"DROP {self.of('TRIGGER', 'RULE', 'POLICY')} {self.of('', 'IF EXISTS ')}x ON {name}"),
        )  # fmt: skip

    def grants(self) -> str:
        to = self.of("low", "helper", "PUBLIC", "staff")
        what = self.of("SELECT", "ALL", "INSERT", "UPDATE, DELETE", "SELECT (name), UPDATE (n)", "ALL (name)")
        gives = self.of(("GRANT", "TO"), ("REVOKE", "FROM")) if self.r.random() < 0.5 else ("GRANT", "TO")
        return self.some(
            (3, lambda: f"{gives[0]} {what} ON {self.own_relation()} {gives[1]} {to}"),
            (3, lambda: f"{gives[0]} {what} ON {self.name()} {gives[1]} {to}"),
            (1, lambda: f"{gives[0]} SELECT ON ALL TABLES IN SCHEMA {self.of('own', 'lo', 'public')} {gives[1]} {to}"),
            (1, lambda: f"{gives[0]} {self.of('USAGE', 'CREATE')} ON SCHEMA {self.of('lo', 'he', 'own', 'public')} {gives[1]} {to}"),
            (1, lambda: f"{gives[0]} USAGE ON SECRET {self.name()} {gives[1]} {to}"),
            (1, lambda: f"{gives[0]} EXECUTE ON ENDPOINT {self.of(self.own('e'), 'own.salary')} {gives[1]} {to}"),
            (1, lambda: f"{gives[0]} USAGE ON {self.of('CONNECTION', 'TYPE')} {self.name()} {gives[1]} {to}"),
            (1, lambda: f"{gives[0]} {self.of('boss', 'staff', 'tailgate', 'low')} {gives[1]} {self.of('low', 'helper')}"),
            (1, lambda: f"{gives[0]} {self.of('CREATE', 'CONNECT', 'TEMP', 'ALL')} ON DATABASE shop {gives[1]} {to}"),
            (0.5, lambda: f"CREATE ROLE {self.of('x', 'y')} {self.of('SUPERUSER LOGIN', 'CREATEROLE', 'IN ROLE boss', 'ADMIN low')}"),
            (0.5, lambda: f"ALTER ROLE {self.of('low', 'boss', 'helper')} {self.of('SUPERUSER', 'NOLOGIN', 'CREATEROLE', 'RENAME TO x')}"),
            (0.5, lambda: f"ALTER {self.of('ROLE low', 'ROLE boss', 'DATABASE shop')} SET {self.of('role TO boss', 'search_path TO he')}"),
            (0.5, lambda: f"ALTER DEFAULT PRIVILEGES {self.of('', 'FOR ROLE boss ')}{gives[0]} SELECT ON TABLES {gives[1]} {to}"),
            (0.3, lambda: f"DROP ROLE {self.of('boss', 'staff', 'x')}"),
            (0.3, lambda: f"DROP OWNED BY {self.of('boss', 'staff', 'tailgate')}{self.of('', ' CASCADE')}"),
            (0.3, lambda: f"REASSIGN OWNED BY {self.of('boss', 'staff', 'tailgate')} TO {self.of('low', 'helper')}"),
        )

    def sequences(self) -> str:
        name = self.some((4, lambda: self.own("q")), (1, self.name), (2, lambda: "own.q"))
        call = self.of(f"nextval('{name}')", f"currval('{name}')", f"setval('{name}', {self.r.randrange(1, 9)})", "lastval()")
        return self.some(
            (2, lambda: f"CREATE SEQUENCE IF NOT EXISTS {name}{self.of('', ' OWNED BY ' + self.own('t') + '.n', ' MAXVALUE 9 CYCLE')}"),
            (4, lambda: f"SELECT {call}"),
            (1, lambda: f"INSERT INTO {self.target()} VALUES ({call}, {self.text()}){self.returning()}"),
            (1, lambda: f"INSERT INTO {self.target()} SELECT nextval('{name}'), x.name FROM ({self.query()}) AS x"),
            (1, lambda: f"GRANT {self.of('USAGE', 'SELECT', 'ALL')} ON SEQUENCE {name} TO {self.of('low', 'helper', 'PUBLIC')}"),
            (0.5, lambda: f"ALTER SEQUENCE {name} {self.of('RENAME TO q', 'RENAME TO salaries', 'OWNER TO staff')}"),
            (0.5, lambda: f"ALTER SEQUENCE {name} {self.of('RESTART', 'INCREMENT 2', 'OWNED BY ' + self.target() + '.n')}"),
            (0.5, lambda: f"DROP SEQUENCE {name}{self.of('', ' CASCADE')}"),
        )

    def truncates(self) -> str:
        return f"TRUNCATE {self.target()}"

    def several(self) -> str:
        """Generates several statements in one message."""
        return "; ".join(self.r.choice((self.reads, self.inserts, self.temporary, self.shows))() for _ in range(2))

    def presto(self) -> Step:
        return Step(
            "presto:"
            + self.some((5, self.query), (1, self.shows), (1, self.inserts), (1, self.view), (1, lambda: f"TAIL {self.relation()}"))
        )


# The kinds of statements, with their weights.
WEIGHTS: dict[Callable[[Grammar], object], float] = {
    Grammar.reads: 14, Grammar.parameters: 4, Grammar.looks_up: 3, Grammar.follows: 1, Grammar.cursor: 2, Grammar.prepared: 3,
    Grammar.copies: 3, Grammar.copies_in: 1, Grammar.inserts: 6, Grammar.updates: 4, Grammar.truncates: 0.3, Grammar.shows: 3,
    Grammar.explains: 3, Grammar.catalog: 4, Grammar.settings: 3, Grammar.blocks: 2, Grammar.temporary: 4, Grammar.hidden: 1,
    Grammar.view: 5, Grammar.maintenance: 1, Grammar.materialized: 3, Grammar.function: 6, Grammar.table: 2, Grammar.kafka: 4,
    Grammar.ksqldb: 2, Grammar.subscriptions: 2, Grammar.indexes: 0.7, Grammar.changes: 4, Grammar.grants: 5, Grammar.watches: 1,
    Grammar.several: 2, Grammar.sequences: 2, Grammar.presto: 1.5, Grammar.code: 1,
}  # fmt: skip
