"""Deletion vectors: the deleted rows of data files, in the form of Delta's protocol.

    file           deletion_vector_<uuid>.bin: version (1) | for each vector: length (4) | content | CRC-32 (4)
    content        magic number (4) | number of bitmaps (8): 1 | high half of the row numbers (4): 0 | Roaring bitmap
    bitmap         for each 65,536 rows: a list of up to 4,096 numbers, or a bit for each row

A commit names a vector by its file and its offset in it (`Vectors.descriptors`).
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

VERSION = b"\x01"  # of the form of the file
MAGIC = 1_681_511_377  # of a bitmap in Roaring's portable form, with 64-bit row numbers
COOKIE = 12_346  # of a Roaring bitmap without containers of runs
LIST_MAX = 4_096  # row numbers of a container that is a list
BITS = 1 << 16  # row numbers of a container
UUID_CHARS = 20  # of a uuid in Z85
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85, _FROM_Z85 = bytes.maketrans(_B85, _Z85), bytes.maketrans(_Z85, _B85)


@dataclass(frozen=True, slots=True)
class Vectors:
    """A file with deletion vectors, and the descriptor of each one."""

    name: str
    content: bytes
    descriptors: list[dict[str, Any]]


def vectors(deleted: Iterable[np.ndarray]) -> Vectors:
    """Returns a new file with a vector for each array of row numbers, which are in ascending order."""
    id = uuid.uuid4()
    written, parts, descriptors = len(VERSION), [VERSION], []
    name = base64.b85encode(id.bytes).translate(_TO_Z85).decode()
    for rows in deleted:
        content = struct.pack("<iqi", MAGIC, 1, 0) + bitmap(rows)
        part = struct.pack(">i", len(content)) + content + struct.pack(">I", zlib.crc32(content))
        descriptors.append(
            {"storageType": "u", "pathOrInlineDv": name, "offset": written, "sizeInBytes": len(content), "cardinality": len(rows)}
        )
        parts.append(part)
        written += len(part)
    return Vectors(_file(id), b"".join(parts), descriptors)


def file_name(action: Mapping[str, Any]) -> str | None:
    """Returns the name of the file with the deletion vector of an action, or None if it has no such file."""
    descriptor = action.get("deletionVector")
    if descriptor is None or descriptor["storageType"] != "u":
        return None
    prefix, id = descriptor["pathOrInlineDv"][:-UUID_CHARS], descriptor["pathOrInlineDv"][-UUID_CHARS:]
    file = _file(uuid.UUID(bytes=base64.b85decode(id.encode().translate(_FROM_Z85))))
    return f"{prefix}/{file}" if prefix else file


def _file(id: uuid.UUID) -> str:
    return f"deletion_vector_{id}.bin"


def bitmap(rows: np.ndarray) -> bytes:
    """Returns the Roaring bitmap of row numbers, which are in ascending order.

    >>> bitmap(np.array([1, 65_538])).hex()
    '3a300000020000000000000001000000180000001a00000001000200'
    """
    high, low = rows >> 16, (rows & (BITS - 1)).astype("<u2")
    keys, begins = np.unique(high, return_index=True)
    containers = [_container(part) for part in np.split(low, begins[1:])] if len(rows) else []
    cardinalities = np.diff([*begins, len(rows)]) - 1
    heads = np.stack([keys, cardinalities], axis=1).astype("<u2").tobytes()
    first = 8 + len(heads) + 4 * len(containers)
    offsets = first + np.cumsum([0, *map(len, containers[:-1])])
    return b"".join((struct.pack("<II", COOKIE, len(containers)), heads, offsets[: len(containers)].astype("<u4").tobytes(), *containers))


def _container(low: np.ndarray) -> bytes:
    if len(low) <= LIST_MAX:
        return low.tobytes()
    bits = np.zeros(BITS, bool)
    bits[low] = True
    return np.packbits(bits, bitorder="little").tobytes()
