"""A lake's storage in a bucket with the S3 API: one object for each object.

    create    PUT with If-None-Match: *
    replace   PUT with If-Match: the ETag that was read
    put       PUT

An object is complete and durable when its PUT has succeeded, so `sync` has nothing to do. A conditional
PUT whose response is lost is repeated. Every PUT has an id in the object's metadata, so a writer whose
repetition is refused reads the object to learn whether the lost request has succeeded.

A bucket has no locks, no folders, and no unfinished objects.
"""

from __future__ import annotations

import errno
import logging
import os
import time
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pyarrow as pa
from obstore.exceptions import BaseError, PreconditionError
from obstore.store import S3Store

from tailgate.lake.errors import IoError, Uncertain
from tailgate.lake.host import credentials, files
from tailgate.lake.host.locks import NoLocks
from tailgate.lake.store import conditions
from tailgate.lake.store.bucket_writer import NAMES, BucketWriter
from tailgate.lake.store.interface import StoreUnavailable, nothing, numbers_in

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta, PutMode

SCHEME = "s3://"
ID, FREED = "tailgate-id", "tailgate-freed"  # in the metadata of objects: the id of the PUT; that the name is not used any more
CONDITIONAL_TIMEOUT_S = 60.0  # for a conditional PUT with its repetitions; an engine that cannot commit for longer ends
REPEAT_PAUSE_S = 0.1  # between two of them
RETRY_TIMEOUT, RETRIES_MAX = timedelta(seconds=60), 10  # for the client's repetitions of requests that failed with 5xx or were cut
EXPORTS, PART_BYTES = 8, 8 << 20  # objects that are copied to files at once, and the part of each that is in memory
RETRIES_OF_FIRST = 3  # of the first request, for a soon answer if the endpoint or the credentials are wrong
ALIGNMENT = 64  # of the address of a content, as for sections of entries
FREE = "there is no object with this name"

log = logging.getLogger("tailgate.bucket")

_checked: set[str] = set()  # buckets that this process has checked


