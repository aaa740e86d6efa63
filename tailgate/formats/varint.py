"""The variable-length encoding of integers that Avro and Protobuf use."""

from __future__ import annotations

_SMALL = 1 << 13  # numbers of up to two bytes are precomputed: keys, counts, lengths


def varint(value: int) -> bytes:
    """Encodes an integer with seven bits per byte, lowest first. A negative number has ten bytes.

    >>> varint(1), varint(300), varint(-1)[-1:]
    (b'\\x01', b'\\xac\\x02', b'\\x01')
    """
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


_LONGS = {value: _zigzag(value) for value in range(-_SMALL, _SMALL)}


def long(value: int) -> bytes:
    """Encodes an integer as Avro's int or long, which have the same encoding.

    >>> long(0), long(-1), long(64)
    (b'\\x00', b'\\x01', b'\\x80\\x01')
    """
    return _LONGS.get(value) or _zigzag(value)
