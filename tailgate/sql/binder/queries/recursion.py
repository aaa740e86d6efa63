"""WITH RECURSIVE: a base query, and a step that is repeated over the rows of the previous round.

Source: PostgreSQL 15, src/backend/parser/parse_cte.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, InvalidRecursion, UndefinedTable
from tailgate.lake.types import Field
from tailgate.sql.binder.context import Level, QueryBinder
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.queries.full_columns import as_columns, with_widest_columns
from tailgate.sql.binder.queries.set_operations import combined, nth
from tailgate.sql.binder.recursion.search_and_cycle import extension, with_added_outputs
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.scope import Scope
from tailgate.sql.binder.types.coercion import bare_type
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.queries import written
from tailgate.sql.grammar.search_and_cycle import clauses_of
from tailgate.sql.numeric_types import may_be_general, recursion_may_be_general, without_general
from tailgate.sql.plan import Distinct, Join, Project, Recursive, Reduce, Relation, UnionAll, WorkingTable
from tailgate.sql.plan.correlation import nodes


def names_itself(cte: exp.Expr) -> bool:
    """Returns whether a query of a WITH clause, or a statement in it that writes, refers to itself."""
    return cte.alias in _referred(written(cte) or cte.this)


@contextmanager
def hinting_at(later: Sequence[exp.Expr]) -> Iterator[None]:
    """Adds a detail and a hint to the error 42P01 of a query of WITH that names itself or a later one."""
    try:
        yield
    except UndefinedTable as error:
        name = next((cte.alias for cte in later if error.message == f'relation "{cte.alias}" does not exist'), None)
        if name is not None:
            error.detail = f'There is a WITH item named "{name}", but it cannot be referenced from this part of the query.'
            error.hint = "Use WITH RECURSIVE, or re-order the WITH items to remove forward references."
        raise


def by_dependency(ctes: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Returns the queries of WITH RECURSIVE, each after those that it refers to, in PostgreSQL's order. Raises 0A000 for a cycle."""
    order = list(ctes)
    needed = {cte.alias: _referred(written(cte) or cte.this) - {cte.alias} for cte in ctes}
    for i in range(len(order)):
        waiting = order[i:]
        names = {cte.alias for cte in waiting}
        for j, cte in enumerate(waiting, i):
            if names.isdisjoint(needed[cte.alias]):
                order[i], order[j] = order[j], order[i]
                break
        else:
            raise FeatureNotSupported("mutual recursion between WITH items is not implemented", position=position(order[i]))
    return order


def _referred(part: object) -> set[str]:
    """Returns the names that a query, a statement or a part of it refers to. As in PostgreSQL, the table that it writes counts."""
    match part:
        case exp.Expr():
            return {table.name for table in _tables(part)}
        case Name():
            return {part.name} if part.schema is None else set()
        case tuple():
            return set().union(*map(_referred, part))
    return set().union(*(_referred(getattr(part, field.name)) for field in fields(part))) if is_dataclass(part) else set()


def bind_recursive(cte: exp.Expr, names: Names, queries: QueryBinder) -> Recursive:
    """Binds a recursive query, base UNION [ALL] step. Raises 42P19, 42804 and 0A000.

    In earlier views, numerics of UNION, SEARCH and CYCLE are fixed, or all.
    """
    is_compared = bool(cte.this.args.get("distinct")) or clauses_of(cte) is not None
    with nullcontext() if recursion_may_be_general() or (may_be_general() and not is_compared) else without_general():
        return _bind_recursive(cte, names, queries)


