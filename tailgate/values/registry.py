"""The codec of each type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Type
from tailgate.values import raw
from tailgate.values.booleans import BOOLEAN
from tailgate.values.codec.codec import Codec, Value, Writer
from tailgate.values.codec.style import DEFAULT, Style
from tailgate.values.composites import arrays, records
from tailgate.values.enums import ENUM
from tailgate.values.jsonpath.codec import JSONPATH
from tailgate.values.networks.inet import CIDR, INET
from tailgate.values.networks.macaddr import MACADDR, MACADDR8
from tailgate.values.numbers.floats import DOUBLE_PRECISION, REAL
from tailgate.values.numbers.general import GENERAL
from tailgate.values.numbers.integers import BIGINT, INTEGER, OID, SMALLINT
from tailgate.values.numbers.money import MONEY
from tailgate.values.numbers.numerics import NUMERIC
from tailgate.values.ranges import codec as ranges
from tailgate.values.ranges import multirange_codec as multiranges
from tailgate.values.stored import stored
from tailgate.values.strings.bits import BITS
from tailgate.values.strings.byte_strings import BYTEA
from tailgate.values.strings.json_texts import JSON
from tailgate.values.strings.jsonb import JSONB
from tailgate.values.strings.registered import OBJECT
from tailgate.values.strings.single_bytes import SINGLE_BYTE
from tailgate.values.strings.strings import CHARACTER, NAME, TEXT, VARCHAR
from tailgate.values.strings.uuids import UUID
from tailgate.values.times.dates import DATE, TIME, TIMESTAMP, TIMESTAMPTZ
from tailgate.values.times.intervals import INTERVAL
from tailgate.values.times.zoned_times import TIMETZ


def codec(type: Type) -> Codec:
    name = "general" if type.general else type.name
    of_arrays = MULTIDIMENSIONAL if type.multidimensional else ARRAYS
    return of_arrays[name] if type.is_array else CODECS[name]


CODECS: dict[str, Codec] = {
    "bool": BOOLEAN,
    "int2": SMALLINT,
    "int4": INTEGER,
    "int8": BIGINT,
    "oid": OID,
    "regclass": OBJECT,
    "regtype": OBJECT,
    "float4": REAL,
    "float8": DOUBLE_PRECISION,
    "numeric": NUMERIC,
    "money": MONEY,
    "general": GENERAL,  # numerics with a display scale each
    "text": TEXT,
    "varchar": VARCHAR,
    "bpchar": CHARACTER,
    "name": NAME,
    "char": SINGLE_BYTE,
    "unknown": TEXT,
    "bytea": BYTEA,
    "date": DATE,
    "time": TIME,
    "timetz": TIMETZ,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
    "interval": INTERVAL,
    "uuid": UUID,
    "inet": INET,
    "cidr": CIDR,
    "macaddr": MACADDR,
    "macaddr8": MACADDR8,
    "bit": BITS,
    "varbit": BITS,
    "int4range": ranges.codec_of(INTEGER),
    "int8range": ranges.codec_of(BIGINT),
    "numrange": ranges.codec_of(GENERAL),
    "daterange": ranges.codec_of(DATE),
    "tsrange": ranges.codec_of(TIMESTAMP),
    "tstzrange": ranges.codec_of(TIMESTAMPTZ),
    "int4multirange": multiranges.codec_of(ranges.codec_of(INTEGER)),
    "int8multirange": multiranges.codec_of(ranges.codec_of(BIGINT)),
    "nummultirange": multiranges.codec_of(ranges.codec_of(GENERAL)),
    "datemultirange": multiranges.codec_of(ranges.codec_of(DATE)),
    "tsmultirange": multiranges.codec_of(ranges.codec_of(TIMESTAMP)),
    "tstzmultirange": multiranges.codec_of(ranges.codec_of(TIMESTAMPTZ)),
    "json": JSON,
    "jsonb": JSONB,
    "jsonpath": JSONPATH,
    "enum": ENUM,
    "record": records.codec_of(codec),
}
ARRAYS = {name: arrays.codec_of(element) for name, element in CODECS.items()}
MULTIDIMENSIONAL = {name: arrays.multidimensional_codec_of(element) for name, element in CODECS.items()}


def read_text(text: str, type: Type, style: Style = DEFAULT) -> Value:
    """Returns the value of a text.

    >>> read_text("{1-2,NULL}", Type("interval", is_array=True))
    ((14, 0, 0), None)
    """
    return codec(type).read_text(text, type, style)


def read_column(texts: pa.ChunkedArray, type: Type, style: Style = DEFAULT) -> pa.ChunkedArray:
    """Returns the values of a column of strings in stored form; NULL stays NULL.

    Raises PostgreSQL's error for the first invalid value, with its row number.
    """
    functions = codec(type)
    column = functions.read_column(texts, type)
    if column is not None:
        return column
    values: list[Any] = []
    try:
        for text in texts.to_pylist():
            values.append(None if text is None else stored(functions.read_text(text, type, style), type))
    except TailgateError as error:
        error.row = len(values)
        raise
    return pa.chunked_array([pa.array(values, type.arrow)])


def read_binary(data: bytes, type: Type) -> Value:
    """Returns the value of a binary form."""
    return codec(type).read_binary(data, type)


def order_key(value: Value, type: Type) -> Any:
    """Returns a key that compares like a value that is not NULL.

    >>> order_key((1, 0, 0), Type("interval")) == order_key((0, 30, 0), Type("interval"))
    True
    """
    return codec(type).order_key(value)


def text_column(array: pa.Array, type: Type, style: Style = DEFAULT) -> pa.Array:
    """Returns the texts of an array in stored form, as bytes; NULL stays NULL."""
    functions = codec(type)
    column = functions.column_text(array, type, style)
    return column if column is not None else _each(functions.text_writer(type, style), array, type)


def binary_column(array: pa.Array, type: Type) -> pa.Array:
    """Returns the binary forms of an array in stored form; NULL stays NULL."""
    functions = codec(type)
    column = functions.column_binary(array, type)
    return column if column is not None else _each(functions.binary_writer(type), array, type)


def _each(write: Writer, array: pa.Array, type: Type) -> pa.Array:
    return pa.array([None if value is None else write(value) for value in raw.values(array, type)], pa.binary())


def text_writer(type: Type, style: Style = DEFAULT) -> Writer:
    """Returns the function that writes raw values as text."""
    return codec(type).text_writer(type, style)


def binary_writer(type: Type) -> Writer:
    """Returns the function that writes raw values in binary form."""
    return codec(type).binary_writer(type)
