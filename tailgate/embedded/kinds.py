"""The kinds of schemas that the registry holds: parsing, equality, and compatibility of a reader with a writer.

A schema is parsed after the schemas that it refers to. Parsing raises ValueError for an invalid schema.

Source: Confluent's schema registry, "Schema Evolution and Compatibility"; Protocol Buffers, "Updating A Message Type".
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import avro.errors
import avro.name
import avro.schema
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

from tailgate.formats.protobuf.linking import linked
from tailgate.formats.protobuf.schema import Schema
from tailgate.formats.protobuf.text import parsed
from tailgate.lake.errors import TailgateError

warnings.filterwarnings("ignore", category=avro.errors.IgnoredLogicalType)  # Debezium's schemas have many logical types that avro ignores


@dataclass(frozen=True, slots=True)
class Kind:
    """The functions for one kind of schema.

    `parsed` takes texts, referenced ones first. `content` is equal for equivalent texts.
    `cannot_read(reader, writer)` returns the reasons why the reader cannot read the writer's data.
    """

    parsed: Callable[[Iterable[str]], Any]
    content: Callable[[str], Any]
    cannot_read: Callable[[Any, Any], list[str]]


def _avro(texts: Iterable[str]) -> avro.schema.Schema:
    """Parses Avro schemas and returns the last one."""
    names = avro.name.Names()
    schema: avro.schema.Schema | None = None
    try:
        for text in texts:
            names.default_namespace = None
            schema = avro.schema.make_avsc_object(json.loads(text), names)
    except (avro.errors.AvroException, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    assert schema is not None
    return schema


def _avro_content(text: str) -> Any:
    """Returns equal values for schemas that differ only in white space, order of attributes, and `{"type": "x"}` for `"x"`.

    >>> _avro_content('{"type": "string"}') == _avro_content('"string"')
    True
    """

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return plain(value["type"]) if value.keys() == {"type"} else {key: plain(inner) for key, inner in value.items()}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    return plain(json.loads(text))


def _avro_cannot_read(reader: avro.schema.Schema, writer: avro.schema.Schema) -> list[str]:
    result = ReaderWriterCompatibilityChecker().get_compatibility(reader, writer)  # type: ignore[no-untyped-call]  # avro has no types
    return [] if result.compatibility is SchemaCompatibilityType.compatible else sorted(result.messages)


def _protobuf(texts: Iterable[str]) -> Schema:
    try:
        return linked([parsed(text) for text in texts])
    except TailgateError as error:
        raise ValueError(f"{error.message} {error.detail or ''}".strip()) from error


# the wire format of each type; a reader can read types with the same format
ALIKE = {
    **dict.fromkeys(("int32", "uint32", "int64", "uint64", "bool", "enum"), "number"),
    **dict.fromkeys(("sint32", "sint64"), "signed number"),
    **dict.fromkeys(("string", "bytes"), "bytes"),
    **dict.fromkeys(("fixed32", "sfixed32"), "four bytes"),
    **dict.fromkeys(("fixed64", "sfixed64"), "eight bytes"),
}


def _protobuf_cannot_read(reader: Schema, writer: Schema) -> list[str]:
    """Returns the incompatibilities of two Protobuf schemas, as messages."""
    problems = []
    for name, message in writer.messages.items():
        other = reader.messages.get(name)
        if other is None:
            problems.append(f"message {name} is not there")
            continue
        sent = {f.number: f for f in message.fields}
        for field in other.fields:
            before = sent.get(field.number)
            if before is None:
                problems += [f"field {name}.{field.name} is required and new"] * field.required
            elif (ALIKE.get(field.type, field.type), field.of if field.type == "message" else "") != (
                ALIKE.get(before.type, before.type),
                before.of if before.type == "message" else "",
            ):
                problems.append(f"field {field.number} of {name} was {before.of or before.type} and is {field.of or field.type}")
            elif field.repeated != before.repeated:
                problems.append(f"field {field.number} of {name} is a list in one and none in the other")
    return problems


def _json(texts: Iterable[str]) -> Any:
    """Returns the last of several JSON schemas."""
    schema: Any = None
    for text in texts:
        schema = json.loads(text)
        if not isinstance(schema, dict | bool):
            raise ValueError("a JSON schema is an object or a boolean")
    return schema


KINDS = {
    "AVRO": Kind(_avro, _avro_content, _avro_cannot_read),
    "JSON": Kind(_json, json.loads, lambda reader, writer: []),  # their compatibility is not checked
    "PROTOBUF": Kind(_protobuf, lambda text: " ".join(text.split()), _protobuf_cannot_read),
}
