"""FORMAT PROTOBUF of a source: the format with the reader's schema."""

from __future__ import annotations

from tailgate.engine.plan.sources import protobuf
from tailgate.formats.protobuf.descriptors import described
from tailgate.formats.protobuf.schema import File
from tailgate.formats.protobuf.text import parsed
from tailgate.lake.catalog import formats
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.sql.statements import Protobuf, option

HEXADECIMAL = "\\x"  # prefix of a descriptor set


def format_of_statement(format: Protobuf) -> formats.Protobuf:
    """Returns the format for a schema in the statement.

    Messages have no header unless `confluent_wire_format` is set.
    """
    for name, _ in format.options:
        if name != "confluent_wire_format":
            raise FeatureNotSupported(f'option "{name}" of a Protobuf schema is not supported')
    assert format.schema is not None
    return message_format(_files(format.schema), format.message, wire=bool(option(format.options, "confluent_wire_format", False)))


def message_format(files: tuple[File, ...], message: str | None, *, wire: bool) -> formats.Protobuf:
    """Returns the format for a message in a schema's files. `wire`: messages have Confluent's header."""
    name, indexes = protobuf.chosen(files, message)
    return formats.Protobuf(schema=protobuf.spec(files, name, indexes if wire else None))


def _files(schema: str) -> tuple[File, ...]:
    """Returns the files of a schema: the text of one file, or a descriptor set."""
    if not schema.startswith(HEXADECIMAL):
        return (parsed(schema),)
    try:
        return described(bytes.fromhex(schema.removeprefix(HEXADECIMAL)))
    except ValueError:
        raise InvalidParameterValue("the descriptor set is not written in hexadecimal digits") from None
