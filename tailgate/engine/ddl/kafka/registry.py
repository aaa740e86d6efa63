"""A client for schema registries that are compatible with Confluent's.

CREATE SOURCE uses it to read the newest schema of a subject, including the schemas that it
references.

Source: Confluent Schema Registry, "API Reference".
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from tailgate.engine.plan.sources import avro
from tailgate.lake import clients
from tailgate.lake.catalog.secrets import Settings, Vault
from tailgate.lake.errors import ConnectionFailure, InvalidParameterValue, UndefinedObject

ANSWER_TIMEOUT = timedelta(seconds=10)  # longest wait for an answer; a statement waits for two at most
PROBE_SUBJECT = "tailgate-answers"  # a subject for requests that test whether a registry answers; it does not have to exist
ANSWER_BYTES_MAX = 4 * 1024 * 1024  # limit for one schema; the largest one observed from Debezium has 0.1 MB


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema of the registry. `kind`: AVRO, PROTOBUF or JSON. `texts`: the schemas that it references, then its own.

    `names`: the names by which these schemas reference others, each with the text of the other one.
    """

    kind: str
    texts: tuple[str, ...]
    names: tuple[tuple[str, str], ...] = ()


class SchemaLookup(Protocol):
    """A reader of schemas in a registry; `settings` are those for access to it (`lake.catalog.secrets`)."""

    def registered(self, url: str, schema: str | int, settings: Settings = ()) -> RegisteredSchema | None:
        """Returns the newest schema of a subject, or a schema by its id, None if it does not exist. Raises 08006."""

    def protobuf(self, url: str, subject: str, settings: Settings = ()) -> tuple[str, ...] | None:
        """Returns the newest Protobuf schema of a subject, after the schemas that it imports.

        Returns None if the subject does not exist. Raises 08006 if the registry does not answer.
        """

    def by_id(self, url: str, id: int, settings: Settings = ()) -> str | None:
        """Returns an Avro schema by its id, None if it does not exist. Raises 08006."""

    def latest(self, url: str, subject: str, settings: Settings = ()) -> str | None:
        """Returns the newest schema of a subject as JSON text, None if the subject does not exist.

        Raises 08006 if the registry does not answer.
        """


