"""The state of sweeps and of the tables' maintenance: sweep.json in the store. A later engine continues with it.

All times are ages of entries (`lake.log.ages`), which continue when an engine is replaced or killed.
Files are therefore removed even if no engine runs for the whole waiting time. If sweep.json is lost
or old, files are removed later. This is safe, because a file that is not needed is never needed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from tailgate.lake.folder import Lake
from tailgate.lake.store import documents

NAME = "sweep.json"


@dataclass
class SweepState:
    """`age`: of the last sweep. `table`: the last table that was maintained in turn. `maintained`: by table, the version at its last
    maintenance. `unneeded`: when each object was first seen as unneeded, by name.
    """

    age: int = 0
    table: str = ""
    maintained: dict[str, int] = field(default_factory=dict)
    unneeded: dict[str, int] = field(default_factory=dict)

    def save(self, lake: Lake) -> None:
        """Writes the state durably."""
        documents.write(lake.store, NAME, asdict(self))

    def due(self, lake: Lake, folder: str, unneeded: Iterable[str], grace_ms: float) -> list[str]:
        """Returns those of a folder's unneeded objects that were first seen as unneeded at least `grace_ms` ago."""
        now = age(lake)
        first_seen = {name: self.unneeded.get(name, now) for name in unneeded}
        others = {name: at for name, at in self.unneeded.items() if name.rpartition("/")[0] != folder}
        self.unneeded = others | first_seen
        return sorted(name for name, at in first_seen.items() if now - at >= grace_ms)

    def forget(self, folder: str) -> None:
        """Forgets the objects below a removed folder."""
        self.unneeded = {name: at for name, at in self.unneeded.items() if not f"{name}/".startswith(f"{folder}/")}


def of(lake: Lake) -> SweepState:
    """Returns the state that was saved last. The same object each time."""
    state: SweepState | None = lake.cache.get(__name__)
    if state is None:
        state = lake.cache[__name__] = _loaded(lake)
    return state


def age(lake: Lake) -> int:
    """Returns the age of the newest entry; 0 before the first."""
    newest = lake.log.newest()
    return newest.age if newest is not None else 0


def _loaded(lake: Lake) -> SweepState:
    try:
        return SweepState(**(documents.read(lake.store, NAME) or {}))
    except (ValueError, TypeError):
        return SweepState()
