"""Backups of a lake, also while it is in use, and their restoration.

    lake ── hard links, for some seconds ──► image in `scratch` ── copy ──► TARGET/.<time> ── rename ──► TARGET/<time>
    bucket ── copies of new objects ───────► image                           │ unchanged files: hard links to the previous backup
    TARGET/<time> ── copy ──► .DATA ── rename ──► DATA
    TARGET/<time> ── copy ──► bucket, lake.json last; then an entry that names the state of a folder (`lake.writer.restored_state`)

A backup is a lake: a folder with everything up to one entry of the log, whose time is its name. This is the newest entry, or an
earlier one (`cut`). Files of a lake never change; they are created, replaced or removed. Of a lake in a bucket, a backup has the state
that was uploaded, from which an engine continues (ADR 0025). The image is made in this order, so that it is a state that a power loss
could have left, and an engine that opens it recovers as after one:

    settings             at any time: of ALTER SYSTEM
    readers, inbox       before the log: nothing acknowledges a later entry, no unread write is missing
    tables               before the log: a table never has more than the log; the list of checkpoints first, commits before their files
    state                before and after the log: the state of an entry exists before the entry; of a bucket, that of the entry
    log, segments        up to the newest entry at this moment
    catalog              after the log: each copy that an entry names, unless it can be computed from the entries

The engine removes a file at the earliest five minutes after it was last needed (`retention.AGE_MIN_MS`,
`maintenance.GRACE_S`), which limits the time for the image.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from tailgate.lake.errors import Gone, InvalidParameterValue, IoError, ObjectInUse, ObjectNotInPrerequisiteState, UndefinedObject
from tailgate.lake.folder import FILE, FOLDERS, Lake
from tailgate.lake.host import disk, files, scratch
from tailgate.lake.log import uploaded_state
from tailgate.lake.log.entry import Header
from tailgate.lake.log.state_files import STATE, folder_of, versions
from tailgate.lake.readers import holds
from tailgate.lake.readers.cut import cut
from tailgate.lake.store import Store, locations
from tailgate.lake.tables import checkpoints, delta

IMAGE_S_MAX = 120.0  # for the image: less than half of the time for which the engine keeps files that are no longer needed
IMAGE_ATTEMPTS = 3  # an attempt fails if a reader moves on and the engine removes the entries that it has held
NAME = "%Y%m%dT%H%M%S"  # of a backup, followed by milliseconds and Z
LOCK = ".lock"
UPLOADS = 8  # files that are copied into a bucket at once
SETTINGS = ".toml"  # suffix of the settings that ALTER SYSTEM writes


@dataclass(frozen=True, slots=True)
class Backup:
    """A complete backup. `time`: of its newest entry, in ms since the epoch."""

    path: Path
    time: int


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a backup.

    `created`: False if it existed. `bytes_copied`: without the files that the previous backup has, too. `removed`: older backups.
    """

    backup: Backup
    created: bool
    files: int
    bytes_copied: int
    removed: tuple[Backup, ...] = ()


def backups(target: Path) -> list[Backup]:
    """Returns the complete backups in a folder, oldest first."""
    result = []
    for path in target.iterdir() if target.is_dir() else ():
        with contextlib.suppress(ValueError):
            result.append(Backup(path, time_of(path.name)))
    return sorted(result, key=lambda backup: backup.time)


