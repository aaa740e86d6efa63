"""Types regclass and regtype: an object of the system catalog. The stored form is its oid in ten digits, then the name that is printed.

So values are in the order of their oids. Names of relations and of types that users create come from the
catalog, when a query is bound (`sql.binder.registered.casts`). Names here are those of built-in types.

Source: PostgreSQL 15, src/backend/utils/adt/regproc.c.
"""

from __future__ import annotations

from struct import Struct

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import BY_OID, OID, Type
from tailgate.values.codec.binary import fixed
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.style import Style
from tailgate.values.numbers import integers

REGISTERED = ("regclass", "regtype")
OID_DIGITS = 10
FIRST_CREATED = 16384  # the first oid of an object that is not PostgreSQL's own, as in PostgreSQL
NONE = "-"  # the name of the oid 0
_BINARY = Struct("!I")
_BUILT_IN = {name: oid for oid, type in BY_OID.items() for name in (str(type), type.name) if name == str(type) or not type.is_array}


def stored(oid: int, name: str) -> str:
    """Returns the stored form.

    >>> stored(23, "integer")
    '0000000023integer'
    """
    return f"{oid:0{OID_DIGITS}d}{name}"


def of_oid(oid: int, type: Type) -> str:
    """Returns the stored form of a built-in type, or of an oid that no object has. Raises 0A000 for other built-in objects."""
    built_in = BY_OID.get(oid) if type.name == "regtype" else None
    if built_in is None and 0 < oid < FIRST_CREATED:
        raise FeatureNotSupported(f"the {type} with oid {oid} is not supported here", hint="Read it from pg_type or pg_class.")
    return stored(oid, str(built_in) if built_in is not None else str(oid) if oid else NONE)


def read(text: str, type: Type, style: Style) -> str:
    if text == NONE or (text.isascii() and text.isdecimal()):
        return of_oid(0 if text == NONE else integers.read(text, OID, style), type)
    oid = _BUILT_IN.get(text) if type.name == "regtype" else None
    if oid is None:
        raise FeatureNotSupported(f'"{text}" as {type} is not supported here', hint=f"Write a cast: '…'::{type}.")
    return of_oid(oid, type)


def write_text(value: bytes) -> bytes:
    return value[OID_DIGITS:]


def write_binary(value: bytes) -> bytes:
    return _BINARY.pack(int(value[:OID_DIGITS]))


def read_binary(data: bytes, type: Type) -> str:
    return of_oid(_read_oid(data, type), type)


_read_oid = fixed("!I")
OBJECT = Codec(read, read_binary, lambda type, style: write_text, lambda type: write_binary)