class BucketStore:
    """The objects below a prefix of a bucket. `options`: of `obstore.store.S3Store`, for example its endpoint and credentials."""

    look_s = 0.5
    boot = b"none"

    def __init__(self, location: str, options: Mapping[str, Any] | None = None) -> None:
        self._location = location.rstrip("/")
        self.bucket, _, self._prefix = self._location.removeprefix(SCHEME).partition("/")
        self._options = options or {}
        self._client = self._connected(RETRIES_MAX)
        self._freed: set[str] = set()  # names that are known to be freed
        self._renewed: dict[str, tuple[bytes, str]] = {}  # leases: content and version, which most stores compute from the content

    @staticmethod
    def open(location: str, options: Mapping[str, Any] | None = None) -> BucketStore:
        """Returns the storage at a location. Raises 55000 if it ignores the conditions of requests, which is checked once."""
        store = BucketStore(location, options)
        if store.bucket not in _checked:
            store._reach()
            conditions.check(store)
            _checked.add(store.bucket)
        return store

    def _connected(self, retries: int) -> S3Store:
        """Returns a client that repeats a failed request at most this often."""
        defaults: dict[str, Any] = {
            "client_options": {"allow_http": True},  # an endpoint with this scheme is only used if it is configured
            "retry_config": {"max_retries": retries, "retry_timeout": RETRY_TIMEOUT},
        }
        if credentials.read():
            defaults["credential_provider"] = credentials.current
        return S3Store(self.bucket, prefix=self._prefix or None, **{**defaults, **self._options})

    def _reach(self) -> None:
        """Raises 58030 if the bucket does not exist or cannot be read."""
        try:
            self._connected(RETRIES_OF_FIRST).list_with_delimiter(NAMES)
        except (BaseError, FileNotFoundError) as error:
            raise IoError(
                f"could not list the objects in {self._location}",
                detail=_message(error),
                hint="Check the name of the bucket, the endpoint, and the credentials: variables AWS_…, or files below --secrets-dir.",
            ) from None

    # ---- reading ---------------------------------------------------------------------------------------------------------------

    def get(self, name: str) -> pa.Buffer:
        return self._fetched(name)[0]

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        if length == 0:
            return b""
        try:
            return bytes(self._client.get_range(name, start=offset, length=length))
        except BaseError as error:  # a range that begins at the end of the object, or behind it, is one
            if self.size(name) > offset:
                raise _os_error(error) from None
            return b""

    def get_version(self, name: str) -> tuple[bytes, str]:
        content, result = self._fetched(name)
        return content.to_pybytes(), _version(result)

    def exists(self, name: str) -> bool:
        try:
            self._metadata(name)
        except FileNotFoundError:
            return False
        return True

    def names(self, folder: str) -> list[str]:
        objects, folders = self._list(folder)
        return sorted([*objects, *folders])

    def numbers(self, folder: str) -> list[int]:
        return numbers_in(self.names(folder))

    def sizes(self, folder: str) -> dict[str, int]:
        return self._list(folder)[0]

    def size(self, name: str) -> int:
        return self._metadata(name).meta["size"]

    def _list(self, folder: str) -> tuple[dict[str, int], list[str]]:
        """Returns the objects in a folder with their sizes, and the folders in it.

        A copy of a folder of files may contain its temporary files and locks, whose names begin with a dot.
        """
        with _os_errors():
            result = self._client.list_with_delimiter(folder or None)
        sizes = {_last(o["path"]): o["size"] for o in result["objects"] if o["size"] or not self._is_freed(o["path"])}
        objects = {name: size for name, size in sizes.items() if name[0] != "."}
        return objects, [_last(path) for path in result["common_prefixes"]]

    def _fetched(self, name: str) -> tuple[pa.Buffer, GetResult]:
        """Returns the content of an object, and its metadata."""
        with _os_errors():
            result = self._client.get(name)
            content = _aligned(pa.py_buffer(result.bytes()))
        if FREED in result.attributes:
            raise FileNotFoundError(FREE)
        return content, result

    def _head(self, name: str) -> GetResult | None:
        """Returns the metadata of an object, also if its name has been freed; None if there is none."""
        try:
            with _os_errors():
                return self._client.get(name, options={"head": True})
        except FileNotFoundError:
            return None

    def _metadata(self, name: str) -> GetResult:
        head = self._head(name)
        if head is None or FREED in head.attributes:
            raise FileNotFoundError(FREE)
        return head

    def _is_freed(self, name: str) -> bool:
        """Returns whether an empty object only says that its name has been freed."""
        if name not in self._freed:
            if self.exists(name):
                return False
            self._freed.add(name)
        return True

    # ---- writing ---------------------------------------------------------------------------------------------------------------

    def create(self, name: str, parts: Iterable[bytes | memoryview], *, visible: Callable[[], None] = nothing) -> bool:
        if not self.replace(name, b"".join(parts), None):
            return False
        visible()
        return True

    def put(self, name: str, content: bytes) -> None:
        with _os_errors():
            self._client.put(name, content, attributes=_identified())

    def replace(self, name: str, content: bytes, version: str | None) -> bool:
        attributes = _identified()
        deadline = time.monotonic() + CONDITIONAL_TIMEOUT_S
        while True:
            try:
                mode: PutMode = "create" if version is None else {"e_tag": version}
                self._client.put(name, content, attributes=attributes, mode=mode, use_multipart=False)
                return True
            except BaseError as error:  # also a refusal: it may be that of a repetition, after a lost response
                failure = error
            with suppress(OSError):
                current = self._head(name)
                if current is not None and current.attributes.get(ID) == attributes[ID]:
                    return True
                if (None if current is None else _version(current)) != version:
                    return False
            if time.monotonic() > deadline:
                raise Uncertain(f'could not write object "{name}": {_message(failure)}') from None
            time.sleep(REPEAT_PAUSE_S)

    def copy(self, name: str, target: str) -> None:
        with _os_errors():
            self._client.copy(name, target)

    def adopt(self, path: Path, name: str) -> int:
        with _os_errors():
            self._client.put(name, path, attributes=_identified())
        return path.stat().st_size

    # ---- removal ---------------------------------------------------------------------------------------------------------------

    def remove(self, name: str) -> None:
        self.remove_all([name])

    def remove_all(self, names: Iterable[str]) -> None:
        if paths := list(names):
            with _os_errors():
                self._client.delete(paths)

    def discard(self, names: Iterable[str]) -> None:
        try:
            self.remove_all(names)
        except OSError as error:
            log.warning("could not remove objects: %s", error)

    def discard_folder(self, folder: str) -> None:
        try:
            self.remove_all(self.names_below(folder))
        except OSError as error:
            log.warning('could not remove the objects in "%s": %s', folder, error)

    def names_below(self, folder: str) -> list[str]:
        with _os_errors():
            return [o["path"] for o in self._client.list(folder).collect()]

    def export(self, name: str, path: Path) -> None:
        self._export(name, path, self._metadata(name).meta)

    def _export(self, name: str, path: Path, meta: ObjectMeta) -> None:
        """Copies an object to a file. If the object is removed meanwhile, the file does not exist."""
        try:
            files.write(path, self._parts(name, meta))
        except BaseException:
            files.discard(path)
            raise

    def _parts(self, name: str, meta: ObjectMeta) -> Iterator[memoryview]:
        """Yields the content of an object, in parts of PART_BYTES at most. Only an object whose name is freed is replaced."""
        if meta["size"] <= PART_BYTES:
            yield memoryview(self.get(name))
            return
        for begin in range(0, meta["size"], PART_BYTES):
            options: GetOptions = {"range": (begin, min(begin + PART_BYTES, meta["size"])), "if_match": meta["e_tag"]}
            with _os_errors():
                try:
                    yield memoryview(self._client.get(name, options=options).bytes())
                except PreconditionError:
                    raise FileNotFoundError(FREE) from None

    def export_tree(self, folder: str, target: Path, earlier: Sequence[Path], is_needed: Callable[[str], bool]) -> None:
        with _os_errors():
            objects = [o for o in self._client.list(folder).collect() if is_needed(o["path"].removeprefix(f"{folder}/"))]

        def fetch(one: ObjectMeta) -> None:
            name, size, modified_ns = one["path"], one["size"], _file_time(one)
            if size == 0 and self._is_freed(name):
                return
            if not any(files.link_same(path / name, target / name, size, modified_ns) for path in earlier):
                with suppress(FileNotFoundError):
                    self._export(name, target / name, one)
                    os.utime(target / name, ns=(modified_ns, modified_ns))

        for path in {target / one["path"] for one in objects}:
            path.parent.mkdir(mode=files.PRIVATE_FOLDER, parents=True, exist_ok=True)
        with ThreadPoolExecutor(EXPORTS, thread_name_prefix="export") as threads:
            list(threads.map(fetch, objects))

    def mark_freed(self, name: str) -> None:
        with _os_errors():
            self._client.put(name, b"", attributes={FREED: "true"})

    def discard_unfinished(self, folder: str) -> None:
        """Does nothing: an object exists when it is complete."""

    def sync(self, names: Iterable[str]) -> None:
        """Does nothing: an object is durable when it exists."""

    # ---- processes -------------------------------------------------------------------------------------------------------------

    def writer(self) -> BucketWriter:
        return BucketWriter(self)

    def lock(self, name: str) -> NoLock:
        return NoLock()

    def locked(self, name: str) -> bool:
        return False

    def renew(self, name: str, holds: Callable[[bytes], bool]) -> bool:
        content, version = self._renewed.pop(name, (b"", ""))
        if not version or not holds(content) or not self.replace(name, content, version):
            try:
                content, version = self.get_version(name)
            except FileNotFoundError:
                return False
            if not holds(content):
                return False
            self.replace(name, content, version)
        self._renewed[name] = content, version
        return True

    def renewed(self, name: str) -> tuple[bytes, Hashable]:
        content, result = self._fetched(name)
        return content.to_pybytes(), (result.attributes.get(ID), _version(result))

    def location(self, name: str) -> str:
        return f"{self._location}/{name}" if name else self._location

    @property
    def options(self) -> Mapping[str, str]:
        key = credentials.read()
        if key and credentials.TOKEN not in key:
            os.environ.pop(credentials.TOKEN, None)  # delta-rs would send it together with the key of the files
        return {"conditional_put": "etag", "allow_http": "true", **key}


