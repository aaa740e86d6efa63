"""Tailgate's rows of pg_class, pg_attribute and other relations, computed from the catalog's items.

An item's id is its oid. Oids of dependent objects are computed from it, so all are the same after a
restart:

    id            the relation or type       TYPES + id        its row type; TYPES_ARRAY + id: the array of it
    INDEXES + id  the index of its key       RULES + id  the rule of a view          constraints: `constraint_rows`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tailgate.gateway.catalog.relations import composite_rows, domain_rows, enum_rows, sequence_rows
from tailgate.gateway.catalog.relations.access_lists import access_list, column_access_lists, pg_default_acl
from tailgate.gateway.catalog.relations.column_defaults import NULL, shown_default
from tailgate.gateway.catalog.relations.constraint_rows import (
    INDEXES,
    checks_of,
    constraint_comments,
    foreign_keys_of,
    key_name,
    pg_constraint,
)
from tailgate.gateway.catalog.relations.fixed_rows import values
from tailgate.gateway.catalog.relations.sequence_rows import persistence
from tailgate.gateway.catalog.relations.storage import (
    altered_storage,
    clustered_index,
    index_collations,
    options_of,
    replica_index,
    storage_of,
)
from tailgate.gateway.settings.definitions import find
from tailgate.lake.catalog import FIRST_ID, SYSTEM_RELATIONS, Catalog, Composite, Domain, Enum, Function, Index, Item, Sequence, Table, View
from tailgate.lake.catalog.formats import IndexExpression
from tailgate.lake.catalog.indexes import expression_text, indexes
from tailgate.lake.catalog.roles import OPERATOR_ID, SCHEMA_ID
from tailgate.lake.catalog.schemas import PUBLIC, SYSTEM, TAILGATE_ID, Schema, is_system
from tailgate.lake.types import Field, Type
from tailgate.sql.binder.writes.index_expressions import field_of
from tailgate.sql.tables.storage.access_methods import METHODS

TYPES, TYPES_ARRAY, RULES, DEPENDENCIES, DEFAULTS = (n << 28 for n in (4, 5, 8, 9, 10))

HEAP = 2  # pg_am
ACCESS_METHOD = {"btree": 403, "hash": 405, "gin": 2742, "gist": 783, "spgist": 4000, "brin": 3580}  # pg_am
# oids of pg_class, pg_constraint, pg_rewrite, pg_namespace, pg_proc
CLASS, CONSTRAINT, REWRITE, NAMESPACE, PROC = 1259, 2606, 2618, 2615, 1255
SQL_LANGUAGE = 14  # pg_language
RELKIND = {"view": "v", "materialized view": "m"}  # other kinds appear as tables

Row = dict[str, Any]


def relations(catalog: Catalog) -> list[Item]:
    """Returns the relations, with those of the schema `tailgate`."""
    return [*own_relations(catalog), *SYSTEM_RELATIONS.values()]


def own_relations(catalog: Catalog) -> list[Item]:
    """Returns the relations that statements have created."""
    return [item for item in catalog.visible if item.is_relation]


def relkind(item: Item) -> str:
    """Returns the kind of a relation. Those of the schema `tailgate` are views: their rows are computed."""
    return "v" if is_system(item.id) else RELKIND.get(item.kind, "r")


def defaults_of(item: Item) -> Mapping[str, str]:
    """Returns the defaults and generation expressions of a table by column, without those of identity columns."""
    if not isinstance(item, Table):
        return {}
    return {c: text for c, text in item.defaults.items() if c not in item.identity and not NULL.fullmatch(text)} | dict(item.generated)


def is_primary(item: Item) -> bool:
    """Tells whether the key is a primary key (tables, sources) or, for views, a unique index."""
    return relkind(item) == "r"


@dataclass(frozen=True, slots=True)
class Indexed:
    """A row of pg_index: the index of a relation's key, or one from CREATE INDEX."""

    relation: Item
    index: Index
    primary: bool = False

    @property
    def oid(self) -> int:
        return self.index.id

    @property
    def columns(self) -> tuple[int | IndexExpression, ...]:
        return self.index.elements + self.index.include

    @property
    def fields(self) -> tuple[Field, ...]:
        """Returns the columns of the index, without those of INCLUDE."""
        columns = self.relation.columns
        return tuple(columns[e] if isinstance(e, int) else field_of(self.relation, e) for e in self.index.elements)


