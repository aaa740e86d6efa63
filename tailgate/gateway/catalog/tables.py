"""Rewrites FROM of a catalog query for DuckDB: names of relations, and functions that return rows.

pg_catalog.pg_class, pg_class ──► pg.pg_class      information_schema.x ──► information.x      a user's relation ──► temp.other_<id>
"""

from __future__ import annotations

import json
from collections.abc import Collection

from sqlglot import exp

from tailgate.gateway.catalog.output_names import output_name
from tailgate.gateway.catalog.relations.database import array_columns, relations, scalar_columns, table_name
from tailgate.gateway.catalog.relations.rows import SYSTEM_COLUMNS
from tailgate.gateway.catalog.trees import call, folded, is_word
from tailgate.lake.catalog import Catalog, Item, hidden_positions
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, UndefinedFunction, UndefinedTable
from tailgate.lake.types import Field

# Functions in FROM that never return rows: Tailgate has no foreign tables, partitions or text search.
EMPTY = {
    "ts_token_type": {"tokid": "INTEGER", "alias": "VARCHAR", "description": "VARCHAR"},
    "pg_options_to_table": {"option_name": "VARCHAR", "option_value": "VARCHAR"},
    "pg_partition_ancestors": {"relid": "UINTEGER"},
    "pg_partition_tree": {"relid": "UINTEGER", "parentrelid": "UINTEGER", "isleaf": "BOOLEAN", "level": "INTEGER"},
}
# Functions in FROM that return the rows of a relation.
LISTED = {"pg_get_keywords": "pg_keywords", "pg_show_all_settings": "pg_settings", "pg_available_extensions": "pg_available_extensions"}
# Functions in FROM that return rows, whose fields are columns, and the functions of `rewrite` that return the list of these rows.
ROWS = {"aclexplode": "acl_entries", "_pg_expandarray": "expanded_array"}
RECORD_SETS = ("json_to_recordset", "jsonb_to_recordset")  # functions in FROM with a list of column definitions
# DuckDB's schema of the tables with the rows of relations that are not those of the system catalog, and the begin of their names.
TEMPORARY, OTHER = "temp", "other_"
# Types of columns of such relations: their stored form and their comparisons are those of the system catalog.
TYPES = frozenset("bool int2 int4 int8 float4 float8 text varchar date timestamp timestamptz".split())
SYSTEM_COLUMN_NAMES = frozenset(name for _, name, *_ in SYSTEM_COLUMNS)
TABLE_FUNCTIONS = ("ExplodingGenerateSeries", "Unnest", "Explode", "GenerateSeries")


def place_table(table: exp.Table, ctes: Collection[str], catalog: Catalog) -> None:
    """Renames a table in the tree to its name in DuckDB; `ctes` has the names of the query's CTEs."""
    if not isinstance(table.this, exp.Identifier):
        if isinstance(table.this, exp.Anonymous) and (relation := LISTED.get(table.this.name.lower())) is not None:
            if table.args.get("alias") is None:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.this.name.lower())))
            table.set("this", exp.to_identifier(relation))
            table.set("db", exp.to_identifier("pg"))
        elif not isinstance(table.this, (exp.Unnest, exp.GenerateSeries)) and type(table.this).__name__ not in TABLE_FUNCTIONS:
            if not isinstance(table.this, exp.Func):
                raise UndefinedFunction("syntax error")
            _derived(table)  # a function with one value, which `rewrite` checks
            return
        elif table.args.get("db") is not None:
            table.set("db", None)
        alias = table.args.get("alias")
        if isinstance(alias, exp.TableAlias) and not alias.columns and "series" in type(table.this).__name__.lower():
            alias.set("columns", [alias.this.copy()])  # FROM generate_series(1, 3) AS i: i also names the column
        return
    name, schema = folded(table.this), folded(table.args.get("db"))
    if not schema and name in ctes:
        return
    for candidate in [schema] if schema else ["pg_catalog"]:
        qualified = f"{candidate}.{name}"
        if qualified in relations():
            place, _, table_in_database = table_name(qualified).partition(".")
            _rename(table, place, exp.to_identifier(table_in_database, quoted=True), name)
            return
    other = catalog.find(Name(name, schema or None))
    if other is not None and other.is_relation:
        _check_columns(table, other)
        _rename(table, TEMPORARY, exp.to_identifier(f"{OTHER}{other.id}"), name)
        return
    raise UndefinedTable(f'relation "{f"{schema}.{name}" if schema else name}" does not exist', position=table.this.meta.get("start"))


