"""Parses items of FROM: relations, sub-selects with or without an alias, calls and joins.

In the tree the first item has the list of its joins (`joins`), from left to right. A join in
parentheses is a Subquery of such an item.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, TailgateError
from tailgate.sql.grammar import calls, primaries
from tailgate.sql.grammar.names import is_name, label, name, names, place, relation
from tailgate.sql.grammar.parentheses import at_query, parenthesised, subquery
from tailgate.sql.grammar.rules import Rules
from tailgate.sql.grammar.types import type_name
from tailgate.sql.lexer.tokens import Token


def table(cursor: Rules) -> exp.Expr:
    """Parses one comma-separated item of FROM: a relation with its joins."""
    item = _item(cursor)
    joins: list[exp.Expr] = []
    while (join := _join(cursor)) is not None:
        joins.append(join)
    if joins:
        if item.args.get("joins"):
            item = exp.Subquery(this=item)
        item.set("joins", joins)
    return item


def _join(cursor: Rules) -> exp.Join | None:
    at = cursor.position
    if cursor.accept_word("cross"):
        cursor.expect_word("join")
        return place(exp.Join(this=_item(cursor), kind="CROSS"), at)
    natural = cursor.accept_word("natural")
    side = cursor.any_word("left", "right", "full")
    if side is not None:
        cursor.accept_word("outer")
        cursor.expect_word("join")
    elif cursor.accept_word("inner"):
        cursor.expect_word("join")
    elif not cursor.accept_word("join"):
        if natural:
            raise cursor.error()
        return None
    node = place(exp.Join(this=_item(cursor) if natural else table(cursor), side=side.upper() if side else None), at)
    if natural:
        node.set("method", "NATURAL")
    elif cursor.accept_word("on"):
        node.set("on", cursor.expression())
        _within(cursor, node)
    elif cursor.accept_word("using"):
        node.set("using", names(cursor))
        if not _at_as_of(cursor) and cursor.accept_word("as"):
            node.set("alias", name(cursor))  # the alias of the merged columns
    else:
        raise cursor.error()
    return node


def _within(cursor: Rules, join: exp.Join) -> None:
    """Parses [WITHIN (time, time, before, after [, grace]) [AS alias]] after the condition of a join."""
    if not (cursor.at_word("within") and cursor.at("(", 1)):
        return
    cursor.advance()
    cursor.expect("(")
    join.set("within", cursor.expressions())
    cursor.expect(")")
    if not _at_as_of(cursor) and cursor.accept_word("as"):
        join.set("alias", name(cursor))  # of the column with the number


def _item(cursor: Rules) -> exp.Expr:
    at = cursor.position
    if cursor.at("("):
        return _parentheses(cursor)
    lateral = cursor.accept_word("lateral")
    if lateral and cursor.at("("):
        tree = subquery(cursor)
        return place(exp.Lateral(this=tree, alias=_alias(cursor)), at)
    if cursor.at_word("rows", "from"):
        cursor.accept_word("rows", "from")
        cursor.expect("(")
        functions = cursor.expressions()
        if cursor.at_word("as"):
            raise FeatureNotSupported("a column definition list in ROWS FROM is not supported", position=cursor.position)
        cursor.expect(")")
        ordinality = cursor.accept_word("with", "ordinality")
        return place(exp.Table(rows_from=functions, ordinality=ordinality, alias=_alias(cursor)), at)
    if not lateral and not _is_call(cursor):
        only = cursor.accept_word("only")
        node = relation(cursor)
        if cursor.accept("*"):
            only = False
        node.set("only", only)
        node.set("arrival", _as_of_arrival(cursor))
        node.set("alias", _alias(cursor))
        if cursor.at_word("tablesample"):
            cursor.advance()
            node.set("sample", place(exp.TableSample(method=label(cursor)), at))
            cursor.expect("(")
            cursor.expressions()
            cursor.expect(")")
            if cursor.accept_word("repeatable"):
                parenthesised(cursor)
        return node
    function = primaries.operand(cursor)
    ordinality = cursor.accept_word("with", "ordinality")
    node = place(exp.Table(this=function, ordinality=ordinality, alias=_alias(cursor, definitions=True)), at)
    return place(exp.Lateral(this=function, ordinality=ordinality, alias=node.args["alias"]), at) if lateral else node


def _as_of_arrival(cursor: Rules) -> bool:
    """Parses [FOR SYSTEM_TIME AS OF PROCTIME()]. Raises 0A000 for another time."""
    at = cursor.position
    if not cursor.accept_word("for", "system_time"):
        return False
    cursor.expect_word("as", "of")
    if not cursor.accept_word("proctime"):
        raise FeatureNotSupported("FOR SYSTEM_TIME AS OF a time is not supported", hint="Use AS OF at the end of the query.", position=at)
    cursor.expect("(")
    cursor.expect(")")
    return True


def _is_call(cursor: Rules) -> bool:
    """Returns whether a call follows: a name and a parenthesis, or a function without parentheses."""
    if cursor.token.kind == "word" and cursor.token.value in calls.VALUES:
        return True
    ahead = 1
    while cursor.at(".", ahead):
        ahead += 2
    return cursor.at("(", ahead) and not cursor.at_word("only")


def _parentheses(cursor: Rules) -> exp.Expr:
    """Parses ( query ) [alias] or ( joined table ) [alias]."""
    at = cursor.position
    if at_query(cursor):
        start = cursor.index
        try:
            node = subquery(cursor)
            node.set("alias", _alias(cursor))
            return node
        except TailgateError:
            # ((SELECT 1) a JOIN b ON …) also looks like a query at first
            if not cursor.tokens[start + 1].value == "(":
                raise
            cursor.index = start
    cursor.expect("(")
    inner = table(cursor)
    if not inner.args.get("joins"):
        raise cursor.error()
    cursor.expect(")")
    alias = _alias(cursor)
    return place(exp.Subquery(this=inner, alias=alias), at)


def _at_as_of(cursor: Rules) -> bool:
    """Returns whether AS OF and a time follow. Otherwise `of` is an alias."""
    return cursor.at_word("as", "of") and _is_time(cursor.peek(2))


def _is_time(token: Token) -> bool:
    """Returns whether a token begins a time. None of these tokens may follow an alias named `of`."""
    if token.kind == "word":
        return token.value in ("now", "mz_now", "mz_logical_timestamp", "current_timestamp", "at")
    return token.kind in ("integer", "decimal", "string", "parameter")


def _alias(cursor: Rules, *, definitions: bool = False) -> exp.TableAlias | None:
    """Parses [AS] name [(columns)], or with `definitions` also AS [name] (column type, …).

    Returns None without an alias.
    """
    if _at_as_of(cursor):
        return None
    has_as = cursor.accept_word("as")
    this = None
    if has_as and definitions and cursor.at("("):
        pass
    elif has_as or is_name(cursor.token):
        this = name(cursor)
    else:
        return None
    columns: list[exp.Expr] = []
    if cursor.accept("("):
        while True:
            column: exp.Expr = name(cursor)
            if definitions and not cursor.at(",") and not cursor.at(")"):
                column = exp.ColumnDef(this=column, kind=type_name(cursor))
            columns.append(column)
            if not cursor.accept(","):
                break
        cursor.expect(")")
    return exp.TableAlias(this=this, columns=columns)