def _bind_recursive(cte: exp.Expr, names: Names, queries: QueryBinder) -> Recursive:
    name, tree, at = cte.alias, cte.this, position(cte)
    if not isinstance(tree, exp.Union):
        shape = "non-recursive-term UNION [ALL] recursive-term"
        raise InvalidRecursion(f'recursive query "{name}" does not have the form {shape}', position=at)
    if first := _references(tree.this, name):
        shown = f'recursive reference to query "{name}" must not appear within its non-recursive term'
        raise InvalidRecursion(shown, position=position(first[0]))
    for clause, word in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if tree.args.get(clause):
            raise FeatureNotSupported(f"{word} in a recursive query is not implemented", position=leftmost(tree.args[clause]))
    if tree.args.get("locks"):
        raise FeatureNotSupported("FOR UPDATE/SHARE in a recursive query is not implemented")
    second = tree.args["expression"]
    references = _references(second, name)
    if len(references) > 1:
        shown = f'recursive reference to query "{name}" must not appear more than once'
        raise InvalidRecursion(shown, position=position(references[1]))
    base = with_widest_columns(queries.query(_bare(tree.this), names))
    number = len(names.recursions)
    names.recursions.append(name)
    column_names = [c.name for c in cte.args["alias"].args.get("columns") or []]
    fields = tuple(Field(n, f.type) for n, f in zip(column_names, base.columns, strict=False))
    fields += tuple(Field(f.name, f.type) for f in base.columns[len(column_names) :])
    added, term = None, _bare(second)
    if (clauses := clauses_of(cte)) is not None:
        added = extension(clauses, fields, Expressions(Scope(), Level(queries, names), "CYCLE"))
        term = with_added_outputs(tree, term, references[0], [column.name for column in added.columns])
    extra = () if added is None else added.columns
    working = WorkingTable(number, (*(Field(f.name, f.type) for f in base.columns), *extra), name)
    step = whole = with_widest_columns(queries.query(term, names.with_cte(name, working, (*fields, *extra), len(extra))))
    _check_step(step, name, references[0])
    if extra or isinstance(step, UnionAll):  # a projection of a UNION keeps `combined` from flattening it
        width = len(step.columns) - len(extra)
        step = Project(step, as_columns(step)[:width], step.columns[:width])
    joined = combined(tree, base, step, queries.parameters)
    union = joined
    while isinstance(union, Distinct | Reduce | Project):  # of a UNION
        union = union.input
    assert isinstance(union, UnionAll)
    for i, (field, before) in enumerate(zip(union.columns, base.columns, strict=True), 1):
        overall, initial = (
            (t.name, t.is_array, t.multidimensional, t.general, t.modifiers if t.general else ()) for t in (field.type, before.type)
        )
        if overall != initial:
            shown = str(before.type if field.type.general else bare_type(before.type))
            raise DatatypeMismatch(
                f'recursive query "{name}" column {i} has type {shown} in non-recursive term but type {bare_type(field.type)} overall',
                hint="Cast the output of the non-recursive term to the correct type.",
                position=leftmost(nth(tree.this, i - 1)),
            )
    columns = tuple(Field(f.name, f.type) for f in union.columns)
    start: Relation = UnionAll(union.inputs[:-1], columns)
    following = union.inputs[-1]
    if added is not None:
        start = added.base(start, fields)
        casts = as_columns(step) if following is step else following.expressions if isinstance(following, Project) else ()
        following, columns = added.step(whole, casts, fields), (*columns, *extra)
    return Recursive(number, start, following, not tree.args.get("distinct"), columns, name)


def _check_step(step: Relation, name: str, reference: exp.Expr) -> None:
    """Raises 42P19 if the step refers to the query within a subquery or an outer join, or aggregates its rows."""
    at = position(reference)
    if not _is_recursive(step):
        raise InvalidRecursion(f'recursive reference to query "{name}" must not appear within a subquery', position=at)
    for node in nodes(step):
        if isinstance(node, Join) and any(map(_is_recursive, _nullable(node))):
            raise InvalidRecursion(f'recursive reference to query "{name}" must not appear within an outer join', position=at)
        if isinstance(node, Reduce) and _is_recursive(node):
            raise InvalidRecursion("aggregate functions are not allowed in a recursive query's recursive term", position=at)


def _is_recursive(relation: Relation) -> bool:
    return any(isinstance(node, WorkingTable) for node in nodes(relation))


def _nullable(join: Join) -> tuple[Relation, ...]:
    """Returns the sides of a join whose columns are NULL in rows without a match."""
    return {"left": (join.right,), "right": (join.left,), "full": (join.left, join.right)}.get(join.kind, ())


def _references(tree: exp.Expr, name: str) -> list[exp.Expr]:
    return [table for table in _tables(tree) if table.name == name]


def _tables(tree: exp.Expr) -> list[exp.Table]:
    """Returns the tables in a query whose names have no schema, and are not those of a WITH inside of the query."""
    return [t for t in tree.find_all(exp.Table) if not t.text("db") and not _is_hidden(t, tree)]


def _is_hidden(table: exp.Table, tree: exp.Expr) -> bool:
    """Returns whether a table in a query is a query of a WITH inside of that query."""
    inner: exp.Expr = table
    while inner is not tree and (outer := inner.parent) is not None:
        ctes: Sequence[exp.Expr] = ()
        if isinstance(outer, exp.With):
            ctes = outer.expressions if outer.args.get("recursive") else outer.expressions[: outer.expressions.index(inner)]
        elif isinstance(clause := outer.args.get("with_"), exp.With) and clause is not inner:
            ctes = clause.expressions
        if any(cte.alias == table.name for cte in ctes):
            return True
        inner = outer
    return False


def _bare(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Subquery) else tree
