"""The format DELIMITED: a line with a field for each column. NULL is an empty field."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

import pyarrow as pa

from tailgate.formats.ksqldb import jsons
from tailgate.lake.types import Field


def encoded(columns: Sequence[Field], arrays: Sequence[pa.Array], length: int, delimiter: str) -> list[bytes | None]:
    """Returns the line of each row. Values are those of JSON, without the quotes of strings."""
    fields = [[_field(text) for text in jsons.texts(c, array)] for c, array in zip(columns, arrays, strict=True)]
    return [_line([column[n] for column in fields], delimiter) for n in range(length)]


def _field(text: str) -> str:
    return "" if text == "null" else json.loads(text) if text.startswith('"') else text


def _line(fields: Sequence[str], delimiter: str) -> bytes:
    if len(fields) == 1 and not fields[0]:
        return b""  # a CSV writer quotes the only field of a line if it is empty
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="").writerow(fields)
    return out.getvalue().encode()
