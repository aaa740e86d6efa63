"""The bytes of a log entry: a header, then the net changes of each relation.

    one line of JSON, padded with blanks for alignment ─ section ─ section ─ … ─ file ─ …

A section is an Arrow IPC stream of one relation's changes, with `__weight` as the last column. Large
sections are separate objects in the same folder, which the entry names. Every entry has the fields
about the engine (offsets, inbox, clock, state, checkpoint, batch, extra), so the newest entry alone
is enough to resume. In a bucket's lake, an entry also has files of the operators' state. Fields that
this version does not know are kept in `extra`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tailgate.lake.catalog import Change
from tailgate.lake.catalog.codec import decode_change, encode_change
from tailgate.lake.errors import FeatureNotSupported, Gone
from tailgate.lake.store import Store
from tailgate.lake.types import WEIGHT

LOG = "log"  # the folder of the entries
# formats of entries. From the first general numeric on, all entries of a lake have format 2, format 3 from the first
# multidimensional array on, format 4 from the first privilege on an object on, format 5 from the first range or multirange on, and format 6
# from the first privilege on the database or VALID UNTIL of a role on. Earlier versions refuse them.
FORMATS = (1, 2, 3, 4, 5, 6)
HEAD_BYTES = 4096  # contain the header of most entries
ALIGNMENT = 64  # bytes: Arrow's recommendation for buffers, so that a mapped entry is read in place

GONE = "the changes to be read are no longer kept"
START_AGAIN = "Start again from a newer time."

KINDS = ("tick", "catalog", "epoch", "state")


@dataclass(frozen=True, slots=True)
class Section:
    """The location of one relation's changes: `length` bytes at `offset` after the header, or the object with that name in log/."""

    relation: int
    rows: int
    offset: int
    length: int
    file: str | None = None


