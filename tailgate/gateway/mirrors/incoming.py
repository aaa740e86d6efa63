"""Rows of Arrow as a relation in statements of DuckDB.

A stream, which a statement reads once: an UPDATE of 10 of 1,000 rows takes 0.43 ms, and 0.25 ms if it is prepared. Or a table, which a
statement may read more than once, and which takes 1 ms more, because threads of Arrow scan it.
"""

from __future__ import annotations

import ctypes
import itertools
from collections import OrderedDict
from collections.abc import Hashable

import duckdb
import numpy as np
import pyarrow as pa

PREPARED_RUNS_MAX = 100  # of a prepared statement, before it is prepared again
KEPT_MAX = 500  # streams of a connection: those that were used last
_STREAM = b"arrow_array_stream"  # the name that Arrow's interface for other libraries gives capsules with streams
_RELEASE = 3  # the position of the function `release` in a stream, which is null once the stream has been read
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class registered:
    """An Arrow table, registered under a name in a connection within a `with` block."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
        self.connection, self.name, self.table = connection, f"__{name}", table

    def __enter__(self) -> str:
        self.connection.register(self.name, self.table)
        return self.name

    def __exit__(self, *exception: object) -> None:
        self.connection.unregister(self.name)


def with_places(rows: pa.Table) -> pa.Table:
    """Returns rows with one more column, `place`: their positions, from 0."""
    return rows.append_column("place", pa.array(np.arange(rows.num_rows, dtype=np.int64)))


class Incoming:
    """Rows that the statements of a connection read under a name, each of them once.

    The name stands for a stream whose address stays the same, so a prepared statement reads other rows in each execution. `prepares`:
    whether `run` prepares statements. DuckDB keeps the plan of a prepared statement while the catalog stays as it was, and then makes it
    in each execution. Therefore a statement is prepared when it runs again, because the first time may be in the transaction that has
    changed the catalog, and once more after PREPARED_RUNS_MAX executions. A context manager, which ends with `close`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str = "__incoming", *, prepares: bool = False) -> None:
        self.connection, self.name, self.prepares = connection, name, prepares
        self._stream = (ctypes.c_void_p * 5)()
        self._address = ctypes.addressof(self._stream)
        self._schema: pa.Schema | None = None  # of the rows that the name stands for
        self._runs: dict[str, int] = {}  # of each statement, by its text, since it was prepared
        self._prepared: dict[str, str] = {}  # the names of those that are prepared

    def __enter__(self) -> Incoming:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._release()  # otherwise they stay in memory if a snapshot ends, or begins again, after a statement that has failed

    def run(self, sql: str, rows: pa.Table, parameters: dict[str, object] | None = None) -> duckdb.DuckDBPyConnection:
        """Executes a statement that reads these rows. One with parameters is not prepared."""
        self._put(rows)
        if parameters:
            return self.connection.execute(sql, parameters)
        if not self.prepares:
            return self.connection.execute(sql)
        runs = self._runs[sql] = self._runs.get(sql, 0) + 1
        if runs == 1:
            return self.connection.execute(sql)
        name = self._prepared.get(sql)
        if name is None or runs > PREPARED_RUNS_MAX:
            name = f"{self.name}_{len(self._prepared)}" if name is None else name
            self.connection.execute(f"PREPARE {name} AS {sql}")  # in place of the earlier one
            self._prepared[sql], self._runs[sql] = name, 2
        return self.connection.execute(f"EXECUTE {name}")

    def close(self) -> None:
        """Removes the name and the prepared statements, and frees rows that no statement has read."""
        self._release()  # first, because DuckDB refuses all statements in a transaction that has failed
        for name in self._prepared.values():
            self.connection.execute(f"DEALLOCATE {name}")
        self._prepared.clear()
        self._runs.clear()
        if self._schema is not None:
            self._schema = None
            self.connection.unregister(self.name)

    def _put(self, rows: pa.Table) -> None:
        """Makes the rows those of the stream."""
        if self._schema is not None and not rows.schema.equals(self._schema):
            self.close()  # plans depend on the form of the rows in memory
        self._release()
        rows.to_reader()._export_to_c(self._address)
        if self._schema is None:
            self.connection.register(self.name, _capsule(self._address, _STREAM, None))
            self._schema = rows.schema

    def _release(self) -> None:
        """Frees rows that no statement has read."""
        if self._stream[_RELEASE]:
            pa.RecordBatchReader._import_from_c(self._address)


class Incomings:
    """The streams of a connection, by the keys of their users. It keeps KEPT_MAX of them: a new name takes 0.4 ms."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._kept: OrderedDict[Hashable, Incoming] = OrderedDict()
        self._numbers = itertools.count(1)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def of(self, key: Hashable) -> Incoming:
        """Returns the stream of a key."""
        incoming = self._kept.get(key)
        if incoming is None:
            if len(self._kept) >= KEPT_MAX:
                self.forget(next(iter(self._kept)))
            incoming = self._kept[key] = Incoming(self.connection, f"__incoming_{next(self._numbers)}")
        self._kept.move_to_end(key)
        return incoming

    def forget(self, key: Hashable) -> None:
        """Removes the stream of a key, if there is one."""
        if (incoming := self._kept.pop(key, None)) is not None:
            incoming.close()
