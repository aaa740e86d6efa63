"""Computes with timestamps in the time zone of the session, where functions and casts of the catalogue compute in UTC.

    extract(hour FROM moment)   ──►   extract(hour FROM tg_local_of_moment(moment, 'Europe/Oslo'))
    moment::text                ──►   tg_text_of_moment(moment, 'Europe/Oslo')

A query or write of a session is bound and rendered within `in_zone`. Everything else is in UTC: queries of materialized views, and the
texts that the catalog has stored, whose literals are read in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from itertools import permutations

from tailgate.lake.keywords import quoted_text
from tailgate.lake.types import DATE, INT4, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, Type
from tailgate.sql.functions import casts, comparison, datetime
from tailgate.sql.functions.comparison import SIGNS
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan.relations import Generate, Relation
from tailgate.sql.plan.rewriting import rebuild
from tailgate.sql.plan.scalars import Call, Literal, Scalar
from tailgate.sql.plan.traversal import mapped
from tailgate.values.codec.style import Style

UTC = "UTC"
# zones with UTC's times, often those of Java's clients: computed as fast, with TZ of to_char() as UTC's
SAME_AS_UTC = frozenset(f"{area}{name}" for area in ("", "Etc/") for name in ("GMT", "Greenwich", "UCT", "UTC", "Universal", "Zulu"))
TIMETZ = Type("timetz")
_zone: ContextVar[str] = ContextVar("time_zone", default=UTC)
Rewrite = Callable[[Call, str], Scalar]


@contextmanager
def in_zone(zone: str) -> Iterator[None]:
    """Binds and renders in a time zone, a value of the setting TimeZone, within the context."""
    token = _zone.set(UTC if zone in SAME_AS_UTC else zone)
    try:
        yield
    finally:
        _zone.reset(token)


def style() -> Style:
    """Returns how quoted literals are read."""
    return Style(time_zone=_zone.get())


def zoned(plan: Relation) -> Relation:
    """Returns the plan with the calls and casts that depend on the time zone in that of the session."""
    zone = _zone.get()
    return plan if zone == UTC else mapped(plan, lambda scalar: _scalar(scalar, zone), lambda node: _node(node, zone))


def _scalar(scalar: Scalar, zone: str) -> Scalar:
    scalar = rebuild(scalar, lambda part: _scalar(part, zone))
    if not isinstance(scalar, Call):
        return scalar
    rewrite = REWRITES.get(_key(scalar.function))
    if rewrite is not None:
        return rewrite(scalar, zone)
    function = _in_zone(scalar.function, zone)
    return scalar if function is scalar.function else replace(scalar, function=function)


@lru_cache(maxsize=1024)
def _in_zone(function: Function, zone: str) -> Function:
    """Returns a function whose template calls the functions of `WITH_ZONE` with the zone."""
    quoted = quoted_text(zone)
    template = UDFS.sub(lambda call: f"tg_{WITH_ZONE[call[1]]}({call[2]}, {quoted})", function.duckdb)
    return function if template == function.duckdb else replace(function, duckdb=template)


def _node(node: Relation, zone: str) -> Relation:
    if not isinstance(node, Generate) or _key(node.function) != SERIES:
        return node
    return replace(node, function=replace(node.function, duckdb=SERIES_TEMPLATE), arguments=(*node.arguments, Literal(zone, TEXT)))


def _key(function: Function) -> tuple[str, ...]:
    """Returns the name of a function and its arguments' types; of a cast, its type, too."""
    if function.kind == "cast":
        return ("cast", *function.arguments, function.result if isinstance(function.result, str) else "")
    return (function.name, *function.arguments)


# --- calls of functions in a zone ----------------------------------------------------------------


@lru_cache(maxsize=64)
def _udf(name: str, arguments: tuple[str, ...], result: str) -> Function:
    places = ", ".join(f"{{{i}}}" for i in range(len(arguments)))
    return Function(name, arguments, result, "", f"tg_{name}({places})")


