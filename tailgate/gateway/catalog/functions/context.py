"""The context of the catalog functions: session and catalog of the query that a thread executes.

DuckDB calls functions on the thread that executes the query.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from tailgate.gateway.catalog.functions.object_names import Facts, Session
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError

Listed = tuple[str, Callable[..., Any]]  # the signature of a function, and its implementation


class FunctionContext(threading.local):
    """The session and catalog of the query that a thread executes. `raised`: the last error of a function."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.catalog = Catalog()
        self.facts = Facts()
        self.roles: Mapping[int, str] = {}  # names by oid; that of the operator is the session's user before roles are created
        self.path: list[int] | None = None
        self.raised: TailgateError | None = None


class FunctionGroup:
    """Functions that answer for the context of their thread."""

    def __init__(self, context: FunctionContext) -> None:
        self.context = context

    @property
    def facts(self) -> Facts:
        return self.context.facts

    @property
    def roles(self) -> Mapping[int, str]:
        return self.context.roles

    @property
    def catalog(self) -> Catalog:
        return self.context.catalog

    @property
    def _session(self) -> Session:
        assert self.context.session is not None
        return self.context.session


def nothing(*arguments: object) -> None:
    """Implements functions about objects that Tailgate does not have."""


def yes(*arguments: object) -> bool:
    """Implements functions that are true for all objects."""
    return True


def zero(*arguments: object) -> int:
    """Implements functions about sizes that Tailgate does not measure."""
    return 0
