"""The types of options that are numbers in a range, with or without a unit: 256MB, 90min, 5000."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MEMORY: Final = {"MB": 1, "GB": 1024, "TB": 1024**2}  # in MB
TIME: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400}  # in s
NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]*)")


class InvalidValue(argparse.ArgumentTypeError, ValueError):
    """Raised for a text that cannot be the value of an option. argparse and `configuration` show its message."""


@dataclass(frozen=True, slots=True, eq=False)  # argparse needs a hash
class Quantity:
    """A type of options. Its values are integers in the first of `units`; a text without a unit is in it, too.

    >>> memory = Quantity(64, 1024**2, MEMORY)
    >>> memory("2GB"), memory("100"), memory.shown(2048)
    (2048, 100, '2GB')
    >>> memory("1MB")
    Traceback (most recent call last):
    tailgate.operations.settings.quantities.InvalidValue: 1MB is outside the valid range (64MB .. 1TB)
    """

    low: int
    high: int
    units: Mapping[str, int] = field(default_factory=lambda: {"": 1})

    @property
    def unit(self) -> str:
        return next(iter(self.units))

    def __call__(self, text: str) -> int:
        """Returns the value of a text. Raises InvalidValue."""
        match = NUMBER.fullmatch(text.strip())
        factor = self.units.get(match[2] or self.unit) if match else None
        if match is None or factor is None:
            listed = ", ".join(f'"{unit}"' for unit in self.units if unit)
            raise InvalidValue(f'"{text}" is not a number' + (f" with one of the units {listed}" if listed else ""))
        value = round(float(match[1]) * factor)
        if not self.low <= value <= self.high:
            raise InvalidValue(f"{text} is outside the valid range ({self.shown(self.low)} .. {self.shown(self.high)})")
        return value

    def shown(self, value: int) -> str:
        """Returns a value in the largest unit in which it is an integer."""
        unit, factor = max((each for each in self.units.items() if value % each[1] == 0), key=lambda each: each[1])
        return f"{value // factor}{unit}"


@dataclass(frozen=True, slots=True)
class Positive:
    """A type of options: a number that is greater than 0."""

    def __call__(self, text: str) -> float:
        """Returns the value of a text. Raises InvalidValue."""
        match = NUMBER.fullmatch(text.strip())
        if match is None or match[2] or float(match[1]) == 0:
            raise InvalidValue(f'"{text}" is not a number greater than 0')
        return float(match[1])
