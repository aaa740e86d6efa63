"""PostgreSQL's catalog functions, computed from the facts of a catalog and a session.

Each is a Python function that DuckDB calls once per value, registered as
pg_<name>_<number of arguments>, so `rewrite` chooses by arity. A call takes about 1 µs, which is
enough for catalogs of thousands of rows.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from tailgate.gateway.catalog import rows
from tailgate.gateway.catalog.object_names import ALIASES, SQL_NAMES, Facts, Session, name_text, parse_name
from tailgate.gateway.catalog.privileges import RELATION_KINDS, Privileges
from tailgate.gateway.catalog.signatures import ENCODINGS, Signature
from tailgate.gateway.settings.settings import SERVER_VERSION
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import FeatureNotSupported, InvalidSchemaName, TailgateError, UndefinedFunction, UndefinedObject, UndefinedTable
from tailgate.lake.indexes import definition
from tailgate.lake.names import Name, quoted
from tailgate.lake.routines import arguments_of, result_of
from tailgate.lake.schemas import TEMPORARY, TEMPORARY_ID
from tailgate.sql.definitions import shown

VERSION = f"PostgreSQL {SERVER_VERSION} (Tailgate)"  # drivers read the number after the first word


class _Local(threading.local):
    """The session and catalog of the query that a thread executes."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.catalog = Catalog()
        self.facts = Facts()
        self.path: list[int] | None = None
        self.raised: TailgateError | None = None