class NoLock:
    """A lock in a store without locks."""

    def take(self) -> bool:
        raise NoLocks

    def wait(self) -> None:
        raise NoLocks

    def replace(self) -> None:
        raise NoLocks

    def release(self) -> None:
        """Does nothing."""


def _identified() -> dict[str, str]:
    """Returns the metadata of the next PUT."""
    return {ID: uuid.uuid4().hex}


def _aligned(content: pa.Buffer) -> pa.Buffer:
    """Returns a content at an address with which Arrow computes. The body of a response begins behind its headers."""
    if content.address % ALIGNMENT == 0:
        return content
    copy = pa.allocate_buffer(content.size)
    memoryview(copy)[:] = memoryview(content)
    return copy


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _file_time(one: ObjectMeta) -> int:
    """Returns the time of an object's file, in ns: S3 has whole seconds, and the rest tells apart objects of one second by their ETags."""
    return round(one["last_modified"].timestamp()) * 1_000_000_000 + crc32((one["e_tag"] or "").encode()) % 1_000_000 * 1000


def _version(result: GetResult) -> str:
    return result.meta["e_tag"] or ""


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raises the client's errors as OSError. A missing object is a FileNotFoundError already."""
    try:
        yield
    except BaseError as error:
        raise _os_error(error) from None


def _os_error(error: BaseError) -> OSError:
    return StoreUnavailable(errno.EIO, _message(error))


def _message(error: Exception) -> str:
    """Returns the first line of an error. The rest is the structure of the client's error."""
    return str(error).partition("\n")[0]
