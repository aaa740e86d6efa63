"""Parses the text of DO: a block of PL/pgSQL.

Statements of SQL, PERFORM, EXECUTE, RAISE, IF, NULL and blocks with EXCEPTION are supported. Variables, loops and what needs them are
refused by name. Source: PostgreSQL 15, chapter "PL/pgSQL"; pl_gram.y for the wording of errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from tailgate.lake.errors import FeatureNotSupported, StatementTooComplex, SyntaxError_, TailgateError, UndefinedObject
from tailgate.sql.lexer.tokens import Cursor, Token
from tailgate.sql.plpgsql.conditions import OTHERS, SQLSTATES
from tailgate.sql.plpgsql.nodes import Block, Branch, Dynamic, Handler, If, Level, Node, Perform, Raise, Sql

Check = Callable[[str], object]  # parses a statement of SQL; raises 42601 with a position in it

NESTING_MAX = 100  # of blocks and IF
REFUSED = frozenset("assert call case close continue declare do exit for foreach get loop move open return while".split())
TRANSACTIONS = frozenset("abort begin commit end release rollback savepoint start".split())
LEVELS: dict[str, Level] = {level.lower(): level for level in get_args(Level)}


def parse_block(text: str, check: Check) -> Block:
    """Returns the block of a text. `check` parses its statements of SQL."""
    return _Parser(text, check).whole()


class _Parser:
    def __init__(self, text: str, check: Check) -> None:
        self._cursor, self._check = Cursor(text), check
        self._depth = 0
        self._counted, self._lines = 0, 1

    def whole(self) -> Block:
        if self._cursor.at_word("declare"):
            raise _refused("DECLARE", self._cursor.token)
        block = self._block()
        self._cursor.accept(";")
        self._cursor.finish()
        return block

    def _block(self) -> Block:
        if not self._cursor.accept_word("begin"):
            raise self._cursor.error()
        self._deeper(1)
        body = self._statements("end", "exception")
        handlers: list[Handler] = []
        if self._cursor.accept_word("exception"):
            while self._cursor.accept_word("when"):
                conditions = [self._condition()]
                while self._cursor.accept_word("or"):
                    conditions.append(self._condition())
                self._cursor.expect_word("then")
                handlers.append(Handler(tuple(conditions), self._statements("end", "when")))
            if not handlers:
                raise self._cursor.error()
        self._cursor.expect_word("end")
        self._deeper(-1)
        return Block(body, tuple(handlers))

    def _condition(self) -> str:
        """Parses the name of an error, SQLSTATE 'xxxxx', or OTHERS."""
        if self._cursor.accept_word("sqlstate"):
            sqlstate = self._cursor.string()
            if len(sqlstate) != 5 or not sqlstate.isalnum() or sqlstate != sqlstate.upper():
                raise SyntaxError_("invalid SQLSTATE code", position=self._cursor.tokens[self._cursor.index - 1].position)
            return sqlstate
        token = self._cursor.advance()
        if token.kind not in ("word", "quoted"):
            raise self._cursor.error(token)
        if token.value != OTHERS and token.value not in SQLSTATES:
            raise UndefinedObject(f'unrecognized exception condition "{token.value}"')
        return SQLSTATES.get(token.value, OTHERS)

    def _statements(self, *ends: str) -> tuple[Node, ...]:
        """Parses statements up to one of these words."""
        nodes: list[Node] = []
        while not any(map(self._cursor.at_word, ends)):
            if (node := self._statement()) is not None:
                nodes.append(node)
        return tuple(nodes)

    def _statement(self) -> Node | None:
        """Parses a statement and its semicolon. Returns None for NULL."""
        cursor, line, token = self._cursor, self._line(), self._cursor.token
        if token.kind == "end" or cursor.at(";"):
            raise cursor.error()
        if cursor.at_word("begin"):
            block = self._block()
            cursor.expect(";")
            return block
        if cursor.at("<<"):
            raise _refused("a label", token)
        if token.kind == "word" and token.value in REFUSED:
            raise _refused(token.value.upper(), token)
        if any(cursor.at(sign, 1) for sign in (":=", "=")):
            raise _refused("a variable", token)
        match cursor.any_word("null", "if", "perform", "execute", "raise"):
            case "null":
                cursor.expect(";")
                return None
            case "if":
                return self._if(line)
            case "perform":
                position = cursor.position
                query = f"SELECT {self._text_to(';')}"
                self._checked(query, position - len("SELECT "))
                return Perform(query, line)
            case "execute":
                return Dynamic(self._expression(";", refused=("into", "using")), line)
            case "raise":
                return self._raise(line)
            case _:
                return self._sql(line)

    def _sql(self, line: int) -> Sql:
        token = self._cursor.token
        if token.kind == "word" and token.value in TRANSACTIONS:
            raise FeatureNotSupported("unsupported transaction command in PL/pgSQL", position=token.position)
        text = self._text_to(";")
        self._checked(text, token.position)
        return Sql(text, line)

    def _if(self, line: int) -> If:
        self._deeper(1)
        branches: list[Branch] = []
        otherwise: tuple[Node, ...] = ()
        while True:
            condition = self._expression("then")
            branches.append(Branch(condition, self._statements("elsif", "elseif", "else", "end")))
            if self._cursor.any_word("elsif", "elseif") is None:
                break
        if self._cursor.accept_word("else"):
            otherwise = self._statements("end")
        self._cursor.expect_word("end", "if")
        self._cursor.expect(";")
        self._deeper(-1)
        return If(tuple(branches), otherwise, line)

    def _raise(self, line: int) -> Raise:
        cursor = self._cursor
        if cursor.accept(";"):
            return Raise("EXCEPTION", None, (), line)
        level = LEVELS[cursor.any_word(*LEVELS) or "exception"]
        if cursor.token.kind != "string":
            raise _refused("RAISE without a format", cursor.token)
        format = cursor.advance()
        arguments: list[str] = []
        while cursor.accept(","):
            arguments.append(self._expression(",", ";", refused=("using",), consume=False))
        if cursor.at_word("using"):
            raise _refused("USING", cursor.token)
        cursor.expect(";")
        places = format.value.replace("%%", "").count("%")
        if places != len(arguments):
            raise SyntaxError_(f"too {'many' if places < len(arguments) else 'few'} parameters specified for RAISE")
        return Raise(level, format.value, tuple(arguments), line)

    def _expression(self, *ends: str, refused: tuple[str, ...] = (), consume: bool = True) -> str:
        """Returns the text of an expression, up to one of these words or signs."""
        start = self._cursor.token
        text = self._text_to(*ends, refused=refused, consume=consume)
        self._checked(f"SELECT ({text})", start.position - len("SELECT ("))
        return text

    def _text_to(self, *ends: str, refused: tuple[str, ...] = (), consume: bool = True) -> str:
        """Returns the text up to one of these words or signs outside of parentheses, and skips it if `consume`."""
        cursor, start, depth = self._cursor, self._cursor.token, 0
        while depth or not any(cursor.at(end) or cursor.at_word(end) for end in ends):
            token = cursor.token
            if token.kind == "end" or (cursor.at(";") and not depth):
                raise cursor.error()
            if token.kind == "word" and token.value in refused and not depth:
                raise _refused(token.value.upper(), token)
            depth += (cursor.at("(") or cursor.at("[")) - (cursor.at(")") or cursor.at("]"))
            cursor.advance()
        if cursor.token is start:
            raise SyntaxError_("missing expression", position=start.position)
        text = cursor.text[start.position : cursor.tokens[cursor.index - 1].end]
        if consume:
            cursor.advance()
        return text

    def _checked(self, text: str, position: int) -> None:
        """Parses a statement of SQL that begins at a position of the block."""
        try:
            self._check(text)
        except TailgateError as error:
            if error.position is not None:
                error.position += position
            raise

    def _deeper(self, step: int) -> None:
        self._depth += step
        if self._depth > NESTING_MAX:
            hint = f"A block of PL/pgSQL can have {NESTING_MAX} levels."
            raise StatementTooComplex("stack depth limit exceeded", hint=hint, position=self._cursor.position)

    def _line(self) -> int:
        """Returns the line of the token at the cursor, which is not before that of the last call."""
        self._lines += self._cursor.text.count("\n", self._counted, self._cursor.position)
        self._counted = self._cursor.position
        return self._lines


def _refused(what: str, token: Token) -> TailgateError:
    return FeatureNotSupported(f"{what} in DO is not supported", position=token.position)
