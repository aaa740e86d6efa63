"""Parses a block of PL/pgSQL: the code of DO, or of a temporary function. Cursors and transaction commands are refused by name.

Source: PostgreSQL 15, chapter "PL/pgSQL"; pl_gram.y for the wording of errors.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported
from tailgate.sql.plpgsql.conditions import DIAGNOSTICS
from tailgate.sql.plpgsql.declarations import declarations
from tailgate.sql.plpgsql.loops import LOOPS, exit_statement, loop
from tailgate.sql.plpgsql.nodes import (
    Assert,
    Assign,
    Block,
    Branch,
    Case,
    Diagnostics,
    Dynamic,
    Handler,
    If,
    Node,
    Perform,
    Reference,
    Return,
    Sql,
)
from tailgate.sql.plpgsql.raises import condition, raise_statement
from tailgate.sql.plpgsql.reader import Check, Frame, Reader, refused

REFUSED = frozenset("call close do fetch move open".split())
TRANSACTIONS = frozenset("abort begin commit end release rollback savepoint start".split())
SUBJECT = "__Case__Variable__"  # the variable that has the value of CASE expression
ERROR_VARIABLES = ("sqlstate", "sqlerrm")  # of handlers


def parse_block(text: str, check: Check, parameters: Iterable[str] = ()) -> Block:
    """Returns the block of a text. `check` parses its statements of SQL. `parameters`: of a function, which are variables."""
    parser = _Parser(Reader(text, check))
    parser.reader.frames.append(Frame(None, variables=dict.fromkeys(parameters, False)))
    block = parser.block(parser.reader.label())
    parser.reader.cursor.accept(";")
    parser.reader.cursor.finish()
    return block


class _Parser:
    def __init__(self, reader: Reader) -> None:
        self.reader, self._cursor = reader, reader.cursor

    def block(self, label: str | None) -> Block:
        """Parses [DECLARE …] BEGIN … END [label]."""
        reader, cursor = self.reader, self._cursor
        reader.frames.append(Frame(label))
        declared = declarations(reader)
        if not cursor.accept_word("begin"):
            raise cursor.error()
        reader.deeper(1)
        body = self._statements("end", "exception")
        handlers: list[Handler] = []
        if cursor.accept_word("exception"):
            reader.frames.append(Frame(None, variables=dict.fromkeys(ERROR_VARIABLES, True)))
            while cursor.accept_word("when"):
                conditions = [condition(reader)]
                while cursor.accept_word("or"):
                    conditions.append(condition(reader))
                cursor.expect_word("then")
                handlers.append(Handler(tuple(conditions), self._statements("end", "when")))
            if not handlers:
                raise cursor.error()
            reader.frames.pop()
        cursor.expect_word("end")
        reader.deeper(-1)
        reader.frames.pop()
        reader.end_label(label)
        return Block(declared, body, tuple(handlers), label)

    def _statements(self, *ends: str) -> tuple[Node, ...]:
        """Parses statements up to one of these words."""
        nodes: list[Node] = []
        while not any(map(self._cursor.at_word, ends)):
            if (node := self._statement()) is not None:
                nodes.append(node)
        return tuple(nodes)

    def _statement(self) -> Node | None:
        """Parses a statement and its semicolon. Returns None for NULL."""
        cursor, line, token = self._cursor, self.reader.line(), self._cursor.token
        if token.kind == "end" or cursor.at(";"):
            raise cursor.error()
        label = self.reader.label()
        if cursor.at_word("begin") or cursor.at_word("declare"):
            block = self.block(label)
            cursor.expect(";")
            return block
        if any(map(cursor.at_word, LOOPS)):
            return loop(self.reader, label, line, lambda: self._statements("end"))
        if label is not None:
            raise cursor.error()
        if self._at_assignment():
            return self._assignment(line)
        if token.kind == "word" and token.value in REFUSED:
            raise refused(token.value.upper(), token)
        return self._simple(line)

    def _simple(self, line: int) -> Node | None:
        """Parses a statement that begins with one of the words of PL/pgSQL, or one of SQL."""
        cursor, reader = self._cursor, self.reader
        if cursor.at_word("exit") or cursor.at_word("continue"):
            return exit_statement(reader, line)
        match cursor.any_word("null", "if", "case", "perform", "execute", "raise", "assert", "get", "return"):
            case "null":
                cursor.expect(";")
                return None
            case "if":
                return self._if(line)
            case "case":
                return self._case(line)
            case "perform":
                position = cursor.position
                query = f"SELECT {reader.text_to(';')}"
                reader.check(query, position - len("SELECT "))
                return Perform(query, line)
            case "execute":
                return self._dynamic(line)
            case "raise":
                return raise_statement(reader, line)
            case "assert":
                truth, message = reader.expression(",", ";", consume=False), None
                if cursor.accept(","):
                    message = reader.expression(";", consume=False)
                cursor.expect(";")
                return Assert(truth, message, line)
            case "get":
                return self._diagnostics(line)
            case "return":
                return self._return(line)
        return self._sql(line)

    # --- assignments ---------------------------------------------------------------------------------------------------------------

    def _at_assignment(self) -> bool:
        """Returns whether a name and := or = follow."""
        cursor, ahead = self._cursor, 1
        if cursor.token.kind not in ("word", "quoted"):
            return False
        while cursor.at(".", ahead):
            ahead += 2
        return any(cursor.at(sign, ahead) for sign in (":=", "=", "["))

    def _assignment(self, line: int) -> Assign:
        cursor, start = self._cursor, self._cursor.token
        target = self.reader.reference()
        if cursor.at("["):
            raise refused("assignment to an element of an array", start)
        cursor.advance()
        expression = self.reader.expression(";", consume=False)
        text = cursor.since(start.position)
        cursor.expect(";")
        return Assign(target, expression, text, line)

    def _diagnostics(self, line: int) -> Diagnostics:
        """Parses [CURRENT | STACKED] DIAGNOSTICS variable = item, …"""
        cursor, reader = self._cursor, self.reader
        stacked = cursor.any_word("stacked", "current") == "stacked"
        known = DIAGNOSTICS if stacked else ("row_count",)
        cursor.expect_word("diagnostics")
        targets: list[Reference] = []
        items: list[str] = []
        while not targets or cursor.accept(","):
            targets.append(reader.reference())
            if not cursor.accept(":="):
                cursor.expect("=")
            item = cursor.token
            if cursor.any_word(*known) is None:
                if item.kind == "word" and item.value == "pg_context":
                    raise refused("PG_CONTEXT", item)
                raise cursor.error(item, "unrecognized GET DIAGNOSTICS item")
            items.append(item.value)
        cursor.expect(";")
        return Diagnostics(tuple(targets), tuple(items), stacked, line)

    # --- statements of SQL ---------------------------------------------------------------------------------------------------------

    def _sql(self, line: int) -> Sql:
        cursor, start = self._cursor, self._cursor.token
        if start.kind == "word" and start.value in TRANSACTIONS:
            raise FeatureNotSupported("unsupported transaction command in PL/pgSQL", position=start.position)
        into, spaces = None, (start.position, start.position)
        while not cursor.at(";"):
            token = cursor.token
            if token.kind == "end":
                raise cursor.error()
            cursor.advance()
            if token.kind == "word" and token.value == "into" and self._before(2) not in ("insert", "merge"):
                if into is not None:
                    raise cursor.error(token, "INTO specified more than once")
                into = self.reader.into()
                spaces = token.position, cursor.position
        end = cursor.tokens[cursor.index - 1].end
        text = cursor.text[start.position : spaces[0]] + " " * (spaces[1] - spaces[0]) + cursor.text[spaces[1] : end]
        text = text.rstrip()
        cursor.advance()
        self.reader.check(text, start.position)
        return Sql(text, into, line)

    def _before(self, steps: int) -> str:
        token = self._cursor.tokens[max(self._cursor.index - steps, 0)]
        return token.value if token.kind == "word" else ""

    def _dynamic(self, line: int) -> Dynamic:
        cursor, into, using = self._cursor, None, tuple[str, ...]()
        expression = self.reader.expression("into", "using", ";", consume=False)
        while not cursor.accept(";"):
            if into is None and cursor.accept_word("into"):
                into = self.reader.into()
            elif not using and cursor.accept_word("using"):
                using = self.reader.expressions("into", ";")
            else:
                raise cursor.error()
        return Dynamic(expression, into, using, line)

    def _return(self, line: int) -> Return:
        token = self._cursor.token
        if self._cursor.at_word("next") or self._cursor.at_word("query"):
            message = f"cannot use RETURN {token.value.upper()} in a non-SETOF function"
            raise DatatypeMismatch(message, position=token.position)
        if not self._cursor.accept(";"):
            raise DatatypeMismatch("RETURN cannot have a parameter in function returning void", position=token.position)
        return Return(line)

    # --- conditions ----------------------------------------------------------------------------------------------------------------

    def _if(self, line: int) -> If:
        self.reader.deeper(1)
        branches: list[Branch] = []
        otherwise: tuple[Node, ...] = ()
        while True:
            truth = self.reader.expression("then")
            branches.append(Branch(truth, self._statements("elsif", "elseif", "else", "end")))
            if self._cursor.any_word("elsif", "elseif") is None:
                break
        if self._cursor.accept_word("else"):
            otherwise = self._statements("end")
        self._end("if")
        return If(tuple(branches), otherwise, line)

    def _case(self, line: int) -> Case:
        """Parses CASE [expression] WHEN …. With an expression, the conditions compare the variable that has its value."""
        cursor, reader = self._cursor, self.reader
        reader.deeper(1)
        subject = None if cursor.at_word("when") else reader.expression("when", consume=False)
        branches: list[Branch] = []
        while cursor.accept_word("when"):
            if subject is None:
                truth = reader.expression("then")
            else:
                prefix, at = f'"{SUBJECT}" IN (', cursor.position
                truth = f"{prefix}{reader.text_to('then')})"
                reader.check(f"SELECT {truth}", at - len(f"SELECT {prefix}"), query=True)
            branches.append(Branch(truth, self._statements("when", "else", "end")))
        if not branches:
            raise cursor.error()
        otherwise = self._statements("end") if cursor.accept_word("else") else None
        self._end("case")
        return Case(subject, tuple(branches), otherwise, line)

    def _end(self, word: str) -> None:
        self._cursor.expect_word("end", word)
        self._cursor.expect(";")
        self.reader.deeper(-1)
