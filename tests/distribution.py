"""The distribution of the tests over the processes of pytest-xdist: in groups, those that take longest first.

    files ──► groups ──► longest first ──► the next group for a process that has finished one

A group is a file, or a folder whose conftest has fixtures of scope "package": their servers start in one process only. A long group at
the end would leave the other processes without work.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
# Seconds on two busy cores, roughly: the start of the servers of a group, and a test.
SPARK, KAFKA, OTHER = (10.0, 3.0), (3.0, 1.0), (0.5, 0.05)
CASES = 60.0  # a file with tests of many cases
OF_CASES = (
    "engine/plan/test_law",
    "engine/plan/test_moved_state",
    "generator/test_statements",
    "sql/test_catalogue",
    "tables/test_postgres",
)
MANY_CASES = {f"tests/{name}.py" for name in OF_CASES}


def shared_folders() -> list[str]:
    """Returns the folders whose fixtures of scope "package" all their tests share, as node ids begin."""
    folders = [conftest.parent for conftest in TESTS.rglob("conftest.py") if 'scope="package"' in conftest.read_text()]
    return [f"{folder.relative_to(TESTS.parent).as_posix()}/" for folder in folders]


FOLDERS = shared_folders()


def group(nodeid: str) -> str:
    """Returns the name of a test's group."""
    return next((folder for folder in FOLDERS if nodeid.startswith(folder)), nodeid.partition("::")[0])


def seconds(items: list[pytest.Item]) -> Counter[str]:
    """Returns the time that each group takes, roughly."""
    starts, tests = dict[str, float](), Counter[str]()
    for item in items:
        name = group(item.nodeid)
        start, test = SPARK if item.get_closest_marker("spark") else KAFKA if item.get_closest_marker("kafka") else OTHER
        starts[name] = max(starts.get(name, 0.0), CASES if name in MANY_CASES else start)
        tests[name] += test
    return Counter({name: starts[name] + tests[name] for name in starts})


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        of = seconds(items)
        items.sort(key=lambda item: (-of[group(item.nodeid)], group(item.nodeid)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling

    class Groups(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

        def schedule(self) -> None:
            """Gives a process that replaces another one a second group, too: it runs its last test when it knows what follows."""
            super().schedule()
            for node in self.nodes:
                self._reschedule(node)

        def remove_node(self, node: Any) -> str | None:
            """Returns the test during which the process ended. Only the tests after it are run by others.

            xdist would run it again, and would give the next process the groups that have ended, for which that process reports nothing:
            the run would wait forever.
            """
            units = self.assigned_work[node]
            pending = [nodeid for unit in units.values() for nodeid, is_complete in unit.items() if not is_complete]
            for nodeid in pending[:1]:
                units[group(nodeid)][nodeid] = True
            for name in [name for name, unit in units.items() if all(unit.values())]:
                del units[name]
            super().remove_node(node)
            return pending[0] if pending else None

    config.option.loadscopereorder = False
    return Groups(config, log)
