"""Parses the statements of ksqlDB. Many of them become statements that PostgreSQL's dialect has, too."""

from __future__ import annotations

from typing import TypeAlias

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.ksqldb import parser
from tailgate.sql.ksqldb import statements as k
from tailgate.sql.ksqldb.declared import refusals
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.statements.definitions import Drop
from tailgate.sql.statements.ksqldb_statements import (
    AlterKsqldbItem,
    AssertKafka,
    ChangeConnector,
    ControlQueries,
    CreateKsqldbItem,
    CreateKsqldbType,
    DropKsqldbType,
    FollowKsqldb,
    InsertMessage,
    InsertStream,
    PullKsqldb,
)
from tailgate.sql.statements.queries import Explain, KsqldbQuery, QueryId, Show
from tailgate.sql.statements.session_statements import Define, Set

Parsed: TypeAlias = (
    CreateKsqldbItem
    | AlterKsqldbItem
    | CreateKsqldbType
    | DropKsqldbType
    | ControlQueries
    | FollowKsqldb
    | PullKsqldb
    | InsertMessage
    | InsertStream
    | AssertKafka
    | ChangeConnector
    | Drop
    | Explain
    | Show
    | Set
    | Define
)


def parse(text: str) -> Parsed:
    """Parses a statement of ksqlDB. Raises 0A000 with its name if it is not executed."""
    statement = parser.parse(text)
    refusals.check(statement, text)
    match statement:
        case k.CreateItem(name=name) | k.CreateAs(name=name):
            return CreateKsqldbItem(Name(name, position=statement.position), statement, statement.if_not_exists)
        case k.AddColumns(name=name):
            return AlterKsqldbItem(Name(name, position=statement.position), statement)
        case k.CreateType(name=name):
            return CreateKsqldbType(Name(name, position=statement.position), statement)
        case k.DropType(name=name, if_exists=exists):
            return DropKsqldbType(Name(name, position=statement.position), exists)
        case k.InsertValues(name=name):
            return InsertMessage(Name(name, position=statement.position), statement)
        case k.InsertQuery(name=name):
            return InsertStream(Name(name, position=statement.position), statement)
        case k.ControlQuery(action=action, query=query):
            return ControlQueries(action, None if query is None else ksqldb_name(query))
        case k.AssertTopic() | k.AssertSchema():
            return AssertKafka(statement)
        case k.CreateConnector() | k.DropConnector():
            return ChangeConnector(statement)
        case k.ExplainQuery(query=query, position=at):
            explained = text[at:].rstrip("; \t\r\n")
            return Explain(QueryId(ksqldb_name(query)) if isinstance(query, str) else KsqldbQuery(query, explained))
        case k.PushQuery(query=select):
            return FollowKsqldb(statement, text) if select.emit else PullKsqldb(statement, text)
        case k.DropItem(type=item_type, name=name):
            names, delete_topic = (Name(name, position=statement.position),), statement.delete_topic
            return Drop(item_type, names, statement.if_exists, delete_topic=delete_topic, of_ksqldb=True)
        case k.DefineVariable(name=name, value=value):
            return Define(name, value)
        case k.SetProperty(name=name, value=value):
            return Set(refusals.property_name(name), () if value is None else (value.lower(),))
        case (
            k.ListItems(what="streams" | "tables" as what, extended=True) | k.DescribeItem(kind="streams" | "tables" as what, extended=True)
        ):
            return Show(f"describe {what} extended")
        case k.ListItems(what="topics", extended=extended, all=all):
            return Show("topics extended" if extended else "topics", hidden=all)
        case k.ListItems(what="queries", extended=True):
            return Show("queries extended")
        case k.DescribeItem(kind="streams" | "tables" as what):
            return Show(f"describe {what}")
        case k.ListItems(what=what):
            return Show(f"ksqldb {what}" if what in ("tables", "functions") else what)
        case k.DescribeItem(name=name, kind="function"):
            return Show("describe function", setting=name)
        case k.DescribeItem(name=name, kind="connector"):
            return Show("describe connector", setting=ksqldb_name(name))
        case k.DescribeItem(name=name):
            return Show("describe extended" if statement.extended else "describe", Name(name, position=statement.position))
    raise FeatureNotSupported(f"{type(statement).__name__} is not supported")
