"""Runs statements as a user types them: properties and variables last for the session, queries print their rows.

SET 'name' = 'value', UNSET, DEFINE, UNDEFINE, SHOW VARIABLES    kept here and sent with each statement
OUTPUT [JSON | TABULAR], RUN SCRIPT 'file', exit                 the command's own
SELECT, PRINT                                                    /query
all others                                                       /ksql
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tailgate.ksql.api import Server, ServerError
from tailgate.ksql.entities import entity
from tailgate.ksql.tables import shown, table
from tailgate.ksql.texts import first_words, statements

PULL_WIDTH = 20  # characters of a column of a push query, whose rows are printed as they arrive
_VARIABLE = re.compile(r"define\s+(\w+)\s*=\s*'((?:[^']|'')*)'\s*;", re.IGNORECASE)
_PROPERTY = re.compile(r"(?:un)?set\s+'([^']*)'(?:\s*=\s*'((?:[^']|'')*)')?\s*;", re.IGNORECASE)
_SCRIPT = re.compile(r"run\s+script\s+'([^']*)'\s*;", re.IGNORECASE)
_EMIT = re.compile(r"\bemit\s+(changes|final)\b", re.IGNORECASE)


class Session:
    """A session with a server. `write` prints a line."""

    def __init__(self, server: Server, write: Callable[[str], None] = print) -> None:
        self._server, self._write = server, write
        self.properties: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.as_json = False

    def run_text(self, text: str) -> str:
        """Runs all whole statements of a text. Returns the rest. Raises ServerError at the first statement that fails."""
        whole, rest = statements(text)
        for statement in whole:
            self.run(statement)
        return rest

    def run(self, statement: str) -> None:
        """Runs a statement and prints its result. Raises ServerError."""
        words = first_words(statement)
        match words:
            case ["select", *_]:
                self._query(statement)
            case ["print", *_]:
                self._print(statement)
            case ["define" | "undefine" as word, name]:
                self._define(statement, define=word == "define", name=name)
            case ["set" | "unset" as word, *_]:
                self._set(statement, sets=word == "set")
            case ["show" | "list", "variables"]:
                self._write(table(["Variable Name", "Value"], sorted(self.variables.items())))
            case ["output", *form]:
                if form and form[0] not in ("json", "tabular"):
                    raise ServerError("OUTPUT JSON or OUTPUT TABULAR")
                self.as_json = form == ["json"] if form else self.as_json
                self._write(f"Output format is {'JSON' if self.as_json else 'TABULAR'}")
            case ["run", "script"]:
                self.run_script(statement)
            case _:
                for value in self._server.run(statement, self.properties, self.variables):
                    self._write(_indented(value) if self.as_json else entity(value))

    def run_script(self, statement: str) -> None:
        """Runs the statements of RUN SCRIPT 'file'. Raises ServerError."""
        match = _SCRIPT.fullmatch(statement)
        if match is None:
            raise ServerError("RUN SCRIPT 'file'")
        self.run_file(Path(match[1]))

    def run_file(self, path: Path) -> None:
        """Runs the statements of a file. Raises ServerError."""
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ServerError(f"could not read {path}: {error}") from None
        rest = self.run_text(text)
        if rest:
            raise ServerError(f"{path} ends within a statement: {rest[:60]}")

    def _set(self, statement: str, *, sets: bool) -> None:
        match = _PROPERTY.fullmatch(statement)
        if match is None or (match[2] is not None) != sets:
            raise ServerError("SET 'property' = 'value', or UNSET 'property'")
        self._server.run(statement, self.properties, self.variables)  # so that the server refuses an unknown property now
        before = self.properties.pop(match[1], None)
        if sets:
            self.properties[match[1]] = match[2].replace("''", "'")
        verb = "set" if sets else "unset"
        self._write(f"Successfully {verb} property '{match[1]}'" + (f", which was '{before}'" if before is not None else ""))

    def _define(self, statement: str, *, define: bool, name: str) -> None:
        if not define:
            self.variables.pop(name.rstrip(";"), None)
            return
        match = _VARIABLE.fullmatch(statement)
        if match is None:
            raise ServerError("DEFINE name = 'value'")
        self.variables[match[1].lower()] = match[2].replace("''", "'")

    def _print(self, statement: str) -> None:
        """Prints the records of a topic, until the last one or Ctrl-C."""
        try:
            for line in self._server.printed(statement, self.properties, self.variables):
                self._write(line)
        except KeyboardInterrupt:
            self._write("")

    def _query(self, statement: str) -> None:
        """Prints the rows of a query: of a push query as they arrive, until its LIMIT or Ctrl-C."""
        push = _EMIT.search(statement) is not None
        names: list[str] = []
        rows: list[list[Any]] = []
        try:
            for part in self._server.query(statement, self.properties, self.variables, push=push):
                if "errorMessage" in part:
                    raise ServerError(part["errorMessage"]["message"])
                if self.as_json:
                    self._write(json.dumps(part, ensure_ascii=False))
                elif "header" in part:
                    names = _names(part["header"]["schema"])
                    self._head(names, push=push)
                elif "row" in part and push:
                    self._write(_line(part["row"]["columns"]) + (" (tombstone)" if part["row"].get("tombstone") else ""))
                elif "row" in part:
                    rows.append(part["row"]["columns"])
                elif push:
                    self._write(part["finalMessage"])
        except KeyboardInterrupt:
            self._write("")
        if names and not push:
            self._write(table(names, rows))
        self._write("Query terminated")

    def _head(self, names: list[str], *, push: bool) -> None:
        if push:
            self._write(_line(names))
            self._write("-" * (len(names) * (PULL_WIDTH + 3)))


def _names(schema: str) -> list[str]:
    """Returns the names of the columns of a schema.

    >>> _names("`A` STRING, `B``C` DECIMAL(4, 2), `S` STRUCT<`X` INTEGER>")
    ['A', 'B`C', 'S']
    """
    names: list[str] = []
    depth, expected = 0, True
    for match in re.finditer(r"`((?:[^`]|``)*)`|[<(>),]", schema):
        token = match.group()
        if token in ("<", "(", ">", ")"):
            depth += 1 if token in "<(" else -1
        elif token == ",":
            expected = expected or depth == 0
        elif expected:
            names.append(match[1].replace("``", "`"))
            expected = False
    return names


def _line(values: list[Any]) -> str:
    """Returns a row of a push query. A longer value moves the rest of the line."""
    return " " + " | ".join(shown(value).ljust(PULL_WIDTH) for value in values).rstrip()


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
