r"""Formats results as psql does, with `\pset null NULL` and `\set VERBOSITY verbose`.

Errors have no LINE, LOCATION or object names.

Notices come first. `\gset` keeps a row, whose values replace `:name` in later statements. The progress
of backfills is not shown, because it depends on the machine.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn, PGresult

NUMBERS = frozenset((20, 21, 23, 26, 28, 29, 700, 701, 790, 1700))  # types that are right-aligned
INTERRUPT = "^C"
VARIABLE = re.compile(r"(?<![:\w']):([a-z]\w*)")  # does not match a cast


class Terminal:
    """A connection for typed statements. `null` is printed for NULL."""

    def __init__(self, dsn: str, null: str = "NULL") -> None:
        self._null = null
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._notices: list[str] = []
        self._variables: dict[str, str] = {}
        self._connection.add_notice_handler(self._noticed)

    def close(self) -> None:
        self._connection.close()

    def type(self, statement: str, data: tuple[str, ...] = (), interrupt_after: int | None = None) -> tuple[str, ...]:
        """Runs a statement. Returns the printed lines. Cancels it after `interrupt_after` lines."""
        self._notices.clear()
        wire: PGconn = self._connection.pgconn
        out: list[str] = []
        gset = re.search(r"\\gset( --.*)?$", statement)
        result = wire.exec_(VARIABLE.sub(self._value, statement[: gset.start()] if gset else statement).encode())
        if result.status == pq.ExecStatus.COPY_IN:
            for line in data:
                wire.put_copy_data(line.encode() + b"\n")
            wire.put_copy_end()
            result = self._last(wire)
        elif result.status == pq.ExecStatus.COPY_OUT:
            while True:
                size, piece = wire.get_copy_data(0)
                if size <= 0:
                    break
                out += bytes(piece).decode().removesuffix("\n").split("\n")
                if interrupt_after is not None and len(out) >= interrupt_after:
                    wire.get_cancel().cancel()
                    interrupt_after = None
                    out.append(INTERRUPT)
            result = self._last(wire)
            if INTERRUPT in out:
                return (*self._notices, *out)
            return (*self._notices, *out, *([] if result.status == pq.ExecStatus.COMMAND_OK else printed(result, self._null)))
        if gset and result.status == pq.ExecStatus.TUPLES_OK:
            for c in range(result.nfields):
                self._variables[(result.fname(c) or b"").decode()] = _cell(result.get_value(0, c), self._null)
            return tuple(self._notices)
        return (*self._notices, *out, *printed(result, self._null))

    def _value(self, match: re.Match[str]) -> str:
        return self._variables.get(match[1], match[0])

    def _last(self, wire: PGconn) -> PGresult:
        last = None
        while (result := wire.get_result()) is not None:
            last = result
        assert last is not None
        return last

    def _noticed(self, diagnostic: Any) -> None:
        if not str(diagnostic.message_primary).startswith("filling "):
            self._notices += _diagnostic_lines(diagnostic.severity, diagnostic.sqlstate, diagnostic.message_primary, diagnostic)


def _diagnostic_lines(severity: str, sqlstate: str, message: str, diagnostic: Any) -> list[str]:
    out = f"{severity}:  {sqlstate}: {message}".split("\n")
    more = (("DETAIL", diagnostic.message_detail), ("HINT", diagnostic.message_hint), ("CONTEXT", diagnostic.context))
    for word, text in more:
        out += f"{word}:  {text}".split("\n") if text else []
    return out


class _Diagnostic:
    def __init__(self, result: PGresult) -> None:
        def field(name: pq.DiagnosticField) -> str:
            return (result.error_field(name) or b"").decode()

        self.severity, self.sqlstate = field(pq.DiagnosticField.SEVERITY), field(pq.DiagnosticField.SQLSTATE)
        self.message_primary = field(pq.DiagnosticField.MESSAGE_PRIMARY)
        self.message_detail, self.message_hint = field(pq.DiagnosticField.MESSAGE_DETAIL), field(pq.DiagnosticField.MESSAGE_HINT)
        self.context = field(pq.DiagnosticField.CONTEXT)


def printed(result: PGresult, null: str) -> list[str]:
    if result.status == pq.ExecStatus.FATAL_ERROR:
        diagnostic = _Diagnostic(result)
        return _diagnostic_lines(diagnostic.severity, diagnostic.sqlstate, diagnostic.message_primary, diagnostic)
    if result.status == pq.ExecStatus.TUPLES_OK:
        tag = (result.command_status or b"").decode()
        return [*table(result, null), *([tag] if re.match(r"INSERT|UPDATE|DELETE", tag) else [])]
    return [(result.command_status or b"").decode()] if result.status == pq.ExecStatus.COMMAND_OK else []


def table(result: PGresult, null: str) -> list[str]:
    """Returns psql's aligned table with its footer."""
    columns = range(result.nfields)
    names = [(result.fname(c) or b"").decode() for c in columns]
    right = [result.ftype(c) in NUMBERS for c in columns]
    rows = [[_cell(result.get_value(r, c), null) for c in columns] for r in range(result.ntuples)]
    widths = [max(len(names[c]), *(len(line) for row in rows for line in row[c].split("\n")), 0) for c in columns]
    out = ["|".join(f" {_centred(names[c], widths[c])} " for c in columns).rstrip(), "+".join("-" * (w + 2) for w in widths)]
    for row in rows:
        cells = [cell.split("\n") for cell in row]
        height = max(map(len, cells), default=1)
        for i in range(height):
            line = ""
            for c in columns:
                text = cells[c][i] if i < len(cells[c]) else ""
                text = text.rjust(widths[c]) if right[c] else text.ljust(widths[c])
                line += ("|" if c else "") + " " + text + ("+" if i + 1 < len(cells[c]) else " ")
            out.append(line.rstrip())
    return [*out, f"({len(rows)} row{'' if len(rows) == 1 else 's'})"]


def _cell(value: bytes | None, null: str) -> str:
    return null if value is None else value.decode()


def _centred(text: str, width: int) -> str:
    left = (width - len(text)) // 2
    return " " * left + text + " " * (width - len(text) - left)
