"""Tests catalog queries in the forms that real clients send, against PostgreSQL 15.

The forms were found by tests/clients; these tests run without the clients.
"""

from __future__ import annotations

import psycopg
import pytest

from tests.wire.answers import answer
from tests.wire.live import Live

# Grafana's: a function in FROM whose alias is also its column name.
PATH = "SELECT trim(s[i]) FROM generate_series(1, 2) AS i, string_to_array(current_setting('search_path'), ',') s"
FORMS = (
    "SELECT current_setting('server_version_num')::int / 10000 AS version",
    PATH,
    f"SELECT nspname FROM pg_namespace WHERE quote_ident(nspname) IN ({PATH})",
    "SELECT user = current_role, nspname AS select, oid AS table FROM pg_namespace WHERE nspname = 'pg_catalog'",
    (
        "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey) AS k JOIN pg_attribute a ON a.attnum = k AND a.attrelid = i.indrelid"
        " WHERE i.indexrelid = 'pg_class_relname_nsp_index'::regclass ORDER BY 1"
    ),
    'SELECT \'"pg_catalog" . "pg_class"\'::regclass::oid',
    "SELECT tt.tableoid FROM (SELECT tableoid FROM pg_class WHERE oid = 1259) tt",
    (
        "SELECT array_to_string(ARRAY(SELECT option_name || option_value FROM pg_catalog.pg_options_to_table(reloptions)), ',')"
        " FROM pg_class WHERE oid = 1259"
    ),
    "SELECT pg_get_indexdef('pg_class_relname_nsp_index'::regclass), pg_get_indexdef('pg_class_oid_index'::regclass, 1, true)",
    "SELECT pg_get_constraintdef(oid, true) FROM pg_constraint WHERE conname = 'pg_class_relname_nsp_index'",
    (
        "SELECT oid, pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), pg_get_function_result(oid) FROM pg_proc"
        " WHERE proname IN ('abs', 'substring', 'pg_get_keywords', 'jsonb_each', 'generate_series', 'concat', 'pg_stat_file') ORDER BY oid"
    ),
    "SELECT pg_encoding_to_char(8), pg_encoding_to_char(35), pg_char_to_encoding('LATIN1'), pg_encoding_to_char(99)",
    "SELECT 'abs(integer)'::regprocedure::oid, 'abs(bigint)'::regprocedure::oid::regprocedure::text",
    "SELECT has_table_privilege(1, 'select'), has_column_privilege(9999, 99::int2, 'select'), has_table_privilege(1259, 'select')",
    "SELECT pg_get_viewdef(1::oid, 0), pg_get_viewdef(1, true)",
    "SELECT substring(array_to_string(ARRAY['x=1', 'y=20'], ','), 'y=([0-9]*)')::int, oid FROM pg_class WHERE oid = 1259",
    "SELECT substring('a=5' FROM 'c='), pg_catalog.regexp_replace(relname, '^pg_(.*)', E'\\\\1x') FROM pg_class WHERE oid = 1259",
    "SELECT n.xmax, n.*, n.oid FROM pg_namespace n WHERE n.xmin IS NOT NULL AND nspname = 'pg_catalog'",
    "SELECT x.xmin, n.xmax FROM (SELECT 5 AS xmin) AS x, (SELECT oid, xmax FROM pg_namespace) AS n WHERE n.oid = 11",
    "SELECT pg_catalog.oidvectortypes(proargtypes) FROM pg_proc WHERE proname = 'date_part' ORDER BY 1",
    "SELECT count(*) FROM pg_class WHERE bpchar(relkind) = 'r'::bpchar AND int4(relnatts) > 1 AND oid = 1259",
    "SELECT pg_catalog.pg_encoding_to_char(i) FROM (SELECT pg_catalog.generate_series(5, 7, 1) AS i) s",
    "SELECT ARRAY(SELECT generate_series(1, 3)) AS a, oid FROM pg_class WHERE oid = 1259",
    "SELECT e.name, e.comment FROM pg_catalog.pg_available_extensions() e WHERE name = 'plpgsql'",
    "SELECT st.setting FROM pg_catalog.pg_show_all_settings() st WHERE st.name = 'default_table_access_method'",
    "SELECT user, current_role, current_catalog, oid FROM pg_class WHERE oid = 1",
    "SELECT current_schema::regnamespace, oid::regprocedure, current_schema()::regnamespace::text AS t FROM pg_proc WHERE oid = 1397",
    (
        "SELECT coalesce(description, '{}') AS d, coalesce(relacl, '{}') AS a FROM pg_class c LEFT JOIN pg_description d ON d.objoid = 0"
        " WHERE c.oid = 1259"
    ),
    # those of object-relational mappers, data browsers and GraphQL and REST servers
    "SELECT relname FROM pg_class WHERE relname ~ ANY (ARRAY['^pg_class$', '^pg_type$']) ORDER BY 1",
    "SELECT indkey[:indnkeyatts-1] AS keys, indkey[indnkeyatts:] AS others, indkey[1:1] FROM pg_index WHERE indexrelid = 2663",
    "SELECT * FROM current_schema()",
    "SELECT lock.pid, lock.relation::regclass::varchar FROM pg_catalog.pg_locks lock LEFT JOIN pg_database db ON false WHERE lock.pid = 0",
    "SELECT * FROM (SELECT pg_get_userbyid(0), nspname Name FROM pg_namespace) q WHERE name = 'pg_catalog'",
    "SELECT EXISTS (SELECT FROM pg_class WHERE oid = 1259), NOT EXISTS (SELECT 1 FROM pg_class WHERE oid = 1)",
    "SELECT EXISTS (SELECT FROM pg_attrdef)",
    "SELECT oid::regclass || '_x' AS a, 'x' || 23::regtype AS b FROM pg_class WHERE oid = 1259",
    (
        "SELECT am.amname, pg_indexam_has_property(am.oid, 'can_order') AS o, pg_indexam_has_property(am.oid, 'no') AS n, c"
        " FROM pg_am am CROSS JOIN pg_catalog.pg_indexam_has_property(am.oid, 'can_unique') c WHERE am.oid IN (2, 403) ORDER BY 1"
    ),
    (
        "SELECT ic.n, ic.x, (i.indoption[ic.n - 1] & 1) AS down FROM pg_index i"
        " JOIN information_schema._pg_expandarray(i.indkey) ic ON true WHERE i.indexrelid = 2663 ORDER BY 1"
    ),
    (
        "SELECT k.i, coalesce(a.attname, pg_get_indexdef(i.indexrelid, k.i, false)) AS c FROM pg_index i"
        " CROSS JOIN LATERAL (SELECT unnest(i.indkey), generate_subscripts(i.indkey, 1) + 1) AS k(attnum, i)"
        " LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE i.indexrelid = 2663 ORDER BY 1"
    ),
    (
        'SELECT h.schema, h.name FROM jsonb_to_recordset(\'[{"schema": "a", "name": "b"}]\'::jsonb) AS h(schema text, name text), pg_am'
        " WHERE oid = 2"
    ),
    "SELECT relname FROM pg_class WHERE relnamespace = ANY (ARRAY['pg_catalog', 'pg_toast']::text[]::regnamespace[]) AND oid = 1259",
    "SELECT array_agg(row(oid, relname, NULL, relkind = 'r') ORDER BY oid) AS rows FROM pg_class WHERE oid IN (1247, 1259)",
    "SELECT array_agg(row(relname, ARRAY['a', 'b c'], ARRAY[relnatts])) AS rows FROM pg_class WHERE oid = 1259",
    "SELECT array_agg(row(oid, relname)) AS rows FROM pg_class WHERE oid = 1",
    "SELECT coalesce((SELECT array_agg(enumlabel) FROM pg_enum WHERE enumtypid = 0), '{}') AS labels FROM pg_class WHERE oid = 1259",
    "SELECT regexp_split_to_array('a=b', '='), translate(relname, 'p', 'q'), trunc(1.5), chr(65) FROM pg_class WHERE oid = 1259",
    "SELECT age(xmin) > 0 AS a, age('3'::varchar::xid) > 0 AS b FROM pg_class WHERE oid = 1259",
    (
        "SELECT a.attname, information_schema._pg_char_max_length(information_schema._pg_truetypid(a.*, t.*),"
        " information_schema._pg_truetypmod(a.*, t.*))::integer AS length FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
        " WHERE attrelid = 1259 AND attnum = 1"
    ),
    ("SELECT c.relname, s FROM pg_class c LEFT JOIN LATERAL unnest(c.reloptions) s ON s LIKE 'fill%' WHERE c.oid = 1259"),
    (
        "SELECT (e->>'n')::int AS n, e->'l'->0 AS l, json_array_elements(e->'l')::text AS x"
        ' FROM (SELECT \'{"n": 5, "l": [7]}\'::json AS e, oid FROM pg_class WHERE oid = 1259) q'
    ),
    (
        "WITH RECURSIVE r AS (SELECT oid, typname, typelem FROM pg_type WHERE oid = 1007 UNION ALL"
        " SELECT t.oid, t.typname, t.typelem FROM r JOIN pg_type t ON t.oid = r.typelem) SELECT oid, typname FROM r ORDER BY 1"
    ),
    (
        "WITH RECURSIVE r(oid, n, path) AS (SELECT oid, 1, ARRAY[oid] FROM pg_class WHERE oid = 1259 UNION ALL"
        " SELECT c.oid, n + 1, path || c.oid FROM r JOIN pg_class c ON c.oid = 1247 WHERE NOT c.oid = ANY (path)) SELECT n, path FROM r"
    ),
    "SELECT CASE WHEN oid = 1 THEN 'x' || relname ELSE relname END AS c FROM pg_class WHERE oid = 1259",
    "SELECT st.relname, st.heap_blks_read >= 0 FROM pg_statio_all_tables st WHERE relid = 1259",
    (
        "SELECT array_length(ARRAY[1, 2], 1), cardinality(ARRAY['a']), strpos('ab', 'b'), position('b' in 'ab'), substr('abc', 2),"
        " pg_catalog.array_upper(ARRAY[1], 1), char_length('x'), date_trunc('day', now()) < now(), array_to_string(ARRAY['a'], ',')"
        " FROM pg_class WHERE oid = 1259"
    ),
    "SELECT bool_and(relisshared), bool_or(relisshared), every(relhasindex), max(relname), count(*) FROM pg_class WHERE oid = 1259",
    "SELECT * FROM (SELECT bool_or(relhasindex), array_length(array_agg(oid), 1) FROM pg_class WHERE oid = 1259) q WHERE bool_or",
    "SELECT relname, indexrelname, idx_scan >= 0 FROM pg_stat_all_indexes WHERE indexrelid = 2663",
    # jOOQ's
    (
        "SELECT array_append(ARRAY['a'], relname) AS a, nullif(9223372036854775807::decimal, power(2::decimal, 63) - 1) AS n FROM pg_class"
        " WHERE oid = 1259"
    ),
    # pgAdmin's
    (
        "SELECT pg_catalog.to_char(t, 'YYYY-MM-DD HH24:MI:SS TZ') AS a, to_char(t, 'FMDay, DD Mon HH12 am') AS b, to_char(t, 'MS') AS c"
        " FROM (SELECT '2026-01-02 03:04:05.678+00'::timestamptz AS t FROM pg_class WHERE oid = 1259) AS q"
    ),
    "SELECT CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END AS p FROM pg_user WHERE usename = current_user",
    "SELECT pg_is_wal_replay_paused()",
    "SELECT (pg_catalog.string_to_array(encode(tgargs, 'escape'), E'\\\\000')::text[])[1:tgnargs] AS args FROM pg_trigger WHERE oid = 1",
    (
        "SELECT c.relname, a.attname, a.attnum FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum IN (1, 2)"
        " AND c.relname = (SELECT relname FROM pg_class WHERE oid = 1259) AND a.attname NOT IN (SELECT n.nspname FROM pg_namespace n"
        " WHERE n.oid = a.attrelid) WHERE c.oid IN (1259, 1247) ORDER BY 1, 3"
    ),
)
# Forms that DuckDB does not plan after the rewrite.
UNSUPPORTED = (
    "SELECT FROM pg_database",
    "SELECT enumlabel FROM pg_enum ORDER BY enumlabel::planets",
)


