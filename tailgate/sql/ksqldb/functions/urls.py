"""Functions of URLs.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "URLs".
"""

from __future__ import annotations

from tailgate.sql.ksqldb import types as t
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.entry import Function


def _part(part: str, result: TypeName = t.VARCHAR) -> Function:
    template = f"ksqldb_url_part({{0}}, '{part}')"
    cast = template if result == t.VARCHAR else f"CAST({template} AS {t.postgresql(result)})"
    return Function(f"url_extract_{part}", (t.VARCHAR,), result, cast, f"The {part} of a URL, or NULL.", may_fail=True)


ROWS = (
    *map(_part, ("fragment", "host", "path", "protocol", "query")),
    _part("port", t.INT),
    Function("url_extract_parameter", (t.VARCHAR, t.VARCHAR), t.VARCHAR, "ksqldb_url_parameter({0}, {1})",
             "The value of a parameter in the query of a URL, or NULL.", may_fail=True),
    Function("url_decode_param", (t.VARCHAR,), t.VARCHAR, "ksqldb_url_decode({0})", "A text whose escapes %xx are replaced.",
             may_fail=True),
    Function("url_encode_param", (t.VARCHAR,), t.VARCHAR, "ksqldb_url_encode({0})", "A text as it can be written in a URL."),
)  # fmt: skip
