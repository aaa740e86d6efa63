"""Rewrites a catalog query from PostgreSQL's SQL to DuckDB's, as a syntax tree.

    names        by `tables`
    functions    pg_catalog.f(a, b), f(a, b) → pg_f_2(a, b), or DuckDB's function of the same meaning, or 42883
    casts        'x'::regclass → its oid; oid::regclass::text → its name; names and vectors to text
    operators    OPERATOR(pg_catalog.~), ~ (a search, not a full match), COLLATE, = ANY('{a,b}'), LIKE's default escape
    vectors      int2vector and oidvector have subscripts from 0

Functions are allowed by list: one that is not listed here never reaches DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from tailgate.gateway.catalog import outer_joins, text_functions
from tailgate.gateway.catalog.duckdb_functions import CLASSES, NATIVE, SYNTAX
from tailgate.gateway.catalog.output_names import WRITTEN
from tailgate.gateway.catalog.relations.database import array_columns
from tailgate.gateway.catalog.tables import place_table
from tailgate.gateway.catalog.trees import MADE, are_texts, call, elements, is_integer, is_text, is_vector, is_word, tables_of, type_name
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import FeatureNotSupported, UndefinedColumn, UndefinedFunction

REG = frozenset("regclass regtype regproc regprocedure regnamespace regrole regoper regoperator regconfig regdictionary".split())
CASTS = {
    "oid": "UINTEGER",
    "xid": "UINTEGER",
    "name": "VARCHAR",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "bpchar": "VARCHAR",
    "char": "VARCHAR",
    '"char"': "VARCHAR",
    "int2vector": "SMALLINT[]",
    "oidvector": "UINTEGER[]",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "bool": "BOOLEAN",
    **dict.fromkeys(("numeric", "decimal"), "DECIMAL(38, 3)"),
    "information_schema.sql_identifier": "VARCHAR",
    "information_schema.character_data": "VARCHAR",
    "information_schema.cardinal_number": "INTEGER",
    "pg_node_tree": "VARCHAR",
    "aclitem": "VARCHAR",
}
PARAMETERS = {"text": "VARCHAR", "oid": "BIGINT", "int": "BIGINT", "bool": "BOOLEAN"}  # DuckDB's types of our functions' parameters


def rewrite(tree: exp.Expr, functions: Mapping[tuple[str, int], Sequence[Any]], catalog: Catalog) -> exp.Expr:
    """Returns the query for DuckDB; does not change `tree`.

    `functions` are those that the catalog's database has as pg_<name>_<arity>.
    """
    tree = tree.copy()
    text_functions.fold_names(tree)
    text_functions.json_operators(tree)
    text_functions.name_columns(tree)
    text_functions.append_elements(tree)
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        place_table(table, ctes, catalog)
    outer_joins.move_conditions(tree)
    return _walk(tree, _Rules(functions))


def _walk(node: exp.Expr, rules: _Rules) -> exp.Expr:
    """Applies rules to parents before children, because a cast needs its original operand."""
    rewritten = rules(node)
    if rewritten is not node and node.parent is not None:
        node.replace(rewritten)
    for child in list(rewritten.iter_expressions()):
        _walk(child, rules)
    return rewritten


class _Rules:
    """The rewrite rules. A call rewrites one node; its children are visited later."""

    def __init__(self, functions: Mapping[tuple[str, int], Sequence[Any]]) -> None:
        self._functions = functions

    def __call__(self, node: exp.Expr) -> exp.Expr:
        rule = RULES.get(type(node))
        if rule is not None:
            return rule(self, node)
        if (
            isinstance(node, exp.Func)
            and not isinstance(node, SYNTAX)
            and not node.meta.get(MADE)
            and not any(name.lower() in NATIVE for name in (*node.sql_names(), str(node.meta.get(WRITTEN))))
        ):
            raise UndefinedFunction(f"function {node.sql_name().lower()} does not exist")
        return node

    def dot(self, node: exp.Dot) -> exp.Expr:
        """Rewrites pg_catalog.f(x) to f(x); leaves (information_schema._pg_expandarray(x)).n."""
        schema, what = node.this, node.expression
        if isinstance(schema, exp.Identifier) and isinstance(what, exp.Func):
            return self(what)
        return node

    def operator(self, node: exp.Operator) -> exp.Expr:
        """Rewrites OPERATOR(pg_catalog.x). Raises 0A000 for other operators."""
        sign = str(node.args["operator"]).split(".")[-1]
        left, right = node.this, node.expression
        expressions: dict[str, Callable[[], exp.Expr]] = {
            "~": lambda: exp.RegexpLike(this=left, expression=right),
            "!~": lambda: exp.Not(this=exp.RegexpLike(this=left, expression=right)),
            "~*": lambda: exp.RegexpILike(this=left, expression=right),
            "=": lambda: exp.EQ(this=left, expression=right),
            "<>": lambda: exp.NEQ(this=left, expression=right),
            "~~": lambda: exp.Like(this=left, expression=right),
            "!~~": lambda: exp.Not(this=exp.Like(this=left, expression=right)),
        }
        if sign not in expressions:
            raise FeatureNotSupported(f"OPERATOR(pg_catalog.{sign}) is not supported in a query of the system catalog")
        return self(expressions[sign]())

    def collate(self, node: exp.Collate) -> exp.Expr:
        return self(node.this)

    def search(self, node: exp.RegexpLike) -> exp.Expr:
        if isinstance(node.expression, exp.Any):
            return text_functions.matches_any(node.this, node.expression.this)
        return call("regexp_matches", node.this, node.expression, exp.Literal.string("s"))

    def search_any_case(self, node: exp.RegexpILike) -> exp.Expr:
        return call("regexp_matches", node.this, node.expression, exp.Literal.string("si"))

    def like(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node.parent, exp.Escape):
            return node
        return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))

    def any(self, node: exp.Any) -> exp.Expr:
        inner = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
        if isinstance(inner, exp.Literal) and inner.is_string:
            node.set("this", exp.Paren(this=elements(inner.name)))
        return node

    def equal(self, node: exp.EQ) -> exp.Expr:
        """Rewrites x = ANY (array): DuckDB plans a subquery, which an outer join's condition forbids."""
        inner = node.expression.this if isinstance(node.expression, exp.Any) else None
        inner = inner.unnest() if isinstance(inner, exp.Paren) else inner
        return call("list_contains", inner, node.this) if isinstance(inner, (exp.Column, exp.Parameter)) else node

    def concatenation(self, node: exp.DPipe) -> exp.Expr:
        """Rewrites || of arrays, where NULL counts as empty."""
        for side in ("this", "expression"):
            if isinstance(cast := node.args[side].unnest(), exp.Cast) and type_name(cast.to) in REG:
                node.set(side, exp.Cast(this=cast, to=exp.DataType.build("text", dialect="postgres")))
        arrays = any(isinstance(side, exp.Array) for side in (node.this, node.expression))
        return call("list_concat", node.this, node.expression) if arrays else node

    def json_agg(self, node: exp.JSONArrayAgg) -> exp.Expr:
        return call("to_json", call("array_agg", node.this))

    def array_operator(self, node: exp.ArrayOverlaps | exp.ArrayContainsAll) -> exp.Expr:
        """Rewrites the array literals of a && b and a @> b."""
        for side in ("this", "expression"):
            if isinstance(literal := node.args[side], exp.Literal) and literal.is_string:
                node.set(side, elements(literal.name))
        return node

    def division(self, node: exp.Div) -> exp.Expr:
        return exp.IntDiv(this=node.this, expression=node.expression) if is_integer(node.this) and is_integer(node.expression) else node

    def unnested(self, node: exp.Unnest) -> exp.Expr:
        """Rewrites FROM unnest(a) AS n: n also names the column; and unnest(a, b), which DuckDB lacks, to a subquery of both."""
        alias = node.args.get("alias")
        if len(node.expressions) > 1 and isinstance(alias, exp.TableAlias) and len(alias.columns) == len(node.expressions):
            outputs = [exp.alias_(call("unnest", array), name) for array, name in zip(node.expressions, alias.columns, strict=True)]
            if isinstance(ordinality := node.args.get("offset"), exp.Identifier):
                subscripts = call("generate_subscripts", node.expressions[0].copy(), exp.Literal.number(1))
                outputs.append(exp.alias_(subscripts, ordinality))
            return exp.Lateral(this=exp.Subquery(this=exp.Select(expressions=outputs)), alias=exp.TableAlias(this=alias.this))
        if isinstance(alias, exp.TableAlias) and alias.this is not None and not alias.columns:
            alias.set("columns", [alias.this.copy()])
        return node

    def bracket(self, node: exp.Bracket) -> exp.Expr:
        if isinstance(part := node.expressions[0], exp.Slice) and not node.meta.get(MADE):
            return text_functions.array_slice(node.this, part)
        if (is_vector(node.this) or node.this.name.lower() == "typname") and not node.meta.get(MADE):  # pg_dump has typname[0] = '_'
            node.set("expressions", [exp.Add(this=exp.Paren(this=e), expression=exp.Literal.number(1)) for e in node.expressions])
        return node

    def column(self, node: exp.Column) -> exp.Expr:
        if node.args.get("db") is not None:
            node.set("db", None)
        if node.name.lower() == "tableoid":
            return self.table_oid(node)
        if node.name.lower() in XIDS and not node.this.args.get("quoted") and (tables_of(node) or not node.table):
            xid = exp.Cast(this=exp.Literal.number(XIDS[node.name.lower()]), to=exp.DataType.build("UINTEGER", dialect="duckdb"))
            return exp.alias_(xid, node.name.lower()) if isinstance(node.parent, exp.Select) and node in node.parent.expressions else xid
        if is_word(node):
            return self.function(node.name.lower(), [])
        return node

    def table_oid(self, node: exp.Column) -> exp.Expr:
        """Replaces tableoid by a constant: the oid of the relation in FROM."""
        tables = tables_of(node)
        if not tables and node.table:
            return node  # a column of a subquery
        if not tables:
            raise UndefinedColumn('column "tableoid" does not exist')
        schema = "pg_catalog" if tables[0].db == "pg" else "information_schema"
        oid = self.ours("regclass_in", [exp.Literal.string(f"{schema}.{tables[0].name}")])
        return exp.alias_(oid, "tableoid") if isinstance(node.parent, exp.Select) and node in node.parent.expressions else oid

    # --- casts

    def cast(self, node: exp.Cast) -> exp.Expr:
        """Rewrites casts to and from reg types, names and vectors."""
        to, inner = type_name(node.to), node.this
        if to.endswith("[]"):
            return self.array_cast(node, to[:-2])
        if to in REG:
            if isinstance(inner, exp.Parameter):
                inner = exp.Cast(this=inner, to=exp.DataType.build("VARCHAR", dialect="duckdb"))
            if isinstance(inner.find(exp.Parameter), exp.Parameter) or is_text(inner):
                return exp.Cast(
                    this=call(f"pg_{to.replace('regprocedure', 'regproc')}_in_1", inner),
                    to=exp.DataType.build("UINTEGER", dialect="duckdb"),
                )
            return exp.Cast(this=inner, to=exp.DataType.build("UINTEGER", dialect="duckdb"))
        stored = CASTS.get(to)
        if stored == "VARCHAR":
            reg = type_name(inner.to) if isinstance(inner, exp.Cast) else ""
            if reg in REG:
                return call(f"pg_{reg}_out_1", self.cast(inner) if is_text(inner.this) else inner.this)
            if is_vector(inner):
                return call("array_to_string", inner, exp.Literal.string(" "))
            inner_name = inner.name.lower() if isinstance(inner, exp.Column) else ""
            if inner_name in array_columns() or isinstance(inner.unnest(), (exp.Array, exp.ArrayAgg)):
                return call("pg_array_out", inner)
            if inner_name in ("typinput", "typoutput", "typreceive", "typsend"):
                return call("pg_regproc_out_1", inner)
        if to == "int4" and not isinstance(inner, exp.Literal):
            return call("pg_int4", inner)
        if stored is not None:
            return exp.Cast(this=inner, to=exp.DataType.build(stored, dialect="duckdb"))
        return node

    def array_cast(self, node: exp.Cast, element: str) -> exp.Expr:
        inner = elements(node.this.name) if isinstance(node.this, exp.Literal) and node.this.is_string else node.this
        if element in REG and are_texts(inner):
            name = exp.Lambda(this=call(f"pg_{element}_in_1", exp.column("o")), expressions=[exp.to_identifier("o")])
            inner = call("list_transform", inner, name)
        if element == "text" and (reg := next((t for c in inner.find_all(exp.Cast) if (t := type_name(c.to)[:-2]) in REG), None)):
            variable = exp.to_identifier("o")
            return call("list_transform", inner, exp.Lambda(this=call(f"pg_{reg}_out_1", exp.column("o")), expressions=[variable]))
        stored = "UINTEGER" if element in REG else CASTS.get(element)
        to = exp.DataType.build(f"{stored}[]", dialect="duckdb") if stored else node.to
        return exp.Cast(this=inner, to=to)

    # --- functions

    def anonymous(self, node: exp.Anonymous) -> exp.Expr:
        """Rewrites a function call, or ALL and SOME with an array literal."""
        if node.meta.get(MADE):
            return node
        if node.name.lower() in ("all", "some"):  # such as <> ALL ('{…}')
            (argument,) = node.expressions
            argument = argument.unnest()
            if isinstance(argument, exp.Literal):
                argument = elements(argument.name)
            return (exp.All if node.name.lower() == "all" else exp.Any)(this=exp.Paren(this=argument))
        if node.name.lower() == "row":
            return exp.Tuple(expressions=node.expressions)
        return self.function(node.name.lower(), node.expressions)

    def function(self, name: str, arguments: list[exp.Expr]) -> exp.Expr:
        """Returns the call for DuckDB. Raises 42883 for a function that is not listed."""
        name = name.removeprefix("pg_catalog.")
        name = SAME.get(name, name)
        if name == "_pg_expandarray":
            return call("unnest", self.expanded(arguments[0]))
        if name == "expanded_array":
            return self.expanded(arguments[0])
        if name == "generate_subscripts":
            first = 0 if is_vector(arguments[0]) else 1
            indexes = call(
                "range", exp.Literal.number(first), exp.Add(this=call("len", arguments[0]), expression=exp.Literal.number(first))
            )
            return exp.Cast(this=call("unnest", indexes), to=exp.DataType.build("INTEGER", dialect="duckdb"))
        if name == "aclexplode":
            return call("unnest", self.ours("acl_entries", arguments))
        if name == "generate_series":
            return call("unnest", call(name, *arguments))
        if (special := text_functions.special(name, arguments)) is not None:
            return special
        if name == "pg_partition_ancestors":  # there are no partitions
            return call("unnest", exp.Cast(this=exp.Array(expressions=[]), to=exp.DataType.build("UINTEGER[]", dialect="duckdb")))
        if name == "pg_listening_channels":
            return call("unnest", call(f"pg_{name}_0"))
        if name == "array_lower":
            return exp.Literal.number(1)
        if name == "array_remove":
            condition = exp.NullSafeNEQ(this=exp.column("x"), expression=arguments[1])
            return call("list_filter", arguments[0], exp.Lambda(this=condition, expressions=[exp.to_identifier("x")]))
        if name in ("array_length", "array_upper"):
            arguments = arguments[:1]
        if name == "string_to_array":
            return call("string_split", *arguments[:2])
        if name in ("pg_get_viewdef",) and isinstance(arguments[0], exp.Literal) and arguments[0].is_string:
            return call("pg_pg_get_viewdef_text_1", arguments[0])
        if name == "to_char" and len(arguments) == 2:
            return self.ours("time_text", [call("epoch_us", arguments[0]), arguments[1]])
        if (name, len(arguments)) in self._functions:
            return self.ours(name, arguments)
        if name in NATIVE:
            return call(NATIVE[name], *arguments)
        raise UndefinedFunction(
            f"function {name}({', '.join('unknown' for _ in arguments)}) does not exist",
            hint="No function matches the given name and argument types. You might need to add explicit type casts.",
        )

    def ours(self, name: str, arguments: list[exp.Expr]) -> exp.Expr:
        """Returns a call of a function in `functions`, with casts of its arguments and result."""
        types = self._functions[name, len(arguments)][0]
        cast = [
            a
            if t not in PARAMETERS or (t == "text" and is_text(a))
            else exp.Cast(this=a, to=exp.DataType.build(PARAMETERS[t], dialect="duckdb"))
            for a, t in zip(arguments, types, strict=True)
        ]
        result: exp.Expr = call(f"pg_{name}_{len(arguments)}", *cast)
        if name in OIDS:
            return exp.Cast(this=result, to=exp.DataType.build("UINTEGER", dialect="duckdb"))
        if name in INTEGERS:
            return exp.Cast(this=result, to=exp.DataType.build("INTEGER", dialect="duckdb"))
        return result

    def expanded(self, array: exp.Expr) -> exp.Expr:
        """Returns the list of the rows (x, n) of an array, with n from 1."""
        row = f"{{'x': {array.sql('duckdb')}[i], 'n': CAST(i AS INTEGER)}}"
        rows: exp.Expr = exp.maybe_parse(f"list_transform(range(1, len({array.sql('duckdb')}) + 1), lambda i: {row})", dialect="duckdb")
        for function in rows.find_all(exp.Func):
            function.meta[MADE] = True
        for element in rows.find_all(exp.Bracket):  # by DuckDB's subscripts, which begin at 1 for vectors, too
            element.meta[MADE] = element.expressions[0].name == "i"
        return rows

    def known(self, node: exp.Func) -> exp.Expr:
        """Rewrites functions that have a class in sqlglot and another spelling in DuckDB."""
        name = CLASSES[type(node)]
        if isinstance(node, exp.GroupConcat) and isinstance(order := node.this, exp.Order):  # which is behind the last argument
            node = node.copy()
            node.set("separator", exp.Order(this=node.args["separator"], expressions=order.expressions))
            node.set("this", order.this)
        arguments = [a for key in node.arg_types for a in _listed(node.args.get(key))]
        return self.function(name, arguments)