class Registry:
    """A client over HTTP. The user and password may be in the URL or in the settings."""

    def __init__(self, vault: Vault | None = None) -> None:
        self._vault = vault or Vault()

    def registered(self, url: str, schema: str | int, settings: Settings = ()) -> RegisteredSchema | None:
        access = self._vault.opened(settings)
        by_id = isinstance(schema, int)
        answer = (
            self._get(url, f"schemas/ids/{schema}", f"schema {schema}", access)
            if by_id
            else self._version(url, str(schema), "latest", access)
        )
        return None if answer is None else self._with_references(url, answer, access)

    def latest(self, url: str, subject: str, settings: Settings = ()) -> str | None:
        access = self._vault.opened(settings)
        return self._avro(url, f"the schema of {subject}", self._version(url, subject, "latest", access), access)

    def by_id(self, url: str, id: int, settings: Settings = ()) -> str | None:
        access = self._vault.opened(settings)
        return self._avro(url, f"schema {id}", self._get(url, f"schemas/ids/{id}", f"schema {id}", access), access)

    def has(self, url: str, subject: str | None, id: int | None, settings: Settings = ()) -> bool:
        """Returns whether a subject exists, or a schema with this id, under the subject if it is given. Raises 08006."""
        access = self._vault.opened(settings)
        if id is None:
            return subject is None or self._version(url, subject, "latest", access) is not None
        if subject is None:
            return self._get(url, f"schemas/ids/{id}", f"schema {id}", access) is not None
        subjects: Any = self._get(url, f"schemas/ids/{id}/subjects", f"schema {id}", access)
        return subject in (subjects or ())

    def _avro(self, url: str, what: str, schema: dict[str, Any] | None, access: Mapping[str, str]) -> str | None:
        schemas = self._schemas(url, what, "AVRO", schema, access)
        return None if schemas is None else schemas[0] if len(schemas) == 1 else avro.written(avro.parse(*schemas))

    def protobuf(self, url: str, subject: str, settings: Settings = ()) -> tuple[str, ...] | None:
        access = self._vault.opened(settings)
        return self._schemas(url, f"the schema of {subject}", "PROTOBUF", self._version(url, subject, "latest", access), access)

    def _schemas(
        self, url: str, what: str, format: str, schema: dict[str, Any] | None, access: Mapping[str, str]
    ) -> tuple[str, ...] | None:
        """Returns the texts of a schema. Raises 22023 if it has another format than `format`."""
        if schema is None:
            return None
        if kind(schema) != format:
            raise InvalidParameterValue(f"{what} is {kind(schema)}, not {format}", hint=f"Use FORMAT {kind(schema)}.")
        return self._with_references(url, schema, access).texts

    def _with_references(self, url: str, schema: dict[str, Any], access: Mapping[str, str]) -> RegisteredSchema:
        """Returns a schema with those that it references."""
        referenced: dict[str, str] = {}
        names: dict[str, str] = {}
        self._references(url, schema, referenced, access, names)
        return RegisteredSchema(kind(schema), (*referenced.values(), str(schema["schema"])), tuple(names.items()))

    def _references(
        self, url: str, schema: dict[str, Any], schemas: dict[str, str], access: Mapping[str, str], names: dict[str, str]
    ) -> None:
        """Adds the schemas that a schema references to `schemas`, each after those that it references, and to `names`."""
        for reference in schema.get("references") or ():
            subject, version = str(reference["subject"]), str(reference["version"])
            if f"{subject}/{version}" not in schemas:
                other = self._version(url, subject, version, access)
                if other is None:
                    raise UndefinedObject(f'schema registry has no version {version} of subject "{subject}"')
                self._references(url, other, schemas, access, names)
                schemas[f"{subject}/{version}"] = str(other["schema"])
            names[str(reference["name"])] = schemas[f"{subject}/{version}"]

    def _version(self, url: str, subject: str, version: str, access: Mapping[str, str]) -> dict[str, Any] | None:
        return self._get(url, f"subjects/{urllib.parse.quote(subject, safe='')}/versions/{version}", f"subject {subject}", access)

    def _get(self, url: str, path: str, what: str, access: Mapping[str, str]) -> dict[str, Any] | None:
        """Sends a GET request and returns the JSON of the answer, None for status 404.

        Raises 22023 for an invalid URL, 08006 if the registry does not answer or answers with
        another error.
        """
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidParameterValue(f'"{url}" is not the URL of a schema registry', hint="Write it as http://host:port.")
        base = clients.shown_url(url)
        request = urllib.request.Request(f"{base}/{path}")
        request.add_header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
        request.headers.update(clients.login(parts, access))
        tls = clients.tls(access) if parts.scheme == "https" else None
        try:
            with clients.opener(tls).open(request, timeout=ANSWER_TIMEOUT.total_seconds()) as answer:
                body: dict[str, Any] = json.loads(answer.read(ANSWER_BYTES_MAX))
        except urllib.error.HTTPError as e:
            e.close()
            if e.code == 404:
                return None
            clients.refuse_redirect(base, e)
            if e.code in (401, 403):
                raise ConnectionFailure(f"schema registry {base} refused the user or the password: {e.code}") from None
            raise ConnectionFailure(f"schema registry {base} answered {e.code} for {what}") from None
        except (OSError, ValueError) as e:
            raise ConnectionFailure(f"schema registry {base} does not answer: {e}") from None
        return body


def kind(schema: dict[str, Any]) -> str:
    """Returns AVRO, PROTOBUF or JSON."""
    return str(schema.get("schemaType") or "AVRO")