def back_up(lake: Lake, target: Path, keep: int | None = None, at: int | None = None) -> Copied:
    """Copies a lake up to its newest entry, or up to entry `at`, into a new folder below `target`.

    Then removes all but this backup and the `keep` newest ones.

    Raises 55000 if `target` has backups of another lake or the lake has no log, 55006 if another backup
    is being made there, 58030 if the lake changes faster than it can be read, and 22023 if `at` is not readable.
    """
    target = target.absolute()
    files.make_folder(target)
    with _locked(target), scratch.scratch(lake.scratch, scratch.BACKUP) as folder:
        existing = backups(target)
        previous = existing[-1].path if existing else None
        if previous is not None and (other := _lake_id(previous)) != lake.id:
            raise ObjectNotInPrerequisiteState(
                f'folder "{target}" has backups of another lake', detail=f"They have the id {other}, and this lake has the id {lake.id}."
            )
        image = folder.path / "image"
        header = _image(lake, image, previous, at)
        backup = Backup(target / _name_of(header.time), header.time)
        if backup.path.exists():
            return Copied(backup, False, 0, 0, _remove(existing, backup, keep))
        for abandoned in target.glob(".*T*Z"):
            files.discard_folder(abandoned)
        count, size = _copy(image, target / f".{backup.path.name}", previous)
        files.rename(target / f".{backup.path.name}", backup.path)
        files.sync_folder(target)
        return Copied(backup, True, count, size, _remove([*existing, backup], backup, keep))


def _remove(existing: list[Backup], new: Backup, keep: int | None) -> tuple[Backup, ...]:
    """Removes all but the newest backups and `new`, which may be of an earlier entry. Returns those that were removed."""
    oldest_first = sorted(existing, key=lambda backup: backup.time)
    removed = () if keep is None else tuple(backup for backup in oldest_first[:-keep] if backup != new)
    for backup in removed:
        unnamed = backup.path.with_name(f".{backup.path.name}")  # an interrupted removal leaves no backup without files
        files.rename(backup.path, unnamed)
        files.discard_folder(unnamed)
    return removed


def restore(target: Path, data: Path | str, at: int | None = None) -> Backup:
    """Creates the lake `data`, a folder or a prefix of a bucket, from the newest backup whose time is at most `at`, in ms since the epoch.

    Raises 55000 if `data` exists and is not empty, and 42704 if there is no such backup.
    """
    candidates = [b for b in backups(target) if at is None or b.time <= at]
    if not candidates:
        raise UndefinedObject(f'folder "{target}" has no backup' + ("" if at is None else f" at or before {_name_of(at)}"))
    backup = candidates[-1]
    if locations.is_bucket(data):
        _upload(backup.path, str(data))
        return backup
    data = Path(data).absolute()
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise ObjectNotInPrerequisiteState(f'"{data}" is not an empty folder', hint="Restore into a new folder.")
    files.make_folder(data.parent)
    unfinished = data.with_name(f".{data.name}.restored")
    files.discard_folder(unfinished)
    _copy(backup.path, unfinished, None)
    with contextlib.suppress(FileNotFoundError):
        data.rmdir()
    files.rename(unfinished, data)
    files.sync_folder(data.parent)
    return backup


def _upload(source: Path, location: str) -> None:
    """Copies a backup into a bucket. The file that makes it a lake is the last. Files of state that no list can name are left out."""
    store = locations.opened(location)
    if store.names(""):
        raise ObjectNotInPrerequisiteState(f"there are objects in {location}", hint="Restore into a new prefix.")
    all_names = [path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()]
    names = [name for name in all_names if name != FILE and not name.startswith(f"{STATE}/")]
    names += state_files(source) or _uploaded(source)
    with ThreadPoolExecutor(UPLOADS, thread_name_prefix="upload") as threads:
        list(threads.map(lambda name: store.adopt(source / name, name), names))
    store.adopt(source / FILE, FILE)


def state_files(backup: Path) -> list[str]:
    """Returns the files of the state of a backup's newest entry; no files if some are missing, or if the entry names a list of them."""
    lake = Lake(backup)
    header = lake.log.newest()
    if header is None:
        return []
    folder, newest, listed = folder_of(header), versions(header.state), uploaded_state.read(lake.store, header)
    is_listed = listed is not None and listed["state"] == header.state
    if is_listed or not all((backup / version.changelog(folder)).exists() for version in newest):
        return []
    files_of_places = [path for version in newest for path in (backup / folder / version.place).rglob("*")]
    return [path.relative_to(backup).as_posix() for path in files_of_places if path.is_file()]


