"""An entry of the log as bytes: who wrote what, where the engine was, and each relation's net changes.

    one line of JSON, filled with blanks so that what follows is aligned ─ section ─ section ─ …

A section is an Arrow IPC stream of one relation's changes, `__weight` last. Large ones lie in a file of their own beside the
entry, which names it. The fields about the engine (offsets, inbox, clock, state, checkpoint, batch, extra) are in every entry,
so the newest one alone says where everything is. Fields that this version does not know are kept in `extra`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lake.catalog import Change
from lake.errors import FeatureNotSupported, Gone
from lake.types import WEIGHT

FORMAT = 1
ALIGNMENT = 64  # bytes: what Arrow recommends for its buffers, so that a mapped entry is read in place

GONE = "the changes to be read are no longer kept"
START_AGAIN = "Start again from a newer time."

KINDS = ("tick", "catalog", "epoch")


@dataclass(frozen=True, slots=True)
class Section:
    """Where one relation's changes are: `length` bytes from `offset` after the header, or in the file of that name in log/."""

    relation: int
    rows: int
    offset: int
    length: int
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """What an entry says before its changes.

    `time`: ms since the epoch. `catalog_version`: the newest entry, this one included, that changed the catalog; 0 before the
    first. `age`: for how long engines had been running on this lake, in ms; retention counts in it (`lake.ages`). `offsets`:
    where each reader of inputs is, up to that reader what it looks like. `inbox`: the last entry of the inbox that was consumed.
    `clock`: ms. `state`: ids of the state's versions, opaque. `checkpoint`, `batch`: Spark's, by name and number. `extra`:
    whatever else is to be carried from entry to entry, as JSON values.
    """

    n: int
    time: int
    epoch: int
    kind: str
    catalog_version: int = 0
    catalog: Change | None = None
    offsets: Mapping[str, Any] = field(default_factory=dict)
    inbox: int = 0
    clock: int = 0
    state: str = ""
    checkpoint: str = ""
    batch: int = -1
    relations: tuple[Section, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    age: int = 0

    def with_offsets(self, offsets: Mapping[str, Any]) -> Header:
        return replace(self, offsets=offsets)

    def section(self, relation: int) -> Section | None:
        return next((s for s in self.relations if s.relation == relation), None)


_KNOWN = frozenset(Header.__dataclass_fields__) | {"format"}


def encode_header(header: Header) -> bytes:
    """The first line of an entry, with the blanks that align what follows."""
    data: dict[str, Any] = {"format": FORMAT, "n": header.n, "time": header.time, "epoch": header.epoch, "kind": header.kind}
    data["catalog_version"] = header.catalog_version
    data["age"] = header.age
    if header.catalog is not None:
        data["catalog"] = header.catalog.to_json()
    for name in ("offsets", "inbox", "clock", "state", "checkpoint", "batch"):
        data[name] = getattr(header, name)
    data["relations"] = [[s.relation, s.rows, s.offset, s.length, *([s.file] if s.file else [])] for s in header.relations]
    data["extra"] = dict(header.extra)
    line = json.dumps(data, separators=(",", ":")).encode()
    return line + b" " * (-(len(line) + 1) % ALIGNMENT) + b"\n"


def decode_header(line: bytes | memoryview) -> Header:
    """A header from the first line of an entry."""
    data = json.loads(bytes(line))
    if data["format"] != FORMAT:
        raise FeatureNotSupported(
            f"entry {data.get('n')} of the log has format {data['format']}, and this version reads format {FORMAT}",
            hint="A newer version of Tailgate has written to this lake; use that one.",
        )
    unknown = {name: value for name, value in data.items() if name not in _KNOWN}
    change = data.get("catalog")
    return Header(
        n=data["n"],
        time=data["time"],
        epoch=data["epoch"],
        kind=data["kind"],
        catalog_version=data["catalog_version"],
        catalog=None if change is None else Change.from_json(change),
        age=data.get("age", 0),
        offsets=data["offsets"],
        inbox=data["inbox"],
        clock=data["clock"],
        state=data["state"],
        checkpoint=data["checkpoint"],
        batch=data["batch"],
        relations=tuple(Section(*s) for s in data["relations"]),
        extra={**unknown, **data["extra"]},
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry that was read: the header, and the changes when they are asked for.

    `body` gives the bytes after the header; `beside` the folder of sections with files of their own.
    """

    header: Header
    body: Callable[[], pa.Buffer]
    beside: Path

    def changes(self, relation: int) -> pa.Table | None:
        """The net changes of a relation, `__weight` last; None if it did not change."""
        section = self.header.section(relation)
        return None if section is None else self.read(section)

    def read(self, section: Section) -> pa.Table:
        if section.file is not None:
            try:
                with pa.memory_map(str(self.beside / section.file)) as file:
                    return pa.ipc.open_stream(file.read_buffer()).read_all()
            except FileNotFoundError:
                raise Gone(GONE, hint=START_AGAIN) from None
        return pa.ipc.open_stream(self.body().slice(section.offset, section.length)).read_all()


def stream(changes: pa.Table) -> bytes:
    """Changes as the bytes of a section."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, changes.schema) as writer:
        writer.write_table(changes)
    return bytes(sink.getvalue())


def rows(source: pa.Buffer | bytes | pa.NativeFile) -> int:
    """How many rows a section has; ValueError if it is none."""
    reader = pa.ipc.open_stream(source)
    if not reader.schema.names or reader.schema.names[-1] != WEIGHT:
        raise ValueError(f"changes must end with the column {WEIGHT}: {reader.schema.names}")
    return sum(batch.num_rows for batch in reader)
