"""Decoding of descriptor sets to files: the necessary parts of descriptor.proto. Source: Protocol Buffers, "descriptor.proto"."""

from __future__ import annotations

from typing import Any

from tailgate.formats.protobuf.schema import ENUM, GROUP, MESSAGE, NESTING_MAX, Enum, Field, File, Message, check_syntax
from tailgate.lake.errors import InvalidParameterValue

# FieldDescriptorProto.Type
NUMBERED = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    10: GROUP,
    11: MESSAGE,
    12: "bytes",
    13: "uint32",
    14: ENUM,
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}
OPTIONAL, REQUIRED, REPEATED = 1, 2, 3


def described(data: bytes) -> tuple[File, ...]:
    """Returns the files of a descriptor set (`protoc --descriptor_set_out --include_imports`). Raises 22023 if it is invalid."""
    try:
        files = tuple(_file(f) for f in _parts(data).get(1, ()))
    except (IndexError, KeyError, ValueError, TypeError):
        files = ()
    if not files:
        raise InvalidParameterValue("the schema is not a Protobuf descriptor set", hint="Create it with protoc --descriptor_set_out.")
    return files


Parts = dict[int, list[Any]]  # values by field number: integers, or bytes


def _parts(data: bytes) -> Parts:
    """Decodes a message to the values of its fields. Values of fixed size are skipped."""
    values_by_field: Parts = {}
    at = 0

    def varint() -> int:
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            if byte < 128:
                return n
            shift += 7

    while at < len(data):
        tag = varint()
        match tag & 7:
            case 0:
                value: Any = varint()
            case 2:
                size = varint()
                value = data[at : at + size]
                if len(value) != size:
                    raise ValueError
                at += size
            case 1 | 5 as fixed:
                value = None
                at += 8 if fixed == 1 else 4
            case _:
                raise ValueError
        values_by_field.setdefault(tag >> 3, []).append(value)
    return values_by_field


def _text(of: Parts, number: int) -> str:
    return bytes(of[number][-1]).decode() if number in of else ""


def _file(data: bytes) -> File:
    of = _parts(data)
    syntax = _text(of, 12) or "proto2"
    check_syntax(syntax)
    package = _text(of, 2)
    messages = tuple(_message(m, package, syntax) for m in of.get(4, ()))
    return File(messages, tuple(_enum(e, package) for e in of.get(5, ())), tuple(bytes(i).decode() for i in of.get(3, ())))


def _message(data: bytes, around: str, syntax: str, depth: int = 0) -> Message:
    if depth > NESTING_MAX:
        raise ValueError
    of = _parts(data)
    name = f"{around}.{_text(of, 1)}".lstrip(".")
    oneofs = [_text(_parts(o), 1) for o in of.get(8, ())]
    is_entry = any(_parts(o).get(7, [0])[-1] for o in of.get(7, ()))
    return Message(
        name,
        tuple(_field(f, oneofs, syntax) for f in of.get(2, ())),
        tuple(_message(m, name, syntax, depth + 1) for m in of.get(3, ())),
        tuple(_enum(e, name) for e in of.get(4, ())),
        is_entry,
    )


def _enum(data: bytes, around: str) -> Enum:
    of = _parts(data)
    values = (_parts(v) for v in of.get(2, ()))
    return Enum(f"{around}.{_text(of, 1)}".lstrip("."), tuple((_text(v, 1), _signed(v.get(2, [0])[-1])) for v in values))


def _signed(n: int) -> int:
    return n - (1 << 64) if n >> 63 else n


def _field(data: bytes, oneofs: list[str], syntax: str) -> Field:
    of = _parts(data)
    label, optional = of.get(4, [OPTIONAL])[-1], bool(of.get(17, [0])[-1])
    type = NUMBERED[of[5][-1]] if 5 in of else MESSAGE
    oneof = oneofs[of[9][-1]] if 9 in of and not optional else ""
    return Field(
        of[3][-1],
        _text(of, 1),
        type,
        _text(of, 6),
        repeated=label == REPEATED,
        required=label == REQUIRED,
        presence=label != REPEATED and (syntax == "proto2" or optional or bool(oneof)),
        oneof=oneof,
        default=_text(of, 7) if 7 in of else None,
    )
