"""The union of all statements."""

from __future__ import annotations

from typing import TypeAlias

from tailgate.sql.statements.asked import (
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
from tailgate.sql.statements.defined import (
    AlterItem,
    AlterSchema,
    Comment,
    CommentOnFunction,
    CreateFunction,
    CreateIndex,
    CreateSchema,
    CreateSubscription,
    CreateView,
    Drop,
    DropFunction,
    DropSchema,
)
from tailgate.sql.statements.external import (
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
from tailgate.sql.statements.sessions import (
    AlterRole,
    Begin,
    Commit,
    CreateRole,
    Deallocate,
    Discard,
    DropRole,
    Execute,
    Grant,
    GrantRole,
    Prepare,
    Release,
    Reset,
    Rollback,
    RollbackTo,
    Savepoint,
    Set,
)
from tailgate.sql.statements.values import Empty
from tailgate.sql.statements.written import CopyFrom, CreateTable, Delete, Insert, Truncate, Update

Statement: TypeAlias = (
    CreateSource | CreateView | CreateSink | CreateTable | Drop | Select | Tail | Show | Explain | DeclareCursor | Fetch | CloseCursor
    | CopyTo | CopyFrom | Insert | Update | Delete | Truncate | Begin | Commit | Rollback | Savepoint | Release | RollbackTo | Set | Reset
    | Discard | Prepare | Execute | Deallocate | Empty | AlterItem | AlterSchema | Comment | CreateSchema | DropSchema
    | CreateRole | AlterRole | DropRole | Grant | GrantRole | Pause | RetryDeadLetters | Print | CreateFunction | DropFunction
    | CommentOnFunction
    | CreateIndex | CreateSubscription | FetchSubscription | Acknowledge | CreateSecret | AlterSecret | CreateConnection
    | ValidateConnection | RefreshSchema | ResumeSource | DeleteDeadLetters
)  # fmt: skip
