"""Relations cut into windows of time, in FROM: tumble and hop.

    tumble(relation, time column, size)          each row with the window that holds its time
    hop(relation, time column, every, size)      each row with each window that holds it; a window begins at every multiple of `every`

Windows are aligned to 1970-01-01 00:00 UTC and hold their start, not their end; the columns window_start and window_end come behind
the relation's. A row whose time is NULL is in no window. Source: RisingWave, "Time windows"; Flink, "Windowing TVFs".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lake.errors import FeatureNotSupported, InvalidParameterValue, SyntaxError_, UndefinedFunction
from lake.types import INTERVAL, TIMESTAMP, Field, Type
from sql.binding import scope as scopes
from sql.binding.coercion import coerce
from sql.binding.expressions import Expressions
from sql.functions.sets import WINDOWS
from sql.grammar.names import position
from sql.plan import Generate, Literal, Scalar

if TYPE_CHECKING:
    from sql.binding.levels import Level
    from sql.binding.tables import Source

ARGUMENTS = {"tumble": ("relation", "time column", "size"), "hop": ("relation", "time column", "every", "size")}


def is_windowed(node: exp.Expr) -> bool:
    """Whether a function in FROM is one of these."""
    return isinstance(node.this, exp.Anonymous) and str(node.this.this) in ARGUMENTS


def bind_windowed(node: exp.Expr, source: Source, level: Level) -> tuple[Generate, scopes.Scope]:
    """The rows of `source`, the first argument, with their windows."""
    call, at = node.this, position(node.this)
    name, given = str(call.this), list(call.expressions)
    if len(given) != len(ARGUMENTS[name]):
        raise UndefinedFunction(
            f"{name} has {len(ARGUMENTS[name])} arguments, not {len(given)}", hint=f"{name}({', '.join(ARGUMENTS[name])})", position=at
        )
    if node.args.get("ordinality"):
        raise SyntaxError_(f"WITH ORDINALITY cannot be used with {name}", position=at)
    binder = Expressions(source.scope, level, f"{name}", False)
    time = binder.typed(given[1])
    if time.type.name == "date":
        time = binder.known(_coerced(binder, time, TIMESTAMP))
    if time.type.name not in WINDOWS:
        raise UndefinedFunction(f"{name} of a column of type {time.type} does not exist", position=position(given[1]))
    lengths = [_length(binder, n) for n in given[2:]]
    every, size = lengths if name == "hop" else lengths * 2
    function = WINDOWS[time.type.name]
    outputs = tuple(Field(n, Type(t), False) for n, t in function.outputs)
    plan = Generate(source.plan, function, (time, every, size), outputs, position=at)
    alias = node.args.get("alias")
    shown = alias.name if alias is not None and alias.name else next((t.alias for t in source.scope.tables), "")
    fields = (*(Field(c.name, c.scalar.type) for c in source.scope.columns), *outputs)
    names = tuple(c.name for c in alias.args.get("columns") or []) if alias is not None else ()
    return plan, scopes.of(shown, fields, names, shown)


def _coerced(binder: Expressions, scalar: Scalar, type: Type) -> Scalar:
    found = coerce(scalar, type, binder.parameters)
    assert found is not None
    return found


def _length(binder: Expressions, node: exp.Expr) -> Literal:
    """A constant interval, greater than zero, without months."""
    found = coerce(binder.bind(node), INTERVAL, binder.parameters)
    if not isinstance(found, Literal) or not isinstance(found.value, tuple):
        raise FeatureNotSupported("a window whose length is no constant interval is not supported", position=position(node))
    months, days, micros = found.value
    assert isinstance(months, int)
    assert isinstance(days, int)
    assert isinstance(micros, int)
    if months:
        raise FeatureNotSupported("windows of months are not supported", hint="Group by date_trunc('month', …).", position=position(node))
    if days * 86_400_000_000 + micros <= 0:
        raise InvalidParameterValue("windows must have a length greater than zero", position=position(node))
    return found
