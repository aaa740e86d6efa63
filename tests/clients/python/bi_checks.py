"""Checks the catalog queries and data queries of Grafana and Metabase, compared with PostgreSQL's answers."""

import os
import re

import psycopg
from tap import PORT, check, done, recover

CONTROL = os.environ["CONTROL_PORT"]
OURS = re.compile("per_customer_errors|tailgate")  # relations that only Tailgate has

PATH = """SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
        array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i, string_to_array(current_setting('search_path'), ',') s"""
INTERNAL = (
    "'information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config'"
)
NAME = """'"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"'"""
GRAFANA = {
    "the version": "SELECT current_setting('server_version_num')::int / 100 AS version",
    "an extension": "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'",
    "tables": f"""SELECT CASE WHEN quote_ident(table_schema) IN ({PATH}) THEN quote_ident(table_name)
        ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
        FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ({INTERNAL})
        ORDER BY CASE WHEN quote_ident(table_schema) IN ({PATH}) THEN 0 ELSE 1 END, 1""",
    "columns": f"""SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
        WHERE CASE WHEN array_length(parse_ident('orders'), 1) = 2
        THEN quote_ident(table_schema) = (parse_ident('orders'))[1] AND quote_ident(table_name) = (parse_ident('orders'))[2]
        ELSE quote_ident(table_name) = 'orders' AND quote_ident(table_schema) IN ({PATH}) END""",
    "columns of a table with its schema": """SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
        WHERE quote_ident(table_schema) = (parse_ident('annex.notes'))[1] AND quote_ident(table_name) = (parse_ident('annex.notes'))[2]""",
    "schemas": f"SELECT quote_ident(schema_name) FROM information_schema.schemata WHERE schema_name NOT IN ({INTERNAL}) AND schema_name !~ '^pg_'",
    "a health check": "SELECT 1",
    "a time series: $__timeGroup, $__timeFilter": """SELECT floor(extract(epoch FROM placed) / 21600) * 21600 AS "time", sum(amount) AS value
        FROM orders WHERE placed BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-08T00:00:00Z' GROUP BY 1 ORDER BY 1""",
    "a time series by date_trunc": """SELECT date_trunc('day', placed) AS time, customer AS metric, avg(amount)::float8 AS value
        FROM orders WHERE placed >= '2026-01-01T00:00:00Z' AND placed <= '2026-01-08T00:00:00Z' GROUP BY 1, 2 ORDER BY 1, 2""",
    "$__unixEpochFilter": "SELECT count(*) FROM orders WHERE extract(epoch FROM placed) >= 1767225600 AND extract(epoch FROM placed) <= 1767830400",
    "a variable": "SELECT DISTINCT customer AS __text, customer AS __value FROM orders ORDER BY 1 LIMIT 5",
    "a table panel over a materialized view": "SELECT customer, orders, amount FROM per_customer ORDER BY amount DESC LIMIT 50",
}
METABASE = {
    "isolation of the session": "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    "isolation": "SHOW TRANSACTION ISOLATION LEVEL",
    "its own settings": "SET extra_float_digits = 2; SET application_name = 'Metabase v0.55.1'",
    "timezone": "show timezone",
    "schemas": """SELECT nspname AS "TABLE_SCHEM", current_database() AS "TABLE_CATALOG" FROM pg_catalog.pg_namespace
        WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_' OR nspname = (pg_catalog.current_schemas(true))[1])
        AND (nspname !~ '^pg_toast_temp_' OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_'))
        ORDER BY "TABLE_SCHEM" """,
    "privileges": f"""WITH table_privileges AS (
        SELECT NULL AS role, t.schemaname AS schema, t.objectname AS table,
        pg_catalog.has_any_column_privilege(current_user, {NAME}, 'update') AS update,
        pg_catalog.has_any_column_privilege(current_user, {NAME}, 'select') AS select,
        pg_catalog.has_any_column_privilege(current_user, {NAME}, 'insert') AS insert,
        pg_catalog.has_table_privilege(current_user, {NAME}, 'delete') AS delete
        FROM (SELECT schemaname, tablename AS objectname FROM pg_catalog.pg_tables
            UNION SELECT schemaname, viewname AS objectname FROM pg_catalog.pg_views
            UNION SELECT schemaname, matviewname AS objectname FROM pg_catalog.pg_matviews) t
        WHERE t.schemaname !~ '^pg_' AND t.schemaname <> 'information_schema' AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage'))
        SELECT t.* FROM table_privileges t""",
    "tables": """SELECT "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'p' THEN
        'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS "type",
        "d"."description" AS "description" FROM "pg_catalog"."pg_class" AS "c"
        INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid"
        LEFT JOIN "pg_catalog"."pg_description" AS "d"
        ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = '0') AND ("d"."classoid" = 'pg_class'::regclass)
        LEFT JOIN "pg_stat_user_tables" AS "stat" ON ("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname")
        WHERE ("c"."relnamespace" = "n"."oid") AND ("n"."nspname" !~ '^pg_') AND ("n"."nspname" <> 'information_schema')
        AND c.relkind in ('r', 'p', 'v', 'f', 'm') AND ("n"."nspname" IN ('public')) ORDER BY "type" ASC, "schema" ASC, "name" ASC""",
    "columns": """SELECT "c"."column_name" AS "name", "c"."udt_name" AS "database-type", "c"."ordinal_position" - 1 AS "database-position",
        "c"."table_schema" AS "table-schema", "c"."table_name" AS "table-name", "pk"."column_name" IS NOT NULL AS "pk?",
        ("c"."is_nullable" = 'NO') AND ("c"."column_default" IS NULL) AS "database-required"
        FROM "information_schema"."columns" AS "c" LEFT JOIN (
            SELECT "tc"."table_schema", "tc"."table_name", "kc"."column_name" FROM "information_schema"."table_constraints" AS "tc"
            INNER JOIN "information_schema"."key_column_usage" AS "kc" ON ("tc"."constraint_name" = "kc"."constraint_name")
            AND ("tc"."table_schema" = "kc"."table_schema") AND ("tc"."table_name" = "kc"."table_name") WHERE "tc"."constraint_type" = 'PRIMARY KEY'
        ) AS "pk" ON ("c"."table_schema" = "pk"."table_schema") AND ("c"."table_name" = "pk"."table_name")
        AND ("c"."column_name" = "pk"."column_name") WHERE "c"."table_schema" IN ('public') ORDER BY 4, 5, 3""",
    "foreign keys": """SELECT "fk_ns"."nspname", "fk_table"."relname", "fk_column"."attname" FROM "pg_constraint" AS "c"
        INNER JOIN "pg_class" AS "fk_table" ON "c"."conrelid" = "fk_table"."oid"
        INNER JOIN "pg_namespace" AS "fk_ns" ON "c"."connamespace" = "fk_ns"."oid"
        INNER JOIN "pg_attribute" AS "fk_column" ON "c"."conrelid" = "fk_column"."attrelid"
        WHERE "fk_ns"."nspname" !~ '^information_schema|catalog_|pg_' AND "c"."contype" = 'f' AND "fk_column"."attnum" = ANY("c"."conkey")""",
    "indexes": """SELECT "tmp"."table-name", trim(BOTH '"' FROM pg_catalog.pg_get_indexdef("tmp"."ci_oid", "tmp"."pos", false)) AS "field-name"
        FROM (SELECT "ct"."relname" AS "table-name", "ci"."oid" AS "ci_oid", (information_schema._pg_expandarray("i"."indkey"))."n" AS "pos"
        FROM "pg_catalog"."pg_class" AS "ct" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "ct"."relnamespace" = "n"."oid"
        INNER JOIN "pg_catalog"."pg_index" AS "i" ON "ct"."oid" = "i"."indrelid"
        INNER JOIN "pg_catalog"."pg_class" AS "ci" ON "ci"."oid" = "i"."indexrelid"
        WHERE pg_catalog.pg_get_expr("i"."indpred", "i"."indrelid") IS NULL AND "n"."nspname" = 'public' AND "ct"."relkind" = 'r') AS "tmp"
        WHERE "tmp"."pos" = 1""",
    "enumerations": """SELECT nspname, typname, enumlabel FROM pg_enum e JOIN pg_type t ON e.enumtypid = t.oid
        JOIN pg_namespace n ON t.typnamespace = n.oid""",
    "a sample of a table": """SELECT "public"."orders"."id" AS "id", SUBSTRING("public"."orders"."customer", 1, 1234) AS "substring1", "public"."orders"."amount" AS
        "amount", "public"."orders"."placed" AS "placed" FROM "public"."orders" ORDER BY 1 LIMIT 10""",
    "a fingerprint": """SELECT count(DISTINCT "source"."customer") AS "count", sum(CASE WHEN "source"."paid" THEN 1 ELSE 0.0 END)
        / CASE WHEN count(*) = 0 THEN NULL ELSE count(*) END AS "share" FROM (SELECT * FROM "public"."orders" LIMIT 10000) AS "source" """,
    "a question: by month": """SELECT DATE_TRUNC('month', "public"."orders"."placed") AS "placed", COUNT(*) AS "count",
        SUM("public"."orders"."amount") AS "sum" FROM "public"."orders" GROUP BY DATE_TRUNC('month', "public"."orders"."placed")
        ORDER BY DATE_TRUNC('month', "public"."orders"."placed") ASC""",
    "a question: by hour of the day": """SELECT CAST(extract(hour from "public"."orders"."placed") AS integer) AS "placed",
        AVG("public"."orders"."amount")::float8 AS "avg" FROM "public"."orders" WHERE "public"."orders"."placed" >= timestamp with time zone
        '2026-01-01 00:00:00.000Z' GROUP BY CAST(extract(hour from "public"."orders"."placed") AS integer) ORDER BY 1 ASC""",
    "a question: bins": """SELECT FLOOR(("public"."orders"."amount" / 250.0)) * 250.0 AS "amount", COUNT(*) AS "count" FROM "public"."orders"
        GROUP BY FLOOR(("public"."orders"."amount" / 250.0)) * 250.0 ORDER BY 1 ASC""",
    "a question: a join and a filter": """SELECT "o"."customer", "p"."amount" FROM "public"."orders" AS "o" LEFT JOIN "public"."per_customer" AS "p"
        ON "o"."customer" = "p"."customer" WHERE (LOWER("o"."customer") LIKE '%er 3') AND ("o"."id" < 20) LIMIT 1048575""",
}  # fmt: skip
# With the extended protocol, like pgjdbc and pgx.
PARAMETERS = {
    "an interval behind now": ("SELECT count(*) FROM orders WHERE placed < CAST(%s AS timestamptz) + (INTERVAL '-7 day')", ("2026-02-01",)),
    "a text and a number": ("SELECT id FROM orders WHERE customer = %s AND amount > %s ORDER BY id LIMIT %s", ("customer 5", 1000, 5)),
    "a list": ("SELECT customer, count(*) FROM orders WHERE customer IN (%s, %s) GROUP BY customer", ("customer 1", "customer 2")),
}

ours, theirs = (psycopg.connect(port=port, autocommit=True) for port in (PORT, CONTROL))
recover(lambda: None)


def answer(connection, query, values=None):
    cursor = connection.execute(query, values)
    if cursor.description is None:
        return cursor.statusmessage, []
    rows = sorted((row for row in cursor.fetchall() if not any(OURS.match(str(value)) for value in row)), key=repr)
    return [(c.name, c.type_code) for c in cursor.description], rows


for tool, queries in {"Grafana": GRAFANA, "Metabase": METABASE}.items():
    for name, query in queries.items():
        with check(f"{tool}: {name}"):
            actual, expected = answer(ours, query), answer(theirs, query)
            assert actual[0] == expected[0], f"columns {actual[0]} and not {expected[0]}"
            different = [row for row in actual[1] if row not in expected[1]], [row for row in expected[1] if row not in actual[1]]
            assert actual[1] == expected[1], f"more {different[0][:2]}, missing {different[1][:2]}"
for name, (query, values) in PARAMETERS.items():
    with check(f"with parameters: {name}"):
        actual, expected = answer(ours, query, values), answer(theirs, query, values)
        assert actual == expected, f"{actual} and not {expected}"
done()
