"""The DuckDB instance of the system catalog: tables and views of the schemas pg, information and tailgate.

    postgres15.zip  PostgreSQL's fixed rows (pg_type, …) ──┐
    rows            rows of Tailgate's items             ──┴─► tables pg.*; items' rows are replaced when the catalog changes
    item_status     the engine's status of items         ────► tables tailgate.*, filled for each query that reads them
    relations.json  columns of all relations             ──► empty tables for all other relations
    views.sql       pg_tables, information_schema.* …    ──► views

It is separate from the instance of users' data and equally sandboxed. Columns have private types:
oid, regproc and regtype are UINTEGER, which no other type uses; vectors are lists.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib import resources

import duckdb
import pyarrow as pa

from tailgate.gateway.catalog.relations.access_lists import access_list, relation_grants
from tailgate.gateway.catalog.relations.dependencies import pg_depend
from tailgate.gateway.catalog.relations.rows import Row, all_rows, roles
from tailgate.lake.catalog import FIRST_ID, Catalog
from tailgate.lake.catalog.roles import SCHEMA_ID
from tailgate.lake.catalog.schemas import DATABASE, TAILGATE
from tailgate.lake.system_relations import COLUMNS
from tailgate.sql.grammar.extensions import EXTENSIONS

HERE = resources.files("tailgate.gateway.catalog.relations")

DUCKDB = {
    "bool": "BOOLEAN", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "float4": "FLOAT", "float8": "DOUBLE", "oid": "UINTEGER",
    "regproc": "UINTEGER", "regtype": "UINTEGER", "xid": "UINTEGER", "oidvector": "UINTEGER[]", "_oid": "UINTEGER[]",
    "int2vector": "SMALLINT[]", "_int2": "SMALLINT[]", "_text": "VARCHAR[]", "_char": "VARCHAR[]", "_name": "VARCHAR[]",
    "_aclitem": "VARCHAR[]", "_float4": "FLOAT[]", "_float8": "DOUBLE[]", "_bool": "BOOLEAN[]", "_varchar": "VARCHAR[]",
    "timestamptz": "TIMESTAMPTZ", "interval": "INTERVAL", "bytea": "BLOB", "numeric": "DECIMAL(38,0)",
}  # fmt: skip


SCHEMAS = {"pg_catalog": "pg", "information_schema": "information", TAILGATE: TAILGATE}  # PostgreSQL's name → DuckDB's


SETTINGS = "pg.tailgate_settings"  # rows of pg_settings that PostgreSQL lacks
# relations whose rows are computed for each query that reads them, with the tables for these rows
COMPUTED = {
    "pg_settings": SETTINGS,
    **{name: f"pg.{name}" for name in ("pg_stat_activity", "pg_prepared_statements", "pg_cursors", "pg_locks", "pg_timezone_names")},
}

# Columns whose value tells items' rows (oid >= FIRST_ID) from PostgreSQL's; by default the first.
OIDS = {"pg_depend": ["objid"], "pg_auth_members": ["roleid", "member"]}


# Returns an array as text, like PostgreSQL's array_out.
ARRAY_OUT = r"""
CREATE MACRO pg_array_out(list) AS CASE WHEN list IS NOT NULL THEN '{' || coalesce(array_to_string(list_transform(
    CAST(list AS VARCHAR[]),
    lambda e: CASE WHEN e IS NULL THEN 'NULL'
        WHEN e = '' OR upper(e) = 'NULL' OR regexp_matches(e, '[{}",\\\s]') THEN '"' || regexp_replace(e, '(["\\])', '\\\1', 'g') || '"'
        ELSE e END
), ','), '') || '}' END
"""


@cache
def relations() -> dict[str, dict[str, str]]:
    """Returns the columns of all catalog relations: `schema.name` → column → type."""
    loaded: dict[str, dict[str, str]] = json.loads((HERE / "relations.json").read_text())
    return loaded | {f"{TAILGATE}.{name}": {field.name: field.type.name for field in fields} for name, fields in COLUMNS.items()}


@cache
def array_columns() -> frozenset[str]:
    """Returns the names that columns of arrays have, and no other columns.

    >>> "relacl" in array_columns(), "relname" in array_columns(), "indkey" in array_columns()
    (True, False, False)
    """
    columns = [column for columns in relations().values() for column in columns.items()]
    return frozenset(name for name, type in columns if type.startswith("_")) - {name for name, type in columns if not type.startswith("_")}


def duckdb_type(type: str) -> str:
    """Returns the DuckDB type of a column; types without one are text.

    >>> duckdb_type("_oid"), duckdb_type("_regtype"), duckdb_type("pg_node_tree")
    ('UINTEGER[]', 'VARCHAR[]', 'VARCHAR')
    """
    return DUCKDB.get(type, "VARCHAR[]" if type.startswith("_") else "VARCHAR")


def table_name(relation: str) -> str:
    """Returns the DuckDB name of a catalog relation.

    >>> table_name("pg_catalog.pg_class"), table_name("information_schema.tables")
    ('pg.pg_class', 'information.tables')
    """
    schema, _, name = relation.partition(".")
    return f"{SCHEMAS[schema]}.{name}"


def build(connection: duckdb.DuckDBPyConnection) -> None:
    """Creates all relations, with PostgreSQL's fixed rows."""
    connection.execute("; ".join(f"CREATE SCHEMA {schema}" for schema in SCHEMAS.values()))
    connection.execute(ARRAY_OUT)
    macros, views = definitions()
    connection.execute(macros)
    connection.execute(
        "CREATE TABLE pg.made_roles (oid UINTEGER, rolname VARCHAR, rolsuper BOOLEAN, rolcanlogin BOOLEAN, rolcreaterole BOOLEAN,"
        " rolcreatedb BOOLEAN, rolreplication BOOLEAN, rolbypassrls BOOLEAN, rolconnlimit INTEGER, valid_until BIGINT, rolpassword VARCHAR,"
        " rolconfig VARCHAR[], otherconfig VARCHAR[], comment VARCHAR); "
        "CREATE TABLE pg.made_grants"
        " (relation UINTEGER, attnum SMALLINT, grantor UINTEGER, grantee UINTEGER, privilege VARCHAR, grantable BOOLEAN); "
        "CREATE TABLE pg.made_database (datacl VARCHAR[]); "
        "CREATE TABLE pg.made_extensions (name VARCHAR, version VARCHAR, comment VARCHAR)"
    )
    tables = {table_name(relation): columns for relation, columns in relations().items() if relation not in views}
    tables[SETTINGS] = relations()["pg_catalog.pg_settings"]
    connection.execute("; ".join(f"CREATE TABLE {table} ({_columns(columns)})" for table, columns in tables.items()))
    with resources.as_file(HERE / "postgres15.zip") as path, zipfile.ZipFile(path) as file:
        for name in file.namelist():
            relation, rows = name.removesuffix(".arrow"), pa.ipc.open_stream(file.read(name)).read_all()
            if f"pg_catalog.{relation}" in views:  # a view reads these rows
                connection.register("__rows", rows)
                connection.execute(f"CREATE TABLE pg.fixed_{relation} AS SELECT * FROM __rows")
                connection.unregister("__rows")
            else:
                insert(connection, f"pg.{relation}", rows)
    extensions = [{"name": name, "version": each.version, "comment": each.comment} for name, each in EXTENSIONS.items()]
    fill(connection, "pg.made_extensions", extensions)
    for relation, text in views.items():
        names = ", ".join(f'"{column}"' for column in relations()[relation])
        connection.execute(f"CREATE VIEW {table_name(relation)} ({names}) AS {text}")


