"""The content of a schema registry: subjects, versions and ids. Durable, without network.

    events.jsonl ──replay──► Subjects ──► responses
         ▲                      │
         └── one line, fsynced ─┘  before memory changes, and so before any client gets a response

An id belongs to a content: the same schema under two subjects has one id and keeps it, because
messages contain it. Versions count from 1 within a subject; a number is not reused while the subject
has any version. Softly deleted versions can be read with `deleted=true`.
Source: Confluent's schema registry, "API Reference"; its error codes.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailgate.embedded.kinds import KINDS

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
MODES = ("READWRITE", "READONLY")
LATEST = "latest"


class RegistryError(Exception):
    """An error response of the registry: HTTP status and error code, with Confluent's numbers."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = int(str(code)[:3])
        self.message = message


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in a schema that is defined by a version of another subject."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema with its id (0 if it is not registered yet)."""

    id: int
    text: str  # as first registered
    references: tuple[Reference, ...] = ()
    kind: str = "AVRO"  # one of KINDS


@dataclass(slots=True)
class Version:
    """A version of a subject: the id of its schema, and whether it is softly deleted."""

    id: int
    deleted: bool = False


@dataclass(slots=True)
class Subject:
    """The versions of a subject, by number."""

    versions: dict[int, Version] = field(default_factory=dict)

    def visible(self, deleted: bool = False) -> dict[int, Version]:
        """Returns the versions in order, without softly deleted ones unless `deleted`."""
        return {number: version for number, version in sorted(self.versions.items()) if deleted or not version.deleted}


