"""The union of all statements, and PREPARE, which contains another statement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tailgate.lake.types import Type
from tailgate.sql.statements.definitions import (
    AlterFunction,
    AlterItem,
    AlterSchema,
    AlterSequence,
    CancelBackfill,
    Comment,
    CommentOnFunction,
    CreateAlert,
    CreateEndpoint,
    CreateFunction,
    CreateIndex,
    CreateObjective,
    CreateSchema,
    CreateSequence,
    CreateSubscription,
    CreateView,
    Drop,
    DropAbsent,
    DropFunction,
    DropSchema,
    Silence,
)
from tailgate.sql.statements.kafka_statements import (
    AlterSecret,
    CreateConnection,
    CreateSecret,
    CreateSink,
    CreateSource,
    DeleteDeadLetters,
    Pause,
    Print,
    RefreshSchema,
    ResumeSource,
    RetryDeadLetters,
    ValidateConnection,
)
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
from tailgate.sql.statements.queries import (
    Acknowledge,
    CloseCursor,
    CopyTo,
    DeclareCursor,
    Explain,
    Fetch,
    FetchSubscription,
    Select,
    Show,
    Tail,
)
from tailgate.sql.statements.session_statements import (
    AlterDefaultPrivileges,
    AlterRole,
    AlterSettings,
    AlterSystem,
    Begin,
    CommentOnExtension,
    Commit,
    CreateExtension,
    CreateRole,
    CreateTemporaryFunction,
    CreateToken,
    Deallocate,
    Define,
    Discard,
    Do,
    DropOwned,
    DropRole,
    DropToken,
    Execute,
    Grant,
    GrantRole,
    Listen,
    Notify,
    ReassignOwned,
    Release,
    Reset,
    Rollback,
    RollbackTo,
    Savepoint,
    Set,
    SetConstraints,
    Unlisten,
)
from tailgate.sql.statements.tables import AlterTable, Checkpoint, Cluster, CreateTable, Lock, Refresh, Reindex, Vacuum
from tailgate.sql.statements.types import AlterDomain, AlterType, CreateComposite, CreateDomain, CreateEnum
from tailgate.sql.statements.values import Empty
from tailgate.sql.statements.writes import CopyFrom, CreateTableAs, Delete, Insert, Merge, Truncate, Update, WithWrites


@dataclass(frozen=True, slots=True)
class Prepare:
    """PREPARE name [(types)] AS statement. `text` is the text of the inner statement. `positions`: of the types."""

    name: str
    types: tuple[Type, ...]
    statement: Statement
    text: str
    positions: tuple[int, ...] = field(default=(), compare=False, repr=False)


Statement: TypeAlias = (
    CreateSource | CreateView | CreateSink | CreateTable | Drop | Select | Tail | Show | Explain | DeclareCursor | Fetch | CloseCursor
    | CopyTo | CopyFrom | Insert | Update | Delete | Truncate | Begin | Commit | Rollback | Savepoint | Release | RollbackTo | Set | Reset
    | Define | Discard | Listen | Unlisten | Notify | Prepare | Execute | Deallocate | Do | Empty
    | AlterItem | AlterSchema | Comment | CreateSchema | DropSchema
    | CreateRole | AlterRole | DropRole | Grant | GrantRole | Pause | RetryDeadLetters | Print | CreateFunction | DropFunction
    | AlterSystem | AlterFunction | CommentOnExtension | CommentOnFunction | CreateTableAs | AlterTable | AlterSequence | SetConstraints
    | CreateIndex | CreateSubscription | FetchSubscription | Acknowledge | CreateSecret | AlterSecret | CreateConnection
    | ValidateConnection | RefreshSchema | ResumeSource | DeleteDeadLetters | CreateEndpoint | CreateToken | DropToken
    | DropOwned | ReassignOwned
    | CreateObjective | CreateAlert | Silence | CreateSequence | CreateKsqldbItem | AlterKsqldbItem | ControlQueries | FollowKsqldb
    | CreateKsqldbType | DropKsqldbType | ChangeConnector | CreateEnum | AlterType | CreateDomain | AlterDomain | CancelBackfill
    | PullKsqldb | InsertMessage | InsertStream | AssertKafka | Refresh | Vacuum | Reindex | Cluster | Checkpoint | Lock | Merge
    | WithWrites | CreateComposite | CreateExtension | CreateTemporaryFunction | AlterSettings | AlterDefaultPrivileges | DropAbsent
)  # fmt: skip