def indexed(catalog: Catalog) -> list[Indexed]:
    entries = []
    for item in keyed(catalog):
        key = item.key or ()
        ascending = (False,) * len(key)
        index = Index(
            INDEXES + item.id, key_name(item), positions=key, descending=ascending, nulls_first=ascending, unique=True, schema=item.schema
        )
        entries.append(Indexed(item, index, is_primary(item)))
    return entries + [Indexed(catalog[i.depends[0]], i, i.primary) for i in indexes(catalog)]


def keyed(catalog: Catalog) -> list[Item]:
    """Returns relations with a key index: not plain views, nor relations whose key has no columns."""
    return [item for item in relations(catalog) if item.key and not isinstance(item, View)]


def pg_namespace(catalog: Catalog) -> Iterator[Row]:
    """Yields rows for `public`, `tailgate` and created schemas; others are among PostgreSQL's fixed rows, or are not shown."""
    as_in_new_database = {"nspowner": 6171, "nspacl": ["pg_database_owner=UC/pg_database_owner", "=U/pg_database_owner"]}
    for schema in (SYSTEM[TAILGATE_ID], *_schemas(catalog)):
        row = {"oid": schema.id, "nspname": schema.name, "nspowner": schema.owner, "nspacl": access_list(schema, catalog)}
        is_as_created = schema.id == SCHEMA_ID and schema.owner == OPERATOR_ID and row["nspacl"] is None
        yield {**row, **as_in_new_database} if is_as_created else row


def _schemas(catalog: Catalog) -> list[Schema]:
    """Returns `public` and created schemas."""
    return [schema for schema in {SCHEMA_ID: PUBLIC, **catalog.schemas}.values() if not schema.dropped]


def pg_class(catalog: Catalog) -> Iterator[Row]:
    with_index = {i.relation.id for i in indexed(catalog)}
    referenced = {key.table for item in catalog.each(Table) for key in item.foreign_keys}
    yield from ({**row, "relacl": access_list(catalog[row["oid"]], catalog)} for row in sequence_rows.classes(catalog))
    yield from composite_rows.classes(catalog)
    for item in relations(catalog):
        kind = relkind(item)
        yield {
            "oid": item.id, "relname": item.name, "relnamespace": item.schema,
            "reltype": 0 if is_system(item.id) else TYPES + item.id, "reloftype": 0,
            "relowner": item.owner,
            "relam": 0 if kind == "v" else HEAP, "relfilenode": 0 if kind == "v" else item.id, "reltablespace": 0, "relpages": 0,
            "reltuples": -1.0, "relallvisible": 0, "reltoastrelid": 0, "relhasindex": item.id in with_index,
            "relisshared": False, "relpersistence": persistence(item), "relkind": kind,
            "relnatts": len(item.columns), "relchecks": len(checks_of(item)),
            "relhasrules": kind != "r" and not is_system(item.id), "relhastriggers": item.id in referenced or bool(foreign_keys_of(item)),
            "relhassubclass": False, "relrowsecurity": False,
            "relforcerowsecurity": False, "relacl": access_list(item, catalog),
            "relispopulated": item.ready, "relreplident": "n" if kind == "v" else item.storage.replica_identity,
            "relispartition": False, "relrewrite": 0, "relfrozenxid": 0, "relminmxid": 0,
            "reloptions": [f"check_option={item.check_option}"] if isinstance(item, View) and item.check_option else options_of(item),
        }  # fmt: skip
    for i in indexed(catalog):
        yield {
            "oid": i.oid, "relname": i.index.name, "relnamespace": i.relation.schema, "reltype": 0, "reloftype": 0,
            "relowner": i.relation.owner,
            "relam": ACCESS_METHOD[i.index.method], "relfilenode": i.oid, "reltablespace": 0, "relpages": 1, "reltuples": 0.0,
            "relallvisible": 0,
            "reltoastrelid": 0, "relhasindex": False, "relisshared": False, "relpersistence": persistence(i.relation), "relkind": "i",
            "relnatts": len(i.columns), "relchecks": 0, "relhasrules": False, "relhastriggers": False, "relhassubclass": False,
            "relrowsecurity": False, "relforcerowsecurity": False, "relispopulated": True, "relreplident": "n", "relispartition": False,
            "relrewrite": 0, "relfrozenxid": 0, "relminmxid": 0, "reloptions": options_of(i.index),
        }  # fmt: skip


