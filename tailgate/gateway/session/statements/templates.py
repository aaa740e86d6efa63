"""Statistics of statements by role, lane and template: the rows of `tailgate.statements`.

text ──┬─ sent lately ──────────────────────────────────────────────────────────────────┬──► Figures
       └─► key: the text with its plain literals replaced ──► template: `mask_literals` ─┘
           clients send thousands of texts that differ       computed once for each key
           in their literals only
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tailgate.gateway.resources.budgets import Budget, Cache
from tailgate.gateway.session.statements.lanes import Lane
from tailgate.lake.types import Type
from tailgate.operations.sketch import Sketch
from tailgate.sql.lexer.literal_masking import mask_literals
from tailgate.sql.lexer.literal_templates import template
from tailgate.sql.lexer.secret_masking import mask_secrets

TEXT_BYTES_MAX = 1024  # of a text that is read for its template
TEMPLATES_MAX = 1_000  # with at most about 8 KB each; those that were used longest ago are removed
TEXTS_MAX = 2_000  # texts of at most 1 KB that are found without their template
SUCCESS = "00000"
KEYS_BYTES = 4 << 20  # of the cache from texts to templates
PARAMETERS_MAX = 20  # parameters that the shape of a call shows


@dataclass(slots=True)
class Call:
    """A statement that has ended. `text`: its text, or its start. `types`, `values`: those of its parameters."""

    role: int
    lane: Lane
    text: bytes
    seconds: float
    sqlstate: str = SUCCESS
    rows: int = 0
    types: Sequence[Type] = ()
    values: Sequence[object] = ()


@dataclass(slots=True)
class Figures:
    """The statistics of one template. Durations are in microseconds, times in seconds since the epoch."""

    first_at: float
    last_at: float
    calls: int = 0
    errors: int = 0
    rows: int = 0
    total: float = 0.0
    durations: Sketch = field(default_factory=Sketch)
    slowest: str | None = None

    def ended(self, call: Call) -> None:
        """Counts a call."""
        duration = call.seconds * 1e6
        if self.durations.max is None or duration > self.durations.max:
            self.slowest = shape(call.types, call.values)
        self.calls += 1
        self.errors += call.sqlstate != SUCCESS
        self.rows += call.rows
        self.total += duration
        self.durations.add(duration)
        self.last_at = time.time()

    def polled(self, durations: np.ndarray, rows: int) -> None:
        """Counts calls that were answered from memory."""
        self.calls += len(durations)
        self.rows += rows
        self.total += float(durations.sum())
        self.durations.add_all(durations)
        self.last_at = time.time()

    def columns(self) -> dict[str, Any]:
        """Returns the columns of the statistics."""
        quantiles = {"p50_ms": self.durations.quantile(0.5), "p95_ms": self.durations.quantile(0.95), "max_ms": self.durations.max}
        return {
            "calls": self.calls,
            "rows": self.rows,
            "errors": self.errors,
            "total_ms": self.total / 1000,
            **{column: None if value is None else value / 1000 for column, value in quantiles.items()},
            "slowest_parameters": self.slowest,
            "first_at": int(self.first_at * 1000),
            "last_at": int(self.last_at * 1000),
        }


class Templates:
    """The statistics of a gateway's statements. One thread at a time changes them; `Figures.columns` may be read meanwhile."""

    def __init__(self, budget: Budget) -> None:
        self._keys: Cache[bytes, str] = Cache(budget, KEYS_BYTES)
        self._figures: dict[tuple[int, Lane, str], Figures] = {}  # by role, lane and template
        self._by_text: dict[tuple[int, Lane, bytes], Figures] = {}  # the same, for texts that are sent repeatedly

    def of(self, role: int, lane: Lane, text: bytes) -> Figures:
        """Returns the statistics of a text's template."""
        return self._by_text.get((role, lane, text)) or self._find(role, lane, text)

    def _find(self, role: int, lane: Lane, text: bytes) -> Figures:
        """Returns the statistics of the template of a text that is new or has not been sent lately."""
        key = role, lane, self._template(text[:TEXT_BYTES_MAX])
        figures = self._figures.get(key)
        if figures is None:
            if len(self._figures) >= TEMPLATES_MAX:
                for oldest in sorted(self._figures, key=lambda k: self._figures[k].last_at)[: TEMPLATES_MAX // 20]:
                    del self._figures[oldest]
                self._by_text.clear()
            now = time.time()
            figures = self._figures[key] = Figures(now, now)
        if len(self._by_text) >= TEXTS_MAX:
            self._by_text.clear()
        if len(text) <= TEXT_BYTES_MAX:
            self._by_text[role, lane, text] = figures
        return figures

    def listed(self) -> list[tuple[int, Lane, str, Figures]]:
        """Returns role, lane, template and statistics of all templates."""
        return [(*key, figures) for key, figures in self._figures.items()]

    def _template(self, text: bytes) -> str:
        key = template(text) or text
        shown = self._keys.get(key)
        if shown is None:
            shown = mask_literals(mask_secrets(text.rstrip(b"\0").decode(errors="ignore")))
            self._keys.put(key, shown, len(key) + len(shown))
        return shown


def shape(types: Sequence[Type], values: Sequence[object]) -> str | None:
    """Returns the types of parameters and the lengths of their values, without the values.

    >>> from tailgate.lake.types import INT8, TEXT
    >>> shape((INT8, TEXT, TEXT), (7, "Berlin", None))
    'bigint, text of 6 characters, NULL'
    """
    parts = [_shape(type, value) for type, value in zip(types[:PARAMETERS_MAX], values, strict=False)]
    return ", ".join(parts + ["…"] * (len(types) > PARAMETERS_MAX)) or None


def _shape(type: Type, value: object) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return f"{type} of {len(value)} characters"
        case bytes():
            return f"{type} of {len(value)} bytes"
        case list() | tuple():
            return f"{type} of {len(value)} elements"
        case _:
            return str(type)
