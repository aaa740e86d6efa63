"""Parses queries: SELECT, VALUES, TABLE, set operations and WITH."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tailgate.lake import keywords
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.grammar import calls, primaries, tables
from tailgate.sql.grammar.names import identifier, label, name, names, place, relation
from tailgate.sql.grammar.parentheses import at_query, order_by, subquery
from tailgate.sql.grammar.rules import Rules
from tailgate.sql.grammar.search_and_cycle import search_and_cycle

# words that may follow SELECT without output columns
NO_TARGETS = (
    "from",
    "into",
    "where",
    "group",
    "having",
    "window",
    "union",
    "intersect",
    "except",
    "order",
    "limit",
    "offset",
    "fetch",
    "for",
)
WRITTEN = "written"  # key of a CTE's metadata


def query(cursor: Rules) -> exp.Expr:
    """Parses [WITH …] query [ORDER BY …] [LIMIT …] [FOR …], where the query may have set operations."""
    ctes = with_clause(cursor) if cursor.at_word("with") else None
    tree = _set_operation(cursor)
    modifiers = _modifiers(cursor)
    if ctes is not None or modifiers:
        if isinstance(tree, exp.Subquery) or any(tree.args.get(key) for key in modifiers) or (ctes is not None and tree.args.get("with_")):
            tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=_bare(tree))))
            tree.meta["wrapped"] = True
        for key, value in modifiers.items():
            tree.set(key, value)
        if ctes is not None:
            tree.set("with_", ctes)
    return _bare(tree)


def _bare(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Subquery) else tree


def with_clause(cursor: Rules, write: Callable[[], object] | None = None) -> exp.With:
    """Parses WITH [RECURSIVE] name [(columns)] AS [[NOT] MATERIALIZED] (query) [SEARCH …] [CYCLE …], …

    `write` parses INSERT, UPDATE or DELETE in place of a query; `written` returns its result. None where this is not allowed.
    """
    at = cursor.advance().position
    if cursor.at_word("mutually", "recursive"):
        raise FeatureNotSupported("WITH MUTUALLY RECURSIVE is not supported", hint="Use WITH RECURSIVE.", position=cursor.position)
    recursive = cursor.accept_word("recursive")
    ctes = []
    while True:
        this = name(cursor)
        columns = names(cursor) if cursor.at("(") else []
        cursor.expect_word("as")
        materialized = None
        if cursor.accept_word("materialized"):
            materialized = True
        elif cursor.accept_word("not", "materialized"):
            materialized = False
        cursor.expect("(")
        statement = None
        if cursor.at_word("merge"):
            raise FeatureNotSupported("MERGE not supported in WITH query", position=this.meta["position"])
        if any(map(cursor.at_word, ("insert", "update", "delete"))):
            if write is None:
                message = "WITH clause containing a data-modifying statement must be at the top level"
                raise FeatureNotSupported(message, position=this.meta["position"])
            tree: exp.Expr = exp.Placeholder()
            statement = write()
        elif at_query(cursor):
            tree = query(cursor)
        else:
            raise cursor.error()
        cursor.expect(")")
        alias = exp.TableAlias(this=this, columns=columns)
        cte = place(exp.CTE(this=tree, alias=alias, materialized=materialized), this.meta["position"])
        if statement is not None:
            cte.meta[WRITTEN] = statement
        search_and_cycle(cursor, cte)
        ctes.append(cte)
        if not cursor.accept(","):
            break
    return place(exp.With(expressions=ctes, recursive=recursive), at)


def written(cte: exp.Expr) -> object | None:
    """Returns the statement in a WITH that writes, as `with_clause` has parsed it; None for a query."""
    statement: object | None = cte.meta.get(WRITTEN)
    return statement


def _set_operation(cursor: Rules, *, intersect: bool = False) -> exp.Expr:
    """Parses set operations. They are left-associative, and INTERSECT has a higher precedence."""
    tree = _simple(cursor) if intersect else _set_operation(cursor, intersect=True)
    kinds: dict[str, type[exp.SetOperation]] = {"intersect": exp.Intersect} if intersect else {"union": exp.Union, "except": exp.Except}
    while True:
        at = cursor.position
        word = cursor.any_word(*kinds)
        if word is None:
            return tree
        distinct = not cursor.accept_word("all")
        if distinct:
            cursor.accept_word("distinct")
        right = _simple(cursor) if intersect else _set_operation(cursor, intersect=True)
        tree = place(kinds[word](this=tree, expression=right, distinct=distinct), at)


def _simple(cursor: Rules) -> exp.Expr:
    at = cursor.position
    if cursor.at("("):
        return subquery(cursor)
    if cursor.accept_word("values"):
        return place(exp.Values(expressions=_rows(cursor)), at)
    if cursor.accept_word("table"):
        cursor.accept_word("only")
        source = exp.From(this=relation(cursor))
        return place(exp.Select(expressions=[exp.Star()], from_=source), at)
    if not cursor.accept_word("select"):
        raise cursor.error()
    return _select(cursor, at)


def _rows(cursor: Rules) -> list[exp.Expr]:
    rows: list[exp.Expr] = []
    while True:
        at = cursor.expect("(").position
        rows.append(place(exp.Tuple(expressions=cursor.expressions()), at))
        cursor.expect(")")
        if not cursor.accept(","):
            return rows


def _select(cursor: Rules, at: int) -> exp.Expr:
    node = place(exp.Select(), at)
    if cursor.at_word("distinct"):
        start = cursor.advance().position
        on = None
        if cursor.accept_word("on"):
            cursor.expect("(")
            on = exp.Tuple(expressions=cursor.expressions())
            cursor.expect(")")
        node.set("distinct", place(exp.Distinct(on=on), start))
        node.set("expressions", targets(cursor))
    else:
        cursor.accept_word("all")
        token = cursor.token
        if not (token.kind == "end" or token.text in (")", ";") or (token.kind == "word" and token.value in NO_TARGETS)):
            node.set("expressions", targets(cursor))
    start = cursor.position
    if cursor.accept_word("into"):
        cursor.any_word("local", "global")
        temporary = cursor.any_word("temporary", "temp", "unlogged") in ("temporary", "temp")
        cursor.accept_word("table")
        into = place(exp.Into(this=relation(cursor), temporary=temporary), start)
        into.meta["end"] = cursor.tokens[cursor.index - 1].end
        node.set("into", into)
    start = cursor.position
    if cursor.accept_word("from"):
        items = cursor.listed(tables.table)
        node.set("from_", place(exp.From(this=items[0]), start))
        node.set("joins", [exp.Join(this=item) for item in items[1:]])
    start = cursor.position
    if cursor.accept_word("where"):
        node.set("where", place(exp.Where(this=cursor.expression()), start))
    start = cursor.position
    if cursor.accept_word("group"):
        node.set("group", place(_group(cursor), start))
    start = cursor.position
    if cursor.accept_word("having"):
        node.set("having", place(exp.Having(this=cursor.expression()), start))
    if cursor.accept_word("window"):
        windows = []
        while True:
            this = name(cursor)
            cursor.expect_word("as")
            windows.append(exp.Alias(this=calls.window(cursor, None), alias=this))
            if not cursor.accept(","):
                break
        node.set("windows", windows)
    return node


def targets(cursor: Rules) -> list[exp.Expr]:
    """Parses the list of SELECT or RETURNING: * and expressions with their labels."""
    outputs: list[exp.Expr] = []
    while True:
        token = cursor.token
        if cursor.accept("*"):
            outputs.append(place(exp.Star(), token.position))
        else:
            outputs.append(_labelled(cursor, cursor.expression()))
        if not cursor.accept(","):
            return outputs


def _labelled(cursor: Rules, node: exp.Expr) -> exp.Expr:
    if cursor.accept_word("as"):
        return exp.Alias(this=node, alias=label(cursor))
    token = cursor.token
    if token.kind == "quoted" or (token.kind == "word" and token.value not in keywords.LABEL_NEEDS_AS):
        cursor.advance()
        return exp.Alias(this=node, alias=identifier(token))
    return node


def _group(cursor: Rules) -> exp.Group:
    cursor.expect_word("by")
    distinct = cursor.accept_word("distinct")
    if not distinct:
        cursor.accept_word("all")
    items: list[exp.Expr] = []
    while True:
        items.append(_grouping(cursor))
        if not cursor.accept(","):
            group = exp.Group(expressions=items)
            group.meta["distinct"] = distinct
            return group


def _grouping(cursor: Rules) -> exp.Expr:
    at = cursor.position
    if cursor.at_word("grouping", "sets"):
        cursor.accept_word("grouping", "sets")
        cursor.expect("(")
        sets = cursor.listed(_grouping)
        cursor.expect(")")
        return place(exp.GroupingSets(expressions=sets), at)
    if cursor.token.kind == "word" and cursor.token.value in ("rollup", "cube") and cursor.at("(", 1):
        kind = exp.Rollup if cursor.advance().value == "rollup" else exp.Cube
        cursor.expect("(")
        items = cursor.expressions()
        cursor.expect(")")
        return place(kind(expressions=items), at)
    if cursor.at("(") and cursor.at(")", 1):
        cursor.advance()
        cursor.advance()
        return place(exp.Tuple(expressions=[]), at)
    return cursor.expression()


LOCKS = (("update",), ("no", "key", "update"), ("share",), ("key", "share"))  # words after FOR, the strongest first


def _lock(cursor: Rules, clauses: dict[str, exp.Expr]) -> None:
    """Parses FOR UPDATE and the like. A query can have several; the first one's words are in error messages."""
    at = cursor.position
    cursor.advance()
    words = next((words for words in LOCKS if cursor.accept_word(*words)), None)
    if words is None:
        raise cursor.error()
    lock = clauses.setdefault("locks", place(exp.Lock(update=True), at))
    lock.meta.setdefault("words", " ".join(("for", *words)).upper())
    lock.meta["strength"] = min(LOCKS.index(words), lock.meta.get("strength", len(LOCKS)))
    if cursor.accept_word("of"):
        lock.meta["of"] = (*lock.meta.get("of", ()), *cursor.listed(relation))
    else:
        lock.meta["all"] = True
    if not cursor.accept_word("nowait"):
        cursor.accept_word("skip", "locked")


