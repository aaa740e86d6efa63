"""Statements and properties of ksqlDB that are parsed and not executed. Each is refused by name, with a hint."""

from __future__ import annotations

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.sql.ksqldb import statements as s
from tailgate.sql.ksqldb.limits import LIMITS

# properties of SET that have an effect, with their values, () for whole numbers; those that have none here
OBEYED: dict[str, tuple[str, ...]] = {"auto.offset.reset": ("earliest", "latest"), **dict.fromkeys(LIMITS, ())}
IGNORED = frozenset(
    {
        "processing.guarantee",
        "commit.interval.ms",
        "cache.max.bytes.buffering",
        "ksql.streams.auto.offset.reset",
        "ksql.streams.cache.max.bytes.buffering",
        "ksql.streams.commit.interval.ms",
        "ksql.query.pull.table.scan.enabled",
        "num.stream.threads",
    }
)


def check(statement: s.KsqldbStatement) -> None:
    """Raises 0A000 for a statement that is not executed, and 22023 for an unknown property or value of SET."""
    refusal = _refusal(statement)
    if refusal is not None:
        what, hint = refusal
        raise FeatureNotSupported(f"{what} is not supported", hint=hint or None, position=0)
    if isinstance(statement, s.SetProperty):
        _check_property(statement)


def _refusal(statement: s.KsqldbStatement) -> tuple[str, str] | None:
    """Returns the name of a statement that is not executed, with a hint, or None."""
    match statement:
        case s.RunScript():
            return "RUN SCRIPT", "Use \\i in psql."
        case s.SetProperty(system=True):
            return "ALTER SYSTEM", "Use SET in each session."
    return None


def _check_property(statement: s.SetProperty) -> None:
    """Raises 22023 for an unknown property, or for a value that it cannot have."""
    name = statement.name.lower()
    if name in IGNORED:
        return
    if name not in OBEYED:
        raise InvalidParameterValue(
            f'property "{statement.name}" is not known',
            hint=f"Known: {', '.join(sorted({*OBEYED, *IGNORED}))}.",
            position=statement.position,
        )
    if statement.value is not None and OBEYED[name] and statement.value.lower() not in OBEYED[name]:
        raise InvalidParameterValue(
            f'invalid value for property "{statement.name}": "{statement.value}"',
            hint=f"Use {' or '.join(OBEYED[name])}.",
            position=statement.position,
        )
