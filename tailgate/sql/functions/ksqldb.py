"""The functions that only translations of ksqlDB's expressions call: those of `sql.compute.ksqldb`, and a few with templates.

Their names begin with `ksqldb_`.

- `ksqldb_present(jsonb)`: NULL for JSON's null.
- `ksqldb_wrapped(bigint)`: the integer of its lowest 32 bits, as Java's arithmetic of INT wraps around.
"""

from __future__ import annotations

from tailgate.sql.compute.catalogue import UDFS
from tailgate.sql.functions.entry import Function, udf

PREFIX = "ksqldb_"
_WRAPPED = "CAST((({0} + 2147483648) & 4294967295) - 2147483648 AS {type})"

ROWS = (
    *(udf(u.name, u.arguments, u.result) for u in UDFS.values() if u.name.startswith(PREFIX)),
    Function("ksqldb_present", ("jsonb",), "jsonb", "nullif({0}, 'null')", "nullif({0}, 'null')"),
    Function("ksqldb_wrapped", ("int8",), "int4", _WRAPPED, _WRAPPED),
)
