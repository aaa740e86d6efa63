"""Parts that the binary forms of several types share.

Source: PostgreSQL 15, src/backend/libpq/pqformat.c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

from tailgate.lake.errors import InvalidBinaryRepresentation, ProtocolViolation, TailgateError
from tailgate.lake.types import Type

NULL = b"\xff\xff\xff\xff"  # in place of a length
_LENGTH = Struct("!i")


class TrailingData(InvalidBinaryRepresentation):
    """Bytes follow the value. PostgreSQL's message names the place, which the caller knows."""

    def __init__(self) -> None:
        super().__init__("incorrect binary data format")


def insufficient() -> TailgateError:
    return ProtocolViolation("insufficient data left in message")


def leading(layout: Struct, data: bytes) -> int:
    """Returns the number at the beginning of the data, whatever follows it. Raises 08P01."""
    if len(data) < layout.size:
        raise insufficient()
    return int(layout.unpack_from(data)[0])


def check_size(data: bytes, size: int) -> None:
    """Raises 08P01 or 22P03 unless the data has `size` bytes."""
    if len(data) < size:
        raise insufficient()
    if len(data) > size:
        raise TrailingData


def each_byte(data: bytes) -> Iterator[int]:
    """Yields the bytes that a reader asks for one by one. Raises 08P01 after the last one."""
    yield from data
    raise ProtocolViolation("no data left in message")


def octets(data: bytes, size: int) -> bytes:
    """Returns the data if it has `size` bytes that PostgreSQL reads one by one. Raises 08P01 or 22P03 otherwise."""
    if len(data) < size:
        raise ProtocolViolation("no data left in message")
    if len(data) > size:
        raise TrailingData
    return data


def fixed(format: str) -> Callable[[bytes, Type], Any]:
    """Returns a reader of one number, in a format of `struct`."""
    layout = Struct(format)

    def read(data: bytes, type: Type) -> Any:
        if len(data) != layout.size:
            check_size(data, layout.size)
        return layout.unpack(data)[0]

    return read


def packed(format: str) -> Callable[[Type], Callable[[Any], bytes]]:
    """Returns a writer of one number, in a format of `struct`, for any type."""
    pack = Struct(format).pack
    return lambda type: pack


def sized(write: Callable[[Any], bytes], value: Any) -> bytes:
    """Returns a value after its length, as elements of arrays and fields of records are written."""
    if value is None:
        return NULL
    data = write(value)
    return len(data).to_bytes(4, "big") + data


def read_sized(data: bytes, at: int) -> tuple[bytes, int]:
    """Returns the bytes of a value after its length at a place, and the place after them. Raises 08P01, also for NULL."""
    length = leading(_LENGTH, data[at : at + _LENGTH.size])
    at += _LENGTH.size
    if not 0 <= length <= len(data) - at:
        raise insufficient()
    return data[at : at + length], at + length
