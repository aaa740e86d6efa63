"""The DuckDB instance of the system catalog: tables and views of the schemas pg, information and tailgate.

    fixed_rows      PostgreSQL's rows (pg_type, …)      ──┐
    rows            rows of Tailgate's items            ──┴─► tables pg.*; items' rows are replaced when the catalog changes
    item_status     the engine's status of items        ────► tables tailgate.*, filled for each query that reads them
    relations.json  columns of all relations            ──► empty tables for all other relations
    views.sql       pg_tables, information_schema.* …   ──► views

A relation is created, and its rows are replaced, when a query needs it: most queries read few of the 190 relations. The instance is
separate from the instance of users' data and equally sandboxed. Columns have private types:
oid, regproc and regtype are UINTEGER, which no other type uses; vectors are lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import resources

import duckdb
import pyarrow as pa

from tailgate.gateway.catalog.relations import fixed_rows
from tailgate.gateway.catalog.relations.access_lists import access_list, relation_grants
from tailgate.gateway.catalog.relations.dependencies import pg_depend
from tailgate.gateway.catalog.relations.rows import OURS, Row, roles
from tailgate.gateway.mirrors.incoming import registered
from tailgate.gateway.mirrors.sandbox import transaction
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

NOTHING = "pg.nothing"  # a table without rows
FIXED = "fixed_"  # begins the names of tables of fixed rows that views read

# tables without a name in PostgreSQL, which views read
INTERNAL = {
    "pg.made_roles": {
        "oid": "oid", "rolname": "name", "rolsuper": "bool", "rolcanlogin": "bool", "rolcreaterole": "bool", "rolcreatedb": "bool",
        "rolreplication": "bool", "rolbypassrls": "bool", "rolconnlimit": "int4", "valid_until": "int8", "rolpassword": "text",
        "rolconfig": "_text", "otherconfig": "_text", "comment": "text",
    },
    "pg.made_grants": {
        "relation": "oid", "attnum": "int2", "grantor": "oid", "grantee": "oid", "privilege": "text", "grantable": "bool",
    },
    "pg.made_database": {"datacl": "_aclitem"},
    "pg.made_extensions": {"name": "name", "version": "text", "comment": "text"},
}  # fmt: skip
# the functions that return the rows of a catalog's items, by table
ROWS: Mapping[str, Callable[[Catalog], Iterable[Row]]] = {
    **{f"pg.{function.__name__}": function for function in (*OURS, pg_depend)},
    "pg.made_roles": roles,
    "pg.made_grants": relation_grants,
    "pg.made_database": lambda catalog: [{"datacl": access_list(DATABASE, catalog)}],
    "pg.made_extensions": lambda _: [{"name": name, "version": e.version, "comment": e.comment} for name, e in EXTENSIONS.items()],
}
# Relations whose fixed row of `public` is replaced, too, and the column with its oid.
OF_PUBLIC = {"pg.pg_namespace": "oid", "pg.pg_description": "objoid"}
# Columns whose value tells items' rows (oid >= FIRST_ID) from PostgreSQL's; by default the first.
OIDS = {"pg.pg_depend": ["objid"], "pg.pg_auth_members": ["roleid", "member"]}


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
def scalar_columns() -> frozenset[str]:
    """Returns the names of columns of which some are not arrays."""
    return frozenset(name for columns in relations().values() for name, type in columns.items() if not type.startswith("_"))


@cache
def array_columns() -> frozenset[str]:
    """Returns the names that columns of arrays have, and no other columns.

    >>> "relacl" in array_columns(), "relname" in array_columns(), "indkey" in array_columns()
    (True, False, False)
    """
    return frozenset(name for columns in relations().values() for name in columns) - scalar_columns()


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


def _columns(columns: Mapping[str, str]) -> str:
    return ", ".join(f'"{name}" {duckdb_type(type)}' for name, type in columns.items())


@cache
def definitions() -> tuple[str, dict[str, str]]:
    """Returns the parts of views.sql: the statements that create macros, and the queries of views by their names in DuckDB.

    A line `-- view schema.name` begins each query.
    """
    macros, *parts = (HERE / "views.sql").read_text().split("\n-- view ")
    out: dict[str, str] = {}
    for part in parts:
        name, _, text = part.partition("\n")
        out[table_name(name.strip())] = text.strip().rstrip(";")
    return macros, out


@cache
def columns() -> dict[str, dict[str, str]]:
    """Returns the columns of all relations by their names in DuckDB, except the tables of fixed rows that a view reads."""
    return (
        {table_name(name): columns for name, columns in relations().items()} | INTERNAL | {SETTINGS: relations()["pg_catalog.pg_settings"]}
    )


@cache
def sources(relation: str) -> tuple[str, ...]:
    """Returns the relations that a relation reads, and itself. Each comes after those that it reads."""
    read = re.findall(rf"\b(?:{'|'.join(SCHEMAS.values())})\.\w+", definitions()[1].get(relation, ""))
    return (*dict.fromkeys(source for name in read for source in sources(name)), relation)


def needed(tables: Iterable[str]) -> dict[str, None]:
    """Returns the relations that a query of tables needs, in the order in which they are created."""
    return {source: None for table in sorted(tables) for source in sources(table)}


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Creates what all queries need."""
    connection.execute("; ".join(f"CREATE SCHEMA {schema}" for schema in SCHEMAS.values()))
    connection.execute(f"CREATE TABLE {NOTHING} (nothing BOOLEAN)")
    connection.execute(ARRAY_OUT)
    connection.execute(definitions()[0])


