"""Functions of inet, cidr, macaddr and macaddr8.

Source: PostgreSQL 15, src/backend/utils/adt/network.c, inet_cidr_ntop.c, mac.c, mac8.c.
"""

from __future__ import annotations

from collections.abc import Callable

from tailgate.lake.errors import InvalidParameterValue, NumericValueOutOfRange
from tailgate.sql.compute.registry import udf
from tailgate.values.networks import addresses
from tailgate.values.networks.addresses import V4, Address, decode, encode
from tailgate.values.networks.inet import write_inet
from tailgate.values.networks.macaddr import MIDDLE

BIGINT_BITS = 64
BIGINT = range(-(2**63), 2**63)
OUT_OF_RANGE = "result is out of range"


# --- text ----------------------------------------------------------------------------------------


@udf("inet", to="text")
def inet_output(form: bytes) -> str:
    """Returns the text that clients see."""
    return write_inet(form).decode()


@udf("inet", to="text")
def inet_to_text(form: bytes) -> str:
    """Returns the text to which a cast converts: always with the length of the netmask."""
    return addresses.with_length(decode(form))


@udf("inet", to="text")
def host(form: bytes) -> str:
    return addresses.text(decode(form))


@udf("cidr", to="text")
def abbrev_cidr(form: bytes) -> str:
    """Returns the text without octets or words that the netmask makes zero.

    >>> abbrev_cidr(encode(Address(4, 0x0A010000, 16))), abbrev_cidr(encode(Address(6, 0x20010DB8 << 96, 32)))
    ('10.1/16', '2001:db8/32')
    """
    address = decode(form)
    if address.family == V4:
        octets = address.data[: -(-address.length // 8)] or b"\0"
        return ".".join(map(str, octets)) + f"/{address.length}"
    return f"{_abbreviated(address)}/{address.length}"


def _abbreviated(address: Address) -> str:
    if address.length == 0:
        return "::"
    data = address.data
    count = max(-(-address.length // 16), 2)
    words = [int.from_bytes(data[2 * i : 2 * i + 2], "big") for i in range(count)]
    start, size = _longest_zeros(words)
    is_v4 = size != count and start == 0 and (size == 6 or (size == 5 and words[5] == 0xFFFF) or (size == 7 and data[14] and data[15] != 1))
    text = ""
    for i, word in enumerate(words):
        if size and start <= i < start + size:
            text += ":" * (i == start) + ":" * (i == count - 1)
        elif is_v4 and i > 5:
            text += (":" if i == 6 else ".") + str(word >> 8)
            if i != 7 or address.length > 120:
                text += f".{word & 0xFF}"
        else:
            text += ":" * bool(text) + f"{word:x}"
    return text


def _longest_zeros(words: list[int]) -> tuple[int, int]:
    """Returns the begin and length of a run of zeros. As in PostgreSQL, a shorter run is counted together with the next one."""
    start = size = current_start = current = 0
    for i, word in enumerate(words):
        if word == 0:
            current_start = current_start if current else i
            current += 1
        elif current > size:
            start, size, current = current_start, current, 0
    return (current_start, current) if current > size else (start, size)


# --- parts ---------------------------------------------------------------------------------------


@udf("inet", to="int4")
def inet_family(form: bytes) -> int:
    return decode(form).family


@udf("inet", to="int4")
def masklen(form: bytes) -> int:
    return decode(form).length


@udf("inet", to="cidr")
def network(form: bytes) -> bytes:
    return encode(decode(form).network)


@udf("inet", to="inet")
def broadcast(form: bytes) -> bytes:
    a = decode(form)
    return encode(Address(a.family, a.number | a.hostmask, a.length))


@udf("inet", to="inet")
def netmask(form: bytes) -> bytes:
    a = decode(form)
    return encode(Address(a.family, a.netmask, a.width))


@udf("inet", to="inet")
def hostmask(form: bytes) -> bytes:
    a = decode(form)
    return encode(Address(a.family, a.hostmask, a.width))


@udf("inet", "int4", to="inet")
def set_masklen(form: bytes, length: int) -> bytes:
    a = decode(form)
    return encode(Address(a.family, a.number, _length(a, length)))


@udf("cidr", "int4", to="cidr")
def set_masklen_cidr(form: bytes, length: int) -> bytes:
    a = decode(form)
    return encode(Address(a.family, a.number, _length(a, length)).network)


def _length(address: Address, length: int) -> int:
    """Returns a length of a netmask; -1 is the whole address. Raises 22023."""
    if length == -1:
        return address.width
    if not 0 <= length <= address.width:
        raise InvalidParameterValue(f"invalid mask length: {length}")
    return length


@udf("inet", "inet", to="cidr")
def inet_merge(form: bytes, other: bytes) -> bytes:
    """Returns the smallest network that contains two addresses."""
    a, b = decode(form), decode(other)
    if a.family != b.family:
        raise InvalidParameterValue("cannot merge addresses from different families")
    length = min(a.length, b.length, a.width - (a.number ^ b.number).bit_length())
    return encode(Address(a.family, a.number, length).network)


# --- comparison of networks ----------------------------------------------------------------------


def _containment(name: str, lengths: Callable[[int, int], bool]) -> None:
    """Registers an operator: the lengths of the netmasks must satisfy a condition, and the networks must overlap."""

    def function(form: bytes, other: bytes) -> bool:
        a, b = decode(form), decode(other)
        return lengths(a.length, b.length) and a.shares(b, min(a.length, b.length))

    udf("inet", "inet", to="bool", name=name)(function)


_containment("network_sub", lambda a, b: a > b)
_containment("network_subeq", lambda a, b: a >= b)
_containment("network_sup", lambda a, b: a < b)
_containment("network_supeq", lambda a, b: a <= b)
_containment("network_overlap", lambda a, b: True)


# --- arithmetic ----------------------------------------------------------------------------------


@udf("inet", to="inet")
def inet_not(form: bytes) -> bytes:
    a = decode(form)
    return encode(Address(a.family, a.number ^ (1 << a.width) - 1, a.length))


@udf("inet", "inet", to="inet")
def inet_and(form: bytes, other: bytes) -> bytes:
    a, b = _same_family(form, other, "AND")
    return encode(Address(a.family, a.number & b.number, max(a.length, b.length)))


@udf("inet", "inet", to="inet")
def inet_or(form: bytes, other: bytes) -> bytes:
    a, b = _same_family(form, other, "OR")
    return encode(Address(a.family, a.number | b.number, max(a.length, b.length)))


def _same_family(form: bytes, other: bytes, operation: str) -> tuple[Address, Address]:
    a, b = decode(form), decode(other)
    if a.family != b.family:
        raise InvalidParameterValue(f"cannot {operation} inet values of different sizes")
    return a, b


@udf("inet", "int8", to="inet")
def inet_plus(form: bytes, addend: int) -> bytes:
    a = decode(form)
    number = a.number + addend
    if not 0 <= number < 1 << a.width:
        raise NumericValueOutOfRange(OUT_OF_RANGE)
    return encode(Address(a.family, number, a.length))


@udf("inet", "int8", to="inet")
def inet_minus(form: bytes, subtrahend: int) -> bytes:
    return inet_plus(form, -subtrahend if subtrahend > BIGINT.start else subtrahend)  # the smallest bigint is its own negation


@udf("inet", "inet", to="int8")
def inet_difference(form: bytes, other: bytes) -> int:
    a, b = _same_family(form, other, "subtract")
    difference = a.number - b.number
    if a.width > BIGINT_BITS:  # as in PostgreSQL, the difference of 128 bits has a sign
        half = 1 << a.width - 1
        difference = (difference + half) % (2 * half) - half
    if difference not in BIGINT:
        raise NumericValueOutOfRange(OUT_OF_RANGE)
    return difference


# --- macaddr and macaddr8 ------------------------------------------------------------------------


def _octets(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


@udf("macaddr", to="macaddr")
def macaddr_not(text: str) -> str:
    return bytes(octet ^ 0xFF for octet in _octets(text)).hex(":")


@udf("macaddr", "macaddr", to="macaddr")
def macaddr_and(text: str, other: str) -> str:
    return bytes(a & b for a, b in zip(_octets(text), _octets(other), strict=True)).hex(":")


@udf("macaddr", "macaddr", to="macaddr")
def macaddr_or(text: str, other: str) -> str:
    return bytes(a | b for a, b in zip(_octets(text), _octets(other), strict=True)).hex(":")


@udf("macaddr", to="macaddr")
def macaddr_trunc(text: str) -> str:
    """Returns the address with zeros after the manufacturer's three bytes."""
    return text[:9] + ":".join(["00"] * (text.count(":") - 2))


@udf("macaddr8", to="macaddr8")
def macaddr8_set7bit(text: str) -> str:
    octets = _octets(text)
    return bytes((octets[0] | 2, *octets[1:])).hex(":")


@udf("macaddr", to="macaddr8")
def macaddr_to_macaddr8(text: str) -> str:
    return f"{text[:9]}{MIDDLE}{text[8:]}"


@udf("macaddr8", to="macaddr")
def macaddr8_to_macaddr(text: str) -> str:
    if text[9:14] != MIDDLE:
        raise NumericValueOutOfRange("macaddr8 data out of range to convert to macaddr")
    return text[:8] + text[14:]
