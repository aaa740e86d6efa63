"""Statements that only ksqlDB has. Its other statements are values that PostgreSQL's dialect has, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tailgate.lake.catalog.names import Name
from tailgate.sql.ksqldb.statements import (
    AddColumns,
    AssertSchema,
    AssertTopic,
    CreateAs,
    CreateConnector,
    CreateItem,
    CreateType,
    DropConnector,
    InsertQuery,
    InsertValues,
    PushQuery,
)


@dataclass(frozen=True, slots=True)
class CreateKsqldbItem:
    """CREATE {STREAM | TABLE}: declared over a topic, or AS a query. `reset`: the property auto.offset.reset."""

    name: Name
    statement: CreateItem | CreateAs
    if_not_exists: bool = False
    reset: Literal["earliest", "latest"] = "latest"


@dataclass(frozen=True, slots=True)
class AlterKsqldbItem:
    """ALTER {STREAM | TABLE} name ADD [COLUMN] …: adds columns to a declared stream or table."""

    name: Name
    statement: AddColumns


@dataclass(frozen=True, slots=True)
class CreateKsqldbType:
    """CREATE TYPE [IF NOT EXISTS] name AS type."""

    name: Name
    statement: CreateType


@dataclass(frozen=True, slots=True)
class DropKsqldbType:
    """DROP TYPE [IF EXISTS] name."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class InsertMessage:
    """INSERT INTO name … VALUES: writes a message to the topic of a stream or table."""

    name: Name
    statement: InsertValues


@dataclass(frozen=True, slots=True)
class InsertStream:
    """INSERT INTO name SELECT …: a persistent query that writes to a declared stream. `reset`: as in CreateKsqldbItem."""

    name: Name
    statement: InsertQuery
    reset: Literal["earliest", "latest"] = "latest"


@dataclass(frozen=True, slots=True)
class ControlQueries:
    """{TERMINATE | PAUSE | RESUME} {query | ALL}. `query`: the id of a persistent query; None for all that the role owns."""

    action: Literal["terminate", "pause", "resume"]
    query: str | None


@dataclass(frozen=True, slots=True)
class AssertKafka:
    """ASSERT TOPIC, ASSERT SCHEMA."""

    statement: AssertTopic | AssertSchema


@dataclass(frozen=True, slots=True)
class ChangeConnector:
    """CREATE {SOURCE | SINK} CONNECTOR, DROP CONNECTOR: changes a connector of Kafka Connect."""

    statement: CreateConnector | DropConnector


@dataclass(frozen=True, slots=True)
class PullKsqldb:
    """SELECT … [LIMIT n] without EMIT. `text`: as typed."""

    statement: PushQuery
    text: str

    @property
    def reads(self) -> tuple[Name, ...]:
        """Returns the names of the streams and tables that it reads."""
        return tuple(Name(source.name) for source in self.statement.query.sources)


@dataclass(frozen=True, slots=True)
class FollowKsqldb:
    """SELECT … EMIT CHANGES [LIMIT n]. `text`: as typed."""

    statement: PushQuery
    text: str

    @property
    def reads(self) -> tuple[Name, ...]:
        """Returns the names of the streams and tables that it reads."""
        return tuple(Name(source.name) for source in self.statement.query.sources)
