"""The settings that the text of a value depends on, as one hashable value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """The settings. Dates are always written as in ISO 8601; `date_order` (MDY, DMY or YMD) matters for input only."""

    time_zone: str = "UTC"
    interval_style: str = "postgres"
    extra_float_digits: int = 1
    bytea_output: str = "hex"
    date_order: str = "MDY"


DEFAULT = Style()
