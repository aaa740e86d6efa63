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
)
# Forms that DuckDB does not plan after the rewrite.
UNSUPPORTED = (
    "SELECT FROM pg_database",
    "SELECT relname FROM pg_class WHERE relname ~ ANY (ARRAY['pg', 'x'])",
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
