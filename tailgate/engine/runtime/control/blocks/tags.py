"""Command tags of statements that change the catalog."""

from __future__ import annotations

from tailgate.sql.statements import (
    AlterItem,
    AlterKsqldbItem,
    AlterRole,
    AlterSettings,
    ControlQueries,
    CreateKsqldbItem,
    CreateRole,
    CreateView,
    Drop,
    DropRole,
    Grant,
    GrantRole,
    Pause,
    Statement,
)
from tailgate.sql.statements.kinds import kind_of


def tag_of(statement: Statement) -> str:
    """Returns the command tag of a statement that changes the catalog, empty for other statements without a constant one."""
    match statement:
        case Drop(kind=kind):
            return f"DROP {kind.upper()}"
        case AlterItem(kind=kind):
            return f"ALTER {kind.upper()}"
        case AlterKsqldbItem(statement=added):
            return f"ALTER {added.type.upper()}"
        case CreateKsqldbItem(statement=created):
            return f"CREATE {created.type.upper()}"
        case CreateView(materialized=True):
            return "CREATE MATERIALIZED VIEW"
        case Pause(resume=resume):
            return "RESUME SOURCE" if resume else "PAUSE SOURCE"
        case ControlQueries(action=action):
            return action.upper()
        case Grant(grants=grants):
            return "GRANT" if grants else "REVOKE"
        case GrantRole(grants=grants):
            return "GRANT ROLE" if grants else "REVOKE ROLE"
        case CreateRole():
            return "CREATE ROLE"
        case AlterRole():
            return "ALTER ROLE"
        case AlterSettings(role=role, database=database):
            return "ALTER DATABASE" if role is None and database else "ALTER ROLE"
        case DropRole():
            return "DROP ROLE"
        case _:
            return kind_of(statement).tag
