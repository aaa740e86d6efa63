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
from sql.statements.written import (
    Assignment,
    ColumnName,
    CopyFrom,
    CreateTable,
    Default,
    Delete,
    Expression,
    Given,
    Insert,
    OnConflict,
    Returned,
    TableColumn,
    Truncate,
    Update,
)

__all__ = [
    "SHOWS", "AlterRole", "Assignment", "Avro", "Begin", "Bytes", "CloseCursor", "ColumnDefinition", "ColumnName", "Commit", "CopyFrom",
    "CopyTo", "CreateRole", "CreateSink", "CreateSource", "CreateTable", "CreateView", "Deallocate", "DeclareCursor", "Default", "Delete",
    "Discard", "Drop", "DropRole", "Empty", "Envelope", "Execute", "Explain", "Expression", "Fetch", "Format", "Given", "Grant", "Include",
    "Insert", "Json", "Name", "ObjectKind", "OnConflict", "OptionValue", "Options", "Prepare", "QueryText", "Release", "Reset", "Returned",
    "RoleOptions", "Rollback", "RollbackTo", "Savepoint", "Select", "Set", "Show", "Statement", "StatementText", "TableColumn", "Tail",
    "Text", "Truncate", "Update", "option", "parse", "split",
]  # fmt: skip