def _rename(table: exp.Table, schema: str, name: exp.Identifier, alias: str) -> None:
    """Gives a table its name in DuckDB. `alias`: its name in the query, if it has no alias there."""
    table.set("this", name)
    table.set("db", exp.to_identifier(schema))
    table.set("catalog", None)
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def other_relations(tree: exp.Expr) -> frozenset[int]:
    """Returns the ids of the relations of a query for DuckDB that are not those of the system catalog."""
    return frozenset(int(table.name.removeprefix(OTHER)) for table in tree.find_all(exp.Table) if table.db == TEMPORARY)


def readable_columns(relation: Item) -> tuple[Field, ...]:
    """Returns the columns of a user's relation that a query of the system catalog can read: those of SELECT * with one of `TYPES`."""
    return tuple(column for column in _shown_columns(relation) if column.type.name in TYPES and not column.type.is_array)


def _shown_columns(relation: Item) -> list[Field]:
    hidden = hidden_positions(relation)
    return [column for i, column in enumerate(relation.columns) if i not in hidden and not column.is_dropped]


def _check_columns(table: exp.Table, relation: Item) -> None:
    """Raises 0A000 if the query may read more of a user's relation than its `readable_columns`: other columns, or whole rows."""
    query, select, readable = table.root(), table.find_ancestor(exp.Select), readable_columns(relation)
    name = table.alias_or_name if table.alias else relation.name
    columns, joins = list(query.find_all(exp.Column)), list(query.find_all(exp.Join))
    own = {column.name for column in relation.columns if not column.is_dropped}
    known = own | scalar_columns() | array_columns()
    named = {folded(column.this) for column in columns} | {folded(column) for join in joins for column in join.args.get("using") or ()}
    shown = _shown_columns(relation)
    is_star = select is not None and any(item.is_star for item in select.expressions)
    if is_star or table.alias_column_names or any(join.method == "NATURAL" for join in joins):
        named |= {column.name for column in shown}
    for column in relation.columns:
        if column.name in named & own and column not in readable:
            raise _unreadable(f'column "{column.name}" of type {column.type}', f"Select the other columns of {relation.name}.")
    for reference in columns:
        if reference.table == name and folded(reference.this) in SYSTEM_COLUMN_NAMES - own:
            raise _unreadable(f'column "{reference.name}" of relation "{relation.name}"')
        if not reference.table and folded(reference.this) == name and not is_word(reference) and name not in known:
            raise _unreadable(f'whole rows of relation "{relation.name}"')
    if not readable or len({column.name.lower() for column in readable}) < len(readable):  # DuckDB's names have no case
        raise _unreadable(f'relation "{relation.name}"', "Create a view of it with other columns.")


def _unreadable(what: str, hint: str | None = None) -> FeatureNotSupported:
    return FeatureNotSupported(f"a query of the system catalog and of {what} at once is not supported", hint=hint)


def _derived(table: exp.Table) -> None:
    """Replaces a function in FROM that DuckDB lacks: by its values in a select list, or by no rows (EMPTY)."""
    name = str(output_name(table.this))
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    kinds = EMPTY.get(name, {})
    if kinds and table.args.get("ordinality"):
        kinds = {**kinds, "ordinality": "BIGINT"}
    columns = [exp.alias_(exp.cast(exp.Null(), kind, dialect="duckdb"), column) for column, kind in kinds.items()]
    one = exp.select(*(columns or [exp.alias_(table.this.copy(), alias.this.copy())]))
    if name in ROWS:
        one = exp.select(_fields(exp.Anonymous(this=ROWS[name], expressions=table.this.expressions)))
    if name in RECORD_SETS:
        structure = {column.name: column.args["kind"].sql("duckdb") for column in alias.columns if isinstance(column, exp.ColumnDef)}
        rows = call("from_json", call("json", table.this.expressions[0]), exp.Literal.string(json.dumps([structure])))
        one = exp.select(_fields(rows))
        alias = exp.TableAlias(this=alias.this, columns=[exp.to_identifier(column, quoted=True) for column in structure])
    table.replace(exp.Subquery(this=one.where(exp.false()) if columns else one, alias=alias.copy()))


def _fields(rows: exp.Expr) -> exp.Expr:
    """Returns the fields of a list of rows, each as a column."""
    return call("unnest", rows, exp.PropertyEQ(this=exp.to_identifier("recursive"), expression=exp.true()))