class Database:
    """The relations of the system catalog. Each is created, and gets the rows of items, when a query needs it. Not thread-safe."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._created: set[str] = set()
        self._items: dict[str, object] = {}  # the items of the catalog whose rows a table has

    def snapshot(self, tables: Iterable[str], catalog: Catalog) -> duckdb.DuckDBPyConnection:
        """Returns a connection in a transaction that sees these tables with the rows of a catalog."""
        relations = needed(tables)
        missing = [name for name in relations if name not in self._created]
        outdated = [name for name in relations if name in ROWS and self._items.get(name) is not catalog.items]
        if missing or outdated:
            with transaction(self._connection):
                for name in missing:
                    self._create(name)
                for name in outdated:
                    self._replace(name, catalog)
            self._created.update(missing)
            self._items.update(dict.fromkeys(outdated, catalog.items))
        connection = self._connection.cursor()
        connection.begin()
        connection.execute(f"SELECT 1 FROM {NOTHING}")  # the first read starts DuckDB's transaction
        return connection

    def _create(self, name: str) -> None:
        """Creates a relation, with PostgreSQL's fixed rows."""
        query, short = definitions()[1].get(name), name.partition(".")[2]
        if query is not None:
            names = ", ".join(f'"{column}"' for column in columns()[name])
            self._connection.execute(f"CREATE VIEW {name} ({names}) AS {query}")
        elif name not in columns():
            store(self._connection, f"CREATE TABLE {name} AS", fixed_rows.rows(short.removeprefix(FIXED)))
        else:
            self._connection.execute(f"CREATE TABLE {name} ({_columns(columns()[name])})")
            if short in fixed_rows.names():
                insert(self._connection, name, fixed_rows.rows(short))

    def _replace(self, name: str, catalog: Catalog) -> None:
        """Replaces the rows of items in a table by those of a catalog."""
        condition = "true"
        if name not in INTERNAL:
            condition = " OR ".join(f"{column} >= {FIRST_ID}" for column in OIDS.get(name) or [next(iter(columns()[name]))])
        if name in OF_PUBLIC:
            condition += f" OR {OF_PUBLIC[name]} = {SCHEMA_ID}"
        self._connection.execute(f"DELETE FROM {name} WHERE {condition}")
        fill(self._connection, name, list(ROWS[name](catalog)))


def fill(connection: duckdb.DuckDBPyConnection, name: str, rows: list[Row] | pa.Table) -> None:
    """Inserts rows into an empty relation; missing columns are NULL."""
    if isinstance(rows, pa.Table):
        insert(connection, name, rows)
    elif rows:
        insert(connection, name, _table(rows))


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    store(connection, f"INSERT INTO {table} BY NAME", rows)


def store(connection: duckdb.DuckDBPyConnection, statement: str, rows: pa.Table) -> None:
    """Stores rows by INSERT or CREATE TABLE AS. `statement`: without its query."""
    with registered(connection, "rows", rows) as source:
        connection.execute(f"{statement} SELECT * FROM {source}")


def _table(rows: list[Row]) -> pa.Table:
    """Returns the rows as a table; missing columns are NULL."""
    names = {key: None for row in rows for key in row}
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
