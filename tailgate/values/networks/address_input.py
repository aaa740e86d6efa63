"""Reads the text of inet and cidr.

Source: PostgreSQL 15, src/backend/utils/adt/inet_cidr_ntop.c, inet_net_pton.c.
"""

from __future__ import annotations

import re

from tailgate.values.networks.addresses import V4, V6, WIDTHS, Address

_OCTETS = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_HEX = re.compile(r"0[xX]([0-9a-fA-F]+)")
_LENGTH = re.compile(r"/([0-9]+)")
_V6_LENGTH = re.compile(r"0|[1-9][0-9]*")
_OCTET = re.compile(r"0?|[1-9][0-9]*")
_WORDS = 8


class _MalformedError(ValueError):
    """The text is not an address."""


def parse(source: str, is_cidr: bool) -> Address | None:
    """Returns the address of a text, or None if it is malformed. A cidr may have bits to the right of its netmask."""
    try:
        if ":" in source:
            return _v6(source)
        return _cidr_v4(source) if is_cidr else _inet_v4(source)
    except ValueError:  # malformed, or a number with more digits than Python reads
        return None


def _inet_v4(source: str) -> Address:
    """Returns an address of four octets, or fewer if the length of the netmask follows. The last may end with a point."""
    match = _OCTETS.match(source)
    if match is None:
        raise _MalformedError
    octets = _numbers(match[0])
    rest = source[match.end() :].removeprefix(".")
    if not rest:
        if len(octets) < 4:
            raise _MalformedError
        return _address(octets, 32)
    length = _length(rest)
    if length // 8 > len(octets):
        raise _MalformedError
    return _address(octets, length)


def _cidr_v4(source: str) -> Address:
    """Returns a network. Without the length of the netmask, it follows from the class of the address and the octets."""
    if match := _HEX.match(source):
        digits = match[1] + "0" * (len(match[1]) % 2)
        octets = list(bytes.fromhex(digits))
    elif match := _OCTETS.match(source):
        octets = _numbers(match[0])
    else:
        raise _MalformedError
    if len(octets) > 4:
        raise _MalformedError
    rest = source[match.end() :]
    return _address(octets, _length(rest) if rest else _class_length(octets))


def _class_length(octets: list[int]) -> int:
    first = octets[0]
    length = 32 if first >= 240 else 8 if first >= 224 else 24 if first >= 192 else 16 if first >= 128 else 8
    length = max(length, 8 * len(octets))
    return 4 if length == 8 and first == 224 else length


def _numbers(octets: str) -> list[int]:
    numbers = [int(octet) for octet in octets.split(".")]
    if len(numbers) > 4 or max(numbers) > 255:
        raise _MalformedError
    return numbers


def _length(rest: str) -> int:
    match = _LENGTH.fullmatch(rest)
    if match is None or int(match[1]) > WIDTHS[V4]:
        raise _MalformedError
    return int(match[1])


def _address(octets: list[int], length: int) -> Address:
    return Address(V4, int.from_bytes(bytes(octets).ljust(4, b"\0"), "big"), length)


def _v6(source: str) -> Address:
    """Returns an address of words between colons, of which `::` may stand for some that are zero, and an IPv4 address may end it."""
    if source.startswith(":") and not source.startswith("::"):
        raise _MalformedError
    words: list[int] = []
    gap: int | None = None  # the number of words before ::
    length = WIDTHS[V6]
    at = 1 if source.startswith(":") else 0
    while at < len(source):
        match = _WORD.match(source, at)
        assert match is not None
        digits, sign = match.groups()
        if len(digits) > 4:
            raise _MalformedError
        if sign == ":":
            if not digits:
                if gap is not None:
                    raise _MalformedError
                gap = len(words)
            elif match.end() == len(source):
                raise _MalformedError
            else:
                words.append(int(digits, 16))
        elif sign == "." and len(words) <= _WORDS - 2:
            octets, length = _embedded(source[at:])
            words += (octets[0] << 8 | octets[1], octets[2] << 8 | octets[3])
            break
        else:
            if digits:
                words.append(int(digits, 16))
            if sign == "/":
                length = _v6_length(source[match.end() :])
                break
            if sign:
                raise _MalformedError
        at = match.end()
    if gap is not None and len(words) < _WORDS:
        words[gap:gap] = [0] * (_WORDS - len(words))
    elif gap is not None:
        raise _MalformedError
    if len(words) != _WORDS:
        raise _MalformedError
    return Address(V6, sum(word << 16 * (_WORDS - 1 - i) for i, word in enumerate(words)), length)


_WORD = re.compile(r"([0-9a-fA-F]*)([^0-9a-fA-F]?)", re.S)


def _embedded(source: str) -> tuple[list[int], int]:
    """Returns the octets of the IPv4 address that ends a text, and the length of the netmask behind it.

    As in PostgreSQL, octets may be missing, and an empty one before a point or a slash is 0.
    """
    octets, slash, rest = source.partition("/")
    parts = octets.split(".")
    if len(parts) > 4 or not (slash or parts[-1]) or not all(_OCTET.fullmatch(part) and int(part or 0) <= 255 for part in parts):
        raise _MalformedError
    length = _v6_length(rest) if slash else WIDTHS[V6]
    return ([int(part or 0) for part in parts] + [0] * 4)[:4], length


def _v6_length(rest: str) -> int:
    if _V6_LENGTH.fullmatch(rest) is None or int(rest) > WIDTHS[V6]:
        raise _MalformedError
    return int(rest)
