"""The storage of a lake in a folder (`lake.store.folder`), and that nothing else opens files of a lake."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.errors import Uncertain
from tailgate.lake.host import disk
from tailgate.lake.store import Revoked
from tailgate.lake.store.folder import FolderStore

SOURCE = Path(__file__).parents[2] / "tailgate"


def test_a_fenced_writer_creates_nothing(folder: FolderStore) -> None:
    first, second = folder.writer(), folder.writer()
    assert first.create("log/1", [b"first"])
    assert not second.create("log/1", [b"second"])
    second.fence_others()
    with pytest.raises(Revoked):
        first.create("log/2", [b"first"])
    assert not folder.exists("log/2")
    first.renew()
    assert first.create("log/2", [b"first"])
    first.close()
    second.close()


def test_a_name_that_is_not_durable(folder: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    exists: list[bool] = []

    def fail(name: str, path: Path, action: Callable[[], Any]) -> Any:
        if name == "fsync" and path.name == "log":
            raise OSError(5, "Input/output error")
        return action()

    monkeypatch.setattr(disk, "hook", fail)
    with pytest.raises(Uncertain):
        folder.create("log/1", [b"a"], visible=lambda: exists.append(folder.exists("log/1")))
    assert exists == [True]


def test_locks(folder: FolderStore) -> None:
    lock, other = folder.lock("a.lock"), folder.lock("a.lock")
    assert lock.take()
    assert not other.take()
    assert folder.locked("a.lock")
    event = threading.Event()
    waiting = threading.Thread(target=lambda: (other.wait(), event.set()), daemon=True)
    waiting.start()
    assert not event.wait(0.1)
    lock.release()
    assert event.wait(5)
    other.release()
    assert not folder.locked("a.lock")


def test_only_the_store_uses_the_folder_of_a_lake() -> None:
    """No module of lake, engine, gateway, operations and sinks uses `lake.path`.

    `make lint` forbids the import of `lake.host.files`.
    """
    uses = set()
    for package in ("lake", "engine", "gateway", "operations", "sinks"):
        for path in (SOURCE / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and node.attr == "path" and ast.unparse(node.value).split(".")[-1] in ("lake", "_lake"):
                    uses.add(str(path.relative_to(SOURCE)))
    assert uses == set()
