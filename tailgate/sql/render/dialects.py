"""The syntax of Spark SQL and of DuckDB's SQL, where they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tailgate.lake.keywords import quoted_text
from tailgate.lake.types import GENERAL_DUCKDB, Type
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.multidimensional import templates as multidimensional
from tailgate.sql.render.duckdb_macros import MACROS, catchable
from tailgate.sql.render.moments import duckdb_date, duckdb_timestamp, spark_date, spark_timestamp
from tailgate.sql.render.shared_arguments import NO_MACROS, Macros


@dataclass(frozen=True)
class Dialect:
    """The syntax of one engine where it differs from the other. Texts with {} are format strings.

    `parameter`: None if the engine has no parameters. `let`: binds `value` to `variable` in `text`.
    `macros`: the macros that templates may call. `catchable`: a template whose errors `try` catches.
    """

    template: Callable[[Function], str]
    type: Callable[[Type], str]
    quoted: Callable[[str], str]
    where: str  # completes error messages
    parameter: str | None
    dates: Mapping[str, str]  # by type: a date or timestamp of a number, which is the value of its parameter
    distinct: str
    distinct_sign: str
    array: str
    dimensions: str  # a multidimensional array of its elements and dimensions
    bytes: str
    date: str
    timestamp: str
    timestamptz: str
    date_text: Callable[[int], str]  # the text in the format of a literal
    timestamp_text: Callable[[int], str]
    interval: str
    row: str  # a row of its members
    member: str  # the name and the value of a field of a row
    general: str  # a general numeric of an unscaled value and a display scale
    plain_integers: bool  # whether digits without a cast have type int4
    plain_lists: bool  # whether integers in IN (…) take the type of the left operand
    let: str
    macros: Macros
    catchable: Callable[[str], str]
    copied: Mapping[str, str]  # by the engine's type: a copy of an operand of coalesce
    tried: str  # a call of try that reads a column


def _backslashed(text: str) -> str:
    """Returns a string literal with backslashes escaped, because Spark interprets them."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SPARK = Dialect(
    template=lambda f: f.spark,
    type=lambda t: t.spark,
    quoted=_backslashed,
    where=" in a view",
    parameter=None,
    dates={},
    distinct="(NOT ({}))",
    distinct_sign=" <=> ",
    array="array({})",
    dimensions=multidimensional.SPARK.struct,
    bytes="X'{}'",
    date="DATE'{}'",
    timestamp="TIMESTAMP_NTZ'{}'",
    timestamptz="TIMESTAMP_LTZ'{}+00:00'",
    date_text=spark_date,
    timestamp_text=spark_timestamp,
    interval="named_struct('months', CAST({} AS INT), 'days', CAST({} AS INT), 'micros', CAST({} AS BIGINT))",
    row="named_struct({})",
    member="'f{}', {}",
    general="named_struct('u', CAST('{}' AS DECIMAL(38,0)), 's', CAST({} AS SMALLINT), 'x', CAST(NULL AS BINARY))",
    plain_integers=True,
    plain_lists=False,
    let="element_at(transform(array({value}), {variable} -> {text}), 1)",
    macros=NO_MACROS,
    catchable=str,
    copied={},
    tried="{text}",
)
DUCKDB = Dialect(
    template=lambda f: f.duckdb,
    type=lambda t: t.duckdb,
    quoted=quoted_text,
    where="",
    parameter="CAST(${} AS {})",
    dates={t: f"tg_{t}(CAST({{}} AS {number}))" for t, number in (("date", "INTEGER"), ("timestamp", "BIGINT"), ("timestamptz", "BIGINT"))},
    distinct="({})",
    distinct_sign=" IS DISTINCT FROM ",
    array="[{}]",
    dimensions=multidimensional.DUCKDB.struct,
    bytes="from_hex('{}')",
    date="DATE '{}'",
    timestamp="TIMESTAMP '{}'",
    timestamptz="TIMESTAMPTZ '{}'",
    date_text=duckdb_date,
    timestamp_text=duckdb_timestamp,
    interval="{{'months': CAST({} AS INTEGER), 'days': CAST({} AS INTEGER), 'micros': CAST({} AS BIGINT)}}",
    row="struct_pack({})",
    member="f{} := {}",
    general="tg_general({}, {})",
    plain_integers=False,  # DuckDB would make them smallint next to a smallint
    plain_lists=True,
    let="list_transform([{value}], lambda {variable}: {text})[1]",
    macros=Macros(MACROS),
    catchable=catchable,
    # DuckDB 1.5 frees the texts of a function in Python when coalesce has passed them on.
    copied={
        "VARCHAR": "({} || '')",
        "BLOB": "({} || ''::BLOB)",
        GENERAL_DUCKDB: "list_transform([{}], lambda tg_g: CASE WHEN tg_g IS NOT NULL THEN tg_general_copy(tg_g) END)[1]",
    },
    # DuckDB evaluates a part that occurs twice before TRY, which then does not catch its errors. It does not do so in CASE.
    tried="CASE WHEN {column} IS NULL OR {column} IS NOT NULL THEN {text} END",
)