def strongest_lock(tree: exp.Expr) -> str:
    """Returns the words of the strongest locking clause of a query, FOR UPDATE without one."""
    strength = min((lock.meta["strength"] for lock in tree.find_all(exp.Lock)), default=0)
    return " ".join(("for", *LOCKS[strength])).upper()


def _modifiers(cursor: Rules) -> dict[str, exp.Expr]:
    """Parses ORDER BY, then LIMIT, OFFSET, FETCH and FOR in any order."""
    clauses: dict[str, exp.Expr] = {}
    if cursor.at_word("order"):
        at = cursor.position
        clauses["order"] = place(exp.Order(expressions=order_by(cursor)), at)
    while True:
        at = cursor.position
        if "limit" not in clauses and cursor.accept_word("limit"):
            if cursor.accept_word("all"):
                continue
            clauses["limit"] = place(exp.Limit(expression=cursor.expression()), at)
        elif "offset" not in clauses and cursor.accept_word("offset"):
            clauses["offset"] = place(exp.Offset(expression=cursor.expression()), at)
            cursor.any_word("row", "rows")
        elif "limit" not in clauses and cursor.accept_word("fetch"):
            if cursor.any_word("first", "next") is None:
                raise cursor.error()
            count = exp.Literal.number(1) if cursor.token.value in ("row", "rows") else primaries.operand(cursor)
            if cursor.any_word("row", "rows") is None:
                raise cursor.error()
            limit = place(exp.Limit(expression=count), at)
            if cursor.accept_word("with"):
                cursor.expect_word("ties")
                limit.meta["ties"] = True
            else:
                cursor.expect_word("only")
            clauses["limit"] = limit
        elif cursor.at_word("for"):
            _lock(cursor, clauses)
        else:
            return clauses
