"""Columns with the expressions that compute them."""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.engine.plan.circuit.decoders import DECODED
from tailgate.engine.plan.sources.spark_sql import name
from tailgate.lake.errors import UndefinedColumn
from tailgate.lake.types import Field


@dataclass(frozen=True, slots=True)
class ColumnExpression:
    """A column, and Spark SQL over a decoded record that computes its stored form."""

    field: Field
    expression: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """Spark SQL for the parts of a decoded record."""

    key: str = name(DECODED[0])
    value: str = name(DECODED[1])
    partition: str = name(DECODED[3])
    offset: str = name(DECODED[4])
    timestamp: str = name(DECODED[5])
    headers: str = name(DECODED[6])
    tick: str = name(DECODED[7])
    order: str = name(DECODED[8])


def by_name(columns: list[ColumnExpression], names: list[str]) -> list[ColumnExpression]:
    """Returns the named columns as columns of a key, not nullable. Raises 42703 if one does not exist."""
    columns_by_name = {m.field.name: m for m in columns}
    for n in names:
        if n not in columns_by_name:
            raise UndefinedColumn(f'column "{n}" named in key does not exist')
    return [ColumnExpression(Field(n, columns_by_name[n].field.type, False), columns_by_name[n].expression) for n in names]
