"""Types inet and cidr, whose stored form is sortable bytes (`values.networks.addresses`).

Source: PostgreSQL 15, src/backend/utils/adt/network.c.
"""

from __future__ import annotations

from collections.abc import Callable

from tailgate.lake.errors import InvalidBinaryRepresentation, InvalidTextRepresentation
from tailgate.lake.types import Type
from tailgate.values.codec.binary import TrailingData, each_byte
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import invalid
from tailgate.values.networks.address_input import parse
from tailgate.values.networks.addresses import V4, V6, WIDTHS, Address, decode, encode, inet_text, with_length

_FAMILIES = {2: V4, 3: V6}  # of the binary form
_BITS_RIGHT = "Value has bits set to right of mask."
_HEADER = 4  # bytes of the binary form before the address: family, length of the netmask, whether it is a cidr, size


def read(text: str, type: Type, style: Style) -> bytes:
    address = parse(text, type.name == "cidr")
    if address is None:
        raise invalid(type.name, text)
    if type.name == "cidr" and address != address.network:
        raise InvalidTextRepresentation(f'invalid cidr value: "{text}"', detail=_BITS_RIGHT)
    return encode(address)


def read_binary(data: bytes, type: Type) -> bytes:
    message = each_byte(data)
    family = next(message)
    if family not in _FAMILIES:
        raise InvalidBinaryRepresentation(f'invalid address family in external "{type.name}" value')
    width = WIDTHS[_FAMILIES[family]]
    length = next(message)
    if length > width:
        raise InvalidBinaryRepresentation(f'invalid bits in external "{type.name}" value')
    next(message)  # whether it is a cidr, which PostgreSQL ignores
    if next(message) != width // 8:
        raise InvalidBinaryRepresentation(f'invalid length in external "{type.name}" value')
    number = bytes(next(message) for _ in range(width // 8))
    address = Address(_FAMILIES[family], int.from_bytes(number, "big"), length)
    if type.name == "cidr" and address != address.network:
        raise InvalidBinaryRepresentation('invalid external "cidr" value', detail=_BITS_RIGHT)
    if len(data) > _HEADER + width // 8:
        raise TrailingData
    return encode(address)


def write_inet(form: bytes) -> bytes:
    return inet_text(decode(form)).encode()


def write_cidr(form: bytes) -> bytes:
    return with_length(decode(form)).encode()


def binary_writer(type: Type) -> Callable[[bytes], bytes]:
    is_cidr = type.name == "cidr"

    def write(form: bytes) -> bytes:
        address = decode(form)
        family = 2 if address.family == V4 else 3
        return bytes((family, address.length, is_cidr, address.width // 8)) + address.data

    return write


INET = Codec(read, read_binary, lambda type, style: write_inet, binary_writer)
CIDR = Codec(read, read_binary, lambda type, style: write_cidr, binary_writer)
