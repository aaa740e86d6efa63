"""A session's readers of subscriptions, which FETCH … FROM SUBSCRIPTION continues."""

from __future__ import annotations

import pyarrow as pa

from tailgate.gateway.resources.background import Background
from tailgate.gateway.results.envelopes import Shape
from tailgate.gateway.results.tail import TailRows
from tailgate.lake.readers.subscriptions import Place


class SubscriptionReader:
    """A session's reader of one subscription.

    `place`: the acknowledged position. `rows`: the changes after it, in the columns of `shape`. `newest_time`: that of the newest
    row that the client has received, -1 for none.
    """

    def __init__(self, rows: TailRows, shape: Shape, place: Place, progress: bool) -> None:
        self.rows, self.shape, self.place, self.newest_time = rows, shape, place, -1
        self._flag = int(progress)

    def note(self, table: pa.Table) -> None:
        """Sets `newest_time` to the time of the last row of a fetched table, not counting progress rows."""
        for index in range(table.num_rows - 1, -1, -1):
            if not self._flag or not table[1][index].as_py():
                self.newest_time = int(table[0][index].as_py())
                return


class SubscriptionReaders(dict[int, SubscriptionReader]):
    """The readers of one session by id of the subscription."""

    def __init__(self, background: Background) -> None:
        super().__init__()
        self._background = background

    def rewind(self, id: int | None = None) -> None:
        """Closes the readers of one subscription, or of all: the next FETCH returns unacknowledged rows again."""
        for subscription in [id] if id is not None else list(self):
            reader = self.pop(subscription, None)
            if reader is not None:
                self._background.run(reader.rows.close())
