"""The storage of a lake in a bucket (`lake.store.bucket`): failed requests, stores that ignore conditions, fenced writers."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tailgate.lake.errors import ObjectNotInPrerequisiteState, Uncertain
from tailgate.lake.store import Revoked, documents
from tailgate.lake.store import bucket as implementation
from tailgate.lake.store.bucket import BucketStore
from tailgate.lake.store.interface import FencedWriter
from testing.s3 import BUCKET, S3

THREADS = 4
STEPS = 40  # of each thread


def test_a_store_that_ignores_conditions_is_refused(s3: S3, bucket: BucketStore, monkeypatch: pytest.MonkeyPatch) -> None:
    location = bucket.location("")
    monkeypatch.setattr(implementation, "_checked", checked := set())
    BucketStore.open(location)
    assert checked == {BUCKET}
    checked.clear()
    s3.set(ignored="HTTP_IF_NONE_MATCH")
    with pytest.raises(ObjectNotInPrerequisiteState, match=r"ignores the condition If-None-Match of PUT requests"):
        BucketStore.open(location)
    s3.set(ignored="HTTP_IF_MATCH")
    with pytest.raises(ObjectNotInPrerequisiteState, match=r"ignores the condition If-Match of PUT requests"):
        BucketStore.open(location)
    assert bucket.names_below("fencing") == []


def test_contents_are_aligned(bucket: BucketStore) -> None:
    """Arrow computes with contents where they are. The body of a response may begin at any address."""
    for size in range(0, 4_000, 100):
        bucket.put("a", b"x" * size)
        assert bucket.get("a").address % implementation.ALIGNMENT == 0


@pytest.mark.parametrize("kind", range(6))
def test_one_failed_request(kind: int, s3: S3, bucket: BucketStore) -> None:
    """The first request of each operation fails; the operation has one effect, and its result is right."""

    def failing(action: Callable[[], Any]) -> Any:
        s3.set(failures=1, kinds=[kind], count=1)
        result = action()
        assert s3.requests()["FAILED"] == 1
        return result

    assert failing(lambda: bucket.create("log/1", [b"one"]))
    assert bucket.get("log/1").to_pybytes() == b"one"
    assert not failing(lambda: bucket.create("log/1", [b"two"]))
    _, version = bucket.get_version("log/1")
    assert failing(lambda: bucket.replace("log/1", b"two", version))
    assert not failing(lambda: bucket.replace("log/1", b"three", version))
    assert bucket.get("log/1").to_pybytes() == b"two"
    if kind < 4:  # other requests have no conditions
        assert failing(lambda: bucket.get("log/1")).to_pybytes() == b"two"
        assert failing(lambda: bucket.exists("log/1"))
        assert not failing(lambda: bucket.exists("log/2"))
        assert failing(lambda: bucket.names("log")) == ["1"]
        failing(lambda: bucket.put("a", b"1"))
        failing(lambda: bucket.copy("a", "b"))
        failing(lambda: bucket.remove("a"))
        assert bucket.names("") == ["b", "log"]


def test_a_store_that_does_not_answer(s3: S3, bucket: BucketStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that `create` raises `Uncertain`: the request may still take effect."""
    monkeypatch.setattr(implementation, "CONDITIONAL_TIMEOUT_S", 0.0)
    bucket = BucketStore(bucket.location(""), {"retry_config": {"max_retries": 0, "retry_timeout": implementation.RETRY_TIMEOUT}})
    s3.set(failures=1, kinds=[3])
    with pytest.raises(Uncertain, match='could not write object "log/1"'):
        bucket.create("log/1", [b"one"])
    with pytest.raises(OSError, match="error"):
        bucket.put("a", b"one")
    s3.set()
    assert bucket.get("log/1").to_pybytes() == b"one"


