"""Renders a scalar as Spark SQL.

The SQL requires ANSI mode, time zone UTC, `spark.sql.decimalOperations.allowPrecisionLoss = false`, and
the engine's functions tg_*.
"""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.sql.plan import Scalar
from tailgate.sql.render.dialects import SPARK
from tailgate.sql.render.scalars import render_scalar


def expression(scalar: Scalar, names: Sequence[str] | None = None) -> str:
    """Returns the Spark SQL of a scalar. `names` are the names of its columns, by default c0, c1, …

    Raises 0A000 for a function that only DuckDB has, or a literal that Spark cannot represent.
    """
    return render_scalar(scalar, SPARK, names)