SYSTEM_COLUMNS = (
    (-1, "ctid", 27, 6, "s"),
    (-2, "xmin", 28, 4, "i"),
    (-3, "cmin", 29, 4, "i"),
    (-4, "xmax", 28, 4, "i"),
    (-5, "cmax", 29, 4, "i"),
    (-6, "tableoid", 26, 4, "i"),
)


def pg_attribute(catalog: Catalog) -> Iterator[Row]:
    for item in relations(catalog):
        primary = set(item.key or ()) if is_primary(item) else set()
        granted = column_access_lists(item, catalog)
        for index in range(len(item.columns)):
            yield {**_attribute(item.id, index + 1, item, index, index in primary), "attacl": granted.get(index)}
        if relkind(item) != "v":
            for number, name, oid, size, align in SYSTEM_COLUMNS:
                columns = {"atttypid": oid, "attlen": size, "attbyval": size != 6, "attalign": align, "attnotnull": True}
                yield _plain(item.id, number, name) | columns
    for composite in catalog.each(Composite):
        yield from (_typed(composite_rows.CLASSES + composite.id, n, field) for n, field in enumerate(composite.columns, 1))
    for i in indexed(catalog):
        collations = index_collations(i.index, i.relation, [field.type for field in i.fields])
        for number, column in enumerate(i.columns, 1):
            if isinstance(column, int):
                row = _attribute(i.oid, number, i.relation, column, False)
            else:
                row = _typed(i.oid, number, field_of(i.relation, column))
            yield row | {"attcollation": collations[number - 1] if number <= len(collations) else 0}  # 0: a column of INCLUDE


def _attribute(relation: int, number: int, item: Item, index: int, primary: bool) -> Row:
    """Returns the pg_attribute row of a column of a relation or index."""
    field = item.columns[index]
    not_null = relation == item.id and relkind(item) == "r" and (primary or not field.nullable)
    has_default = relation == item.id and field.name in defaults_of(item)
    identity = {"always": "a", "by default": "d"}.get(item.identity.get(field.name, ""), "") if isinstance(item, Table) else ""
    generated = relation == item.id and isinstance(item, Table) and field.name in item.generated
    if field.is_dropped:
        return _plain(relation, number, field.name) | {"attlen": field.type.size, "attisdropped": True}
    return _typed(relation, number, field) | {
        "attnotnull": not_null, "atthasdef": has_default,
        "attidentity": identity if relation == item.id else "", "attgenerated": "s" if generated else "",
        **(altered_storage(item.storage.columns.get(index)) if relation == item.id else {}),
    }  # fmt: skip


def _typed(relation: int, number: int, field: Field) -> Row:
    """Returns the pg_attribute row of a column with the values that follow from its name and type."""
    type, domain = field.type, field.domain
    stored = storage_of(type)
    return _plain(relation, number, field.name) | {
        "atttypid": type.oid if domain is None else domain.id, "attlen": stored.length, "atttypmod": type.typmod if domain is None else -1,
        "attbyval": stored.by_value, "attalign": stored.alignment, "attstorage": stored.storage, "attcollation": stored.collation,
        "attndims": 0 if domain is not None else type.is_array + type.multidimensional,
    }  # fmt: skip


def pg_attrdef(catalog: Catalog) -> Iterator[Row]:
    """Yields the defaults of tables' columns."""
    for item in relations(catalog):
        defaults = defaults_of(item)
        for number, field in enumerate(item.columns, 1):
            if field.name in defaults:
                oid = DEFAULTS + (item.id * 256 + number % 256) % (1 << 28)
                yield {"oid": oid, "adrelid": item.id, "adnum": number, "adbin": shown_default(defaults[field.name], field, catalog)}