class Subjects:
    """All subjects and schemas. Safe for many threads. Methods return the content of responses, or raise RegistryError."""

    def __init__(self, events: Path) -> None:
        self._lock = threading.RLock()
        self._schemas: dict[int, Schema] = {}
        self._ids: dict[str, int] = {}  # by content
        self._subjects: dict[str, Subject] = {}
        self._levels: dict[str | None, str] = {None: "BACKWARD"}  # by subject; None is the global one
        self._modes: dict[str | None, str] = {None: "READWRITE"}
        events.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for event in _whole_lines(events):
            self._apply(event)
        self._file = os.open(events, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        _sync_folder(events.parent)

    def close(self) -> None:
        os.close(self._file)

    # Changes.

    def register(self, subject: str, schema: Schema) -> tuple[int, int]:
        """Returns (version, id) of the schema under the subject, and registers it if it is new.

        Raises 40901 if it is incompatible with earlier versions.
        """
        with self._lock:
            content = self._content(schema)
            existing = self._find(subject, content)
            if existing is not None:
                return existing
            self._demand_writable(subject)
            if not subject or subject.startswith(":"):  # ":.name:" would be a context, with separate ids
                raise RegistryError(42208, f"The specified subject '{subject}' is not valid")
            problems = self.incompatibilities(subject, schema)
            if problems:
                raise RegistryError(
                    40901, f'Schema being registered is incompatible with an earlier schema for subject "{subject}": {problems}'
                )
            id = self._ids.get(content) or max(self._schemas, default=0) + 1
            version = max(self._of(subject).versions, default=0) + 1
            event: dict[str, Any] = {"event": "version", "subject": subject, "version": version, "id": id}
            if id not in self._schemas:
                event |= {"schema": schema.text, "references": [[r.name, r.subject, r.version] for r in schema.references]}
                event |= {} if schema.kind == "AVRO" else {"type": schema.kind}
            self._record(event)
            return version, id

    def delete_subject(self, subject: str, permanent: bool) -> list[int]:
        """Deletes all versions of a subject and returns their numbers. A permanent delete must follow a soft one."""
        with self._lock:
            self._demand_writable(subject)
            every, visible = self._of(subject).visible(deleted=True), self._of(subject).visible()
            if not every:
                raise RegistryError(40401, f"Subject '{subject}' not found.")
            if permanent and visible:
                raise RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")
            if not permanent and not visible:
                raise RegistryError(40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")
            deleted = list(every if permanent else visible)
            self._demand_unreferenced(subject, deleted)
            self._record({"event": "delete", "subject": subject, "versions": deleted, "permanent": permanent})
            return deleted

    def delete_version(self, subject: str, version: str, permanent: bool) -> int:
        """Deletes a version and returns its number. A permanent delete must follow a soft one."""
        with self._lock:
            self._demand_writable(subject)
            number = self.version(subject, version, deleted=True)[0]
            deleted = self._of(subject).versions[number].deleted
            if permanent and not deleted:
                raise RegistryError(40407, f"Subject '{subject}' Version {number} was not deleted first before being permanently deleted")
            if not permanent and deleted:
                raise RegistryError(
                    40406, f"Subject '{subject}' Version {number} was soft deleted. Set permanent=true to delete permanently"
                )
            self._demand_unreferenced(subject, [number])
            self._record({"event": "delete", "subject": subject, "versions": [number], "permanent": permanent})
            return number

    def set_level(self, subject: str | None, level: str | None) -> str:
        """Sets a compatibility level and returns it. None removes the subject's own level and returns the previous one."""
        with self._lock:
            if level is not None and level not in LEVELS:
                raise RegistryError(42203, f"Invalid compatibility level. Valid values are {', '.join(LEVELS)}")
            before = self.level(subject)
            self._record({"event": "level", "subject": subject, "level": level})
            return level or before

    def set_mode(self, subject: str | None, mode: str | None) -> str:
        """Sets the mode of a subject, or the global one, and returns it. None removes a subject's own mode."""
        with self._lock:
            if mode is not None and mode not in MODES:
                raise RegistryError(42204, f"Invalid mode. Valid values are {', '.join(MODES)}")
            before = self.mode(subject)
            self._record({"event": "mode", "subject": subject, "mode": mode})
            return mode or before

    # Reads.

    def names(self, deleted: bool = False, prefix: str = "") -> list[str]:
        """Returns the names of the subjects with a prefix."""
        with self._lock:
            return sorted(name for name, subject in self._subjects.items() if subject.visible(deleted) and name.startswith(prefix))

    def numbers(self, subject: str, deleted: bool = False, deleted_only: bool = False) -> list[int]:
        """Returns the version numbers of a subject. Raises 40401 if it does not exist."""
        with self._lock:
            visible = self._of(subject).visible(deleted or deleted_only)
            if not visible:
                raise RegistryError(40401, f"Subject '{subject}' not found.")
            return [number for number, version in visible.items() if version.deleted or not deleted_only]

    def version(self, subject: str, version: str, *, deleted: bool = False) -> tuple[int, Schema]:
        """Returns a version of a subject, by number or `latest` (also -1), with its schema."""
        with self._lock:
            visible = self._of(subject).visible(deleted)
            if version in (LATEST, "-1"):
                number = max(visible, default=0)
            elif version.isdecimal() and 0 < int(version) < 2**31:
                number = int(version)
            else:
                raise RegistryError(42202, f"The specified version '{version}' is not a number from 1 to 2^31-1 or \"latest\"")
            if not visible:
                raise RegistryError(40401, f"Subject '{subject}' not found.")
            if number not in visible:
                raise RegistryError(40402, f"Version {number} not found.")
            return number, self._schemas[visible[number].id]

    def lookup(self, subject: str, schema: Schema, deleted: bool = False) -> tuple[int, Schema]:
        """Returns the version under which the subject has this schema, and the schema with its id."""
        with self._lock:
            if not self._of(subject).visible(deleted):
                raise RegistryError(40401, f"Subject '{subject}' not found.")
            match = self._find(subject, self._content(schema), deleted)
            if match is None:
                raise RegistryError(40403, "Schema not found")
            return match[0], self._schemas[match[1]]

    def schema(self, id: int) -> Schema:
        """Returns the schema with this id. Raises 40403 if no version uses it."""
        with self._lock:
            if id not in self._schemas or not self.uses(id, deleted=True):
                raise RegistryError(40403, f"Schema {id} not found")
            return self._schemas[id]

    def newest_id(self) -> int:
        """Returns the highest id."""
        with self._lock:
            return max(self._schemas, default=0)

    def uses(self, id: int, deleted: bool = False) -> list[tuple[str, int]]:
        """Returns (subject, version) of every version with this id."""
        with self._lock:
            return [
                (name, number)
                for name, subject in sorted(self._subjects.items())
                for number, version in subject.visible(deleted).items()
                if version.id == id
            ]

    def referenced_by(self, subject: str, number: int) -> list[int]:
        """Returns the ids of the schemas in use that refer to a version."""
        with self._lock:
            return [
                schema.id
                for schema in self._schemas.values()
                if any((r.subject, r.version) == (subject, number) for r in schema.references) and self.uses(schema.id)
            ]

    def level(self, subject: str | None, default_to_global: bool = True) -> str:
        """Returns the compatibility level of a subject, or the global one."""
        with self._lock:
            if subject not in self._levels and not default_to_global:
                raise RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")
            return self._levels.get(subject, self._levels[None])

    def mode(self, subject: str | None, default_to_global: bool = True) -> str:
        """Returns the mode of a subject, or the global one."""
        with self._lock:
            if subject not in self._modes and not default_to_global:
                raise RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")
            return self._modes.get(subject, self._modes[None])

    def incompatibilities(self, subject: str, schema: Schema, against: str | None = None) -> list[str]:
        """Returns the violations of the subject's compatibility level, as messages.

        The schema is compared with version `against`, or without it with the versions that the level requires.
        """
        with self._lock:
            fresh = self._parsed(schema)
            level = self.level(subject)
            if against is not None and against != LATEST:
                earlier = [self.version(subject, against)[1]]
            else:
                ids = [version.id for version in self._of(subject).visible().values()]
                transitive = level.endswith("_TRANSITIVE") and against is None
                earlier = [self._schemas[id] for id in (ids if transitive else ids[-1:])]
            problems: list[str] = []
            for earlier_schema in earlier:
                if earlier_schema.kind != schema.kind:
                    problems += [f"it is {schema.kind}, the earlier one {earlier_schema.kind}"] * (level != "NONE")
                    continue
                before, cannot_read = self._parsed(earlier_schema), KINDS[schema.kind].cannot_read
                if level.startswith(("BACKWARD", "FULL")):
                    problems += cannot_read(fresh, before)
                if level.startswith(("FORWARD", "FULL")):
                    problems += cannot_read(before, fresh)
            return problems

    # Internals.

    def _record(self, event: dict[str, Any]) -> None:
        """Appends an event durably, then applies it. Raises 50001 if it cannot be written."""
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        size = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) != len(line):
                raise OSError("short write")
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            raise RegistryError(50001, f"Error in the backend data store: {error}") from error
        self._apply(event)

    def _apply(self, event: dict[str, Any]) -> None:
        """Applies an event to the content in memory."""
        kind, name = event["event"], event["subject"]
        if kind == "version":
            if "schema" in event:
                references = tuple(Reference(*r) for r in event["references"])
                schema = Schema(event["id"], event["schema"], references, event.get("type", "AVRO"))
                self._schemas[schema.id] = schema
                self._ids[_content(schema)] = schema.id
            self._subjects.setdefault(name, Subject()).versions[event["version"]] = Version(event["id"])
        elif kind == "delete":
            versions = self._subjects[name].versions
            for number in event["versions"]:
                if event["permanent"]:
                    del versions[number]
                else:
                    versions[number].deleted = True
        else:
            values = self._levels if kind == "level" else self._modes
            if event[kind] is not None:
                values[name] = event[kind]
            elif name is None:
                values[None] = "BACKWARD" if kind == "level" else "READWRITE"
            else:
                values.pop(name, None)

    def _of(self, subject: str) -> Subject:
        return self._subjects.get(subject) or Subject()

    def _find(self, subject: str, content: str, deleted: bool = False) -> tuple[int, int] | None:
        id = self._ids.get(content)
        numbers = [number for number, version in self._of(subject).visible(deleted).items() if version.id == id]
        return (numbers[-1], id) if numbers and id is not None else None

    def _content(self, schema: Schema) -> str:
        self._parsed(schema)
        return _content(schema)

    def _parsed(self, schema: Schema) -> Any:
        try:
            return KINDS[schema.kind].parsed([*self._referenced(schema.references), schema.text])
        except ValueError as error:
            raise RegistryError(42201, f"Invalid schema of type {schema.kind}, details: {error}") from error

    def _referenced(self, references: tuple[Reference, ...]) -> Iterator[str]:
        """Yields the texts of referenced schemas; the schemas that they refer to come first."""
        for reference in references:
            try:
                schema = self.version(reference.subject, str(reference.version), deleted=True)[1]
            except RegistryError as error:
                raise RegistryError(42201, f'Invalid schema: no schema reference found for subject "{reference.subject}"') from error
            yield from self._referenced(schema.references)
            yield schema.text

    def _demand_writable(self, subject: str) -> None:
        if self.mode(subject) != "READWRITE":
            raise RegistryError(42205, f"Subject {subject} is in read-only mode")

    def _demand_unreferenced(self, subject: str, numbers: list[int]) -> None:
        for number in numbers:
            if self.referenced_by(subject, number):
                raise RegistryError(42206, f"One or more references exist to the schema {{subject={subject},version={number}}}.")


def _content(schema: Schema) -> str:
    """Returns a text that is equal for equivalent schemas."""
    content = KINDS[schema.kind].content(schema.text)
    return json.dumps([schema.kind, content, [[r.name, r.subject, r.version] for r in schema.references]], sort_keys=True)


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the events. Removes an incomplete last line: a crash left it, and no client got a response for it."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)
    for line in data[:whole].splitlines():
        yield json.loads(line)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
