"""The extensions whose functions each lake has. CREATE EXTENSION finds them, and pg_available_extensions shows them.

Functions of an extension that Tailgate does not have are refused by name. As in a new database, pg_extension has plpgsql only. The schema
`tailgate` and its relations, and those of errors and dead letters, are members of it there, so pg_dump leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PLPGSQL_OID = 13476


@dataclass(frozen=True, slots=True)
class Extension:
    """A row of pg_available_extensions. `functions`: those that a name with its schema, `public`, finds, too."""

    version: str
    comment: str
    functions: frozenset[str] = frozenset()


EXTENSIONS: Mapping[str, Extension] = {
    "plpgsql": Extension("1.0", "PL/pgSQL procedural language"),
    "pgcrypto": Extension("1.3", "cryptographic functions", frozenset(("digest", "hmac", "gen_random_uuid"))),
    "uuid-ossp": Extension("1.1", "generate universally unique identifiers (UUIDs)", frozenset(("uuid_generate_v4",))),
}
