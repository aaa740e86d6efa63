"""Statements on tables have PostgreSQL's answers: the same scripts on both servers.

They run in the simple and in the extended protocol, and in one of both at random.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.lake.catalog import FIRST_ID
from tests.tables.world import World

SCRIPTS = (
    "advisory_locks",
    "statements",
    "functions",
    "indexes",
    "storage",
    "computed",
    "public_schema",
    "constraints",
    "new_tables",
    "alter_table",
    "sequences",
    "alter_sequence",
    "identity",
    "generated",
    "added_identity",
    "unique",
    "expression_indexes",
    "updatable_views",
    "foreign_keys",
    "deferrable",
    "columns",
    "column_types",
    "like",
    "introspection",
    "blocks",
    "several_statements",
    "maintenance",
    "temporary",
    "merge",
    "modifying_with",
    "current_of",
    "privileges",
    "role_settings",
    "drop_absent",
    "array_parts",
    "multidimensional_arrays",
    "numerics",
    "unconstrained",
    "wide_numerics",
    "enums",
    "composites",
    "domains",
    "networks",
    "ranges",
    "multiranges",
    "bit_strings",
    "zoned_times",
    "single_bytes",
    "jsonpath",
    "money",
    "intervals",
    "record_functions",
    "collected",
    "recursion",
    "function_calls",
    "session_values",
    "limits",
    "do",
    "do_variables",
    "plpgsql_functions",
)

# intended differences: statement → the part of the answer that differs
DIFFERENT: dict[str, str] = {
    **dict.fromkeys(  # the name of the user
        (
            "INSERT INTO checked VALUES (1, current_user, 'home')",
            "EXECUTE into_checked (4, 'away')",
            "UPDATE checked SET place = 'away' WHERE id = 1",
            "INSERT INTO checked VALUES (7, current_user, 'home')",
        ),
        "detail",
    ),
    **dict.fromkeys(("SELECT pg_catalog.nullif()", "SELECT pg_catalog.array()"), "message"),  # without the schema
    "INSERT INTO t (id) VALUES (2147483647 + 1)": "message",
    "INSERT INTO kinds (i4) VALUES (2147483647 + 1)": "message",
    "CREATE TABLE bad (a int CHECK (generate_series(1, a) > 1))": "hint",
    **dict.fromkeys(
        (
            """SELECT jsonb_path_query('"2024-02-30"', '$.datetime()')""",
            """SELECT jsonb_path_query('"10:00:00+16"', '$.datetime()')""",
            """SELECT jsonb_path_query('["2024-01-01 00:00:00+00"]', '$[*].datetime() ? (@ <= "2024-01-01".datetime())')""",
        ),
        "hint",
    ),
    "SELECT (1000 / 3.0)::numeric(4, 2)": "detail",
    "UPDATE n SET c = a WHERE id = 3": "detail",
    "SELECT x::numeric(60, 58) AS x FROM (VALUES (1.25), (200)) AS v(x)": "detail",
    "ALTER TABLE copied ALTER COLUMN c TYPE numeric(20, 1)": "detail",
    "ALTER TABLE n ALTER COLUMN a TYPE numeric(10, 1)": "detail",
    "EXECUTE by_mood ('glad')": "position",
    "EXECUTE by_name ('nowhere.named')": "position",
    "ALTER ROLE ALL RESET app.tenant": "message",
    **dict.fromkeys(
        (
            "EXECUTE by_complex ('(1)')",
            "CREATE TYPE bad AS (a complex(3))",
            "SELECT (ROW(1, 2)::complex).x",
            "INSERT INTO quadtable VALUES (6, ROW(1, 2))",
            "INSERT INTO quadtable VALUES (6, ROW(1, 2)::complex)",
            "SELECT f1 FROM quadtable WHERE (q).c1 = ROW(1, 2)",
            "SELECT f1 FROM quadtable WHERE (q).c1 < q",
        ),
        "position",
    ),
    "UPDATE kinds SET m.z = 12345.6 WHERE id = 4": "detail",
    "DROP TYPE mood RESTRICT": "detail",
    "SELECT 1e5::money_amount": "detail",
    **dict.fromkeys(
        (
            "SELECT 'home'::own_name",
            "SELECT 0::positive",
            "SELECT '-3'::positive",
            "SELECT positive(-1)",
            "SELECT 'xx'::short",
            "SELECT 'a'::short",
            "SELECT NULL::short",
            "SELECT 5::even",
            "SELECT (-2)::even",
            "SELECT 12::tiny",
            "SELECT (-4)::tiny",
            "SELECT '{1,2,3,4}'::few",
            "SELECT 'sad'::good_mood",
            "SELECT x::positive AS p FROM generate_series(-1, 3) AS g (x)",
            "SELECT 50::positive",
            "SELECT NULL::needed",
        ),
        "about",  # errors of expressions have no names of objects
    ),
    **{
        f"""select * from jsonb_path_query('{{"a": 10}}', '$ ? (@.a < $value)', '{variables}')""": "detail"
        for variables in ("1", '[{"value" : 13}]')
    },
    **dict.fromkeys(
        (
            "EXECUTE q ('[1, 2]', '$[')",
            "EXECUTE q ('1 5')",
            "EXECUTE p ('x')",
            "EXECUTE p ('x', '01:02:03.45Z')",
            "EXECUTE p ('[1,5', 3)",
            "EXECUTE pm ('{[1,5', 3)",
        ),
        "position",
    ),
    "UPDATE t SET a[:2] = '{1,2}' WHERE id = 3": "detail",
    **dict.fromkeys(
        (
            "SELECT ARRAY[[1, 2]] || ARRAY[3]",
            "SELECT ARRAY[[1, 2]] || ARRAY[[3]]",
            "SELECT ARRAY[1] || ARRAY[[[3]]]",
            "SELECT array_fill(1, ARRAY[2], ARRAY[1, 2])",
            "SELECT x::int[] FROM (VALUES ('{{1,2},{3}}')) v (x)",
        ),
        "detail",
    ),
    "SELECT trim_array(ARRAY[[1, 2]], 2)": "message",
    "DO $$ DECLARE p numeric(5,2); BEGIN p := 1000; END $$": "detail",
    **dict.fromkeys(
        (
            "DO $$ DECLARE x none_such; BEGIN NULL; END $$",
            "DO $$ DECLARE a t.missing%TYPE; BEGIN NULL; END $$",
            "DO $$ DECLARE a missing.id%TYPE; BEGIN NULL; END $$",
        ),
        "position",
    ),
    "DO $$ DECLARE p positive := 1; m mood := 'ok'; BEGIN INSERT INTO out (a) VALUES (p), (m); p := -1; END $$": "about",
    # the names of the domain and its constraint, as in casts
    """SELECT m FROM json_to_record('{"m": "nobody"}') AS x (m mail)""": "about",
    "SELECT n FROM json_to_record('{}') AS x (n some_number)": "about",
    "SELECT jsonb_build_object(VARIADIC ARRAY['a', 'b', 'c'])": "hint",
    **dict.fromkeys(
        (
            "UPDATE j SET d['c']['d'] = '1' WHERE id = 4",
            "UPDATE j SET d['c'] = '1' WHERE id = 6",
            "UPDATE j SET d[0] = '1' WHERE id = 7",
            "UPDATE j SET d['a'] = 'x' WHERE id = 4",
        ),
        "detail",
    ),
    "CREATE INDEX ON changing_view (id)": "hint",
    "INSERT INTO t (id, n[1]) VALUES (15, 1)": "position",
    "UPDATE t SET d[2] = 12345.1 WHERE id = 1": "detail",
    "CREATE VIEW v AS WITH a AS (DELETE FROM bag RETURNING a) SELECT * FROM a": "message position",
    **dict.fromkeys(("SELECT '[1'::text::int4range", "SELECT '{[1'::text::int4multirange", "SELECT 'x'::text::tsrange"), "detail"),
    "SELECT int4range(1, 5, '[') AS a": "hint",
    "SELECT mac FROM hosts UNION SELECT mac8 FROM hosts ORDER BY mac": "hint",
    "SELECT '08:00:2b:01:02:03:04:05'::macaddr8::macaddr": "hint",
    'SELECT * FROM jsonb_to_record(\'{"a":{"k":1}}\') AS x (a int[])': "hint",
    "SELECT * FROM jsonb_to_record('{\"a\":1}') AS x (a int[])": "hint",
    "INSERT INTO t VALUES (1, 'x') ON CONFLICT (nope) DO NOTHING": "hint",
    "SELECT * FROM nope.f": "position",
    "SELECT * FROM f": "rows",  # log_cnt
    "SELECT last_value FROM f FOR UPDATE": "position",
}


def statements(script: str) -> list[str]:
    lines = [line for line in Path(__file__).with_name(f"{script}.sql").read_text().splitlines() if line and not line.startswith("--")]
    return [line.removesuffix(";") for line in lines]


def answer(connection: psycopg.Connection[Any], sql: str, *, prepare: bool) -> dict[str, Any]:
    try:
        cursor = connection.execute(sql, prepare=prepare)
    except psycopg.Error as error:
        diag = error.diag
        schema = (diag.schema_name or "").startswith("pg_temp") or diag.schema_name
        about = (schema, diag.table_name, diag.column_name, diag.constraint_name)
        return {
            "sqlstate": error.sqlstate,
            "message": diag.message_primary,
            "detail": diag.message_detail,
            "hint": diag.message_hint,
            "position": diag.statement_position,
            "about": about,
        }
    out: dict[str, Any] = {"tag": cursor.statusmessage}
    while cursor.nextset():
        out["tag"] += "; " + str(cursor.statusmessage)
    if cursor.description is not None:
        rows = cursor.fetchall()
        out["columns"] = [(c.name, c.type_code if c.type_code < FIRST_ID else "user-defined") for c in cursor.description]
        out["rows"] = rows if "ORDER BY" in sql else sorted(rows, key=repr)
    return out


@pytest.mark.usefixtures("seed")
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(
    "extended",
    [
        pytest.param(0.5, id="either"),
        pytest.param(0.0, id="simple", marks=pytest.mark.long),
        pytest.param(1.0, id="extended", marks=pytest.mark.long),
    ],
)
def test_as_postgresql(world: World, postgres: str, script: str, extended: float) -> None:
    """`extended`: the share of the statements in the extended protocol."""
    differences = []
    with psycopg.connect(postgres, autocommit=True) as theirs, psycopg.connect(world.dsn, autocommit=True) as ours:
        theirs.execute("SET timezone = 'UTC'")
        theirs.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        for sql in statements(script):
            prepare = random.random() < extended
            if prepare and ";" in sql:
                if extended == 1:
                    continue
                prepare = False
            expected, got = answer(theirs, sql, prepare=prepare), answer(ours, sql, prepare=prepare)
            if expected != got:
                keys = [k for k in {**expected, **got} if expected.get(k) != got.get(k)]
                if DIFFERENT.get(sql) == " ".join(keys):
                    continue
                lines = [f"  {k}:\n    PostgreSQL {expected.get(k)!r}\n    Tailgate   {got.get(k)!r}" for k in keys]
                differences.append("\n".join([f"{sql}  ({'extended' if prepare else 'simple'} protocol)", *lines]))
    assert not differences, "\n" + "\n".join(differences)
