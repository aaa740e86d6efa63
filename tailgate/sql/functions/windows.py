"""Window functions. The engine maintains them by name; the templates are for DuckDB.

`{filter}` is the text after the call (OVER …). `{order}` is the order of rows in a frame, for functions
whose result depends on it.
"""

from __future__ import annotations

from tailgate.lake.types import Type
from tailgate.sql.functions.entry import Function, ResultType

FRAMED = frozenset({"first_value", "last_value", "nth_value"})  # functions of the frame; others are of the partition


def _first(types: tuple[Type, ...]) -> Type:
    return types[0]


def _window(name: str, arguments: tuple[str, ...], result: str | ResultType, duckdb: str) -> Function:
    return Function(name, arguments, result, "", duckdb, "window", strict=False)


_NTILE = "ntile(CASE WHEN {0} <= 0 THEN error('[22014] argument of ntile must be greater than zero') ELSE {0} END)"
_NTH = "CASE WHEN {1} <= 0 THEN error('[22016] argument of nth_value must be greater than zero') ELSE {1} END"

ROWS = (
    *(_window(name, (), "int8", f"{name}(){{filter}}") for name in ("row_number", "rank", "dense_rank")),
    *(_window(name, (), "float8", f"{name}(){{filter}}") for name in ("percent_rank", "cume_dist")),
    _window("ntile", ("int4",), "int4", f"CAST({_NTILE}{{filter}} AS INTEGER)"),
    *(
        _window(name, ("any", "int4", "any")[:n], _first, f"{name}({', '.join(f'{{{i}}}' for i in range(n))}){{filter}}")
        for name in ("lag", "lead")
        for n in (1, 2, 3)
    ),
    _window("first_value", ("any",), _first, "first_value({0}{order}){filter}"),
    _window("last_value", ("any",), _first, "last_value({0}{order}){filter}"),
    _window("nth_value", ("any", "int4"), _first, f"nth_value({{0}}, {_NTH}{{order}}){{filter}}"),
)
