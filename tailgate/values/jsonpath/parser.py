"""Parses the text of a jsonpath.

Source: PostgreSQL 15, src/backend/utils/adt/jsonpath_gram.y.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from tailgate.lake.errors import FeatureNotSupported, InvalidTextRepresentation, NumericValueOutOfRange, StatementTooComplex, SyntaxError_
from tailgate.values.jsonpath.lexer import Token, syntax_error, tokens
from tailgate.values.jsonpath.nodes import Node, Path, is_predicate
from tailgate.values.numbers import numerics

COMPARISONS = ("==", "!=", "<>", "<", ">", "<=", ">=")
METHODS = ("abs", "size", "type", "floor", "double", "ceiling", "keyvalue", "datetime")
FLAGS = "isxmq"
LEVEL_MAX = 2**31 - 1
LEVEL_DIGITS = len(str(LEVEL_MAX))
DEPTH_MAX = 200  # of parentheses, subscripts and filters


def parse(text: str) -> Path:
    """Returns the path of a text. Raises 42601 and other errors of the input function."""
    return _Parser(tokens(text)).path()


class _Parser:
    def __init__(self, items: list[Token]) -> None:
        self.tokens = items
        self.at = 0
        self.depth = 0
        self.filters = self.subscripts = 0  # around the present token

    # --- tokens ----------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def _is(self, text: str, ahead: int = 0) -> bool:
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return token.kind in ("sign", "keyword") and token.text == text

    def _accept(self, text: str) -> bool:
        if not self._is(text):
            return False
        self.at += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise syntax_error(self.token.source)

    def _take(self, kind: str) -> str:
        if self.token.kind != kind:
            raise syntax_error(self.token.source)
        self.at += 1
        return self.tokens[self.at - 1].text

    # --- expressions -----------------------------------------------------------------------------

    def path(self) -> Path:
        if self.token.kind == "end":
            raise InvalidTextRepresentation('invalid input syntax for type jsonpath: ""')
        lax = not self._accept("strict")
        if lax:
            self._accept("lax")
        item = self._or()
        if self.token.kind != "end":
            raise syntax_error(self.token.source)
        return Path(lax, item)

    def _or(self) -> Node:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise StatementTooComplex("stack depth limit exceeded")
        node = self._and()
        while self._is("||"):
            self._condition(node)
            self.at += 1
            node = Node("or", "", (node, self._condition(self._and())))
        self.depth -= 1
        return node

    def _and(self) -> Node:
        node = self._not()
        while self._is("&&"):
            self._condition(node)
            self.at += 1
            node = Node("and", "", (node, self._condition(self._not())))
        return node

    def _condition(self, node: Node) -> Node:
        """Returns a predicate. Raises 42601 for another item, at the token behind it."""
        if not is_predicate(node):
            raise syntax_error(self.token.source)
        return node

    def _not(self) -> Node:
        if not self._accept("!"):
            return self._comparison()
        if self._is("exists"):
            return Node("not", "", (self._exists(),))
        self._expect("(")
        node = self._condition(self._or())
        self._expect(")")
        return Node("not", "", (node,))

    def _exists(self) -> Node:
        self._expect("exists")
        self._expect("(")
        node = self._sum()
        self._expect(")")
        return Node("exists", "", (node,))

    def _comparison(self) -> Node:
        if self._is("exists"):
            return self._exists()
        left = self._sum()
        if self.token.kind == "sign" and self.token.text in COMPARISONS and not is_predicate(left):
            sign = self._take("sign")
            return Node("compare", "!=" if sign == "<>" else sign, (left, self._sum()))
        if self._is("starts") and not is_predicate(left):
            self.at += 1
            self._expect("with")
            kind = self.token.kind
            if kind not in ("string", "variable"):
                raise syntax_error(self.token.source)
            return Node("starts", "", (left, Node(kind, self._take(kind))))
        if self._is("like_regex") and not is_predicate(left):
            self.at += 1
            pattern = Node("string", self._take("string"))
            flags = self._take("string") if self._accept("flag") else ""
            return Node("regex", _flags(flags), (left, pattern))
        return left

    def _sum(self) -> Node:
        node = self._product()
        while self._is("+") or self._is("-"):
            node = self._operation(node, self._product)
        return node

    def _product(self) -> Node:
        node = self._unary()
        while self._is("*") or self._is("/") or self._is("%"):
            node = self._operation(node, self._unary)
        return node

    def _operation(self, left: Node, operand: Callable[[], Node]) -> Node:
        if is_predicate(left):
            raise syntax_error(self.token.source)
        sign = self._take("sign")
        right = operand()
        if is_predicate(right):
            raise syntax_error(self.token.source)
        return Node("arithmetic", sign, (left, right))

    def _unary(self) -> Node:
        for sign in "+-":
            if self._accept(sign):
                operand = self._unary()
                if operand.kind == "number":
                    return operand if sign == "+" else Node("number", _negative(operand.text))
                return Node("arithmetic", sign, (operand,))
        return self._accessors()

    # --- items and accessors ---------------------------------------------------------------------

    def _accessors(self) -> Node:
        base = self._primary()
        items: list[Node] = []
        while (accessor := self._accessor()) is not None:
            items.append(accessor)
        return Node("path", "", (base, *items)) if items else base

    def _primary(self) -> Node:
        token = self.token
        if token.kind in ("string", "variable"):
            self.at += 1
            return Node(token.kind, token.text)
        if token.kind == "number":
            self.at += 1
            return Node("number", f"{numerics.general(token.text):f}")
        for word in ("null", "true", "false"):
            if self._accept(word):
                return Node(word)
        if self._accept("$"):
            return Node("root")
        if self._is("@"):
            if not self.filters:
                raise SyntaxError_("@ is not allowed in root expressions")
            self.at += 1
            return Node("current")
        if self._is("last"):
            if not self.subscripts:
                raise SyntaxError_("LAST is allowed only in array subscripts")
            self.at += 1
            return Node("last")
        if self._accept("("):
            node = self._or()
            self._expect(")")
            if is_predicate(node) and self._accept("is"):
                self._expect("unknown")
                return Node("unknown", "", (node,))
            return node
        raise syntax_error(token.source)

    def _accessor(self) -> Node | None:
        if self._accept("?"):
            self._expect("(")
            self.filters += 1
            node = self._condition(self._or())
            self.filters -= 1
            self._expect(")")
            return Node("filter", "", (node,))
        if self._accept("["):
            return self._subscripts()
        if not self._accept("."):
            return None
        if self._accept("**"):
            return self._levels()
        if self._accept("*"):
            return Node("any_key")
        token = self.token
        if token.kind not in ("word", "keyword", "string"):
            raise syntax_error(token.source)
        self.at += 1
        if token.kind == "keyword" and self._is("(") and token.text in METHODS:
            self.at += 1
            if token.text == "datetime" and self.token.kind == "string":
                hint = "Without one, it reads dates and times in ISO forms."
                raise FeatureNotSupported("a template of the jsonpath item method .datetime() is not supported", hint=hint)
            self._expect(")")
            return Node("method", token.text)
        return Node("key", token.name or token.text)

    def _subscripts(self) -> Node:
        if self._accept("*"):
            self._expect("]")
            return Node("all_elements")
        self.subscripts += 1
        items = []
        while True:
            first = self._sum()
            items.append(Node("range", "", (first, self._sum())) if self._accept("to") else Node("one", "", (first,)))
            if not self._accept(","):
                break
        self.subscripts -= 1
        self._expect("]")
        return Node("subscripts", "", tuple(items))

    def _levels(self) -> Node:
        if not self._accept("{"):
            return Node("any_level", "0 -1")
        first = last = self._level()
        if self._accept("to"):
            last = self._level()
        self._expect("}")
        return Node("any_level", f"{first} {last}")

    def _level(self) -> int:
        if self._accept("last"):
            return -1
        source = self.token.source
        text = self._take("number")
        if not text.isdigit():
            raise syntax_error(source)
        if len(text) > LEVEL_DIGITS or int(text) > LEVEL_MAX:
            raise NumericValueOutOfRange(f'value "{text}" is out of range for type integer')
        return int(text)


def _negative(number: str) -> str:
    value = -Decimal(number)
    return f"{value:f}" if value else number


def _flags(text: str) -> str:
    """Returns the flags of LIKE_REGEX without duplicates, in PostgreSQL's order."""
    for flag in text:
        if flag not in FLAGS:
            message = f'Unrecognized flag character "{flag}" in LIKE_REGEX predicate.'
            raise SyntaxError_("invalid input syntax for type jsonpath", detail=message)
    if "x" in text and "q" not in text:
        raise FeatureNotSupported('XQuery "x" flag (expanded regular expressions) is not implemented')
    return "".join(flag for flag in "ismxq" if flag in text)
