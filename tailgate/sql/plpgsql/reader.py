"""Reads the parts of statements of PL/pgSQL: expressions, names of variables, labels.

    code ──► Reader: a cursor and the names that are visible at it ──► declarations, raises, loops, parser ──► nodes

Source: PostgreSQL 15, pl_gram.y, pl_funcs.c (plpgsql_ns_lookup).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tailgate.lake.errors import ErrorInAssignment, FeatureNotSupported, StatementTooComplex, SyntaxError_, TailgateError
from tailgate.sql.lexer.tokens import Cursor, Token
from tailgate.sql.plpgsql.nodes import Into, Reference

Check = Callable[[str], bool]  # parses a statement of SQL, returns whether it is a query; raises 42601 with a position in it

NESTING_MAX = 100  # of blocks, IF, CASE and loops


@dataclass(slots=True)
class Frame:
    """A block or loop around the cursor. `variables`: its own, and whether each is constant."""

    label: str | None
    is_loop: bool = False
    variables: dict[str, bool] = field(default_factory=dict)


class Reader:
    """A cursor in the text of a block. `frames`: the statements around it, the innermost last. The first one has the variable FOUND."""

    def __init__(self, text: str, check: Check) -> None:
        self.cursor, self._check = Cursor(text), check
        self.frames = [Frame(None, variables={"found": False})]
        self._depth = 0
        self._counted, self._lines = 0, 1

    def line(self) -> int:
        """Returns the line of the token at the cursor, which is not before that of the last call."""
        self._lines += self.cursor.text.count("\n", self._counted, self.cursor.position)
        self._counted = self.cursor.position
        return self._lines

    def deeper(self, step: int) -> None:
        """Counts the levels of nested statements. Raises 54001."""
        self._depth += step
        if self._depth > NESTING_MAX:
            hint = f"A block of PL/pgSQL can have {NESTING_MAX} levels."
            raise StatementTooComplex("stack depth limit exceeded", hint=hint, position=self.cursor.position)

    # --- texts ---------------------------------------------------------------------------------------------------------------------

    def expression(self, *ends: str, consume: bool = True) -> str:
        """Returns the text of an expression, up to one of these words or signs."""
        start = self.cursor.token
        text = self.text_to(*ends, consume=consume)
        self.check(f"SELECT {text}", start.position - len("SELECT "), query=True)
        return text

    def expressions(self, *ends: str) -> tuple[str, ...]:
        """Returns the texts of expression, … up to one of these words or signs, which it does not skip."""
        return tuple(self.cursor.listed(lambda _: self.expression(",", *ends, consume=False)))

    def text_to(self, *ends: str, consume: bool = True) -> str:
        """Returns the text up to one of these words or signs outside of parentheses, and skips it if `consume`."""
        cursor, start, depth = self.cursor, self.cursor.token, 0
        while depth or not any(cursor.at(end) or cursor.at_word(end) for end in ends):
            if cursor.token.kind == "end" or (cursor.at(";") and not depth):
                raise cursor.error()
            depth += (cursor.at("(") or cursor.at("[")) - (cursor.at(")") or cursor.at("]"))
            cursor.advance()
        if cursor.token is start:
            raise cursor.error(message="missing expression")
        text = cursor.since(start.position)
        if consume:
            cursor.advance()
        return text

    def check(self, text: str, position: int, *, query: bool = False) -> None:
        """Parses a statement of SQL that begins at a position of the block. `query`: raises 42601 unless it is a query."""
        try:
            is_query = self._check(text)
        except TailgateError as error:
            if error.position is not None:
                error.position += position
            raise
        if query and not is_query:
            raise self.cursor.error()

    # --- names ---------------------------------------------------------------------------------------------------------------------

    def label(self) -> str | None:
        """Parses <<label>>, if there is one."""
        if not self.cursor.accept("<<"):
            return None
        label = self.word()
        self.cursor.expect(">>")
        return label

    def end_label(self, label: str | None) -> None:
        """Parses the label after END, if there is one, which is the same. Raises 42601."""
        if self.cursor.at(";") or self.cursor.finished:
            return
        at = self.cursor.position
        name = self.word()
        if label is None:
            raise SyntaxError_(f'end label "{name}" specified for unlabeled block', position=at)
        if name != label:
            raise SyntaxError_(f'end label "{name}" differs from block\'s label "{label}"', position=at)

    def word(self) -> str:
        """Parses a name."""
        token = self.cursor.advance()
        if token.kind not in ("word", "quoted"):
            raise self.cursor.error(token)
        return token.value

    def name(self) -> Reference:
        """Parses the name of a variable, which may not exist."""
        parts = [self.word()]
        while self.cursor.accept("."):
            parts.append(self.word())
        return tuple(parts)

    def reference(self) -> Reference:
        """Parses the name of a variable that can be assigned to. Raises 42601, 22005."""
        start, name = self.cursor.token, self.name()
        self.assignable(name, start)
        return name

    def assignable(self, parts: Reference, token: Token) -> None:
        """Raises 42601 for a name that is not a variable, and 22005 for a constant."""
        is_constant = self._constant(parts)
        if is_constant is None:
            raise SyntaxError_(f'"{".".join(parts)}" is not a known variable', position=token.position)
        if is_constant:
            raise ErrorInAssignment(f'variable "{parts[-1]}" is declared CONSTANT', position=token.position)

    def _constant(self, parts: Reference) -> bool | None:
        """Returns whether a variable is constant; None if there is none with this name."""
        for frame in reversed(self.frames):
            name, fields = parts[0], len(parts) - 1
            if name not in frame.variables and name == frame.label and fields:
                name, fields = parts[1], fields - 1
            if name in frame.variables and fields < 2:
                return frame.variables[name]
        return None

    def into(self) -> Into:
        """Parses [STRICT] variable, … of INTO."""
        strict = self.cursor.accept_word("strict")
        return Into(tuple(self.cursor.listed(lambda _: self.reference())), strict)


def refused(what: str, token: Token) -> TailgateError:
    return FeatureNotSupported(f"{what} in DO is not supported", position=token.position)
