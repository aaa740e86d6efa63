"""The variable-length encoding of integers that Avro and Protobuf use."""

from __future__ import annotations


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
