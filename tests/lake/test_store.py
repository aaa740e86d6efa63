"""The interface of a lake's storage (`lake.store.Store`): what holds for each of its implementations."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.store import Revoked, Store, documents
from tailgate.lake.store.folder import MAPPED_BYTES

AT_ONCE = 32  # processes or threads that write one name


def test_one_of_many_creates_a_name(store: Store) -> None:
    for n in range(5):
        with ThreadPoolExecutor(AT_ONCE) as threads:
            created = list(threads.map(lambda i, n=n: store.create(f"log/{n}", [b"%d" % i]), range(AT_ONCE)))
        assert sum(created) == 1
        assert store.get(f"log/{n}").to_pybytes() == b"%d" % created.index(True)


def test_one_of_many_replaces_a_version(store: Store) -> None:
    """Each increments a number until it has succeeded; no increment is lost."""
    documents.write(store, "readers/a", {"n": 0})

    def increment(_: int) -> None:
        while True:
            document, version = documents.read_version(store, "readers/a")
            assert document is not None
            if documents.replace(store, "readers/a", {"n": document["n"] + 1}, version):
                return

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(increment, range(AT_ONCE)))
    assert documents.read(store, "readers/a") == {"n": AT_ONCE}


def test_one_of_many_creates_with_replace(store: Store) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        replaced = list(threads.map(lambda i: store.replace("a", b"%d" % i, None), range(AT_ONCE)))
    assert sum(replaced) == 1
    content, version = store.get_version("a")
    assert content == b"%d" % replaced.index(True)
    assert not store.replace("a", b"other", None)
    assert not store.replace("a", b"other", "another version")
    assert not store.replace("missing", b"other", version)
    assert store.replace("a", b"next", version)
    assert store.get("a").to_pybytes() == b"next"


@pytest.mark.parametrize("size", [0, 1, MAPPED_BYTES, MAPPED_BYTES + 1, 300_000])
def test_contents(store: Store, size: int) -> None:
    content = bytes(range(256)) * (size // 256 + 1)
    store.put("folder/below/name", content[:size])
    assert store.get("folder/below/name").to_pybytes() == content[:size]
    assert store.get_range("folder/below/name", 3, 7) == content[:size][3:10]
    assert store.get_range("folder/below/name", size, 7) == b""
    assert store.size("folder/below/name") == size


def test_a_content_that_was_read_does_not_change(store: Store) -> None:
    before = b"x" * 100_000
    store.put("a", before)
    content = store.get("a")
    store.put("a", b"y" * 100_000)
    assert content.to_pybytes() == before
    store.discard(["a"])
    assert content.to_pybytes() == before


def test_missing_objects(store: Store, tmp_path: Path) -> None:
    readers: list[Callable[[], Any]] = [
        lambda: store.get("log/1"),
        lambda: store.get_range("log/1", 0, 1),
        lambda: store.get_version("log/1"),
        lambda: store.size("log/1"),
        lambda: store.renewed("log/1"),
        lambda: store.copy("log/1", "log/2"),
    ]
    for read in readers:
        with pytest.raises(FileNotFoundError):
            read()
    assert not store.exists("log/1")
    assert documents.read(store, "log/1") is None
    assert documents.read_version(store, "log/1") == (None, None)
    assert store.names("missing") == store.numbers("missing") == []
    store.remove("log/1")
    store.discard(["log/1", "missing/1"])
    store.discard_folder("missing")
    assert not store.locked("a.lock")


def test_names(store: Store) -> None:
    for name in ("log/9", "log/10", "log/10.1.arrow", "log/below/7", "log/007", "other/1"):
        store.put(name, b"x")
    assert store.names("log") == sorted(["9", "10", "10.1.arrow", "below", "007"])
    assert store.numbers("log") == [9, 10]
    store.replace("log/9", b"locked", store.get_version("log/9")[1])
    assert store.numbers("log") == [9, 10]
    store.discard_folder("log/below")
    store.discard(["log/10", "log/007"])
    store.remove("log/9")
    assert store.names("log") == ["10.1.arrow"]
    store.put("log/11", b"")
    store.put("log/below/7", b"xyz")
    assert store.sizes("log") == {"10.1.arrow": 1, "11": 0}
    assert store.sizes("missing") == {}


def test_copies_and_files(store: Store, tmp_path: Path) -> None:
    store.put("a", b"one")
    store.put("b/1", b"two")
    store.copy("a", "b/1")
    store.put("a", b"three")
    assert store.get("b/1").to_pybytes() == b"one"
    file = tmp_path / "spilled"
    file.write_bytes(b"x" * 1000)
    assert store.adopt(file, "b/1") == 1000
    file.unlink()
    assert store.get("b/1").to_pybytes() == b"x" * 1000


def test_a_freed_name_is_not_created_by_a_replaced_writer(store: Store) -> None:
    """A writer that was paused cannot create a name that a later one has freed, before it has renewed itself."""
    paused, later = store.writer(), store.writer()
    assert paused.create("log/1", [b"first"])
    assert not later.create("log/1", [b"second"])
    later.fence_others()
    later.free(["log/1"])
    assert not store.exists("log/1")
    assert store.names("log") == []
    assert store.sizes("log") == {}
    with suppress(Revoked):
        assert not paused.create("log/1", [b"late"])
    assert not store.exists("log/1")
    paused.renew()
    assert paused.create("log/2", [b"first"])
    paused.close()
    later.close()


def test_a_lease_is_renewed(store: Store) -> None:
    store.put("a.json", b"{}")
    before = store.renewed("a.json")
    assert store.renewed("a.json") == before
    assert store.renew("a.json", lambda content: content == b"{}")
    assert store.renewed("a.json") != before
    before = store.renewed("a.json")
    assert not store.renew("a.json", lambda content: content == b"another")
    assert not store.renew("missing.json", lambda content: True)
    assert store.renewed("a.json") == before
    assert not store.exists("missing.json")
    assert store.get("a.json").to_pybytes() == b"{}"
