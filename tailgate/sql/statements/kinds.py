"""The table of statement kinds: parser, needed privileges, place of execution and result of each kind.

    first words ──► parser ──► a statement ──► kind_of ──► needs: gateway.security.ownership
                                                     └─► place: gateway.handlers.dispatch, and for CATALOG the engine

A new kind of statement is a class in one of the modules `queries`, `writes`, `definitions`,
`kafka_statements`, `ksqldb_statements` and `session_statements`, a parser in `parsers`, and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tailgate.lake.catalog.item_fields import namespace_of
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements import definitions as d
from tailgate.sql.statements import kafka_statements as k
from tailgate.sql.statements import ksqldb_statements as ksqldb
from tailgate.sql.statements import queries as q
from tailgate.sql.statements import session_statements as s
from tailgate.sql.statements import tables as t
from tailgate.sql.statements import types as e
from tailgate.sql.statements import writes as w
from tailgate.sql.statements.needs import (
    AdministerRoles,
    BeSuperuser,
    CreateItem,
    GiveSchemas,
    HoldPrivilege,
    Needs,
    OwnFunctions,
    OwnItems,
    OwnQuery,
    OwnSchemas,
    checked_by_engine,
    of_alter,
    of_alter_function,
    of_alter_role,
    of_alter_settings,
    of_alter_table,
    of_alter_type,
    of_comment,
    of_connected,
    of_connection_use,
    of_create_role,
    of_create_table,
    of_drop_role,
    of_explain,
    of_function,
    of_grant,
    of_new_item,
    of_new_type,
    of_owner,
    of_schema,
    of_sequence,
    of_show,
    of_stream_insert,
    of_token,
)
from tailgate.sql.statements.parsers import (
    alter,
    clauses,
    copying,
    cursors,
    explain,
    functions,
    indexes,
    objects,
    schemas,
    sequences,
    session_parser,
    subscriptions,
)
from tailgate.sql.statements.parsers import writes as write_parsers
from tailgate.sql.statements.parsers.kafka import connections, source_commands, sources_and_sinks
from tailgate.sql.statements.parsers.monitoring import alerts, objectives
from tailgate.sql.statements.parsers.roles import default_privileges, roles, settings
from tailgate.sql.statements.parsers.tables import create_table, maintenance
from tailgate.sql.statements.parsers.types import domains, enums
from tailgate.sql.statements.parsers.web import endpoints, tokens
from tailgate.sql.statements.statement import Prepare, Statement
from tailgate.sql.statements.values import Empty


class Place(Enum):
    """The place where a statement runs."""

    QUERY = "query"  # the gateway, which reads its mirrors, the log or the catalog
    WRITE = "write"  # the gateway evaluates the write, and the engine commits it
    SESSION = "session"  # the session in the gateway
    CATALOG = "catalog"  # the engine, which changes the catalog or the sources


Parse = Callable[[Parser], Statement]


def after(first: str, parser: Parse, *kinds: str) -> dict[str, Parse]:
    """Returns the entries of a statement whose parser begins after its first words.

    The entries are these words, or these words with each of `kinds`, which the parser reads.

    >>> list(after("CREATE", lambda cursor: Empty(), "INDEX", "UNIQUE INDEX"))
    ['CREATE INDEX', 'CREATE UNIQUE INDEX']
    """

    def parse(cursor: Parser) -> Statement:
        cursor.expect_word(*first.lower().split())
        return parser(cursor)

    return {f"{first} {kind}": parse for kind in kinds} or {first: parse}


def nothing(statement: Any) -> Needs:
    """Returns the needs of statements that never reach the engine.

    The relations that a query or a write reads are checked with its plan (`sql.authorization`).
    """
    return ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table.

    `parsers`: the words that begin the statement, each with a parser. Kinds with the same words share the parser. Without one, `parsing`
    recognizes the statement itself. `rows`: the statement can return rows. `tag`: its command tag, empty if it depends on the statement
    or on its result. `ends_failed_block`: it may run in a failed transaction block.
    """

    statement: type
    parsers: Mapping[str, Parse]
    place: Place
    needs: Callable[[Any], Needs] = nothing
    rows: bool = False
    tag: str = ""
    ends_failed_block: bool = False


# --- the table -------------------------------------------------------------------------------------------------------------------