@dataclass(frozen=True, slots=True)
class StateFile:
    """The location of a file of the operators' state: `length` bytes at `offset` after the header. `name`: in the working folder."""

    name: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Header:
    """The header of an entry.

    - `time`: ms since the epoch.
    - `format`: one of FORMATS.
    - `catalog_version`: the newest entry, including this one, that changed the catalog; 0 before the first.
    - `age`: how long engines had been running on this lake, in ms; retention uses it (`lake.log.ages`).
    - `offsets`: the position of each input, in the format of its reader.
    - `inbox`: the last entry of the inbox that was consumed.
    - `clock`: the offset of the engine's clock source, in ms.
    - `state`: ids of the versions of the state, opaque.
    - `state_files`: the files that this entry's tick has added to the state, in a bucket's lake.
    - `checkpoint`, `batch`: empty and -1; earlier versions recorded a checkpoint of Spark here.
    - `writes`: ids of the writes in the entries of the inbox that were consumed by this entry, and of the statement of its change of the
      catalog.
    - `released`: by relation whose windows left because of their retention, as text: the time in ms at or before which all
      windows that left had ended.
    - `single`: the time in ms of the only record that the tick has read of topics whose records may each have a tick.
    - `repeated`: the sections of rows of ksqlDB's tables that this record has removed and added again, with the weight 0.
    - `extra`: other values that each entry takes over from the previous one, as JSON.
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
    writes: tuple[str, ...] = ()
    released: Mapping[str, int] = field(default_factory=dict)
    single: int | None = None
    repeated: tuple[Section, ...] = ()
    format: int = 1
    state_files: tuple[StateFile, ...] = ()

    def with_offsets(self, offsets: Mapping[str, Any]) -> Header:
        return replace(self, offsets=offsets)

    def section(self, relation: int) -> Section | None:
        """Returns the section of a relation, or None if it did not change."""
        return next((s for s in self.relations if s.relation == relation), None)


_KNOWN = frozenset(Header.__dataclass_fields__)


def encode_header(header: Header) -> bytes:
    """Returns the first line of an entry, padded with blanks so that the next byte is aligned."""
    data: dict[str, Any] = {"format": header.format, "n": header.n, "time": header.time, "epoch": header.epoch, "kind": header.kind}
    data["catalog_version"] = header.catalog_version
    data["age"] = header.age
    if header.catalog is not None:
        data["catalog"] = encode_change(header.catalog)
    for name in ("offsets", "inbox", "clock", "state", "checkpoint", "batch"):
        data[name] = getattr(header, name)
    data["relations"] = [[s.relation, s.rows, s.offset, s.length, *([s.file] if s.file else [])] for s in header.relations]
    data["extra"] = dict(header.extra)
    if header.writes:
        data["writes"] = header.writes
    if header.released:
        data["released"] = dict(header.released)
    if header.single is not None:
        data["single"] = header.single
    if header.repeated:
        data["repeated"] = [[s.relation, s.rows, s.offset, s.length] for s in header.repeated]
    if header.state_files:
        data["state_files"] = [[f.name, f.offset, f.length] for f in header.state_files]
    line = json.dumps(data, separators=(",", ":")).encode()
    return line + b" " * (-(len(line) + 1) % ALIGNMENT) + b"\n"


def first_line(raw: bytes | memoryview | pa.Buffer) -> bytes:
    """Returns the bytes of an object up to the end of its first line, or all of them."""
    size = HEAD_BYTES
    while True:
        line, end, _ = bytes(raw[:size]).partition(b"\n")
        if end or size >= len(raw):
            return line + end
        size *= 8


def decode_header(line: bytes | memoryview) -> Header:
    """Returns the header from the first line of an entry. Raises 0A000 for an unknown format."""
    data = json.loads(bytes(line))
    if data["format"] not in FORMATS:
        raise FeatureNotSupported(
            f"entry {data.get('n')} of the log has format {data['format']}, and this version reads formats up to {FORMATS[-1]}",
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
        catalog=None if change is None else decode_change(change),
        age=data.get("age", 0),
        offsets=data["offsets"],
        inbox=data["inbox"],
        clock=data["clock"],
        state=data["state"],
        checkpoint=data["checkpoint"],
        batch=data["batch"],
        relations=tuple(Section(*s) for s in data["relations"]),
        extra={**unknown, **data["extra"]},
        writes=tuple(data.get("writes", ())),
        released=data.get("released", {}),
        single=data.get("single"),
        repeated=tuple(Section(*s) for s in data.get("repeated", ())),
        format=data["format"],
        state_files=tuple(StateFile(*f) for f in data.get("state_files", ())),
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry that was read. Its changes are read only when needed.

    `body` returns the bytes after the header. `store` has the sections in separate objects. `head`: the bytes of the header. `is_loaded`:
    the body is in memory before it is read.
    """

    header: Header
    body: Callable[[], pa.Buffer]
    store: Store
    head: int
    is_loaded: bool

    @property
    def body_bytes(self) -> int:
        """Returns the bytes of `body`, without reading them."""
        header = self.header
        inline = [section for section in header.relations if section.file is None]
        parts: list[Section | StateFile] = [*inline, *header.repeated, *header.state_files]
        return max((part.offset + part.length for part in parts), default=0)

    def changes(self, relation: int) -> pa.Table | None:
        """Returns the net changes of a relation, with `__weight` last; None if it did not change."""
        section = self.header.section(relation)
        return None if section is None else self.read(section)

    def repeated(self, relation: int) -> pa.Table | None:
        """Returns the rows of a relation that the tick has removed and added again, with the weight 0; None if there are none."""
        section = next((s for s in self.header.repeated if s.relation == relation), None)
        return None if section is None else self.read(section)

    def file(self, file: StateFile) -> bytes:
        """Returns the content of a file of the state."""
        return bytes(self.body().slice(file.offset, file.length))

    def read(self, section: Section) -> pa.Table:
        """Returns the changes of a section. Raises `Gone` if its object was removed."""
        if section.file is not None:
            try:
                return pa.ipc.open_stream(self.store.get(f"{LOG}/{section.file}")).read_all()
            except FileNotFoundError:
                raise Gone(GONE, hint=START_AGAIN) from None
        return pa.ipc.open_stream(self.body().slice(section.offset, section.length)).read_all()


def stream(changes: pa.Table) -> bytes:
    """Returns changes as the bytes of a section."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, changes.schema) as writer:
        writer.write_table(changes)
    return bytes(sink.getvalue())


def rows(source: pa.Buffer | bytes | pa.NativeFile) -> int:
    """Returns the number of rows of a section. Raises ValueError if it is not a section."""
    reader = pa.ipc.open_stream(source)
    if not reader.schema.names or reader.schema.names[-1] != WEIGHT:
        raise ValueError(f"changes must end with the column {WEIGHT}: {reader.schema.names}")
    return sum(batch.num_rows for batch in reader)
