"""The routes of the schema registry: which function answers a request, by its method and path.

request ──► ROUTES: the first pattern that matches ──► Subjects ──► the JSON value of the response
└─ RegistryError
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from tailgate.embedded.kinds import KINDS
from tailgate.embedded.subjects import Reference, RegistryError, Schema, Subjects


class Request:
    """A request to a route: the matched parts of its path, the query, the body, and the subjects."""

    def __init__(
        self, subjects: Subjects, parts: tuple[str, ...], query: dict[str, list[str]], body: bytes, headers: dict[str, str]
    ) -> None:
        self.subjects = subjects
        self.parts = tuple(unquote(part) for part in parts)
        self.headers = headers
        self._query = query
        self._body = body

    def flag(self, name: str) -> bool:
        """Returns whether a query parameter is true."""
        return self.text(name).lower() == "true"  # Python clients say True

    def text(self, name: str) -> str:
        """Returns a query parameter, or an empty text."""
        return self._query.get(name, [""])[-1]

    def number(self, name: str, otherwise: int) -> int:
        """Returns a query parameter as an integer, or `otherwise` if it is not one."""
        try:
            return int(self.text(name) or otherwise)
        except ValueError:
            return otherwise

    def raw(self) -> str:
        """Returns the body as text."""
        return self._body.decode("utf-8", "replace")

    def json(self) -> dict[str, Any]:
        """Returns the body as a JSON object. Raises 42201 if it is not one."""
        try:
            value = json.loads(self._body or b"{}")
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise RegistryError(42201, "The request's body is not a JSON object")
        return value

    def schema(self) -> Schema:
        """Returns the schema in the body, which has no id yet."""
        body = self.json()
        kind = body.get("schemaType") or "AVRO"
        if kind not in KINDS:
            raise RegistryError(42201, f"Invalid schema type {kind}: this registry holds {' and '.join(KINDS)}")
        if not isinstance(body.get("schema"), str):
            raise RegistryError(42201, "Empty schema")
        try:
            references = tuple(Reference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in body.get("references") or ())
        except (KeyError, TypeError, ValueError) as error:
            raise RegistryError(42201, "A reference is not {name, subject, version}") from error
        return Schema(0, body["schema"], references, kind)


def _described(schema: Schema) -> dict[str, Any]:
    references = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
    kind = {} if schema.kind == "AVRO" else {"schemaType": schema.kind}
    return {"schema": schema.text, **kind, **({"references": references} if references else {})}


def _versioned(subject: str, version: int, schema: Schema) -> dict[str, Any]:
    return {"subject": subject, "version": version, "id": schema.id, **_described(schema)}


def _page(request: Request, items: list[Any]) -> list[Any]:
    offset, limit = request.number("offset", 0), request.number("limit", -1)
    return items[offset:] if limit < 0 else items[offset : offset + limit]


def _id(text: str) -> int:
    if not text.isdecimal():
        raise RegistryError(40403, f"Schema {text} not found")
    return int(text)


def _schema_of_id(request: Request) -> Any:
    answer = _described(request.subjects.schema(_id(request.parts[0])))
    return {**answer, "maxId": request.subjects.newest_id()} if request.flag("fetchMaxId") else answer


def _uses_of_id(request: Request) -> list[tuple[str, int]]:
    id = _id(request.parts[0])
    request.subjects.schema(id)
    return request.subjects.uses(id, request.flag("deleted"))


def _subjects_of_id(request: Request) -> Any:
    return sorted({subject for subject, _ in _uses_of_id(request)})


def _register(request: Request) -> Any:
    version, id = request.subjects.register(request.parts[0], request.schema())
    return _versioned(request.parts[0], version, request.subjects.schema(id))


def _lookup(request: Request) -> Any:
    version, schema = request.subjects.lookup(request.parts[0], request.schema(), deleted=request.flag("deleted"))
    return _versioned(request.parts[0], version, schema)


def _numbers(request: Request) -> Any:
    return _page(request, request.subjects.numbers(request.parts[0], request.flag("deleted"), request.flag("deletedOnly")))


def _version(request: Request) -> Any:
    return _versioned(request.parts[0], *request.subjects.version(*request.parts, deleted=request.flag("deleted")))


def _schema_of_version(request: Request) -> Any:
    return _written(request.subjects.version(*request.parts, deleted=request.flag("deleted"))[1])


def _written(schema: Schema) -> Any:
    """Returns the schema as a JSON value; a Protobuf schema is a string."""
    return json.loads(schema.text) if schema.kind == "AVRO" else schema.text


def _referenced_by(request: Request) -> Any:
    return request.subjects.referenced_by(request.parts[0], request.subjects.version(*request.parts)[0])


def _compatible(request: Request) -> Any:
    against = request.parts[1] if len(request.parts) > 1 else None
    problems = request.subjects.incompatibilities(request.parts[0], request.schema(), against=against)
    return {"is_compatible": not problems, **({"messages": problems} if request.flag("verbose") else {})}


def _subject_or_all(request: Request) -> str | None:
    return request.parts[0] if request.parts else None


def _level(request: Request) -> Any:
    own = bool(request.parts) and not request.flag("defaultToGlobal")
    return {"compatibilityLevel": request.subjects.level(_subject_or_all(request), default_to_global=not own)}


def _set_level(request: Request) -> Any:
    return {"compatibility": request.subjects.set_level(_subject_or_all(request), str(request.json().get("compatibility")).upper())}


def _mode(request: Request) -> Any:
    own = bool(request.parts) and not request.flag("defaultToGlobal")
    return {"mode": request.subjects.mode(_subject_or_all(request), default_to_global=not own)}


def _set_mode(request: Request) -> Any:
    return {"mode": request.subjects.set_mode(_subject_or_all(request), str(request.json().get("mode")).upper())}


def _apicurio_register(request: Request) -> Any:
    """Registers a schema in Apicurio's protocol, under the subject in the header X-Registry-ArtifactId."""
    subject = request.headers.get("x-registry-artifactid", "")
    version, id = request.subjects.register(subject, Schema(0, request.raw()))
    name = json.loads(request.raw())
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S+0000")
    return {
        "id": subject,
        "type": "AVRO",
        "version": str(version),
        "globalId": id,
        "contentId": id,  # the converter writes either of the two ids, so both are equal
        "state": "ENABLED",
        "name": name.get("name", subject) if isinstance(name, dict) else subject,
        "createdOn": now,
        "modifiedOn": now,
        "createdBy": "",
        "modifiedBy": "",
        "references": [],
    }


