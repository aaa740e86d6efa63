"""What the text of a value depends on besides the value: five settings, as one hashable value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """`date_style` is always ISO: only the order of its fields is a session's, and that matters on input alone."""

    time_zone: str = "UTC"
    interval_style: str = "postgres"
    extra_float_digits: int = 1
    bytea_output: str = "hex"


DEFAULT = Style()
