"""Types of Protobuf messages. The precision and scale of a decimal are in the annotations of its field.

A oneof is a structure with its name and number, such as `choice_0`, before the other fields, as in Kafka Connect.
"""

from __future__ import annotations

import re

from tailgate.engine.ddl.ksqldb.inference import naming
from tailgate.engine.ddl.ksqldb.inference.naming import Columns
from tailgate.engine.plan.sources.protobuf import chosen
from tailgate.formats.protobuf.known import WRAPPERS
from tailgate.formats.protobuf.linking import linked
from tailgate.formats.protobuf.schema import ENUM, Field, Message, Schema
from tailgate.formats.protobuf.text import parsed
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName

SCALARS = {
    "bool": types.BOOLEAN,
    **dict.fromkeys(("int32", "sint32", "sfixed32"), types.INT),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32", "uint64", "fixed64"), types.BIGINT),
    **dict.fromkeys(("float", "double"), types.DOUBLE),
    "string": types.VARCHAR,
    "bytes": types.BYTES,
    ENUM: types.VARCHAR,
}
KNOWN = {"google.protobuf.Timestamp": types.TIMESTAMP, "google.type.Date": types.DATE, "google.type.TimeOfDay": types.TIME}
DECIMAL = "confluent.type.Decimal"
DECIMAL_FIELD = re.compile(r"confluent\.type\.Decimal\s+(\w+)\s*=\s*\d+\s*\[(.*?)\]\s*;", re.DOTALL)
DIGITS = {
    name: re.compile(rf'key:\s*"{name}"\s*,?\s*value:\s*"(\d+)"|value:\s*"(\d+)"\s*,?\s*key:\s*"{name}"') for name in ("precision", "scale")
}
NESTING_MAX = 32  # messages inside each other; a message that contains itself has no type


def inferred(texts: tuple[str, ...], name: str) -> Columns | TypeName:
    """Returns the columns of a message. `name`: its full name; the first message if it is empty. Raises 22023."""
    files = tuple(map(parsed, texts))
    message, _ = chosen(files, name or None)
    return naming.columns(_Messages(linked(files), _decimals(texts[-1])).fields(message, 0))


def _decimals(text: str) -> dict[str, TypeName]:
    """Returns the types of the decimals of a file by the names of their fields."""
    decimals: dict[str, TypeName] = {}
    for name, options in DECIMAL_FIELD.findall(text):
        matches = {digits: pattern.search(options) for digits, pattern in DIGITS.items()}
        numbers = [int(match[1] or match[2]) if match else None for match in matches.values()]
        precision, scale = numbers[0] or types.PRECISION_MAX, numbers[1] or 0
        decimals[name] = TypeName("decimal", (precision, scale))
    return decimals


class _Messages:
    """The types of the messages of a schema. `decimals`: the types of decimals by the names of fields."""

    def __init__(self, schema: Schema, decimals: dict[str, TypeName]) -> None:
        self._schema, self._decimals = schema, decimals

    def fields(self, message: str, depth: int) -> list[tuple[str, TypeName | None]]:
        """Returns the names and types of a message's oneofs and of its other fields."""
        typed = [(field, self._type(field, depth)) for field in self._schema.messages[message].fields]
        oneofs = dict.fromkeys(field.oneof for field, _ in typed if field.oneof)
        unions = [(f"{name}_{i}", naming.struct((f.name, type) for f, type in typed if f.oneof == name)) for i, name in enumerate(oneofs)]
        return [*unions, *((field.name, type) for field, type in typed if not field.oneof)]

    def _type(self, field: Field, depth: int) -> TypeName | None:
        entry = self._schema.messages.get(field.of)
        if field.repeated and entry is not None and _is_entry(entry):
            return naming.map_of(self._type(entry.fields[1], depth + 1))
        type = self._element(field, depth)
        return naming.array(type) if field.repeated else type

    def _element(self, field: Field, depth: int) -> TypeName | None:
        if field.type in SCALARS:
            return SCALARS[field.type]
        if field.of in WRAPPERS:
            return SCALARS[self._schema.messages[field.of].fields[0].type]
        if field.of == DECIMAL:
            return self._decimals.get(field.name, TypeName("decimal", (types.PRECISION_MAX, 0)))
        if field.of in KNOWN or depth > NESTING_MAX:
            return KNOWN.get(field.of)
        return naming.struct(self.fields(field.of, depth + 1))


def _is_entry(message: Message) -> bool:
    """Returns whether a message is an entry of a map, also of Kafka Connect's, whose keys may be null."""
    return message.is_entry or (message.name.endswith("Entry") and [f.name for f in message.fields] == ["key", "value"])
