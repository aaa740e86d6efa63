"""Statements: text to frozen values.

text ──► split ──► parse: our words first (`parsing.STATEMENTS`) ──► values
                      ├─ a query ──► sql.grammar
                      ├─ known elsewhere and not here ──► 0A000 by name (`refused`)
                      └─ anything else ──► 42601 with its position
"""

from sql.statements.parsing import parse, split
from sql.statements.values import (
    SHOWS,
    Avro,
    Begin,
    Bytes,
    CloseCursor,
    ColumnDefinition,
    Commit,
    CopyTo,
    CreateSink,
    CreateSource,
    CreateView,
    Deallocate,
    DeclareCursor,
    Discard,
    Drop,
    Empty,
    Envelope,
    Execute,
    Explain,
    Fetch,
    Format,
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
    "SHOWS", "Avro", "Begin", "Bytes", "CloseCursor", "ColumnDefinition", "Commit", "CopyTo", "CreateSink", "CreateSource",
    "CreateView", "Deallocate", "DeclareCursor", "Discard", "Drop", "Empty", "Envelope", "Execute", "Explain", "Fetch", "Format",
    "Include", "Json", "Name", "ObjectKind", "OptionValue", "Options", "Prepare", "QueryText", "Release", "Reset", "Rollback",
    "RollbackTo", "Savepoint", "Select", "Set", "Show", "Statement", "StatementText", "Tail", "Text", "option", "parse", "split",
]  # fmt: skip
