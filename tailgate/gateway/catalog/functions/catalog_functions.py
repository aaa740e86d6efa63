"""PostgreSQL's catalog functions, computed from the facts of a catalog and a session.

Each is a Python function that DuckDB calls once per value, registered as
pg_<name>_<number of arguments>, so `rewrite` chooses by arity. A call takes about 1 µs, which is
enough for catalogs of thousands of rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import duckdb
from duckdb.func import SPECIAL

from tailgate.gateway.catalog.functions import fixed_names
from tailgate.gateway.catalog.functions.context import FunctionContext, FunctionGroup, Listed, nothing, yes, zero
from tailgate.gateway.catalog.functions.definitions import DefinitionFunctions
from tailgate.gateway.catalog.functions.identifiers import IdentifierFunctions
from tailgate.gateway.catalog.functions.object_names import Facts, Session
from tailgate.gateway.catalog.functions.privileges import Privileges
from tailgate.gateway.catalog.relations.signatures import ENCODINGS
from tailgate.gateway.settings.definitions import SERVER_VERSION
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.roles import OPERATOR_ID
from tailgate.lake.errors import ObjectNotInPrerequisiteState, TailgateError
from tailgate.sql.compute.regexp.functions import regexp_part, regexp_replace
from tailgate.sql.compute.text.formatting import format_text
from tailgate.sql.compute.text.strings import character, quote_literal
from tailgate.sql.compute.time.date_formats import to_char_timestamptz, to_char_zoned
from tailgate.sql.render.duckdb_functions import with_signature
from tailgate.values.times.zones import of_session

DUCKDB_TYPES = {
    "oid": "BIGINT",
    "int": "BIGINT",
    "text": "VARCHAR",
    "bool": "BOOLEAN",
    "float8": "DOUBLE",
    "text[]": "VARCHAR[]",
    "acl[]": "STRUCT(grantor UINTEGER, grantee UINTEGER, privilege_type VARCHAR, is_grantable BOOLEAN)[]",
    "timestamptz": "TIMESTAMPTZ",
}
STARTED = datetime.now(timezone.utc)  # of this gateway: its process imports this module when it starts
VERSION = f"PostgreSQL {SERVER_VERSION} (Tailgate)"  # drivers read the number after the first word


class Functions(FunctionGroup):
    """All functions, by (name, number of arguments): argument types, result type, implementation.

    They answer for the session of `asked` on the same thread, because DuckDB calls them on the
    thread that executes the query.
    """

    def __init__(self) -> None:
        super().__init__(FunctionContext())
        self._names = IdentifierFunctions(self.context)
        self._definitions = DefinitionFunctions(self.context, self._names)
        self.privileges = Privileges(self.context, self._names)
        self.all: dict[tuple[str, int], tuple[list[str], str, Callable[..., Any]]] = {}
        for signature, function in self._listed():
            match = re.fullmatch(r"(\w+)\((.*)\) (\S+)", signature)
            assert match is not None, signature
            name, arguments, result = match.groups()
            types = [a.strip() for a in arguments.split(",") if a.strip()]
            self.all[name, len(types)] = (types, result, function)

    def install(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Registers all functions in a DuckDB connection."""
        parsed: dict[str, Any] = {name: connection.sqltype(type) for name, type in DUCKDB_TYPES.items()}
        for (name, count), (types, result, function) in self.all.items():
            wrapped = _telling(function if name in NULL_ACCEPTED else _strict(function), self.context)
            parameters = [parsed[t] for t in types]
            connection.create_function(
                f"pg_{name}_{count}",
                with_signature(wrapped, parameters, parsed[result]),
                parameters,
                parsed[result],
                null_handling=SPECIAL,
                side_effects=count == 0 or name in ("set_config", "pg_cancel_backend", "pg_terminate_backend", "pg_notify"),
            )

    def _listed(self) -> list[Listed]:
        """Returns (signature, implementation) of each function."""
        return [*self._names.listed(), *self._definitions.listed(), *self._privilege_functions(), *self._session_functions(), *OTHERS]

    def _privilege_functions(self) -> list[Listed]:
        may = self.privileges
        return [
            ("has_database_privilege(text, text) bool", lambda o, p: may.has_database_privilege(None, o, p)),
            ("has_database_privilege(text, text, text) bool", may.has_database_privilege),
            ("has_schema_privilege(text, text) bool", lambda o, p: may.has_schema_privilege(None, o, p)),
            ("has_schema_privilege(text, text, text) bool", may.has_schema_privilege),
            ("has_table_privilege(text, text) bool", lambda o, p: may.has_table_privilege(None, o, p)),
            ("has_table_privilege(text, text, text) bool", may.has_table_privilege),
            ("has_any_column_privilege(text, text) bool", lambda o, p: may.has_any_column_privilege(None, o, p)),
            ("has_any_column_privilege(text, text, text) bool", may.has_any_column_privilege),
            ("has_column_privilege(text, text, text) bool", lambda o, c, p: may.has_column_privilege(None, o, c, p)),
            ("has_column_privilege(text, text, text, text) bool", may.has_column_privilege),
            ("has_function_privilege(text, text) bool", yes),
            ("has_type_privilege(text, text) bool", lambda o, p: may.has_type_privilege(None, o, p)),
            ("has_type_privilege(text, text, text) bool", may.has_type_privilege),
            ("has_sequence_privilege(text, text) bool", lambda o, p: may.has_sequence_privilege(None, o, p)),
            ("has_sequence_privilege(text, text, text) bool", may.has_sequence_privilege),
            ("acl_entries(text[]) acl[]", may.acl_entries),
            ("acldefault(text, oid) text[]", may.acldefault),
            ("has_parameter_privilege(text, text) bool", lambda n, p: may.has_parameter_privilege(None, p)),
            ("has_parameter_privilege(text, text, text) bool", lambda r, n, p: may.has_parameter_privilege(r, p)),
            ("pg_has_role(text, text) bool", lambda r, p: may.pg_has_role(None, r, p)),
            ("pg_has_role(text, text, text) bool", may.pg_has_role),
            ("operator() text", lambda: self.roles[OPERATOR_ID]),
        ]

    def _session_functions(self) -> list[Listed]:
        s = self
        return [
            ("pg_cancel_backend(int) bool", lambda p: s._session.signal(p, terminate=False)),
            ("pg_terminate_backend(int) bool", lambda p: s._session.signal(p, terminate=True)),
            ("pg_terminate_backend(int, int) bool", lambda p, _: s._session.signal(p, terminate=True)),
            ("pg_reload_conf() bool", lambda: s._session.reload_settings()),
            ("current_setting(text) text", s.current_setting),
            ("current_setting(text, bool) text", s.current_setting),
            ("set_config(text, text, bool) text", lambda name, value, local: s._session.settings.set(name, value, local=local)),
            ("current_database() text", lambda: s._session.database),
            ("current_user() text", s.current_user),
            ("session_user() text", s.session_user),
            ("version() text", lambda: VERSION),
            ("pg_backend_pid() int", lambda: s._session.process),
            ("pg_is_in_recovery() bool", lambda: False),
            ("pg_is_wal_replay_paused() bool", not_in_recovery),
            ("time_text(int, text) text", s.time_text),
            ("pg_export_snapshot() text", lambda: s._session.export_snapshot()),
            ("pg_advisory_unlock_all() text", lambda: s._session.release_advisory_locks()),
            ("pg_postmaster_start_time() timestamptz", lambda: STARTED),
            ("pg_notify(text, text) text", s.notify),
            ("pg_listening_channels() text[]", lambda: s._session.listening_channels()),
            ("pg_notification_queue_usage() float8", lambda: s._session.notification_queue_usage()),
            ("txid_current() int", lambda: 1),
            ("inet_server_port() int", nothing),
            ("inet_server_addr() text", nothing),
            ("inet_client_addr() text", nothing),
            ("inet_client_port() int", nothing),
        ]

    @contextmanager
    def asked(self, session: Session, catalog: Catalog, facts: Facts) -> Iterator[None]:
        """Sets what functions on this thread answer for; `catalog` is as the session sees it."""
        local = self.context
        before = local.session, local.catalog, local.facts, local.roles
        local.session, local.catalog, local.facts = session, catalog, facts
        local.roles = facts.roles if facts.catalog.has_roles else {**facts.roles, OPERATOR_ID: session.user}
        local.path, local.raised = None, None
        try:
            yield
        finally:
            local.session, local.catalog, local.facts, local.roles = before

    @property
    def raised(self) -> TailgateError | None:
        """Returns the last error of a function on this thread."""
        return self.context.raised

    def notify(self, channel: str | None, payload: str | None) -> str:
        return self._session.notify(channel or "", payload or "")

    # --- the session

    def time_text(self, moment: int, pattern: str) -> str | None:
        """Returns to_char of microseconds since 1970 in the zone of the session."""
        zone = of_session(self._session.settings["timezone"])
        return to_char_timestamptz(moment, pattern) if zone is timezone.utc else to_char_zoned(moment, pattern, zone)

    def current_user(self) -> str:
        """Returns the role of SET ROLE, or else the session user."""
        role = self._session.settings["role"]
        return self.session_user() if role in ("none", "") else role

    def session_user(self) -> str:
        """Returns the role of SET SESSION AUTHORIZATION, or else that of the sign-in."""
        return self._session.settings["session_authorization"] or self._session.user

    def current_setting(self, name: str, missing_ok: bool = False) -> str | None:
        settings, fixed = self._session.settings, fixed_names.settings().get(name.lower())
        if not settings.has(name) and (fixed is not None or missing_ok):
            return fixed
        return settings.get(name)[1]