def _uploaded(backup: Path) -> list[str]:
    """Returns the list of uploaded files that a backup's newest entry names, and those of them that the backup has."""
    lake = Lake(backup)
    header = lake.log.newest()
    listed = None if header is None else uploaded_state.read(lake.store, header)
    if header is None or listed is None:
        return []
    names = (uploaded_state.name_of(header.extra[uploaded_state.UPLOADED]), *listed["files"])
    return [name for name in names if lake.store.exists(name)]


# ---- the image -----------------------------------------------------------------------------------------------------------------


class _Removed(Exception):
    """Raised if the engine has removed an object before it was copied."""


def _image(lake: Lake, image: Path, previous: Path | None, at: int | None) -> Header:
    """Creates the image of a lake up to entry `at`, and returns its newest entry. `previous`: the previous backup."""
    missing = ""
    earlier = image.with_name("earlier")  # the image of the attempt before, whose files are not read from a bucket again
    for attempt in range(IMAGE_ATTEMPTS):
        files.discard_folder(earlier)
        with contextlib.suppress(FileNotFoundError):
            files.rename(image, earlier)
        began = time.monotonic()
        try:
            header = _copy_all(lake, image, tuple(filter(None, (earlier, previous))), at)
        except _Removed as removed:
            missing = str(removed)
            continue
        if time.monotonic() - began > IMAGE_S_MAX:
            if attempt < IMAGE_ATTEMPTS - 1:
                continue
            raise IoError(f"the image of the lake took longer than {IMAGE_S_MAX:.0f} s", hint="Back up when there is less to do.")
        if _has_needed_entries(Lake(image)):
            return header
    if missing:
        raise IoError(f"{missing} of the uploaded state is missing", hint="The engine uploads again, in a minute in which views change.")
    raise IoError("checkpoints, sinks or subscriptions move on faster than the lake can be read", hint="Try again.")


def _has_needed_entries(image: Lake) -> bool:
    """Returns whether the log has the entries after a checkpoint, and those that readers have not read."""
    first = image.log.first()
    is_reached = first <= 1 or any(checkpoint.position >= first for checkpoint in checkpoints.listed(image))
    return is_reached and all(hold.stopped is not None or hold.n + 1 >= first for hold in holds.holds(image))


def _is_taken(path: str, matches: Callable[[str], bool]) -> bool:
    parts = path.split("/")
    return matches(parts[-1]) and not any(part.startswith(".") or part == delta.LOG for part in parts)


def _copy_all(lake: Lake, image: Path, earlier: Sequence[Path], at: int | None) -> Header:
    """Copies the lake's objects to `image`, up to entry `at`. `earlier`: as of `Store.export_tree`."""
    store = lake.store
    image.mkdir(mode=files.PRIVATE_FOLDER)
    for name in FOLDERS:
        (image / name).mkdir(mode=files.PRIVATE_FOLDER)
    for name in store.names(""):
        if name == FILE or name.endswith(SETTINGS):
            store.export(name, image / name)
    _take_tree(store, "readers", image)
    _take_tree(store, "inbox", image)
    for name in sorted(store.names("tables"), key=lambda name: (name != checkpoints.NAME, name)):
        _take_tree(store, f"tables/{name}/{delta.LOG}", image, earlier)
        _take_tree(store, f"tables/{name}", image, earlier)
    is_bucket = locations.is_bucket(lake.location)
    if not is_bucket:
        _take_tree(store, STATE, image)
    header = lake.log.look()
    if header is None:
        raise ObjectNotInPrerequisiteState("the lake has no log", hint="An engine writes the first entry when it starts.")
    is_cut = at is not None and at != header.n
    if is_cut:
        header = _earlier_entry(lake, header, at or 0)
    newest = header.n
    if is_bucket:
        _take_uploaded(store, header, image, earlier, is_needed=not is_cut)
    _take_tree(store, "log", image, earlier, lambda name: name.partition(".")[0].isdecimal() and int(name.partition(".")[0]) <= newest)
    _take_tree(store, "segments", image, earlier, lambda name: int(name.partition("-")[0 if is_cut else 2] or 0) <= newest)
    _take_tree(store, "catalog", image, earlier, lambda name: name.isdecimal() and int(name) <= newest)
    if not is_bucket:
        _take_tree(store, STATE, image)
    if is_cut:
        cut(Lake(image), header.n, header.epoch)
    _without_gaps(Lake(image).store, header.inbox)
    return header