def _plain(relation: int, number: int, name: str) -> Row:
    """Returns a pg_attribute row with the usual values; its type, length and alignment are still missing."""
    return {
        "attrelid": relation, "attname": name, "atttypid": 0, "attstattarget": -1 if number > 0 else 0, "attlen": 0, "attnum": number,
        "attndims": 0, "attcacheoff": -1, "atttypmod": -1, "attbyval": False, "attalign": "i", "attstorage": "p",
        "attcompression": "", "attnotnull": False, "atthasdef": False, "atthasmissing": False, "attidentity": "", "attgenerated": "",
        "attisdropped": False, "attislocal": True, "attinhcount": 0, "attcollation": 0,
    }  # fmt: skip


def pg_type(catalog: Catalog) -> Iterator[Row]:
    for of_type in (*enum_rows.types(catalog), *composite_rows.types(catalog), *domain_rows.types(catalog)):
        yield {**of_type, "typacl": access_list(catalog[of_type["oid"]], catalog) if of_type["oid"] in catalog.items else None}
    for item in own_relations(catalog):
        yield from composite_rows.row_types(TYPES + item.id, TYPES_ARRAY + item.id, item.id, item.name, item.schema, item.owner)


def pg_index(catalog: Catalog) -> Iterator[Row]:
    for i in indexed(catalog):
        index, keys = i.index, len(i.index.elements)
        types = [field.type for field in i.fields]
        nulls_equal = (i.oid >= INDEXES and not i.primary) or not index.nulls_distinct  # the key index of a view
        yield {
            "indexrelid": i.oid, "indrelid": i.relation.id, "indnatts": len(i.columns), "indnkeyatts": keys, "indisunique": index.unique,
            "indnullsnotdistinct": nulls_equal, "indisprimary": i.primary, "indisexclusion": False, "indimmediate": not index.deferrable,
            "indisclustered": clustered_index(i.relation) == i.oid,
            "indisvalid": True, "indcheckxmin": False, "indisready": True, "indislive": True,
            "indisreplident": replica_index(i.relation) == i.oid, "indkey": [c + 1 if isinstance(c, int) else 0 for c in i.columns],
            "indcollation": index_collations(index, i.relation, types),
            "indclass": _operator_classes(index, types),
            "indexprs": ", ".join(map(expression_text, index.expressions)) or None,
            "indpred": None if index.condition is None else expression_text(index.condition),
            "indoption": [down | first << 1 for down, first in zip(index.descending, index.nulls_first, strict=True)],
        }  # fmt: skip


def _operator_classes(index: Index, types: Iterable[Type]) -> list[int]:
    """Returns the oids of the operator classes of an index."""
    method = METHODS[index.method]
    classes = index.operator_classes or ("",) * len(index.elements)  # columns of INCLUDE have none
    names = (name or method.default_class(type) for name, type in zip(classes, types, strict=False))
    return [_operator_class_oids().get((ACCESS_METHOD[index.method], name or ""), 0) for name in names]


@cache
def _operator_class_oids() -> Mapping[tuple[int, str], int]:
    return {(method, name): oid for oid, name, method in values("pg_opclass", "oid", "opcname", "opcmethod")}


def comments(catalog: Catalog) -> dict[tuple[int, int, int], str]:
    """Returns comments by class, object and column, as in pg_description."""
    texts = {(NAMESPACE, schema.id, 0): schema.comment for schema in _schemas(catalog)}
    for item in relations(catalog):
        numbers = {"": 0, **{c.name: i for i, c in enumerate(item.columns, 1)}}
        for name, text in item.comments.items():
            if name in numbers:
                texts[CLASS, item.id, numbers[name]] = text
    classes = {Function: PROC, Index: CLASS, Sequence: CLASS, **dict.fromkeys((Enum, Composite, Domain), enum_rows.TYPE)}
    for item in catalog.visible:
        if type(item) in classes and "" in item.comments:
            texts[classes[type(item)], item.id, 0] = item.comments[""]
        texts |= {(CONSTRAINT, oid, 0): text for oid, text in constraint_comments(item) if text}
    return texts


