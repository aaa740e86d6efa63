"""`python -m tailgate` is the same as the command `tailgate`."""

from __future__ import annotations

from tailgate.cli import process

process()