def _listed(value: object) -> list[exp.Expr]:
    if isinstance(value, list):
        return [v for v in value if isinstance(v, exp.Expr)]
    return [value] if isinstance(value, exp.Expr) else []


SAME = {"user": "current_user", "current_role": "current_user", "current_catalog": "current_database", "regexp_replace": "regexp_replaced"}
XIDS = {"xmin": 2, "xmax": 0}  # rows of the system catalog have no transactions: FrozenTransactionId and InvalidTransactionId
OIDS = frozenset({"regclass_in", "to_regclass", "to_regtype", "to_regproc", "to_regnamespace", "pg_my_temp_schema"})
INTEGERS = frozenset({"pg_backend_pid", "pg_char_to_encoding", "pg_relation_is_updatable", "inet_server_port", "inet_client_port"})

# A rule takes nodes of its class only.
RULES: dict[type[exp.Expr], Callable[[_Rules, Any], exp.Expr]] = {
    exp.Dot: _Rules.dot,
    exp.Operator: _Rules.operator,
    exp.Collate: _Rules.collate,
    exp.RegexpLike: _Rules.search,
    exp.RegexpILike: _Rules.search_any_case,
    exp.Like: _Rules.like,
    exp.ILike: _Rules.like,
    exp.Any: _Rules.any,
    exp.EQ: _Rules.equal,
    exp.DPipe: _Rules.concatenation,
    exp.JSONArrayAgg: _Rules.json_agg,
    **dict.fromkeys((exp.ArrayOverlaps, exp.ArrayContainsAll), _Rules.array_operator),
    exp.Div: _Rules.division,
    exp.Lateral: lambda _, node: text_functions.lateral(node),
    **dict.fromkeys((exp.JSONExtract, exp.JSONExtractScalar), lambda _, node: text_functions.json_part(node)),
    exp.Coalesce: lambda _, node: text_functions.coalesced(node),
    exp.Unnest: _Rules.unnested,
    exp.Case: lambda _, node: text_functions.case(node),
    exp.Substring: lambda _, node: text_functions.substring(node),
    exp.TimeToStr: lambda rules, node: rules.function("to_char", [node.this, text_functions.time_pattern(node)]),
    **dict.fromkeys((exp.GenerateSeries, exp.ExplodingGenerateSeries), lambda _, node: text_functions.series(node)),
    exp.Bracket: _Rules.bracket,
    exp.Column: _Rules.column,
    exp.Cast: _Rules.cast,
    exp.Anonymous: _Rules.anonymous,
    **dict.fromkeys(CLASSES, _Rules.known),
}