def _earlier_entry(lake: Lake, newest: Header, n: int) -> Header:
    """Returns the header of an entry. Raises 22023 if there is none."""
    if n <= newest.n:
        with contextlib.suppress(Gone):
            return lake.log.header(n)
    raise InvalidParameterValue(
        f"there is no entry {n}", detail=f"The log has the entries {lake.log.first()} to {newest.n}.", hint="tailgate log ls shows entries."
    )


def _take_tree(
    store: Store, folder: str, image: Path, earlier: Sequence[Path] = (), matches: Callable[[str], bool] = lambda name: True
) -> None:
    """Copies the objects below a folder, except Delta's logs and temporary files, whose names begin with a dot."""
    store.export_tree(folder, image, earlier, lambda path: _is_taken(path, matches))


def _take_uploaded(store: Store, header: Header, image: Path, earlier: Sequence[Path], *, is_needed: bool) -> None:
    """Copies the files of the uploaded state that an entry names, and their list. If one is missing, copies none, or raises `_Removed`."""
    if uploaded_state.UPLOADED not in header.extra:
        return
    list_name, listed = uploaded_state.name_of(header.extra[uploaded_state.UPLOADED]), uploaded_state.read(store, header)
    names = {list_name, *(listed["files"] if listed is not None else ())}
    store.export_tree(STATE, image, earlier, lambda path: f"{STATE}/{path}" in names)
    missing = sorted(name for name in names if not (image / name).exists())
    if missing and is_needed:
        raise _Removed(missing[0])
    if missing:
        Lake(image).store.discard(names)


def _without_gaps(image: Store, consumed: int) -> None:
    """Removes inbox entries that follow a missing one: they arrived, as the missing one, while the image was made."""
    for epoch in image.numbers("inbox"):
        expected = consumed + 1
        for number in image.numbers(f"inbox/{epoch}"):
            if number == expected:
                expected += 1
            elif number > expected:
                image.discard([f"inbox/{epoch}/{number}"])


# ---- copies --------------------------------------------------------------------------------------------------------------------


def _copy(source: Path, target: Path, previous: Path | None) -> tuple[int, int]:
    """Copies a folder durably. Returns the number of files, and the bytes of those that `previous` does not have."""
    count = size = 0
    written: list[Path] = []
    for path, _, names in os.walk(source):
        place = target / Path(path).relative_to(source)
        place.mkdir(mode=files.PRIVATE_FOLDER)
        for name in names:
            file, copy = Path(path, name), place / name
            count += 1
            status = file.stat()
            if previous is None or not files.link_same(previous / copy.relative_to(target), copy, status.st_size, status.st_mtime_ns):
                disk.operation("write", copy, partial(shutil.copy2, file, copy))
                size += copy.stat().st_size
                written.append(copy)
        written.append(place)
    files.sync_all([*written, target.parent])
    return count, size


# ---- the folder of the backups ---------------------------------------------------------------------------------------------------


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    descriptor = os.open(target / LOCK, os.O_RDWR | os.O_CREAT, files.PRIVATE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ObjectInUse(f'another backup into "{target}" is being made') from None
        yield
    finally:
        os.close(descriptor)


def _lake_id(path: Path) -> str:
    return str(json.loads((path / "lake.json").read_bytes())["id"])


def _name_of(time: int) -> str:
    return f"{datetime.fromtimestamp(time // 1000, timezone.utc).strftime(NAME)}.{time % 1000:03}Z"


def time_of(name: str) -> int:
    """Returns the time of the backup with this name. Raises ValueError if the name is not that of a backup."""
    seconds, _, milliseconds = name.removesuffix("Z").partition(".")
    moment = datetime.strptime(seconds, NAME).replace(tzinfo=timezone.utc)
    time = round(moment.timestamp()) * 1000 + int(milliseconds)
    if _name_of(time) != name:
        raise ValueError(name)
    return time