class Functions:
    """All functions, by (name, number of arguments): argument types, result type, implementation.

    They answer for the session of `asked` on the same thread, because DuckDB calls them on the
    thread that executes the query.
    """

    def __init__(self) -> None:
        self._local = _Local()
        self.privileges = Privileges(lambda: self.facts, lambda: self._session, self.regclass_in, self.regnamespace_in)
        self.all: dict[tuple[str, int], tuple[list[str], str, Callable[..., Any]]] = {}
        for signature, function in self._listed():
            name, arguments, result = re.fullmatch(r"(\w+)\((.*)\) (\S+)", signature).groups()  # type: ignore[union-attr]
            types = [a.strip() for a in arguments.split(",") if a.strip()]
            self.all[name, len(types)] = (types, result, function)

    def install(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Registers all functions in a DuckDB connection."""
        duckdb_types = {"oid": "BIGINT", "int": "BIGINT", "text": "VARCHAR", "bool": "BOOLEAN", "text[]": "VARCHAR[]"}
        for (name, count), (types, result, function) in self.all.items():
            made = _of_arity(_telling(function if name in NULL_ACCEPTED else _strict(function), self._local), count)
            parameters = [duckdb_types[t] for t in types]
            connection.create_function(
                f"pg_{name}_{count}",
                made,
                parameters,
                duckdb_types[result],
                null_handling="special",
                side_effects=count == 0 or name in ("set_config", "pg_cancel_backend", "pg_terminate_backend", "pg_notify"),
            )

    def _listed(self) -> list[tuple[str, Callable[..., Any]]]:
        """Returns (signature, implementation) of each function."""
        nothing, yes, zero = (lambda *_: None), (lambda *_: True), (lambda *_: 0)
        s, may = self, self.privileges
        return [
            ("format_type(oid, int) text", s.format_type),
            ("regclass_out(oid) text", s.regclass_out),
            ("regtype_out(oid) text", lambda o: s.format_type(o, -1)),
            ("regproc_out(oid) text", lambda o: "-" if o == 0 else s.facts.procs.get(o, (str(o),))[0]),
            ("regprocedure_out(oid) text", s.regprocedure_out),
            ("regnamespace_out(oid) text", lambda o: quoted(s.facts.namespaces[o]) if o in s.facts.namespaces else str(o)),
            ("regrole_out(oid) text", lambda o: s.facts.roles.get(o, str(o))),
            *((f"{reg}_out(oid) text", str) for reg in ("regconfig", "regdictionary")),  # Tailgate has no text search
            ("regclass_in(text) oid", s.regclass_in),
            ("regtype_in(text) oid", s.regtype_in),
            ("regproc_in(text) oid", s.regproc_in),
            ("regnamespace_in(text) oid", s.regnamespace_in),
            ("regrole_in(text) oid", s.regrole_in),
            ("to_regclass(text) oid", lambda t: s._or_none(s.regclass_in, t)),
            ("to_regtype(text) oid", lambda t: s._or_none(s.regtype_in, t)),
            ("to_regproc(text) oid", lambda t: s._or_none(s.regproc_in, t)),
            ("to_regnamespace(text) oid", lambda t: s._or_none(s.regnamespace_in, t)),
            ("pg_get_userbyid(oid) text", lambda o: s.facts.roles.get(o, f"unknown (OID={o})")),
            ("pg_table_is_visible(oid) bool", s._visible_class),
            ("pg_type_is_visible(oid) bool", lambda o: s._visible(s.facts.types.get(o), 1)),
            ("pg_function_is_visible(oid) bool", lambda o: s._visible(s.facts.procs.get(o), 1)),
            ("pg_collation_is_visible(oid) bool", yes),
            ("pg_opclass_is_visible(oid) bool", yes),
            ("pg_operator_is_visible(oid) bool", yes),
            *((f"pg_{kind}_is_visible(oid) bool", yes) for kind in VISIBLE),
            ("pg_statistics_obj_is_visible(oid) bool", yes),
            ("pg_get_viewdef(oid) text", s.viewdef),
            ("pg_get_viewdef(oid, bool) text", s.viewdef),
            ("pg_get_viewdef_text(text) text", lambda t: s.viewdef(s.regclass_in(t))),
            ("pg_get_ruledef(oid, bool) text", s.ruledef),
            ("pg_get_ruledef(oid) text", s.ruledef),
            ("pg_get_indexdef(oid) text", s.indexdef),
            ("pg_get_indexdef(oid, int, bool) text", s.indexdef),
            ("pg_get_constraintdef(oid) text", s.constraintdef),
            ("pg_get_constraintdef(oid, bool) text", s.constraintdef),
            ("pg_get_expr(text, oid) text", lambda e, o: e),
            ("pg_get_expr(text, oid, bool) text", lambda e, o, pretty: e),
            ("pg_get_partkeydef(oid) text", nothing),
            ("pg_get_partition_constraintdef(oid) text", nothing),
            ("pg_get_serial_sequence(text, text) text", nothing),
            ("pg_get_statisticsobjdef_columns(oid) text", nothing),
            ("pg_get_statisticsobjdef(oid) text", nothing),
            ("pg_get_triggerdef(oid, bool) text", nothing),
            ("pg_get_function_arguments(oid) text", s._of_function(arguments_of, lambda f: f.arguments(s.format_type))),
            ("pg_get_function_result(oid) text", s._of_function(result_of, lambda f: f.returns(s.format_type))),
            (
                "pg_get_function_identity_arguments(oid) text",
                s._of_function(lambda i: arguments_of(i, defaults=False), lambda f: f.arguments(s.format_type, defaults=False)),
            ),
            ("pg_get_functiondef(oid) text", s._of_function(lambda i: shown(i, s.catalog).sql, lambda f: None)),
            ("obj_description(oid, text) text", s.obj_description),
            ("obj_description(oid) text", lambda o: None),
            ("col_description(oid, int) text", lambda o, n: s.facts.descriptions.get((rows.CLASS, o, n))),
            ("shobj_description(oid, text) text", s.shobj_description),
            ("has_database_privilege(text, text) bool", yes),
            ("has_database_privilege(text, text, text) bool", yes),
            ("has_schema_privilege(text, text) bool", lambda o, p: may.has_schema_privilege(None, o, p)),
            ("has_schema_privilege(text, text, text) bool", may.has_schema_privilege),
            *((f"has_{kind}_privilege(text, text) bool", lambda o, p: may.has_table_privilege(None, o, p)) for kind in RELATION_KINDS),
            *((f"has_{kind}_privilege(text, text, text) bool", may.has_table_privilege) for kind in RELATION_KINDS),
            ("has_column_privilege(text, text, text) bool", lambda o, c, p: may.has_table_privilege(None, o, p)),
            ("has_function_privilege(text, text) bool", yes),
            ("has_type_privilege(text, text) bool", yes),
            ("has_sequence_privilege(text, text) bool", yes),
            ("pg_has_role(text, text) bool", lambda r, p: may.pg_has_role(None, r, p)),
            ("pg_has_role(text, text, text) bool", may.pg_has_role),
            ("operator() text", may.operator),
            ("pg_cancel_backend(int) bool", lambda p: s._session.signal(p, terminate=False)),
            ("pg_terminate_backend(int) bool", lambda p: s._session.signal(p, terminate=True)),
            ("pg_terminate_backend(int, int) bool", lambda p, _: s._session.signal(p, terminate=True)),
            ("current_setting(text) text", s.current_setting),
            ("current_setting(text, bool) text", s.current_setting),
            ("set_config(text, text, bool) text", lambda name, value, local: s._session.settings.set(name, value, local=local)),
            ("current_schemas(bool) text[]", s.current_schemas),
            ("current_schema() text", s.current_schema),
            ("current_database() text", lambda: s._session.database),
            ("current_user() text", s.current_user),
            ("session_user() text", lambda: s._session.user),
            ("version() text", lambda: VERSION),
            ("pg_backend_pid() int", lambda: s._session.process),
            ("pg_is_in_recovery() bool", lambda: False),
            ("pg_export_snapshot() text", lambda: s._session.export_snapshot()),
            ("pg_encoding_to_char(int) text", lambda n: ENCODINGS[n] if 0 <= n < len(ENCODINGS) else ""),
            ("pg_char_to_encoding(text) int", lambda n: ENCODINGS.index(n.upper()) if n.upper() in ENCODINGS else -1),
            ("getdatabaseencoding() text", lambda: "UTF8"),
            ("pg_client_encoding() text", lambda: "UTF8"),
            ("pg_relation_size(text) int", zero),
            ("pg_relation_size(text, text) int", zero),
            ("pg_table_size(text) int", zero),
            ("pg_total_relation_size(text) int", zero),
            ("pg_indexes_size(text) int", zero),
            ("pg_database_size(text) int", zero),
            ("pg_tablespace_size(text) int", zero),
            ("pg_size_pretty(int) text", pretty_size),
            ("pg_stat_get_numscans(oid) int", zero),
            ("pg_relation_is_publishable(text) bool", lambda t: False),
            ("pg_relation_is_updatable(oid, bool) int", zero),
            ("pg_column_is_updatable(oid, int, bool) bool", lambda *_: False),
            ("pg_tablespace_location(oid) text", lambda o: ""),
            ("pg_my_temp_schema() oid", lambda: TEMPORARY_ID if TEMPORARY_ID in s.path() else 0),
            ("pg_is_other_temp_schema(oid) bool", lambda o: False),
            ("pg_postmaster_start_time_text() text", nothing),
            ("pg_advisory_unlock_all() text", lambda: ""),
            ("pg_notify(text, text) text", s.notify),
            ("pg_sequence_last_value(oid) int", nothing),
            ("txid_current() int", lambda: 1),
            ("pg_conf_load_time_text() text", nothing),
            ("inet_server_port() int", nothing),
            ("inet_server_addr() text", nothing),
            ("inet_client_addr() text", nothing),
            ("inet_client_port() int", nothing),
            ("quote_ident(text) text", quoted),
            ("format(text, text) text", formatted),
            ("format(text, text, text) text", formatted),
            ("pg_describe_object(oid, oid, int) text", s.described),
            ("pg_get_function_sqlbody(oid) text", nothing),
            ("quote_literal(text) text", lambda t: "'" + t.replace("'", "''") + "'"),
            ("parse_ident(text) text[]", parse_name),
        ]

    @contextmanager
    def asked(self, session: Session, catalog: Catalog, facts: Facts) -> Iterator[None]:
        """Sets what functions on this thread answer for; `catalog` is as the session sees it."""
        local = self._local
        before = local.session, local.catalog, local.facts
        local.session, local.catalog, local.facts = session, catalog, facts
        local.path, local.raised = None, None
        try:
            yield
        finally:
            local.session, local.catalog, local.facts = before

    @property
    def facts(self) -> Facts:
        return self._local.facts

    @property
    def catalog(self) -> Catalog:
        return self._local.catalog

    @property
    def raised(self) -> TailgateError | None:
        """Returns the last error of a function on this thread."""
        return self._local.raised

    @property
    def _session(self) -> Session:
        assert self._local.session is not None
        return self._local.session

    # --- names

    def format_type(self, oid: int | None, typmod: int | None = -1) -> str | None:
        if oid is None:
            return None
        typmod = -1 if typmod is None else typmod
        if oid == 0:
            return "-"
        known = self.facts.types.get(oid)
        if known is None:
            return "???"
        name, namespace, element, _ = known
        if element and name.startswith("_"):
            return f"{self.format_type(element, typmod)}[]"
        text = SQL_NAMES.get(oid) or (
            quoted(name) if namespace in (11, 2200) else f"{quoted(self.facts.namespaces[namespace])}.{quoted(name)}"
        )
        if typmod >= 0:
            if oid in (1042, 1043):
                return f"{text}({typmod - 4})"
            if oid == 1700:
                return f"{text}({(typmod - 4) >> 16 & 0xFFFF},{((typmod - 4) & 0x7FF ^ 1024) - 1024})"
            if oid in (1083, 1114, 1184, 1266):
                first, _, rest = text.partition(" ")
                return f"{first}({typmod}) {rest}"
            if oid in (1560, 1562):
                return f"{text}({typmod})"
        return text

    def regclass_out(self, oid: int) -> str:
        known = self.facts.classes.get(oid)
        if known is None:
            return "-" if oid == 0 else str(oid)
        name, namespace, _ = known
        return quoted(name) if self._visible_class(oid) else f"{quoted(self.facts.namespaces[namespace])}.{quoted(name)}"

    def regclass_in(self, text: str) -> int:
        if text.isdigit():
            return int(text)
        parts = parse_name(text)
        for namespace in self.path() if len(parts) == 1 else [self.namespace(parts[-2])]:
            if (namespace, parts[-1]) in self.facts.by_name:
                return self.facts.by_name[namespace, parts[-1]]
        raise UndefinedTable(f'relation "{".".join(parts)}" does not exist')

    def regtype_in(self, text: str) -> int:
        if text.isdigit():
            return int(text)
        name = " ".join(name_text(text).split())
        base = re.sub(r"\s*\([^)]*\)", "", name.removesuffix("[]"))
        folded = base if base.startswith('"') and base != '"char"' else base.lower()
        oid = ALIASES.get(folded) or self.facts.type_by_name.get(parse_name(base)[-1])
        if oid is None:
            raise UndefinedObject(f'type "{text}" does not exist')
        if name.endswith("[]"):
            return next(o for o, (n, _, element, _) in self.facts.types.items() if element == oid and n.startswith("_"))
        return oid

    def regproc_in(self, text: str) -> int:
        if text.isdigit():
            return int(text)
        called, _, types = text.partition("(")
        name = parse_name(called)[-1]
        found = [oid for oid, (n, _) in self.facts.procs.items() if n == name]
        if types:  # a regprocedure names the argument types
            wanted = tuple(self.regtype_in(word.strip()) for word in types.strip(" )").split(",") if word.strip())
            found = [oid for oid in found if oid not in self.facts.signatures or self.facts.signatures[oid].inputs == wanted]
        if not found:
            raise UndefinedFunction(f'function "{text}" does not exist')
        return found[0]

    def regprocedure_out(self, oid: int) -> str:
        if oid not in self.facts.procs:
            return "-" if oid == 0 else str(oid)
        signature = self.facts.signatures.get(oid)
        types = [str(self.format_type(type)) for type in signature.inputs] if signature is not None else []
        return f"{quoted(self.facts.procs[oid][0])}({','.join(types)})"

    def regnamespace_in(self, text: str) -> int:
        return int(text) if text.isdigit() else self.namespace(parse_name(text)[-1])

    def namespace(self, name: str) -> int:
        """Returns the oid of a schema. Raises 3F000."""
        found = self.catalog.find_schema(name)
        oid = found.id if found is not None else next((o for o, n in self.facts.namespaces.items() if n == name), None)
        if oid is None:
            raise InvalidSchemaName(f'schema "{name}" does not exist')
        return oid

    def path(self) -> list[int]:
        """Returns the schemas of the search path in order.

        pg_catalog comes first, or after temporary views, unless the path names it.
        """
        catalog = self.catalog
        if self._local.path is not None:
            return self._local.path
        found = [schema.id for schema in map(catalog.find_schema, catalog.path) if schema is not None]
        if 11 not in found:
            found.insert(int(found[:1] == [TEMPORARY_ID]), 11)
        self._local.path = found
        return found

    def current_schemas(self, implicit: bool) -> list[str]:
        if implicit:
            return [self.facts.namespaces[o] for o in self.path()]
        return [p for p in self.catalog.path if not p.startswith(TEMPORARY)]

    def current_schema(self) -> str | None:
        return next(iter(self.current_schemas(False)), None)

    def _visible_class(self, oid: int) -> bool | None:
        known = self.facts.classes.get(oid)
        if known is None:
            return None
        return next((self.facts.by_name[n, known[0]] for n in self.path() if (n, known[0]) in self.facts.by_name), None) == oid

    def regrole_in(self, text: str) -> int:
        found = next((o for o, n in self.facts.roles.items() if n == parse_name(text)[-1]), None)
        if found is None:
            raise UndefinedObject(f'role "{text}" does not exist')
        return found

    def _or_none(self, function: Callable[[str], int], text: str) -> int | None:
        try:
            return function(text)
        except (UndefinedTable, UndefinedObject, UndefinedFunction, InvalidSchemaName):
            return None

    def _visible(self, known: tuple[Any, ...] | None, namespace: int) -> bool | None:
        return None if known is None else known[namespace] in self.path()

    def described(self, kind: int, oid: int, part: int) -> str:
        """Implements pg_describe_object, for members of extensions."""
        words = {1255: "function", 2612: "language"}
        if kind in words:
            return f"{words[kind]} {self.facts.procs[oid][0] + '()' if oid in self.facts.procs else 'plpgsql'}"
        return f"table {self.regclass_out(oid)}" if kind == rows.CLASS else f"object {oid}"

    def notify(self, channel: str, payload: str) -> str:
        raise FeatureNotSupported("NOTIFY is not supported")

    # --- definitions

    def viewdef(self, oid: int, pretty: bool = False) -> str | None:
        item = self.facts.item(oid)
        return None if item is None or not item.query else f" {shown(item, self.catalog).query.strip().rstrip(';')};"

    def ruledef(self, oid: int, pretty: bool = False) -> str | None:
        item = self.facts.item(oid - rows.RULES)
        if item is None:
            return None
        return f'CREATE RULE "_RETURN" AS\n    ON SELECT TO {self._qualified(item)} DO INSTEAD {self.viewdef(item.id)}'

    def _qualified(self, item: Item) -> str:
        return Name(item.name, self.facts.catalog.schema_of(item).name).sql

    def indexdef(self, oid: int, column: int = 0, pretty: bool = False) -> str | None:
        if oid in self.facts.fixed_indexes:
            return self._fixed_index(oid, column, pretty)
        found = next((i for i in rows.indexed(self.facts.catalog) if i.oid == oid), None)
        if found is None:
            return None
        if column:
            names = [quoted(found.relation.columns[i].name) for i in found.columns]
            return names[column - 1] if column <= len(names) else ""
        table = self.regclass_out(found.relation.id) if pretty else self._qualified(found.relation)
        return definition(found.name, table, found.relation, found.made)

    def _fixed_index(self, oid: int, column: int, pretty: bool) -> str:
        """Returns the definition of one of PostgreSQL's own indexes."""
        unique, relation, names = self.facts.fixed_indexes[oid]
        columns = [quoted(name) for name in names]
        if column:
            return columns[column - 1] if column <= len(columns) else ""
        schema = quoted(self.facts.namespaces[self.facts.classes[relation][1]])
        table = self.regclass_out(relation) if pretty else f"{schema}.{quoted(self.facts.classes[relation][0])}"
        kind = "UNIQUE INDEX" if unique else "INDEX"
        return f"CREATE {kind} {quoted(self.facts.classes[oid][0])} ON {table} USING btree ({', '.join(columns)})"

    def _of_function(self, told: Callable[[Item], str], fixed: Callable[[Signature], str | None]) -> Callable[[int], str | None]:
        """Returns a function from an oid to text: by `told` for created functions, by `fixed` for PostgreSQL's own."""

        def by_oid(oid: int) -> str | None:
            if oid in self.facts.signatures:
                return fixed(self.facts.signatures[oid])
            item = self.facts.item(oid)
            return told(item) if item is not None and item.kind == "function" else None

        return by_oid

    def constraintdef(self, oid: int, pretty: bool = False) -> str | None:
        if oid >= rows.CHECKS:
            id, number = divmod(oid - rows.CHECKS, rows.CHECKS_MAX)
            table = self.facts.item(id)
            checks = table.options.get("checks", ()) if table is not None else ()
            return f"CHECK (({checks[number]['text']}))" if number < len(checks) else None
        if (index := self.facts.fixed_constraints.get(oid)) is not None:
            word, names = index
            return f"{word} ({', '.join(map(quoted, names))})"
        item = self.facts.item(oid - rows.CONSTRAINTS)
        if item is None or not item.key:
            return None
        return f"PRIMARY KEY ({', '.join(quoted(item.columns[i].name) for i in item.key)})"

    def obj_description(self, oid: int, catalog: str) -> str | None:
        kind = self.facts.by_name.get((11, catalog))
        return None if kind is None else self.facts.descriptions.get((kind, oid, 0))

    def shobj_description(self, oid: int, catalog: str) -> str | None:
        return self.facts.shared_descriptions.get((self.facts.by_name.get((11, catalog), 0), oid))

    # --- the session

    def current_user(self) -> str:
        """Returns the role of SET ROLE, or else the session's user."""
        role = self._session.settings["role"]
        return self._session.user if role in ("none", "") else role

    def current_setting(self, name: str, missing_ok: bool = False) -> str | None:
        try:
            return self._session.settings.get(name)[1]
        except UndefinedObject:
            fixed = self.facts.settings.get(name.lower())
            if fixed is None and not missing_ok:
                raise
            return fixed


VISIBLE = ("ts_config", "ts_dict", "ts_parser", "ts_template", "opfamily", "conversion")
NULL_ACCEPTED = {"format_type"}


def _of_arity(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Wraps a function to have `count` parameters, because DuckDB inspects the signature."""
    made: tuple[Callable[..., Any], ...] = (
        lambda: function(),
        lambda a: function(a),
        lambda a, b: function(a, b),
        lambda a, b, c: function(a, b, c),
    )
    return made[count]


def _telling(function: Callable[..., Any], local: _Local) -> Callable[..., Any]:
    """Wraps a function to store its error: DuckDB passes on only the message."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except TailgateError as error:
            local.raised = error
            raise

    return call


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function to return NULL if an argument is NULL."""
    return lambda *arguments: None if None in arguments else function(*arguments)


def formatted(pattern: str, *values: str) -> str:
    """Formats like PostgreSQL's format().

    >>> formatted("%s is %I", "x", "Y")
    'x is "Y"'
    """
    left = iter(values)
    convert = {"%s": str, "%I": quoted, "%L": lambda t: "'" + t.replace("'", "''") + "'"}
    return re.sub("%[sIL%]", lambda m: "%" if m[0] == "%%" else convert[m[0]](next(left)), pattern)


def pretty_size(size: int) -> str:
    """Formats a number of bytes like PostgreSQL's pg_size_pretty().

    >>> pretty_size(8192), pretty_size(20 << 20)
    ('8192 bytes', '20 MB')
    """
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if abs(size) < 10 * 1024:
            return f"{size} {unit}"
        size = (size + 512) // 1024
    return f"{size} PB"
