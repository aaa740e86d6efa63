"""The table `clock` of one row: the log entry of the mirrors, the mirrored relations, and the items with errors at that entry.

A reader that opens a transaction and reads the clock sees all mirrors that it may read (`deferral`) at one time, without a lock.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from tailgate.gateway.mirrors.state import State


def create(connection: duckdb.DuckDBPyConnection, state: State) -> None:
    """Creates the clock, without relations."""
    connection.execute("CREATE TABLE clock (n BIGINT, t BIGINT, relations BIGINT[], failing BIGINT[], inbox BIGINT)")
    connection.execute("INSERT INTO clock VALUES ($1, $2, [], [], $3)", [state.n, state.time, state.inbox])


def set_clock(connection: duckdb.DuckDBPyConnection, state: State, lists: Sequence[list[int]] | None) -> None:
    """Sets the clock to a state. `lists`: the mirrored relations, and the items with errors; None if they have not changed."""
    values: list[object] = [state.n, state.time, state.inbox]
    more = ""
    if lists is not None:  # to set a list costs more
        values, more = [*values, *lists], ", relations = $4, failing = $5"
    connection.execute(f"UPDATE clock SET n = $1, t = $2, inbox = $3{more}", values)