def _columns(columns: Mapping[str, str]) -> str:
    return ", ".join(f'"{name}" {duckdb_type(type)}' for name, type in columns.items())


def definitions() -> tuple[str, dict[str, str]]:
    """Returns the parts of views.sql: the statements that create macros, and the queries of views.

    A line `-- view schema.name` begins each query.
    """
    macros, *parts = (HERE / "views.sql").read_text().split("\n-- view ")
    out: dict[str, str] = {}
    for part in parts:
        name, _, text = part.partition("\n")
        out[name.strip()] = text.strip().rstrip(";")
    return macros, out


def replace(connection: duckdb.DuckDBPyConnection, catalog: Catalog) -> None:
    """Replaces the rows of items by those of the given catalog."""
    connection.begin()
    try:
        for name, rows in (*all_rows(catalog), ("pg_depend", list(pg_depend(catalog)))):
            columns = OIDS.get(name) or [next(iter(relations()[f"pg_catalog.{name}"]))]
            public = f" OR oid = {SCHEMA_ID}" if name == "pg_namespace" else ""
            connection.execute(f"DELETE FROM pg.{name} WHERE {' OR '.join(f'{column} >= {FIRST_ID}' for column in columns)}{public}")
            if rows:
                insert(connection, f"pg.{name}", _table(rows))
        connection.execute("DELETE FROM pg.made_roles; DELETE FROM pg.made_grants; DELETE FROM pg.made_database")
        fill(connection, "pg.made_roles", roles(catalog))
        fill(connection, "pg.made_grants", list(relation_grants(catalog)))
        fill(connection, "pg.made_database", [{"datacl": access_list(DATABASE, catalog)}])
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def fill(connection: duckdb.DuckDBPyConnection, name: str, rows: list[Row] | pa.Table) -> None:
    """Inserts rows into an empty relation; missing columns are NULL."""
    if isinstance(rows, pa.Table):
        insert(connection, name, rows)
    elif rows:
        insert(connection, name, _table(rows))


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    connection.register("__rows", rows)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM __rows")
    connection.unregister("__rows")


def _table(rows: list[Row]) -> pa.Table:
    """Returns the rows as a table; missing columns are NULL."""
    names = {key: None for row in rows for key in row}
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
