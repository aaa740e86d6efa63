"""Parses the addresses of brokers."""

from __future__ import annotations

from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.grammar.parser import Parser

DEFAULT_PORT = 9092


def brokers_of(cursor: Parser) -> str:
    """Parses 'host:port, …'. Returns the addresses, each with a port."""
    at = cursor.position
    return addresses(",".join(cursor.listed(Parser.string)), at)


def addresses(listed: str, position: int | None = None) -> str:
    """Returns a comma-separated list of brokers with the default port added where it is missing."""
    return ",".join(_address(a.strip(), position) for a in listed.split(","))


def _address(address: str, position: int | None) -> str:
    """Returns an address with its port, by default 9092. An IPv6 address must be in brackets."""
    if not address:
        raise InvalidParameterValue("the address of a broker must not be empty", position=position)
    host, colon, port = address.rpartition(":")
    if not colon or (address.startswith("[") and address.endswith("]")):
        return f"{address}:{DEFAULT_PORT}"
    if not port.isdigit() or not 0 < int(port) < 65536 or not host:
        raise InvalidParameterValue(f'"{address}" is not the address of a broker', hint="Write host:port.", position=position)
    return address