def _called(name: str, result: Type, zone: str, *arguments: Scalar, position: int | None = None) -> Call:
    """Returns a call of a function whose last argument is the zone."""
    arguments = (*arguments, Literal(zone, TEXT))
    return Call(_udf(name, tuple(a.type.name for a in arguments), result.name), arguments, result, position)


def _local(moment: Scalar, zone: str) -> Call:
    return _called("local_of_moment", TIMESTAMP, zone, moment)


def _moment(local: Scalar, zone: str) -> Call:
    return _called("moment_of_local", TIMESTAMPTZ, zone, local)


def _to_timetz(moment: Scalar, zone: str) -> Call:
    return _called("timetz_of_moment", TIMETZ, zone, moment)


@lru_cache(maxsize=1)
def _entries() -> dict[tuple[str, ...], Function]:
    return {_key(function): function for function in (*datetime.ROWS, *casts.ROWS, *comparison.ROWS)}


def _entry(type: Type, key: tuple[str, ...], *arguments: Scalar) -> Call:
    """Returns a call of a function of the catalogue."""
    return Call(_entries()[key], arguments, type)


def _cast(scalar: Scalar, target: Type) -> Call:
    return _entry(target, ("cast", scalar.type.name, target.name), scalar)


def _now() -> Call:
    return _entry(TIMESTAMPTZ, ("now",))


# --- rewrites ------------------------------------------------------------------------------------


def _of_local(key: tuple[str, ...]) -> Rewrite:
    """Returns the rewrite to a function of local times instead of moments."""

    def rewrite(call: Call, zone: str) -> Scalar:
        arguments = tuple(_local(a, zone) if a.type.name == "timestamptz" else a for a in call.arguments)
        return replace(call, function=_entries()[key], arguments=arguments)

    return rewrite


def _truncated(call: Call, zone: str) -> Scalar:
    unit = call.function.name.partition(":")[2]
    arguments = (Literal(unit, TEXT), *call.arguments) if unit else call.arguments
    return _called("moment_truncated", TIMESTAMPTZ, zone, *arguments, position=call.position)


def _zone_field(template: str) -> Rewrite:
    """Returns the rewrite of a part of the offset; {x}: the seconds east of UTC."""

    def rewrite(call: Call, zone: str) -> Scalar:
        function = replace(call.function, arguments=("int4",), duckdb=f"CAST({template.format(x='{0}')} AS {{type}})")
        return replace(call, function=function, arguments=(_called("offset_of_moment", INT4, zone, call.arguments[0]),))

    return rewrite


def _shifted(call: Call, zone: str) -> Scalar:
    """Returns a moment plus or minus an interval, in any order."""
    moment, interval = sorted(call.arguments, key=lambda a: a.type.name != "timestamptz")
    sign = Literal(-1 if call.function.name == "-" else 1, INT4)
    return _called("moment_plus", TIMESTAMPTZ, zone, moment, interval, sign, position=call.position)


def _age_of_today(call: Call, zone: str) -> Scalar:
    today = _entry(TIMESTAMP, ("date_trunc:day", "timestamp"), _local(_now(), zone))
    return _of_local(("age", "timestamp", "timestamp"))(replace(call, arguments=(today, *call.arguments)), zone)


def _made(call: Call, zone: str) -> Scalar:
    types = tuple(a.type.name for a in call.arguments)
    return _moment(_entry(TIMESTAMP, ("make_timestamp", *types), *call.arguments), zone)


def _compared(call: Call, zone: str) -> Scalar:
    """Returns a comparison of a moment with a date or a local time."""

    def moment(scalar: Scalar) -> Scalar:
        if scalar.type.name == "timestamptz":
            return scalar
        return _moment(Call(BESIDE, (scalar,), TIMESTAMP) if scalar.type.name == "date" else scalar, zone)

    function = _entries()[call.function.name, "timestamptz", "timestamptz"]
    return replace(call, function=function, arguments=tuple(map(moment, call.arguments)))


