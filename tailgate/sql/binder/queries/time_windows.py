"""Time windows in FROM: tumble, hop and session.

    tumble(relation, time column, size [, closing])      each row with the window that contains its time
    hop(relation, time column, every, size [, closing])  each row with each window that contains its time
    session(relation, time column, gap [, closing], key, …)
                                                         each row with the session of its key
    closing: grace [, retention] [, 'last']

A window of hop begins at every multiple of `every`. A session consists of rows that follow each
other within the gap.

Windows of tumble and hop are aligned to 1970-01-01 00:00 UTC. They include their start and exclude
their end. A session ends one gap after its last row. The columns window_start and window_end come
after the relation's columns. A row whose time is NULL is in no window.

With a grace period, which views may have, a window closes when the greatest time so far has reached its end plus
the grace period. Rows that come later are dropped, unless they belong to a session that is open. With 'last' the rows
of a window are added when it closes. With a retention, the groups of a window are removed when the greatest time has reached
its end plus the retention.

Source: RisingWave, "Time windows"; Flink, "Windowing TVFs".
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, SyntaxError_, UndefinedFunction
from tailgate.lake.types import INT4, INTERVAL, TIMESTAMP, Field, Type
from tailgate.sql.binder import scope as scopes
from tailgate.sql.binder.context import Level
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.scope import Source
from tailgate.sql.binder.types.coercion import coerce
from tailgate.sql.binder.types.overloads import arguments, function, result
from tailgate.sql.functions.set_returning import WINDOWS
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import (
    Bound,
    Case,
    Closing,
    Column,
    Filter,
    Frame,
    Generate,
    IsNull,
    Literal,
    Not,
    Project,
    Relation,
    Scalar,
    Session,
    SortKey,
    Window,
    WindowCall,
)

ARGUMENTS = {
    "tumble": ("relation", "time column", "size"),
    "hop": ("relation", "time column", "every", "size"),
    "session": ("relation", "time column", "gap"),
}


def is_windowed(node: exp.Expr) -> bool:
    """Returns whether a function in FROM is tumble, hop or session."""
    return isinstance(node.this, exp.Anonymous) and str(node.this.this) in ARGUMENTS


def bind_windowed(node: exp.Expr, source: Source, level: Level) -> tuple[Relation, scopes.Scope]:
    """Binds a call whose first argument is already bound as `source`.

    Returns the rows with their windows.

    Raises 42883, 42601, 0A000, 22023.
    """
    call, at = node.this, position(node.this)
    name, nodes = str(call.this), list(call.expressions)
    of_grace = nodes[len(ARGUMENTS[name]) :]
    if len(nodes) < len(ARGUMENTS[name]) or (len(of_grace) > 3 and name != "session"):
        raise UndefinedFunction(
            f"{name} has {len(ARGUMENTS[name])} arguments, not {len(nodes)}", hint=f"{name}({', '.join(ARGUMENTS[name])})", position=at
        )
    if node.args.get("ordinality"):
        raise SyntaxError_(f"WITH ORDINALITY cannot be used with {name}", position=at)
    binder = Expressions(source.scope, level, f"{name}", False)
    time = binder.typed(nodes[1])
    if time.type.name == "date":
        time = binder.known(_coerced(binder, time, TIMESTAMP))
    if time.type.name not in WINDOWS:
        raise UndefinedFunction(f"{name} of a column of type {time.type} does not exist", position=position(nodes[1]))
    lengths = [_length(binder, n) for n in nodes[2 : len(ARGUMENTS[name])]]
    outputs = tuple(Field(n, time.type, False) for n in ("window_start", "window_end"))
    plan: Relation
    if name == "session":
        of_grace, key_nodes = _split(binder, of_grace)
        keys = tuple(binder.typed(n) for n in key_nodes)
        if of_grace:
            plan = _closing(binder, _alone(binder, source.plan, time, lengths[0], outputs), time, of_grace, at, keys)
        else:
            plan = _sessions(binder, source.plan, time, lengths[0], keys, outputs)
    else:
        plan = Generate(source.plan, WINDOWS[time.type.name], (time, lengths[0], lengths[-1]), outputs, position=at)
        plan = _closing(binder, plan, time, of_grace, at) if of_grace else plan
    alias = node.args.get("alias")
    shown = alias.name if alias is not None and alias.name else next((t.alias for t in source.scope.tables), "")
    fields = (*(Field(c.name, c.scalar.type) for c in source.scope.columns), *outputs)
    names = tuple(c.name for c in alias.args.get("columns") or []) if alias is not None else ()
    return plan, scopes.of(shown, fields, names, shown, demands=[c.demand for c in source.scope.columns])


def _split(binder: Expressions, nodes: list[exp.Expr]) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Returns the arguments of `session` after its gap: grace period and retention, constants, and possibly 'last'; and the keys."""
    count = 0
    while count < min(2, len(nodes)) and _is_interval(binder, nodes[count]):
        count += 1
    if 0 < count < len(nodes) and _is_text(nodes[count]):
        count += 1
    return nodes[:count], nodes[count:]


