"""Statements: text to frozen values.

text ──► split ──► parse: our words first (`parsing.STATEMENTS`) ──► values
                      ├─ a query ──► sql.grammar
                      ├─ known elsewhere and not here ──► 0A000 by name (`refused`)
                      └─ anything else ──► 42601 with its position
"""

from sql.statements.parsing import parse, split
from sql.statements.values import (
    SHOWS,
    AlterRole,
    Avro,
    Begin,
    Bytes,
    CloseCursor,
    ColumnDefinition,
    Commit,
    CopyTo,
    CreateRole,
    CreateSink,
    CreateSource,
    CreateView,
    Deallocate,
    DeclareCursor,
    Discard,
    Drop,
    DropRole,
    Empty,
    Envelope,
    Execute,
    Explain,
    Fetch,
    Format,
    Grant,
    Include,
    Json,
    Name,
    ObjectKind,
    Options,
    OptionValue,
    Prepare,
    QueryText,
    Release,
    Reset,
    RoleOptions,
    Rollback,
    RollbackTo,
    Savepoint,
    Select,
    Set,
    Show,
    Statement,
    StatementText,
    Tail,
    Text,
    option,
)

__all__ = [
    "SHOWS", "AlterRole", "Avro", "Begin", "Bytes", "CloseCursor", "ColumnDefinition", "Commit", "CopyTo", "CreateRole", "CreateSink",
    "CreateSource", "CreateView", "Deallocate", "DeclareCursor", "Discard", "Drop", "DropRole", "Empty", "Envelope", "Execute",
    "Explain", "Fetch", "Format", "Grant", "Include", "Json", "Name", "ObjectKind", "OptionValue", "Options", "Prepare", "QueryText",
    "Release", "Reset", "RoleOptions", "Rollback", "RollbackTo", "Savepoint", "Select", "Set", "Show", "Statement", "StatementText",
    "Tail", "Text", "option", "parse", "split",
]  # fmt: skip