def pg_description(catalog: Catalog) -> Iterator[Row]:
    """Yields the comments on items and schemas. Those on PostgreSQL's own schemas, except `public`, are fixed rows."""
    for (classoid, objoid, objsubid), text in comments(catalog).items():
        if text and (objoid >= FIRST_ID or objoid == SCHEMA_ID):
            yield {"objoid": objoid, "classoid": classoid, "objsubid": objsubid, "description": text}


def pg_rewrite(catalog: Catalog) -> Iterator[Row]:
    for item in own_relations(catalog):
        if relkind(item) != "r":
            yield {
                "oid": RULES + item.id, "rulename": "_RETURN", "ev_class": item.id, "ev_type": "1", "ev_enabled": "O", "is_instead": True,
                "ev_qual": "<>", "ev_action": "<>",
            }  # fmt: skip


def pg_proc(catalog: Catalog) -> Iterator[Row]:
    for item in catalog.visible:
        if not isinstance(item, Function):
            continue
        columns = item.rows if item.rows is not None and item.rows[0].name else ()
        names = [a.name for a in item.arguments] + [c.name for c in columns]
        modes = ["i"] * len(item.arguments)
        if item.variadic:
            modes[-1] = "v"
        yield {
            "oid": item.id, "proname": item.name, "pronamespace": item.schema, "proowner": item.owner, "prolang": SQL_LANGUAGE,
            "procost": 100.0, "prorows": 1000.0 if item.rows is not None else 0.0,
            "provariadic": item.types[-1].element.oid if item.variadic else 0, "prosupport": 0, "prokind": "f",
            "prosecdef": False, "proleakproof": False, "proisstrict": item.strict, "proretset": item.rows is not None,
            "provolatile": item.volatility[0], "proparallel": "u", "pronargs": len(item.arguments), "pronargdefaults": len(item.defaults),
            "prorettype": item.returns.oid, "proargtypes": [t.oid for t in item.types],
            "proallargtypes": [*(t.oid for t in item.types), *(c.type.oid for c in columns)] if columns or item.variadic else None,
            "proargmodes": modes + ["t"] * len(columns) if columns or item.variadic else None,
            "proargnames": names if any(names) else None, "prosrc": item.query, "probin": None,
        }  # fmt: skip


def pg_auth_members(catalog: Catalog) -> Iterator[Row]:
    for role in catalog.roles.values():
        for group, admin in role.member_of.items():
            yield {"roleid": group, "member": role.id, "grantor": OPERATOR_ID, "admin_option": admin}


# the functions that return the rows of the relation of their name; missing columns are NULL
OURS = (
    pg_auth_members, pg_namespace, pg_class, pg_attribute, pg_attrdef, pg_type, pg_index, pg_constraint, pg_rewrite, pg_proc,
    sequence_rows.pg_sequence, enum_rows.pg_enum, pg_description, pg_default_acl,
)  # fmt: skip


def _shown_settings(settings: Mapping[str, str]) -> list[str] | None:
    """Returns settings of a role, with their names in PostgreSQL's spelling."""
    definitions = ((find(name), name, value) for name, value in settings.items())
    return [f"{name if setting is None else setting.name}={value}" for setting, name, value in definitions] or None


def roles(catalog: Catalog) -> list[Row]:
    """Returns the rows for pg_roles, pg_authid, pg_db_role_setting and pg_shdescription. That of PUBLIC has the database's settings."""
    return [
        {
            "oid": r.id, "rolname": r.name, "rolsuper": r.superuser, "rolcanlogin": r.login, "rolpassword": r.verifier,
            "rolcreaterole": r.createrole, "rolcreatedb": r.createdb, "rolreplication": r.replication, "rolbypassrls": r.bypassrls,
            "rolconnlimit": r.connection_limit, "valid_until": r.valid_until,
            "rolconfig": _shown_settings(r.settings), "otherconfig": _shown_settings(r.other_settings), "comment": r.comment or None,
        }
        for r in catalog.all_roles().values()
    ]  # fmt: skip