def _is_interval(binder: Expressions, node: exp.Expr) -> bool:
    return isinstance(bound := binder.bind(node), Literal) and bound.type == INTERVAL


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _alone(binder: Expressions, rows: Relation, time: Scalar, gap: Literal, outputs: tuple[Field, ...]) -> Relation:
    """Returns the rows with the bounds of a session that has no other row."""
    own = tuple(Column(i, f.type) for i, f in enumerate(rows.columns))
    timed = Filter(rows, Not(IsNull(time)))
    return Project(timed, (*own, time, binder.operate("+", [time, gap], None)), (*rows.columns, *outputs))


def _closing(
    binder: Expressions, plan: Relation, time: Scalar, nodes: list[exp.Expr], at: int | None, keys: tuple[Scalar, ...] | None = None
) -> Relation:
    """Returns the rows whose windows are open. `nodes`: the grace period, possibly a retention and 'last'. `keys`: those of sessions.

    Raises 0A000, 22023.
    """
    _, grace = window_length(binder, nodes[0])
    if grace < 0:
        raise InvalidParameterValue("the grace period of windows must not be negative", position=position(nodes[0]))
    if time.type.name != "timestamptz":
        raise FeatureNotSupported(f"a grace period of windows of {time.type} is not supported", position=position(nodes[0]))
    retention, last = None, nodes[-1] if len(nodes) > 1 and not _is_interval(binder, nodes[-1]) else None
    if len(nodes) > 1 and nodes[1] is not last:
        retention = window_length(binder, nodes[1])[1]
        if retention < grace:
            raise InvalidParameterValue("the retention of windows must not be less than their grace period", position=position(nodes[1]))
    if (last is not None and not (_is_text(last) and last.this == "last")) or len(nodes) > 3 or (len(nodes) > 2 and last is None):
        raise InvalidParameterValue("the last argument of windows with a grace period must be 'last'", position=position(nodes[-1]))
    start, end = (Column(len(plan.columns) - n, time.type) for n in (2, 1))
    return Closing(plan, time, end, grace, last is not None, None if keys is None else Session(start, keys), retention, at)


def _sessions(
    binder: Expressions, rows: Relation, time: Scalar, gap: Literal, keys: tuple[Scalar, ...], outputs: tuple[Field, ...]
) -> Relation:
    """Returns the rows with the bounds of their sessions.

    A row begins a session if it is the first of its key or if the previous row of its key is more
    than the gap earlier. The running sum of these beginnings numbers the sessions.
    """
    width = len(rows.columns)
    timed = Filter(rows, Not(IsNull(time)))
    before = Window(timed, keys, (SortKey(time),), (_over(binder, "lag", (time,)),))
    previous = Column(width, time.type)
    apart = binder.operate(">", [time, binder.operate("+", [previous, gap], None)], None)
    one, zero = Literal(1, INT4), Literal(0, INT4)
    beginning = Case(((IsNull(previous), one), (apart, one)), zero, INT4)
    own = tuple(Column(i, f.type) for i, f in enumerate(rows.columns))
    flagged = Project(before, (*own, beginning), (*rows.columns, Field("beginning", INT4, False)))
    number = _over(binder, "sum", (Column(width, INT4),))
    numbered = Window(flagged, keys, (SortKey(time),), (number,))
    whole = Frame(end=Bound("unbounded following"))
    ends = tuple(_over(binder, name, (time,), whole) for name in ("min", "max"))
    bounded = Window(numbered, (*keys, Column(width + 1, number.type)), (), ends)
    start, last = Column(width + 2, time.type), Column(width + 3, time.type)
    return Project(bounded, (*own, start, binder.operate("+", [last, gap], None)), (*rows.columns, *outputs))


def _over(binder: Expressions, name: str, operands: tuple[Scalar, ...], frame: Frame | None = None) -> WindowCall:
    row = function(name, tuple(s.type for s in operands), None)
    casts = tuple(binder.known(a) for a in arguments(row, list(operands), binder.parameters))
    return WindowCall(row, casts, result(row, casts), frame or Frame())


def _coerced(binder: Expressions, scalar: Scalar, type: Type) -> Scalar:
    cast = coerce(scalar, type, binder.parameters)
    assert cast is not None
    return cast


def _length(binder: Expressions, node: exp.Expr) -> Literal:
    """Binds a length greater than zero. Raises 0A000, 22023."""
    length, micros = window_length(binder, node)
    if micros <= 0:
        raise InvalidParameterValue("windows must have a length greater than zero", position=position(node))
    return length


def window_length(binder: Expressions, node: exp.Expr) -> tuple[Literal, int]:
    """Binds a constant interval without months. Returns it, and its length in microseconds. Raises 0A000."""
    length = coerce(binder.bind(node), INTERVAL, binder.parameters)
    if not isinstance(length, Literal) or not isinstance(length.value, tuple):
        raise FeatureNotSupported("a window whose length is not a constant interval is not supported", position=position(node))
    months, days, micros = length.value
    assert isinstance(months, int)
    assert isinstance(days, int)
    assert isinstance(micros, int)
    if months:
        raise FeatureNotSupported("windows of months are not supported", hint="Group by date_trunc('month', …).", position=position(node))
    return length, days * 86_400_000_000 + micros