@pytest.mark.parametrize("query", FORMS)
def test_as_postgresql_answers(live: Live, postgres: str, query: str) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as ours, psycopg.connect(postgres, autocommit=True) as theirs:
        assert answer(ours, query) == answer(theirs, query)


def test_settings_from_a_function_include_those_that_postgresql_lacks(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        query = b"SELECT count(*) FROM pg_show_all_settings() WHERE name = 'real_time_recency'"
        assert connection.execute(query).fetchone() == (1,)


@pytest.mark.parametrize("query", UNSUPPORTED)
def test_a_form_that_is_not_supported_is_refused(live: Live, query: str) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as ours, pytest.raises(psycopg.errors.FeatureNotSupported, match="system catalog"):
        ours.execute(query.encode())


def test_any_of_a_parameter(live: Live, postgres: str) -> None:
    query = b"SELECT relname FROM pg_class WHERE relname = ANY(%s) AND relkind = ANY(%s) ORDER BY 1"
    for dsn in (live.dsn, postgres):
        with psycopg.connect(dsn) as connection:
            rows = connection.execute(query, (["pg_class", "pg_tables", "none"], ["r", "v"])).fetchall()
            assert rows == [("pg_class",), ("pg_tables",)]


def test_the_current_user_is_a_role(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        query = b"SELECT quote_ident(current_user)::regrole::oid, has_table_privilege(current_user, 'v', 'SELECT') FROM pg_am WHERE oid = 2"
        assert connection.execute(query).fetchall() == [(10, True)]
        words = b"SELECT current_user::regrole::oid, session_user::regrole::oid, current_role::regrole::oid, user::regrole::oid"
        assert connection.execute(words).fetchall() == [(10, 10, 10, 10)]
        names = b"SELECT relowner::regrole, quote_ident(current_user), 0::regrole FROM pg_class WHERE oid = 1259"
        owner, user, nobody = connection.execute(names).fetchone() or ()
        assert (owner, nobody) == (user, "-")
        with pytest.raises(psycopg.errors.UndefinedObject):
            connection.execute("SELECT 'nobody'::regrole::oid FROM pg_class")
