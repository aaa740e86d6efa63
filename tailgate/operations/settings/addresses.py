"""The type of --control-listen: an address by which processes on other machines reach this one."""

from __future__ import annotations

from tailgate.operations.settings.quantities import InvalidValue

EVERY_ADDRESS = ("", "0.0.0.0", "::")  # no process can connect to them


def reachable_address(text: str) -> str:
    """Returns the address, HOST:PORT. Raises InvalidValue.

    >>> reachable_address("0.0.0.0:7000")
    Traceback (most recent call last):
    tailgate.operations.settings.quantities.InvalidValue: 0.0.0.0:7000 names no host; other machines need its name or address
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) <= 65_535):
        raise InvalidValue(f'"{text}" is not HOST:PORT')
    if host.strip("[]") in EVERY_ADDRESS:
        raise InvalidValue(f"{text} names no host; other machines need its name or address")
    return text
