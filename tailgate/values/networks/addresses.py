"""The addresses of types inet and cidr, and their stored form: bytes whose unsigned order is PostgreSQL's order.

    family, 1 byte: 4 or 6 │ network, 4 or 16 bytes │ length of the netmask, 1 byte │ address, 4 or 16 bytes

The address is left out if it is the network's, as that of every cidr.

Source: PostgreSQL 15, src/backend/utils/adt/network.c.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

V4, V6 = 4, 6
WIDTHS = {V4: 32, V6: 128}  # bits of an address


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address with the length of its netmask."""

    family: int
    number: int
    length: int

    @property
    def width(self) -> int:
        """Returns the number of bits of an address of the family."""
        return WIDTHS[self.family]

    @property
    def netmask(self) -> int:
        return (1 << self.width) - (1 << self.width - self.length)

    @property
    def hostmask(self) -> int:
        return (1 << self.width - self.length) - 1

    @property
    def network(self) -> Address:
        """Returns the address with zeros to the right of the netmask."""
        return Address(self.family, self.number & self.netmask, self.length)

    @property
    def data(self) -> bytes:
        """Returns the bytes of the address alone."""
        return self.number.to_bytes(self.width // 8, "big")

    def shares(self, other: Address, bits: int) -> bool:
        """Returns whether another address has the same family and first bits."""
        return self.family == other.family and (self.number ^ other.number) >> self.width - bits == 0


def encode(address: Address) -> bytes:
    """Returns the stored form of an address.

    >>> encode(Address(4, 0x0A010203, 8)).hex(" "), encode(Address(4, 0x0A000000, 8)).hex(" ")
    ('04 0a 00 00 00 08 0a 01 02 03', '04 0a 00 00 00 08')
    """
    network = address.network
    form = bytes((address.family,)) + network.data + bytes((address.length,))
    return form if network.number == address.number else form + address.data


@lru_cache(1024)
def decode(form: bytes) -> Address:
    """Returns the address of a stored form."""
    family = form[0]
    end = 1 + WIDTHS[family] // 8
    return Address(family, int.from_bytes(form[end + 1 :] or form[1:end], "big"), form[end])


def text(address: Address) -> str:
    """Returns the text of the address alone.

    >>> text(Address(6, 0xFFFF01020304, 128)), text(Address(6, 1 << 64, 128))
    ('::ffff:1.2.3.4', '0:0:0:1::')
    """
    if address.family == V4:
        return ".".join(map(str, address.data))
    words = [address.number >> 16 * i & 0xFFFF for i in range(7, -1, -1)]
    start, size = _zeros(words)
    shown = [f"{word:x}" for word in words]
    if start == 0 and (size == 6 or (size == 5 and words[5] == 0xFFFF)):  # an IPv4 address inside
        shown[6:] = [".".join(map(str, address.data[12:]))]
    if size < 2:
        return ":".join(shown)
    return ":".join(shown[:start]) + "::" + ":".join(shown[start + size :])


def _zeros(words: list[int]) -> tuple[int, int]:
    """Returns the begin and the length of the first longest run of zeros."""
    best = (-1, 0)
    size = 0
    for i, word in enumerate(words):
        size = 0 if word else size + 1
        if size > best[1]:
            best = (i - size + 1, size)
    return best


def with_length(address: Address) -> str:
    """Returns the text of the address and the length of its netmask."""
    return f"{text(address)}/{address.length}"


def inet_text(address: Address) -> str:
    """Returns the text of an inet: the length of the netmask is left out if it is the whole address."""
    return text(address) if address.length == address.width else with_length(address)
