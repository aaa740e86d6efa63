"""Parses function calls, also those of functions with key words between their arguments.

The latter become plain calls, as in PostgreSQL: TRIM(LEADING 'x' FROM y) is ltrim(y, 'x').
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tailgate.sql.grammar.names import label, name, place
from tailgate.sql.grammar.parentheses import order_by
from tailgate.sql.grammar.rules import Rules
from tailgate.sql.grammar.types import type_name
from tailgate.sql.lexer.tokens import Token

FORMS = ("nfc", "nfd", "nfkc", "nfkd")  # of Unicode
# functions that are called without parentheses
VALUES = frozenset(
    """
    current_date current_time current_timestamp localtime localtimestamp current_user current_role session_user user current_catalog
    current_schema
    """.split()
)
# those that may have a number of digits, and their types
CLOCKS = {"current_time": "timetz", "current_timestamp": "timestamptz", "localtime": "time", "localtimestamp": "timestamp"}


def call(cursor: Rules, function: exp.Identifier, schema: str | None = None, position: int | None = None) -> exp.Expr:
    """Parses ( [ALL | DISTINCT] arguments [ORDER BY …] ) [WITHIN GROUP …] [FILTER …] [OVER …]."""
    at = function.meta["position"] if position is None else position
    cursor.expect("(")
    arguments: list[exp.Expr] = []
    if cursor.accept("*"):
        arguments.append(exp.Star())
    elif not cursor.at(")"):
        distinct = cursor.accept_word("distinct")
        if not distinct:
            cursor.accept_word("all")
        arguments += cursor.listed(_argument)
        if distinct:
            arguments = [exp.Distinct(expressions=arguments)]
        if cursor.at_word("order"):
            arguments[-1] = exp.Order(this=arguments[-1], expressions=order_by(cursor))
    cursor.expect(")")
    node: exp.Expr = place(exp.Anonymous(this=function.name, expressions=arguments), at)
    if schema is not None:
        node.meta["schema"] = schema
    return _behind(cursor, node, at)


def _behind(cursor: Rules, node: exp.Expr, at: int) -> exp.Expr:
    """Parses [WITHIN GROUP …] [FILTER …] [OVER …] after the call `node`."""
    if cursor.accept_word("within", "group"):
        cursor.expect("(")
        order = exp.Order(expressions=order_by(cursor))
        cursor.expect(")")
        node = place(exp.WithinGroup(this=node, expression=order), at)
    if cursor.at_word("filter") and cursor.at("(", 1):
        cursor.advance()
        cursor.expect("(")
        cursor.expect_word("where")
        node = place(exp.Filter(this=node, expression=exp.Where(this=cursor.expression())), at)
        cursor.expect(")")
    if cursor.accept_word("over"):
        if cursor.at("("):
            window_node = window(cursor, node)
            window_node.meta["parentheses"] = True
            return place(window_node, at)
        return place(exp.Window(this=node, alias=name(cursor)), at)
    return node


def window(cursor: Rules, function: exp.Expr | None) -> exp.Window:
    """Parses ( [name] [PARTITION BY …] [ORDER BY …] [frame] )."""
    opening = cursor.expect("(")
    node = exp.Window(this=function or exp.Null())
    node.meta["definition"] = opening.position
    if cursor.token.kind in ("word", "quoted") and not any(cursor.at_word(w) for w in ("partition", "order", "rows", "range", "groups")):
        node.set("alias", name(cursor))
    if cursor.accept_word("partition"):
        cursor.expect_word("by")
        node.set("partition_by", cursor.expressions())
    if cursor.at_word("order"):
        node.set("order", exp.Order(expressions=order_by(cursor)))
    if kind := cursor.any_word("rows", "range", "groups"):
        between = cursor.accept_word("between")
        places = [cursor.position]
        start = _bound(cursor)
        end = None
        if between:
            cursor.expect_word("and")
            places.append(cursor.position)
            end = _bound(cursor)
        node.set(
            "spec", exp.WindowSpec(kind=kind.upper(), start=start[0], start_side=start[1], end=end and end[0], end_side=end and end[1])
        )
        node.args["spec"].meta.update(definition=opening.position, bounds=tuple(places))
        if cursor.accept_word("exclude"):
            node.args["spec"].meta["exclude"] = _excluded(cursor)
    cursor.expect(")")
    return node


def _excluded(cursor: Rules) -> str:
    for words in (("current", "row"), ("group",), ("ties",), ("no", "others")):
        if cursor.accept_word(*words):
            return " ".join(words)
    raise cursor.error()


def _bound(cursor: Rules) -> tuple[exp.Expr | str, str | None]:
    if cursor.accept_word("current", "row"):
        return "CURRENT ROW", None
    start: exp.Expr | str = "UNBOUNDED" if cursor.accept_word("unbounded") else cursor.expression()
    side = cursor.any_word("preceding", "following")
    if side is None:
        raise cursor.error()
    return start, side.upper()


def _argument(cursor: Rules) -> exp.Expr:
    at = cursor.position
    if cursor.accept_word("variadic"):
        array = _named_or_not(cursor)
        if cursor.at(","):
            raise cursor.error()
        return place(exp.Variadic(this=array), at)
    return _named_or_not(cursor)


def _named_or_not(cursor: Rules) -> exp.Expr:
    at = cursor.position
    if cursor.token.kind in ("word", "quoted") and (cursor.at(":=", 1) or cursor.at("=>", 1)):
        key = label(cursor)
        cursor.advance()
        return place(exp.Kwarg(this=key, expression=cursor.expression()), at)
    return cursor.expression()


def _named(function: str, token: Token, arguments: list[exp.Expr]) -> exp.Expr:
    return place(exp.Anonymous(this=function, expressions=arguments), token.position)


def _cast(cursor: Rules, token: Token) -> exp.Expr:
    cursor.expect("(")
    value = cursor.expression()
    cursor.expect_word("as")
    to = type_name(cursor)
    cursor.expect(")")
    return place(exp.Cast(this=value, to=to), token.position)


def _extract(cursor: Rules, token: Token) -> exp.Expr:
    cursor.expect("(")
    part = cursor.token
    if part.kind not in ("word", "string", "quoted"):
        raise cursor.error()
    cursor.advance()
    cursor.expect_word("from")
    value = cursor.expression()
    cursor.expect(")")
    return _named("extract", token, [place(exp.Literal.string(part.value), part.position), value])


def _position(cursor: Rules, token: Token) -> exp.Expr:
    cursor.expect("(")
    part = cursor.expression(boolean=False)
    cursor.expect_word("in")
    whole = cursor.expression(boolean=False)
    cursor.expect(")")
    return _named("position", token, [whole, part])


def _substring(cursor: Rules, token: Token) -> exp.Expr:
    cursor.expect("(")
    if cursor.accept(")"):
        return _named("substring", token, [])
    arguments = [cursor.expression()]
    if cursor.accept_word("similar"):
        arguments.append(cursor.expression())
        cursor.expect_word("escape")
        arguments.append(cursor.expression())
    elif cursor.at_word("from") or cursor.at_word("for"):
        start = length = None
        while (word := cursor.any_word("from", "for")) is not None:
            if word == "from" and start is None:
                start = cursor.expression()
            elif word == "for" and length is None:
                length = cursor.expression()
            else:
                raise cursor.error(cursor.tokens[cursor.index - 1])
        arguments += [start or exp.Literal.number(1)] + ([length] if length else [])
    else:
        while cursor.accept(","):
            arguments.append(cursor.expression())
    cursor.expect(")")
    return _named("substring", token, arguments)


def _overlay(cursor: Rules, token: Token) -> exp.Expr:
    cursor.expect("(")
    arguments = [cursor.expression()]
    if cursor.accept_word("placing"):
        arguments.append(cursor.expression())
        cursor.expect_word("from")
        arguments.append(cursor.expression())
        if cursor.accept_word("for"):
            arguments.append(cursor.expression())
    else:
        while cursor.accept(","):
            arguments.append(cursor.expression())
    cursor.expect(")")
    return _named("overlay", token, arguments)


def _trim(cursor: Rules, token: Token) -> exp.Expr:
    cursor.expect("(")
    function = {"leading": "ltrim", "trailing": "rtrim"}.get(cursor.any_word("leading", "trailing", "both") or "", "btrim")
    if cursor.accept_word("from"):
        arguments = cursor.expressions()
    else:
        arguments = [cursor.expression()]
        if cursor.accept_word("from"):
            arguments = [*cursor.expressions(), *arguments]
        else:
            while cursor.accept(","):
                arguments.append(cursor.expression())
    cursor.expect(")")
    return _named(function, token, arguments)


def _nullif(cursor: Rules, token: Token) -> exp.Expr:
    cursor.expect("(")
    arguments = [cursor.expression()]
    cursor.expect(",")
    arguments.append(cursor.expression())
    cursor.expect(")")
    return _named("nullif", token, arguments)


def _plain(function: str) -> Callable[[Rules, Token], exp.Expr]:
    """Returns a parser of calls whose name is a key word, such as COALESCE(a, b)."""

    def parse(cursor: Rules, token: Token) -> exp.Expr:
        cursor.expect("(")
        arguments = cursor.expressions()
        cursor.expect(")")
        return _named(function, token, arguments)

    return parse


def _normalize(cursor: Rules, token: Token) -> exp.Expr:
    """Parses normalize(text [, NFC | NFD | NFKC | NFKD])."""
    cursor.expect("(")
    arguments = [cursor.expression()]
    if cursor.accept(","):
        at = cursor.position
        form = cursor.any_word(*FORMS)
        if form is None:
            raise cursor.error()
        arguments.append(place(exp.Literal.string(form.upper()), at))
    cursor.expect(")")
    return _named("normalize", token, arguments)


SPECIAL: dict[str, Callable[[Rules, Token], exp.Expr]] = {
    "cast": _cast,
    "extract": _extract,
    "position": _position,
    "substring": _substring,
    "overlay": _overlay,
    "trim": _trim,
    "coalesce": _plain("coalesce"),
    "greatest": _plain("greatest"),
    "least": _plain("least"),
    "nullif": _nullif,
    "grouping": _plain("grouping"),
    "normalize": _normalize,
}
