"""The bodies of requests, as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tailgate.gateway.asgi.bodies import json_of
from tailgate.gateway.ksqldb.server.http import errors
from tailgate.gateway.ksqldb.server.http.errors import ApiError
from tailgate.sql.ksqldb.declared.refusals import property_name

NUMBER_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class StatementRequest:
    """Statements to run. `properties`, `variables`: those of the session. `sequence`: the log entry to wait for, or None."""

    text: str
    properties: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    sequence: int | None = None


def statement_request(body: bytes, *names: str) -> StatementRequest:
    """Returns the request of a body. `names`: the members that may have the text. Raises 400."""
    document = parsed(body)
    text = next((document[name] for name in names if document.get(name) is not None), None)
    if not isinstance(text, str):
        raise ApiError(errors.BAD_REQUEST, f'Missing member "{names[0]}" in the request body')
    properties = {**_strings(document, "streamsProperties"), **_strings(document, "properties")}
    sequence = document.get("commandSequenceNumber")
    if sequence is not None and (not isinstance(sequence, int) or isinstance(sequence, bool) or abs(sequence) > NUMBER_MAX):
        raise ApiError(errors.BAD_REQUEST, "commandSequenceNumber must be a 64-bit integer")
    return StatementRequest(
        text,
        {property_name(name): value for name, value in properties.items()},
        _strings(document, "sessionVariables", of_any_type=True),
        sequence,
    )


def parsed(body: bytes) -> dict[str, Any]:
    """Returns the JSON object of a body. Raises 400."""
    try:
        document = json_of(body)
    except ValueError:
        raise ApiError(errors.BAD_REQUEST, "Malformed JSON in the request body") from None
    if not isinstance(document, dict):
        raise ApiError(errors.BAD_REQUEST, "The request body must be a JSON object")
    return document


def _strings(document: Mapping[str, Any], name: str, *, of_any_type: bool = False) -> dict[str, str]:
    """Returns a member that is an object of scalars, or of any values but null, as texts. Raises 400."""
    member = document.get(name)
    if member is None:
        return {}
    refused = () if of_any_type else (dict, list)
    if not isinstance(member, dict) or any(isinstance(value, refused) or value is None for value in member.values()):
        raise ApiError(errors.BAD_REQUEST, f'Member "{name}" of the request body must be an object of texts')
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in member.items()}