QUERY, WRITE, SESSION, CATALOG = Place
TEMPORARY = ("TEMPORARY", "TEMP", "LOCAL TEMPORARY", "LOCAL TEMP", "GLOBAL TEMPORARY", "GLOBAL TEMP")
TABLES = {
    **after("CREATE TABLE", create_table.create_table),
    **after("CREATE UNLOGGED TABLE", create_table.create_table),
    **dict(item for word in TEMPORARY for item in after(f"CREATE {word} TABLE", create_table.temporary_table).items()),
}
SEQUENCES = after("CREATE SEQUENCE", sequences.create_sequence) | dict(
    item for word in TEMPORARY for item in after(f"CREATE {word} SEQUENCE", sequences.temporary_sequence).items()
)

TABLE: tuple[Kind, ...] = (
    # queries; SELECT, VALUES, TABLE and WITH are recognized by the grammar of queries
    Kind(q.Select, {}, QUERY, rows=True),
    Kind(q.Tail, {"TAIL": cursors.tail, "SUBSCRIBE": cursors.subscribe}, QUERY, rows=True),
    Kind(q.Show, {"SHOW": objects.show}, QUERY, of_show, rows=True, tag="SHOW"),
    Kind(q.Explain, {"EXPLAIN": explain.explain}, QUERY, of_explain, rows=True, tag="EXPLAIN"),
    Kind(q.Fetch, {"FETCH": cursors.fetch, "MOVE": cursors.fetch}, QUERY, rows=True),
    Kind(q.FetchSubscription, {"FETCH": cursors.fetch}, QUERY, rows=True),
    Kind(q.CopyTo, {"COPY": copying.copy}, QUERY, rows=True),
    Kind(s.Execute, {"EXECUTE": clauses.execute}, QUERY, rows=True),
    Kind(k.Print, {"PRINT": source_commands.print_}, QUERY, lambda t: (BeSuperuser(),), rows=True, tag="PRINT"),
    # writes
    Kind(w.Insert, {"INSERT": write_parsers.insert}, WRITE, rows=True),
    Kind(w.Update, {"UPDATE": write_parsers.update}, WRITE, rows=True),
    Kind(w.Delete, {"DELETE": write_parsers.delete}, WRITE, rows=True),
    Kind(w.Merge, {"MERGE": write_parsers.merge}, WRITE), Kind(w.WithWrites, {}, WRITE, rows=True),
    Kind(w.Truncate, {"TRUNCATE": write_parsers.truncate}, WRITE, tag="TRUNCATE TABLE"),
    Kind(w.CopyFrom, {"COPY": copying.copy}, WRITE),
    Kind(t.AlterTable, {"ALTER": objects.alter}, WRITE, of_alter_table, tag="ALTER TABLE"),
    Kind(w.CreateTableAs, TABLES, WRITE, of_new_item),
    # the session
    Kind(s.Begin, {"BEGIN": session_parser.begin, "START": session_parser.begin}, SESSION),
    Kind(s.Commit, {"COMMIT": session_parser.commit, "END": session_parser.commit}, SESSION, ends_failed_block=True),
    Kind(s.Rollback, {"ROLLBACK": session_parser.rollback, "ABORT": session_parser.rollback}, SESSION, ends_failed_block=True),
    Kind(s.RollbackTo, {"ROLLBACK": session_parser.rollback}, SESSION, ends_failed_block=True),
    Kind(s.Savepoint, {"SAVEPOINT": session_parser.savepoint}, SESSION, tag="SAVEPOINT"),
    Kind(s.Release, {"RELEASE": session_parser.release}, SESSION, tag="RELEASE"),
    Kind(s.SetConstraints, after("SET CONSTRAINTS", session_parser.set_constraints), SESSION, tag="SET CONSTRAINTS"),
    Kind(s.Set, {"SET": session_parser.set_}, SESSION, tag="SET"),
    Kind(s.Reset, {"RESET": session_parser.reset}, SESSION, tag="RESET"),
    Kind(s.Define, {}, SESSION),  # with ksqlDB's grammar
    Kind(
        s.AlterSystem, after("ALTER SYSTEM", session_parser.alter_system), SESSION, lambda t: (BeSuperuser("execute ALTER SYSTEM"),),
        tag="ALTER SYSTEM",
    ),
    Kind(s.Discard, {"DISCARD": session_parser.discard}, SESSION),
    Kind(s.CreateExtension, after("CREATE EXTENSION", session_parser.create_extension), SESSION, tag="CREATE EXTENSION"),
    Kind(s.CommentOnExtension, {"COMMENT": alter.comment}, SESSION, tag="COMMENT"),
    Kind(d.DropAbsent, {"DROP": objects.drop}, SESSION),
    Kind(s.Listen, {"LISTEN": session_parser.listen}, SESSION, tag="LISTEN"),
    Kind(s.Unlisten, {"UNLISTEN": session_parser.unlisten}, SESSION, tag="UNLISTEN"),
    Kind(s.Notify, {"NOTIFY": session_parser.notify}, SESSION, tag="NOTIFY"),
    Kind(Prepare, {}, SESSION, tag="PREPARE"),
    Kind(s.Do, {}, SESSION, tag="DO"),
    Kind(s.CreateTemporaryFunction, {}, SESSION, tag="CREATE FUNCTION"),
    Kind(s.Deallocate, {"DEALLOCATE": session_parser.deallocate}, SESSION),
    Kind(q.DeclareCursor, {"DECLARE": cursors.declare}, SESSION, tag="DECLARE CURSOR"),
    Kind(q.CloseCursor, {"CLOSE": cursors.close}, SESSION),
    Kind(q.Acknowledge, {"ACKNOWLEDGE": subscriptions.acknowledge}, SESSION, tag="ACKNOWLEDGE"),
    Kind(d.Silence, {"SILENCE": alerts.silence}, SESSION, lambda t: (BeSuperuser("silence alerts"),), tag="SILENCE"),
    Kind(t.Refresh, {"REFRESH": maintenance.refresh}, SESSION, tag="REFRESH MATERIALIZED VIEW"),
    Kind(t.Vacuum, dict.fromkeys(("VACUUM", "ANALYZE", "ANALYSE"), maintenance.vacuum), SESSION),
    Kind(t.Reindex, {"REINDEX": maintenance.reindex}, SESSION, tag="REINDEX"),
    Kind(t.Cluster, {"CLUSTER": maintenance.cluster}, SESSION, tag="CLUSTER"),
    Kind(t.Checkpoint, {"CHECKPOINT": maintenance.checkpoint}, SESSION, tag="CHECKPOINT"),
    Kind(t.Lock, {"LOCK": maintenance.lock}, SESSION, tag="LOCK TABLE"),
    Kind(Empty, {}, SESSION),
    # items of the catalog
    Kind(d.CreateView, {"CREATE": objects.create}, CATALOG, lambda t: (CreateItem(t.name, t.replace),), tag="CREATE VIEW"),
    Kind(
        d.CreateFunction, after("CREATE", functions.create_function, "FUNCTION", "OR REPLACE FUNCTION"), CATALOG, of_function,
        tag="CREATE FUNCTION",
    ),
    Kind(
        d.CreateIndex, after("CREATE", indexes.create_index, "INDEX", "UNIQUE INDEX", "DEFAULT INDEX"), CATALOG,
        lambda t: (OwnItems((t.relation,)),), tag="CREATE INDEX",
    ),
    Kind(d.CreateSequence, SEQUENCES, CATALOG, of_sequence, tag="CREATE SEQUENCE"),
    Kind(
        d.CreateSubscription, after("CREATE SUBSCRIPTION", subscriptions.create_subscription), CATALOG, of_new_item,
        tag="CREATE SUBSCRIPTION",
    ),
    Kind(
        d.CreateAlert, after("CREATE", alerts.create_alert, "ALERT", "OR REPLACE ALERT"), CATALOG,
        lambda t: (BeSuperuser("create alert"), CreateItem(t.name, t.replace)), tag="CREATE ALERT",
    ),
    Kind(
        d.CreateObjective, after("CREATE", objectives.create_objective, "OBJECTIVE", "OR REPLACE OBJECTIVE"), CATALOG,
        lambda t: (CreateItem(t.name, t.replace),), tag="CREATE OBJECTIVE",
    ),
    Kind(
        d.CreateEndpoint, after("CREATE", endpoints.create_endpoint, "ENDPOINT", "OR REPLACE ENDPOINT"), CATALOG,
        lambda t: (CreateItem(t.name, t.replace, "endpoint"),), tag="CREATE ENDPOINT",
    ),
    Kind(t.CreateTable, TABLES, CATALOG, of_create_table, tag="CREATE TABLE"),
    Kind(
        k.CreateSource, after("CREATE", sources_and_sinks.create_source, "SOURCE", "MATERIALIZED SOURCE"), CATALOG, of_connected,
        tag="CREATE SOURCE",
    ),
    Kind(k.CreateSink, after("CREATE SINK", sources_and_sinks.create_sink), CATALOG, of_connected, tag="CREATE SINK"),
    Kind(k.CreateConnection, after("CREATE CONNECTION", connections.create_connection), CATALOG, of_connected, tag="CREATE CONNECTION"),
    Kind(k.CreateSecret, after("CREATE SECRET", connections.create_secret), CATALOG, of_new_item, tag="CREATE SECRET"),
    Kind(d.Drop, {"DROP": objects.drop}, CATALOG, lambda t: (OwnItems(t.names, namespace_of(t.kind)),)),
    Kind(d.DropFunction, {"DROP": objects.drop}, CATALOG, lambda t: (OwnFunctions(t.functions),), tag="DROP FUNCTION"),
    Kind(d.AlterItem, {"ALTER": objects.alter}, CATALOG, of_alter),
    Kind(d.CancelBackfill, {"CANCEL": objects.cancel_backfill}, CATALOG, of_owner, tag="CANCEL BACKFILL"),
    Kind(d.AlterSequence, {"ALTER": objects.alter}, CATALOG, of_sequence, tag="ALTER SEQUENCE"),
    Kind(e.CreateEnum, after("CREATE TYPE", enums.create_type), CATALOG, of_new_type, tag="CREATE TYPE"),
    Kind(e.CreateComposite, {}, CATALOG, of_new_type, tag="CREATE TYPE"),
    Kind(e.AlterType, {"ALTER": objects.alter}, CATALOG, of_alter_type, tag="ALTER TYPE"),
    Kind(e.CreateDomain, after("CREATE DOMAIN", domains.create_domain), CATALOG, of_new_type, tag="CREATE DOMAIN"),
    Kind(e.AlterDomain, {"ALTER": objects.alter}, CATALOG, of_alter_type, tag="ALTER DOMAIN"),
    Kind(d.Comment, {"COMMENT": alter.comment}, CATALOG, of_comment, tag="COMMENT"),
    Kind(d.AlterFunction, {"ALTER": objects.alter}, CATALOG, of_alter_function, tag="ALTER FUNCTION"),
    Kind(d.CommentOnFunction, {"COMMENT": alter.comment}, CATALOG, lambda t: (OwnFunctions((t.function,)),), tag="COMMENT"),
    # Kafka
    Kind(k.AlterSecret, {"ALTER": objects.alter}, CATALOG, of_owner, tag="ALTER SECRET"),
    Kind(k.ValidateConnection, {"VALIDATE": connections.validate}, CATALOG, of_connection_use, tag="VALIDATE CONNECTION"),
    Kind(k.Pause, {"PAUSE": source_commands.pause, "RESUME": source_commands.pause}, CATALOG, lambda t: (OwnItems(t.names),)),
    Kind(k.RefreshSchema, {"ALTER": objects.alter}, CATALOG, of_owner, tag="ALTER SOURCE"),
    Kind(k.ResumeSource, {"ALTER": objects.alter}, CATALOG, of_owner, tag="ALTER SOURCE"),
    Kind(k.RetryDeadLetters, {"RETRY": source_commands.retry}, CATALOG, of_owner),
    Kind(k.DeleteDeadLetters, {"DELETE DEAD LETTERS": source_commands.delete_dead_letters}, CATALOG, of_owner),
    # ksqlDB, with its own grammar (`sql.ksqldb`)
    Kind(ksqldb.CreateKsqldbItem, {}, CATALOG, lambda t: (CreateItem(t.name, t.statement.replace),)),
    Kind(ksqldb.AlterKsqldbItem, {}, CATALOG, of_owner),
    Kind(ksqldb.CreateKsqldbType, {}, CATALOG, of_new_type, tag="CREATE TYPE"),
    Kind(ksqldb.DropKsqldbType, {}, CATALOG, lambda t: (OwnItems((t.name,), "type"),), tag="DROP TYPE"),
    Kind(ksqldb.ControlQueries, {}, CATALOG, lambda t: (OwnQuery(t.query),)),
    Kind(ksqldb.AssertKafka, {}, CATALOG, lambda t: (BeSuperuser(),)),
    Kind(ksqldb.ChangeConnector, {}, CATALOG, lambda t: (BeSuperuser("use connectors"),)),
    Kind(ksqldb.FollowKsqldb, {}, QUERY, lambda t: (HoldPrivilege("SELECT", t.reads),), rows=True),
    Kind(ksqldb.PullKsqldb, {}, QUERY, lambda t: (HoldPrivilege("SELECT", t.reads),), rows=True),
    Kind(ksqldb.InsertMessage, {}, CATALOG, of_owner, tag="INSERT 0 1"),
    Kind(ksqldb.InsertStream, {}, CATALOG, lambda t: of_stream_insert(t.name), tag="INSERT 0 0"),
    # schemas, roles and privileges
    Kind(d.CreateSchema, after("CREATE SCHEMA", schemas.create_schema), CATALOG, of_schema, tag="CREATE SCHEMA"),
    # A schema with the name of a role comes first in that role's search_path ($user).
    Kind(d.AlterSchema, {"ALTER": objects.alter}, CATALOG, of_schema, tag="ALTER SCHEMA"),
    Kind(d.DropSchema, {"DROP": objects.drop}, CATALOG, lambda t: (OwnSchemas(t.names),), tag="DROP SCHEMA"),
    Kind(s.CreateRole, after("CREATE", roles.create_role, "ROLE", "USER", "GROUP"), CATALOG, of_create_role),
    Kind(s.AlterRole, {"ALTER": objects.alter}, CATALOG, of_alter_role),
    Kind(s.AlterSettings, {"ALTER": objects.alter, **after("ALTER DATABASE", settings.alter_database)}, CATALOG, of_alter_settings),
    Kind(
        s.AlterDefaultPrivileges, after("ALTER DEFAULT PRIVILEGES", default_privileges.alter_default_privileges), CATALOG,
        checked_by_engine, tag="ALTER DEFAULT PRIVILEGES",
    ),
    Kind(s.DropRole, {"DROP": objects.drop}, CATALOG, of_drop_role),
    Kind(s.DropOwned, {"DROP OWNED": roles.owned}, CATALOG, checked_by_engine, tag="DROP OWNED"),
    Kind(s.ReassignOwned, {"REASSIGN OWNED": roles.owned}, CATALOG, lambda t: (GiveSchemas(t.roles, t.to),), tag="REASSIGN OWNED"),
    Kind(s.CreateToken, after("CREATE TOKEN", tokens.create_token), CATALOG, of_token, rows=True, tag="CREATE TOKEN"),
    Kind(s.DropToken, after("DROP TOKEN", tokens.drop_token), CATALOG, of_token, tag="DROP TOKEN"),
    Kind(s.Grant, {"GRANT": roles.grant, "REVOKE": roles.revoke}, CATALOG, of_grant),
    Kind(s.GrantRole, {"GRANT": roles.grant, "REVOKE": roles.revoke}, CATALOG, lambda t: (AdministerRoles(t.roles),)),
)  # fmt: skip

KINDS: dict[type, Kind] = {kind.statement: kind for kind in TABLE}
# by the first word of a statement: the words that begin it, from the longest to the shortest, each with a parser
PARSERS: dict[str, list[tuple[tuple[str, ...], Parse]]] = {}
for _kind in TABLE:
    for _words, _parser in _kind.parsers.items():
        _row = tuple(_words.lower().split()), _parser
        _rows = PARSERS.setdefault(_row[0][0], [])
        if _row not in _rows:
            _rows.append(_row)
            _rows.sort(key=lambda row: -len(row[0]))


def kind_of(statement: Statement) -> Kind:
    """Returns the row of a statement."""
    return KINDS[type(statement)]


def running_at(place: Place) -> tuple[type, ...]:
    """Returns the classes of the statements that run at a place."""
    return tuple(kind.statement for kind in TABLE if kind.place is place)


def parser_at(cursor: Parser) -> Parse | None:
    """Returns the parser of the statement that begins at the cursor, or None."""
    token = cursor.token
    rows = PARSERS.get(token.value, []) if token.kind == "word" else []
    return next((parser for words, parser in rows if cursor.at_word(*words)), None)
