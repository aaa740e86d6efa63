"""Confluent's wire format: the header of keys and values whose schema is in a registry.

Source: Confluent Schema Registry, "Formats, Serializers, and Deserializers", section "Wire format".
"""

from __future__ import annotations

import struct

FIRST_MESSAGE = b"\x00"  # follows the header of Protobuf: the index of the message in the schema, the short form of [0]


def header(schema_id: int) -> bytes:
    """Returns the header: a zero byte and the schema's id in the registry."""
    return struct.pack(">bI", 0, schema_id)