@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 20))])
def test_a_history_with_failed_requests(seed: int, number: int, s3: S3, bucket: BucketStore) -> None:
    """Threads write the same names, and one in 10 requests fails. Each acknowledged write is there, once, and nothing else is."""
    s3.set(failures=10, seed=seed * 1000 + number)
    created: Counter[str] = Counter()
    acknowledged: list[str] = []
    documents.write(bucket, "list", {"ids": []})

    def add(id: str) -> Callable[[documents.Document | None], documents.Document | None]:
        def change(before: documents.Document | None) -> documents.Document | None:
            assert before is not None
            return None if id in before["ids"] else {"ids": [*before["ids"], id]}

        return change

    def work(thread: int) -> None:
        chance, private = random.Random(f"{seed} {number} {thread}"), dict[str, bytes]()
        for step in range(STEPS):
            id = f"{thread}.{step}"
            name = f"own/{thread}.{chance.randrange(5)}"
            match chance.randrange(5):
                case 0 | 1:
                    n = len(bucket.names("log")) + chance.randrange(2)
                    if bucket.create(f"log/{n}", [id.encode()]):
                        created[f"log/{n}"] += 1
                        assert bucket.get(f"log/{n}").to_pybytes() == id.encode()
                case 2:
                    documents.update(bucket, "list", add(id))
                    acknowledged.append(id)
                case 3:
                    private[name] = id.encode() * chance.randrange(3)
                    bucket.put(name, private[name])
                case _:
                    bucket.remove(name)
                    private.pop(name, None)
            assert bucket.exists(name) == (name in private)
            if name in private:
                assert bucket.get(name).to_pybytes() == private[name]

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(work, range(THREADS)))
    assert s3.requests()["FAILED"] > 10
    s3.set()
    assert set(created.values()) == {1}
    assert set(bucket.names_below("log")) == set(created)
    document = documents.read(bucket, "list")
    assert document is not None
    assert sorted(document["ids"]) == sorted(acknowledged)


# ---- fenced writers ----------------------------------------------------------------------------------------------------------------


class Paused:
    """A client of a bucket that runs `action` before its request `number`."""

    def __init__(self, client: Any, number: int, action: Callable[[], None]) -> None:
        self._client, self.number, self._action = client, number, action

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def request(*arguments: Any, **options: Any) -> Any:
            self.number -= 1
            if self.number == -1:
                self._action()
            return method(*arguments, **options)

        return request


def append(store: BucketStore, writer: FencedWriter, count: int) -> None:
    newest = max(store.numbers("log"), default=0)
    for n in range(newest + 1, newest + 1 + count):
        assert writer.create(f"log/{n}", [b"entry"])


def begin(store: BucketStore) -> FencedWriter:
    """Returns a new writer that has created its first name."""
    writer = store.writer()
    while True:
        try:
            if writer.create(f"log/{max(store.numbers('log'), default=0) + 1}", [b"first"]):
                return writer
        except Revoked:
            writer.renew()


@pytest.mark.parametrize("freed", [5, 8])
def test_a_paused_writer_that_begins(freed: int, bucket: BucketStore) -> None:
    """Pauses it before each of its requests, while the running writer adds 5 to 9, and frees those up to `freed`."""
    for number in itertools.count():
        location = bucket.location(str(number))
        store, other = BucketStore(location), BucketStore(location)
        running = begin(other)
        append(other, running, 3)

        def continued(store: BucketStore = other, writer: FencedWriter = running) -> None:
            append(store, writer, 5)
            writer.free(f"log/{n}" for n in range(1, freed + 1))

        paused = Paused(store._client, number, continued)
        store._client = paused  # type: ignore[assignment]
        writer = begin(store)
        if paused.number >= 0:
            break  # the writer makes fewer requests
        assert other.numbers("log") == list(range(freed + 1, 11))
        assert not running.create("log/10", [b"late"])
        append(store, writer, 2)
        writer.free(f"log/{n}" for n in range(1, 12))
        assert not running.create("log/10", [b"late"])
        assert other.numbers("log") == [12]
    assert number == 5
