"""A parser of `.proto` files. Options, services, extensions and comments are skipped.

Source: Protocol Buffers, "Protocol Buffers Language Specification (Proto2 Syntax)", "(Proto3)".
"""

from __future__ import annotations

import re
from dataclasses import replace

from tailgate.formats.protobuf.schema import GROUP, MESSAGE, NESTING_MAX, SCALARS, Enum, Field, File, Message, check_syntax
from tailgate.lake.errors import InvalidParameterValue, TailgateError

NUMBER_MAX = (1 << 29) - 1  # the largest field number

TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
      | (?P<string>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
      | (?P<word>[A-Za-z_.][A-Za-z0-9_.]*) | (?P<number>[0-9][A-Za-z0-9_.]*(?:(?<=[eE])[+-][0-9]+)?) | (?P<sign>[^\s])""",
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def parsed(text: str) -> File:
    """Parses a `.proto` file. Raises 22023, with the line, for a syntax error."""
    return _Text(text).file()


class _Text:
    """A recursive-descent parser of one file's text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str | None, str, int]] = [(m.lastgroup, m.group(), m.start()) for m in TOKEN.finditer(text) if m.lastgroup]
        self._tokens.append((None, "", len(text)))
        self._at = 0
        self._syntax = "proto2"
        self._package = ""

    def file(self) -> File:
        messages: list[Message] = []
        enums: list[Enum] = []
        imports: list[str] = []
        while self._next:
            match self._take():
                case "syntax" | "edition" as word:
                    self._expect("=")
                    syntax = self._string()
                    self._syntax = syntax if word == "syntax" else "editions"
                    check_syntax(self._syntax)
                    self._expect(";")
                case "package":
                    self._package = self._take()
                    self._expect(";")
                case "import":
                    if self._next in ("public", "weak"):
                        self._take()
                    imports.append(self._string())
                    self._expect(";")
                case "message":
                    messages.append(self._message(self._package, 0))
                case "enum":
                    enums.append(self._enum(self._package))
                case "option":
                    self._pass_statement()
                case "service" | "extend":
                    self._take()
                    self._pass_block()
                case ";":
                    pass
                case _:
                    raise self._wrong(-1)
        return File(tuple(messages), tuple(enums), tuple(imports))

    def _message(self, around: str, depth: int, name: str = "") -> Message:
        """Parses a message after the word `message`, or a group after its number; then `name` is the group's name."""
        if depth > NESTING_MAX:
            raise self._wrong()
        full = f"{around}.{name or self._word()}".lstrip(".")
        fields: list[Field] = []
        nested: list[Message] = []
        enums: list[Enum] = []
        self._expect("{")
        while not self._accept("}"):
            match self._next:
                case "message":
                    self._take()
                    nested.append(self._message(full, depth + 1))
                case "enum":
                    self._take()
                    enums.append(self._enum(full))
                case "option" | "reserved" | "extensions":
                    self._pass_statement()
                case "extend":
                    self._take(2)
                    self._pass_block()
                case "oneof":
                    self._take()
                    self._oneof(self._word(), full, fields, nested, depth)
                case ";":
                    self._take()
                case _:
                    self._field(full, fields, nested, depth)
        numbers = [f.number for f in fields]
        if len(set(numbers)) != len(numbers):
            raise InvalidParameterValue(f"the Protobuf schema has a number twice in message {full}")
        return Message(full, tuple(fields), tuple(nested), tuple(enums))

    def _oneof(self, name: str, around: str, fields: list[Field], nested: list[Message], depth: int) -> None:
        self._expect("{")
        while not self._accept("}"):
            if self._next == "option":
                self._pass_statement()
            else:
                self._field(around, fields, nested, depth, oneof=name)

    def _field(self, around: str, fields: list[Field], nested: list[Message], depth: int, oneof: str = "") -> None:
        label = self._take() if self._next in ("optional", "required", "repeated") else ""
        type = self._take()
        repeated = label == "repeated"
        presence = not repeated and (self._syntax == "proto2" or bool(label) or bool(oneof))
        if type == "map" and self._accept("<"):
            key = self._take()
            self._expect(",")
            value = self._take()
            self._expect(">")
            name = self._word()
            entry = f"{around}.{''.join(p.capitalize() for p in name.split('_'))}Entry"
            nested.append(Message(entry, (_typed(1, "key", key), _typed(2, "value", value)), is_entry=True))
            fields.append(Field(self._number(), name, MESSAGE, f".{entry}", repeated=True))
        elif type == "group":
            name = self._word()
            number = self._number(end="")
            nested.append(self._message(around, depth + 1, name))
            fields.append(
                Field(number, name.lower(), GROUP, f".{around}.{name}".replace("..", "."), repeated, label == "required", presence)
            )
            return
        else:
            field = replace(_typed(0, self._word(), type), repeated=repeated, required=label == "required", presence=presence, oneof=oneof)
            number = self._number(end="")
            default = self._options() if self._accept("[") else None
            self._expect(";")
            fields.append(replace(field, number=number, default=default))

    def _number(self, end: str = ";") -> int:
        """Parses `= n`, and with `end` also the options and the end of the statement."""
        self._expect("=")
        number = self._integer()
        if not 0 < number <= NUMBER_MAX:
            raise self._wrong(-1)
        if end:
            if self._accept("["):
                self._options()
            self._expect(end)
        return number

    def _enum(self, around: str) -> Enum:
        name = f"{around}.{self._word()}".lstrip(".")
        values: list[tuple[str, int]] = []
        self._expect("{")
        while not self._accept("}"):
            if self._next in ("option", "reserved"):
                self._pass_statement()
            elif not self._accept(";"):
                value = self._word()
                self._expect("=")
                values.append((value, self._integer()))
                if self._accept("["):
                    self._options()
                self._expect(";")
        return Enum(name, tuple(values))

    def _options(self) -> str | None:
        """Parses options after `[` up to `]`. Returns the default value, or None if there is none."""
        default = None
        while not self._accept("]"):
            if self._next == "default" and self._tokens[self._at + 1][1] == "=":
                self._take(2)
                sign = "-" if self._accept("-") else ""
                default = sign + (self._string() if self._tokens[self._at][0] == "string" else self._take())
            else:
                self._pass_one()
        return default

    # ---- tokens

    @property
    def _next(self) -> str:
        return self._tokens[self._at][1]

    def _take(self, count: int = 1) -> str:
        token = ""
        for _ in range(count):
            token = self._next
            if not token:
                raise self._wrong()
            self._at += 1
        return token

    def _accept(self, sign: str) -> bool:
        if self._next != sign:
            return False
        self._at += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._wrong()

    def _word(self) -> str:
        if self._tokens[self._at][0] != "word":
            raise self._wrong()
        return self._take()

    def _integer(self) -> int:
        sign = -1 if self._accept("-") else 1
        try:
            digits = self._take()
            return sign * int(digits, 8 if digits.startswith("0") and digits.isdecimal() and len(digits) > 1 else 0)
        except ValueError:
            raise self._wrong(-1) from None

    def _string(self) -> str:
        """Parses a string, or several adjacent ones."""
        out = ""
        while self._tokens[self._at][0] == "string":
            out += ESCAPE.sub(_unescaped, self._take()[1:-1])
        if not out and self._tokens[self._at - 1][0] != "string":
            raise self._wrong()
        return out

    def _pass_one(self) -> None:
        """Skips a token, or a group in braces or brackets."""
        if self._accept("{"):
            while not self._accept("}"):
                self._pass_one()
        elif self._accept("["):
            while not self._accept("]"):
                self._pass_one()
        else:
            self._take()

    def _pass_statement(self) -> None:
        while not self._accept(";"):
            self._pass_one()

    def _pass_block(self) -> None:
        while self._next != "{":
            self._take()
        self._pass_one()

    def _wrong(self, back: int = 0) -> TailgateError:
        _, token, at = self._tokens[self._at + back]
        line = self._text.count("\n", 0, at) + 1
        return InvalidParameterValue(
            f"the Protobuf schema is not understood at line {line}: " + (f'"{token}"' if token else "it ends there")
        )


def _typed(number: int, name: str, type: str) -> Field:
    return Field(number, name, type) if type in SCALARS else Field(number, name, MESSAGE, type)


def _unescaped(m: re.Match[str]) -> str:
    code = m.group(1)
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code[0] in "01234567" else ESCAPED.get(code, code)
