"""Buenavista's interface (`Connection`, `Session`, `QueryResult`) over serving, for all of buenavista's front ends but its socket server.

Rows are Python values of buenavista's types. A session is read-only, reads at the newest time in every statement, and has the
privileges of one role.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
from buenavista.core import BVType, Connection, QueryResult, Session

from gateway.serving import Serving
from lake.catalog.roles import Role
from lake.errors import FeatureNotSupported
from lake.types import Field, Type
from sql.authorization import authorize
from sql.statements import Select, parse

TYPES = {
    "bool": BVType.BOOL,
    "int2": BVType.INTEGER,
    "int4": BVType.INTEGER,
    "int8": BVType.BIGINT,
    "float4": BVType.FLOAT,
    "float8": BVType.FLOAT,
    "numeric": BVType.DECIMAL,
    "date": BVType.DATE,
    "time": BVType.TIME,
    "timestamp": BVType.TIMESTAMP,
    "timestamptz": BVType.TIMESTAMP,
    "interval": BVType.INTERVAL,
    "bytea": BVType.BYTES,
    "jsonb": BVType.JSON,
}


def bv_type(type: Type) -> BVType:
    """Returns buenavista's type for a type; TEXT if it has none."""
    if type.is_array:
        return BVType.INTEGERARRAY if type.name in ("int2", "int4", "int8") else BVType.STRINGARRAY
    return TYPES.get(type.name, BVType.TEXT)


def _value(value: Any, type: Type) -> Any:
    if type.name == "interval" and value is not None and not type.is_array:
        return timedelta(days=value["months"] * 30 + value["days"], microseconds=value["micros"])
    return value


class Rows(QueryResult):  # type: ignore[misc]  # buenavista has no types
    def __init__(self, fields: tuple[Field, ...], table: pa.Table) -> None:
        super().__init__()
        self._fields, self._table = fields, table

    def has_results(self) -> bool:
        return True

    def column_count(self) -> int:
        return len(self._fields)

    def column(self, index: int) -> tuple[str, BVType]:
        field = self._fields[index]
        return field.name, bv_type(field.type)

    def rows(self) -> Iterator[list[Any]]:
        columns = [[_value(v, f.type) for v in c.to_pylist()] for c, f in zip(self._table.columns, self._fields, strict=True)]
        return map(list, zip(*columns, strict=True))

    def status(self) -> str:
        return f"SELECT {self._table.num_rows}"


class TailgateSession(Session):  # type: ignore[misc]
    def __init__(self, serving: Serving, role: Role) -> None:
        super().__init__()
        self._serving, self._role = serving, role

    def cursor(self) -> TailgateSession:
        return self

    def close(self) -> None:
        pass

    def in_transaction(self) -> bool:
        return False

    def load_df_function(self, table: str) -> None:
        raise FeatureNotSupported("data frames cannot be loaded")

    def execute_sql(self, sql: str, params: Any = None) -> Rows:
        statement = parse(sql)
        if not isinstance(statement, Select):
            raise FeatureNotSupported("only queries are supported here", hint="Use the PostgreSQL endpoint.")
        query = authorize(self._serving.prepare(statement), self._role, self._serving.catalog)
        return Rows(query.plan.columns, self._serving.run_now(query, list(params or ())))


class TailgateConnection(Connection):  # type: ignore[misc]
    def __init__(self, serving: Serving, role: Role) -> None:
        super().__init__()
        self._serving, self._role = serving, role

    def new_session(self) -> TailgateSession:
        return TailgateSession(self._serving, self._role)

    def parameters(self) -> dict[str, str]:
        return {"server_version": "15.15", "client_encoding": "UTF8", "DateStyle": "ISO, MDY", "TimeZone": "UTC"}
