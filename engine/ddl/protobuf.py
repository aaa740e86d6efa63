"""FORMAT PROTOBUF of a source: from what the statement says to the format's options. The reader's schema stays with the source."""

from __future__ import annotations

from typing import Any

from engine.plan.sources import protobuf
from lake.errors import FeatureNotSupported, InvalidParameterValue
from lake.protobuf import File
from lake.protobuf.descriptors import described
from lake.protobuf.text import parsed
from sql.statements import Protobuf, option

HEXADECIMAL = "\\x"  # begins a descriptor set


def written_out(format: Protobuf) -> dict[str, Any]:
    """Of a schema in the statement; messages have no header unless `confluent_wire_format` says so."""
    for name, _ in format.options:
        if name != "confluent_wire_format":
            raise FeatureNotSupported(f'option "{name}" of a Protobuf schema is not supported')
    assert format.schema is not None
    return options(_files(format.schema), format.message, wire=bool(option(format.options, "confluent_wire_format", False)))


def options(files: tuple[File, ...], message: str | None, *, wire: bool) -> dict[str, Any]:
    """Of a message of the last file, or of one that an earlier one has."""
    name, indexes = protobuf.chosen(files, message)
    return {"type": "protobuf", "schema": protobuf.spec(files, name, indexes if wire else None)}


def _files(schema: str) -> tuple[File, ...]:
    if not schema.startswith(HEXADECIMAL):
        return (parsed(schema),)
    try:
        return described(bytes.fromhex(schema.removeprefix(HEXADECIMAL)))
    except ValueError:
        raise InvalidParameterValue("the descriptor set is not written in hexadecimal digits") from None
