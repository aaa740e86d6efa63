"""Properties that switch off a feature: a statement that uses it is refused while the property is false.

Source: ksqlDB 0.29, documentation, "ksqlDB server configuration".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import statements as s

SCANS, STREAMS = "ksql.query.pull.table.scan.enabled", "ksql.query.pull.stream.enabled"  # pull queries look at the relation, too
Statement = s.CreateItem | s.CreateAs | s.InsertValues | s.InsertQuery | s.PushQuery


@dataclass(frozen=True, slots=True)
class Switch:
    """A property. `uses`: whether a statement uses the feature. `message`: of the error."""

    property: str
    uses: Callable[[Statement], bool]
    message: str


def _has_headers(statement: Statement) -> bool:
    return isinstance(statement, s.CreateItem) and any(column.role in ("header", "headers") for column in statement.columns)


def _replaces(statement: Statement) -> bool:
    return isinstance(statement, s.CreateItem | s.CreateAs) and statement.replace


def _has_lambda(statement: Statement) -> bool:
    return any(isinstance(part, e.Lambda) for part in e.walk(statement))


def _is_final(statement: Statement) -> bool:
    return not isinstance(statement, s.CreateItem | s.InsertValues) and statement.query.emit == "final"


def _is_source_table(statement: Statement) -> bool:
    return isinstance(statement, s.CreateItem) and statement.source and statement.type == "table"


def _is_pulled(statement: Statement) -> bool:
    return isinstance(statement, s.PushQuery) and not statement.query.emit


def _has_limit(statement: Statement) -> bool:
    return isinstance(statement, s.PushQuery) and not statement.query.emit and statement.query.limit is not None


def _has_place(statement: Statement) -> bool:
    return any(isinstance(part, e.ColumnReference) and part.column in ("rowpartition", "rowoffset") for part in e.walk(statement))


SWITCHES = (
    Switch("ksql.headers.columns.enabled", _has_headers, "Cannot create Stream because schema with headers columns is disabled."),
    Switch("ksql.create.or.replace.enabled", _replaces, "CREATE OR REPLACE is currently disabled."),
    Switch(
        "ksql.insert.into.values.enabled",
        lambda statement: isinstance(statement, s.InsertValues),
        "The server has disabled INSERT INTO ... VALUES functionality.",
    ),
    Switch("ksql.lambdas.enabled", _has_lambda, "Lambdas are not enabled at this time."),
    Switch("ksql.suppress.enabled", _is_final, "Suppression is currently disabled."),
    Switch("ksql.source.table.materialization.enabled", _is_source_table, "Source table materialization is currently disabled."),
    Switch("ksql.pull.queries.enable", _is_pulled, "Pull queries are currently disabled."),
    Switch("ksql.query.pull.limit.clause.enabled", _has_limit, "LIMIT clause in pull queries is currently disabled."),
    Switch("ksql.rowpartition.rowoffset.enabled", _has_place, "ROWPARTITION and ROWOFFSET are currently disabled."),
)
PROPERTIES = (*(switch.property for switch in SWITCHES), SCANS, STREAMS)


def check(statement: Statement, is_off: Callable[[str], bool]) -> None:
    """Raises 0A000 for a statement that uses a feature whose property `is_off`."""
    for switch in SWITCHES:
        if is_off(switch.property) and switch.uses(statement):
            raise FeatureNotSupported(switch.message, hint=f"SET '{switch.property}' = 'true'.", position=0)
