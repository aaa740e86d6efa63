"""A relation that is mirrored: its tables, and whether they can be read."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from tailgate.gateway.mirrors import mirror
from tailgate.gateway.mirrors.mirror import Shape
from tailgate.gateway.mirrors.tables import Table
from tailgate.lake.catalog import Catalog, Item


@dataclass(slots=True, eq=False)
class Mirrored:
    """A relation that is mirrored or being filled. `ready` is done once it can be read.

    `tables`: by relation, that of the rows and that of the errors.
    """

    item: Item
    shape: Shape
    tables: dict[int, Table] = field(default_factory=dict)
    ready: Future[None] = field(default_factory=Future)
    moving: bool = False  # true once the follower thread updates it
    used: float = field(default_factory=time.monotonic)

    def has_changed_form(self, catalog: Catalog) -> bool:
        """Tells whether the item was dropped, is being refilled, or has rows of another form now."""
        now = catalog.items.get(self.item.id)
        return now is None or not now.ready or mirror.shape(now) != self.shape or now.errors != self.item.errors