def not_in_recovery() -> bool:
    """Raises 55000, as PostgreSQL's functions about recovery do."""
    hint = "Recovery control functions can only be executed during recovery."
    raise ObjectNotInPrerequisiteState("recovery is not in progress", hint=hint)


NULL_ACCEPTED = {"format_type", "format", "pg_notify"}


def _telling(function: Callable[..., Any], local: FunctionContext) -> Callable[..., Any]:
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


def formatted(pattern: str | None, *values: str | None) -> str | None:
    """Formats like PostgreSQL's format(). Values may be NULL.

    >>> formatted("%s is %I", "x", "Y"), formatted("%s%L", None, None)
    ('x is "Y"', 'NULL')
    """
    return None if pattern is None else format_text(pattern, list(values))


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


BTREE = 403  # the oid of the access method
# pg_indexam_has_property of B-trees
BTREE_PROPERTIES = dict.fromkeys(("can_order", "can_unique", "can_multi_col", "can_exclude", "can_include"), True)

OTHERS: list[Listed] = [
    ("pg_encoding_to_char(int) text", lambda n: ENCODINGS[n] if 0 <= n < len(ENCODINGS) else ""),
    ("pg_char_to_encoding(text) int", lambda n: ENCODINGS.index(n.upper()) if n.upper() in ENCODINGS else -1),
    ("chr(int) text", character),
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
    ("pg_tablespace_location(oid) text", lambda o: ""),
    ("pg_indexam_has_property(oid, text) bool", lambda method, name: BTREE_PROPERTIES.get(name) if method == BTREE else None),
    ("pg_sequence_last_value(oid) int", nothing),
    ("format(text, text) text", formatted),
    ("format(text, text, text) text", formatted),
    ("format(text, text, text, text) text", formatted),
    ("quote_literal(text) text", quote_literal),
    # their names differ from PostgreSQL's: a call of these functions alone does not make a query one of the system catalog
    ("matched_part(text, text) text", regexp_part),
    ("regexp_replaced(text, text, text) text", lambda text, pattern, by: regexp_replace(text, pattern, by, "")),
    ("regexp_replaced(text, text, text, text) text", regexp_replace),
]
