"""The functions `ksqldb_…` called with values that ksqlDB's binder never gives them: a value, or an error of class 22, 54 or 0A."""

from __future__ import annotations

import inspect
import random
from typing import Any

import pytest

from tailgate.lake.errors import TailgateError
from tailgate.sql.compute.catalogue import UDFS
from tailgate.sql.compute.registry import Udf
from tailgate.sql.functions.ksqldb import PREFIX
from tests.sql.ksqldb import wrong_values

NAMES = sorted(name for name in UDFS if name.startswith(PREFIX))
CALLS = 300


@pytest.mark.parametrize("name", NAMES)
def test_a_call_never_ends_with_an_internal_error(name: str, seed: int) -> None:
    udf = UDFS[name]
    values = random.Random(f"{seed} {name}")
    assert len(inspect.signature(udf.function).parameters) == len(udf.arguments)
    for _ in range(CALLS):
        arguments = [wrong_values.value(type, values) for type in udf.arguments]
        assert _sqlstate(udf, arguments)[:2] in ("", "0A", "22", "54"), arguments


def _sqlstate(udf: Udf, arguments: list[Any]) -> str:
    """Returns the SQLSTATE of a call; '' for one with a value."""
    try:
        udf.function(*arguments)
    except TailgateError as error:
        return error.sqlstate
    return ""
