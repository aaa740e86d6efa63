"""The types of options that are addresses, HOST:PORT."""

from __future__ import annotations

from tailgate.operations.settings.quantities import InvalidValue

EVERY_ADDRESS = ("", "0.0.0.0", "::", "[::]")  # hosts that are all addresses of a machine: no process can connect to them
PORT_MAX = 65_535


def address(text: str) -> str:
    """Returns an address. Without a host, as in `:6875`, it is every address of this machine. Raises InvalidValue.

    >>> address("localhost:6875"), address("[::1]:6875")
    ('localhost:6875', '[::1]:6875')
    >>> address("6875")
    Traceback (most recent call last):
    tailgate.operations.settings.quantities.InvalidValue: "6875" is not HOST:PORT
    """
    host, colon, port = text.rpartition(":")
    in_brackets = host.startswith("[") and host.endswith("]")
    if not (colon and is_port(port)) or (":" in host and not in_brackets):
        raise InvalidValue(f'"{text}" is not HOST:PORT')
    return text


def is_port(text: str) -> bool:
    """Returns whether a text is the number of a port."""
    return text.isascii() and text.isdecimal() and int(text) <= PORT_MAX


def reachable_address(text: str) -> str:
    """Returns an address by which processes on other machines reach this one. Raises InvalidValue.

    >>> reachable_address("0.0.0.0:7000")
    Traceback (most recent call last):
    tailgate.operations.settings.quantities.InvalidValue: 0.0.0.0:7000 names no host to which a process can connect
    """
    host = address(text).rpartition(":")[0]
    if host in EVERY_ADDRESS:
        raise InvalidValue(f"{text} names no host to which a process can connect")
    return text
