"""The statements of ksqlDB as the other packages see them: many are statements that PostgreSQL's dialect has, too."""

from __future__ import annotations

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.ksqldb import parser, refusals
from tailgate.sql.ksqldb import statements as k
from tailgate.sql.statements.queries import Show
from tailgate.sql.statements.session_statements import Set


def parse(text: str) -> Set | Show:
    """Parses a statement of ksqlDB. Raises 0A000 with its name if it is not executed."""
    statement = parser.parse(text)
    refusals.check(statement)
    match statement:
        case k.SetProperty(name=name, value=value):
            return Set(name.lower(), () if value is None else (value.lower(),))
        case k.ListItems(what="topics"):
            return Show("topics")
    raise FeatureNotSupported(f"{type(statement).__name__} is not supported")