SERIES = ("generate_series", "timestamptz", "timestamptz", "interval")
SERIES_TEMPLATE = "tg_series_of_moments({0}, {1}, {2}, {3})"
CLOCK = "make_timestamptz", *("int4",) * 5, "float8"
ZONE_FIELDS = {
    "timezone": "{x}",
    "timezone_hour": "trunc({x} / 3600.0)",
    "timezone_minute": "trunc({x} % 3600 / 60.0)",
}
# user-defined functions that compute in UTC, and those with the zone as their last argument
WITH_ZONE = {
    "timestamptz_to_text": "text_of_moment",
    "text_to_timestamptz": "moment_of_text",
    "text_to_timetz": "timetz_of_text",
    "jsonb_of_timestamptz": "jsonb_of_moment",
    "to_char_timestamptz": "moment_to_char",
    "to_timestamp_text": "moment_of_pattern",
    **{f"jsonb_path_{call}_tz": f"jsonb_path_{call}_in" for call in ("exists", "match", "query", "query_array", "query_first")},
    **{name: f"{name}_in" for name in ("range_to_text", "multirange_to_text", "text_to_tstzrange", "text_to_tstzmultirange")},
}
UDFS = re.compile(rf"\btg_({'|'.join(WITH_ZONE)})\(([^()]*)\)")
BESIDE = Function("beside", ("date",), "timestamp", "", "tg_date_beside_timestamp({0})")  # as in comparisons: any date has a timestamp


def _rewrites() -> dict[tuple[str, ...], Rewrite]:
    rows: dict[tuple[str, ...], Rewrite] = {
        ("cast", "timestamptz", "timestamp"): lambda call, zone: _local(call.arguments[0], zone),
        ("cast", "timestamptz", "date"): lambda call, zone: _cast(_local(call.arguments[0], zone), DATE),
        ("cast", "timestamptz", "time"): lambda call, zone: _cast(_local(call.arguments[0], zone), TIME),
        ("cast", "timestamp", "timestamptz"): lambda call, zone: _moment(call.arguments[0], zone),
        ("cast", "date", "timestamptz"): lambda call, zone: _moment(_cast(call.arguments[0], TIMESTAMP), zone),
        ("cast", "timestamptz", "timetz"): lambda call, zone: _to_timetz(call.arguments[0], zone),
        ("cast", "time", "timetz"): lambda call, zone: _called("timetz_of_time", TIMETZ, zone, *call.arguments, _now()),
        ("date_trunc", "text", "timestamptz"): _truncated,
        ("age", "timestamptz", "timestamptz"): _of_local(("age", "timestamp", "timestamp")),
        ("age", "timestamptz"): _age_of_today,
        ("age", "timestamp"): _age_of_today,
        ("+", "timestamptz", "interval"): _shifted,
        ("+", "interval", "timestamptz"): _shifted,
        ("-", "timestamptz", "interval"): _shifted,
        CLOCK: _made,
        **{(sign, *sides): _compared for sign in SIGNS for sides in permutations(("timestamptz", "timestamp"))},
        **{(sign, *sides): _compared for sign in SIGNS for sides in permutations(("timestamptz", "date"))},
        ("current_date",): lambda _, zone: _cast(_local(_now(), zone), DATE),
        ("localtimestamp",): lambda _, zone: _local(_now(), zone),
        ("localtime",): lambda _, zone: _cast(_local(_now(), zone), TIME),
        ("current_time",): lambda _, zone: _to_timetz(_now(), zone),
    }
    for key in _entries():
        name, _, unit = key[0].partition(":")
        if key[1:] != ("timestamptz",) or unit in ("", "epoch"):
            continue
        if name == "date_trunc":
            rows[key] = _truncated
        elif name in ("extract", "date_part"):
            rows[key] = _zone_field(ZONE_FIELDS[unit]) if unit in ZONE_FIELDS else _of_local((key[0], "timestamp"))
    return rows


REWRITES = _rewrites()