def _no_associations(request: Request) -> Any:
    raise RegistryError(40410, f"No associations for resource {request.parts[0]}")  # clients then derive subject names from topics


ROUTES: tuple[tuple[str, re.Pattern[str], Callable[[Request], Any]], ...] = tuple(
    (method, re.compile(pattern.replace("*", "([^/]+)")), answer)
    for method, pattern, answer in (
        ("GET", "/", lambda request: {}),
        ("GET", "/schemas/types", lambda request: list(KINDS)),
        ("GET", "/schemas/ids/*", _schema_of_id),
        ("GET", "/schemas/ids/*/schema", lambda request: _written(request.subjects.schema(_id(request.parts[0])))),
        ("GET", "/schemas/ids/*/subjects", _subjects_of_id),
        ("GET", "/schemas/ids/*/versions", lambda request: [{"subject": name, "version": number} for name, number in _uses_of_id(request)]),
        (
            "GET",
            "/subjects",
            lambda request: _page(request, request.subjects.names(request.flag("deleted"), request.text("subjectPrefix"))),
        ),
        ("POST", "/subjects/*", _lookup),
        ("DELETE", "/subjects/*", lambda request: request.subjects.delete_subject(request.parts[0], request.flag("permanent"))),
        ("GET", "/subjects/*/versions", _numbers),
        ("POST", "/subjects/*/versions", _register),
        ("GET", "/subjects/*/versions/*", _version),
        ("DELETE", "/subjects/*/versions/*", lambda request: request.subjects.delete_version(*request.parts, request.flag("permanent"))),
        ("GET", "/subjects/*/versions/*/schema", _schema_of_version),
        ("GET", "/subjects/*/versions/*/referencedby", _referenced_by),
        ("POST", "/compatibility/subjects/*/versions", _compatible),
        ("POST", "/compatibility/subjects/*/versions/*", _compatible),
        ("GET", "/config", _level),
        ("PUT", "/config", _set_level),
        ("DELETE", "/config", lambda request: request.subjects.set_level(None, None)),
        ("GET", "/config/*", _level),
        ("PUT", "/config/*", _set_level),
        ("DELETE", "/config/*", lambda request: request.subjects.set_level(request.parts[0], None)),
        ("GET", "/mode", _mode),
        ("PUT", "/mode", _set_mode),
        ("GET", "/mode/*", _mode),
        ("PUT", "/mode/*", _set_mode),
        ("DELETE", "/mode/*", lambda request: {"mode": request.subjects.set_mode(request.parts[0], None)}),
        ("GET", "/contexts", lambda request: ["."]),
        ("GET", "/associations/resources/[^/]+/*", _no_associations),
        ("POST", "/apis/registry/v2/groups/[^/]+/artifacts", _apicurio_register),
    )
)
