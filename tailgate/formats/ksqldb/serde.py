"""The choice of a format by ksqlDB's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tailgate.formats.ksqldb import delimited, jsons, kafka
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Field


@dataclass(frozen=True, slots=True)
class Serde:
    """A format of keys or values. `delimiter`: of DELIMITED. `wrapped`: whether JSON has an object for a single column."""

    name: str
    delimiter: str = ","
    wrapped: bool = True


def encoded(serde: Serde, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes | None]:
    """Returns the bytes of these columns for each row, None for NULL. `columns`: with ksqlDB's names."""
    match serde.name:
        case "KAFKA":
            return kafka.encoded(columns[0], arrays[0])
        case "JSON" if not serde.wrapped and len(columns) == 1:
            return jsons.encoded_alone(columns[0], arrays[0])
        case "JSON":
            return jsons.encoded(columns, arrays, length)
        case "DELIMITED":
            return delimited.encoded(columns, arrays, length, serde.delimiter)
    raise FeatureNotSupported(f"the format {serde.name} is not supported here")
