"""One scalar as Spark SQL, over columns c0, c1, …

Spark runs in ANSI mode, at time zone UTC, with `spark.sql.decimalOperations.allowPrecisionLoss = false`, and knows the engine's
functions tg_*.
"""

from __future__ import annotations

from collections.abc import Sequence

from sql.plan import Scalar
from sql.scalars import SPARK, spelled


def expression(scalar: Scalar, names: Sequence[str] | None = None) -> str:
    """Spark SQL of a scalar. `names`: what its columns are called; c0, c1, … by default.

    A literal beyond what Spark's types hold, or a function only DuckDB has, is 0A000.
    """
    return spelled(scalar, SPARK, names)
