"""hashtext and hashtextextended: PostgreSQL's hashes of text, which clients use as keys of advisory locks.

Source: PostgreSQL 15, src/common/hashfn.c, hash_bytes() and hash_bytes_extended() on a little-endian machine.
"""

from __future__ import annotations

from tailgate.sql.compute.registry import udf

BITS = 0xFFFFFFFF
START = 0x9E3779B9 + 3923095
BLOCK = 12  # bytes that one step mixes
MIX = ((0, 2, 4, 1), (1, 0, 6, 2), (2, 1, 8, 0), (0, 2, 16, 1), (1, 0, 19, 2), (2, 1, 4, 0))
FINAL = ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24))


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & BITS


def _mix(words: list[int]) -> None:
    for changed, other, by, added in MIX:
        words[changed] = (words[changed] - words[other] & BITS) ^ _rotated(words[other], by)
        words[other] = words[other] + words[added] & BITS


def _hash(text: str, seed: int = 0) -> tuple[int, int]:
    """Returns the last two words of the hash of a text in UTF-8."""
    data = text.encode()
    words = [START + len(data) & BITS] * 3
    if seed:
        words[0] = words[0] + (seed >> 32) & BITS
        words[1] = words[1] + seed & BITS
        _mix(words)
    whole = len(data) - len(data) % BLOCK
    for start in range(0, whole, BLOCK):
        for n in range(3):
            words[n] = words[n] + int.from_bytes(data[start + 4 * n : start + 4 * n + 4], "little") & BITS
        _mix(words)
    rest = data[whole:]
    for n, part in enumerate((rest[:4], rest[4:8], b"\0" + rest[8:] if rest[8:] else b"")):  # the lowest byte is that of the length
        words[n] = words[n] + int.from_bytes(part, "little") & BITS
    for changed, other, by in FINAL:
        words[changed] = (words[changed] ^ words[other]) - _rotated(words[other], by) & BITS
    return words[1], words[2]


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


@udf("text", to="int4")
def hashtext(text: str) -> int:
    return _signed(_hash(text)[1], 32)


@udf("text", "int8", to="int8")
def hashtextextended(text: str, seed: int) -> int:
    high, low = _hash(text, seed & (1 << 64) - 1)
    return _signed(high << 32 | low, 64)
