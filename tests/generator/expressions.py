"""Generates random expressions of a given type, nearly all of them valid.

    expression("int4", scope) ──► a column, a literal, a call of any function that returns int4, CASE, a subquery, …

With `exact`, the result is the same in every implementation. Otherwise the last digits may differ,
so no other part of the query may depend on them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.generator import signatures
from tests.generator.signatures import Signature
from tests.generator.trees import Node, expression, listed, node
from tests.generator.values import quoted, value

DEPTH = 3
ARRAYS = ("int4", "text", "date", "float8", "int8", "bool", "interval")  # element types of generated arrays
NUMBERS = ("int2", "int4", "int8", "numeric", "float4", "float8")
WIDER = {  # types with an implicit cast to the key
    "int4": ("int2",), "int8": ("int2", "int4"), "numeric": ("int2", "int4", "int8"), "float8": ("int4", "int8", "float4", "numeric"),
    "text": ("varchar",), "timestamp": ("date",),
}  # fmt: skip
COMPARED = (
    "int4", "int4", "text", "text", "int8", "numeric", "float8", "date", "timestamp", "timestamptz", "bool", "uuid", "interval", "jsonb",
    "inet", "cidr", "macaddr", "bit", "varbit",
    "int2", "float4", "varchar", "bpchar", "bytea", "time", "timetz", "char", "money", "int4[]", "text[]",
)  # fmt: skip
BARE = {"int4": 2**31, "int8": 2**63}  # integer literals below these values have the type without a cast


@dataclass(frozen=True)
class Name:
    """A name that an expression may refer to: a column or, in a grouped query, a key or an aggregate."""

    node: Node
    type: str
    exact: bool = True


Scope = list[Name]
Subquery = Callable[[list[str], Scope, int], Node]  # generates a query with columns of these types, which may refer to the scope


@dataclass
class Expressions:
    """A generator of expressions.

    `subquery` generates nested queries. `parameters` collects the types and values of $1, $2, …;
    with None, expressions have no parameters.
    """

    random: random.Random
    subquery: Subquery | None = None
    parameters: list[tuple[str, str | None]] | None = None
    used: set[Signature] = field(default_factory=set)

    def expression(self, type: str, scope: Scope, depth: int = DEPTH, *, exact: bool = True) -> Node:
        r = self.random
        names = [n for n in scope if n.type == type and (n.exact or not exact)]
        if names and r.random() < (0.6 if depth <= 0 else 0.3):
            return r.choice(names).node
        if depth <= 0:
            wider = [n for n in scope if n.type in WIDER.get(type, ()) and n.exact]
            if wider and r.random() < 0.3:
                return expression(type, r.choice(wider).node, f"::{type}")
            return self.literal(type)
        makers = [self._call] * 6 + [self._case, self._coalesce, self._special]
        if type == "bool":
            makers = [self._condition] * 5 + [self._call] * 2
        if type.endswith("[]"):
            makers = [self._array] * 2 + [self._call] * 2
        if r.random() < 0.12:
            return self.literal(type)
        result = r.choice(makers)(type, scope, depth - 1, exact)
        return result if result is not None else self.expression(type, scope, depth - 1, exact=exact)

    def literal(self, type: str, text: str | None = None, *, untyped: bool = False) -> Node:
        """Returns a literal of a type, or a parameter with that value.

        By default the value is random.

        With `untyped`, a literal is only quoted and a parameter has no cast, so its type is
        inferred.
        """
        r = self.random
        if text is None:
            if r.random() < 0.06:
                return expression(type, f"NULL::{type}")
            text = value(type, r)
        if self.parameters is not None and r.random() < 0.4:
            self.parameters.append((type, text))
            return expression(type, f"${len(self.parameters)}" + ("" if untyped else f"::{type}"))
        if type == "bool" and text in ("true", "false"):
            return expression(type, text)
        digits = text.removeprefix("-")
        if type in BARE and digits.isdigit() and int(digits) < BARE[type] and (type == "int4" or int(digits) >= 2**31):
            return expression(type, text if digits == text else f"({text})")
        if type == "numeric" and digits.count(".") == 1 and digits.replace(".", "").isdigit() and r.random() < 0.7:
            return expression(type, text if digits == text else f"({text})")
        if untyped:
            return expression(type, quoted(text))
        luck = r.random()
        if luck < 0.2 and not type.endswith("[]") and type != "name":
            return expression(type, f"{type} {quoted(text)}")
        return expression(type, f"CAST({quoted(text)} AS {type})" if luck < 0.3 else f"{quoted(text)}::{type}")

    # ---- calls ----------------------------------------------------------------------------------

    def _call(self, type: str, scope: Scope, depth: int, exact: bool) -> Node | None:
        signature = signatures.pick(signatures.SCALARS, type, self.random, exact=exact)
        if signature is None:
            return None
        arguments = self.arguments(signature, scope, depth)
        if arguments is None:
            return None
        self.used.add(signature)
        return expression(type, *spelled(signature, arguments, self.random))

    def arguments(self, signature: Signature, scope: Scope, depth: int) -> list[Node] | None:
        """Generates the arguments of a call; exact ones if the signature is exact."""
        out = []
        types = list(signature.arguments)
        if signature.function.variadic:
            types += types[-1:] * self.random.randint(0, 2)
        for i, type in enumerate(types):
            chosen = signatures.samples(signature, min(i, len(signature.arguments) - 1))
            if chosen and self.random.random() < 0.95:
                text = self.random.choice(chosen)
                out.append(expression(type, f"NULL::{type}") if text is None else self.literal(type, text, untyped=type == "text"))
            elif type not in signatures.SCALARS and type not in ("oid", "name", "varchar", "bpchar") and not type.endswith("[]"):
                return None
            else:
                out.append(self.expression(type, scope, depth))
        return out

    # ---- conditionals and special syntax --------------------------------------------------------

    def _case(self, type: str, scope: Scope, depth: int, exact: bool) -> Node:
        r = self.random
        results = [self.expression(type, scope, depth - 1, exact=exact) for _ in range(r.randint(1, 2))]
        otherwise = node("clause", " ELSE ", self.expression(type, scope, depth - 1, exact=exact)) if r.random() < 0.7 else node("clause")
        if r.random() < 0.4:
            of = r.choice(COMPARED)
            branches = [node("when", " WHEN ", self.expression(of, scope, depth - 1), " THEN ", result) for result in results]
            return expression(type, "CASE ", self.expression(of, scope, depth - 1), listed(branches, ""), otherwise, " END")
        branches = [node("when", " WHEN ", self.condition(scope, depth - 1), " THEN ", result) for result in results]
        return expression(type, "CASE", listed(branches, ""), otherwise, " END")

    def _coalesce(self, type: str, scope: Scope, depth: int, exact: bool) -> Node:
        word = self.random.choice(["coalesce", "coalesce", "greatest", "least"])
        many = [self.expression(type, scope, depth - 1, exact=exact) for _ in range(self.random.randint(2, 3))]
        return expression(type, f"{word}(", listed(many), ")")

    def _special(self, type: str, scope: Scope, depth: int, exact: bool) -> Node | None:
        luck = self.random.random()
        if luck < 0.25:
            parts = (self.expression(type, scope, depth - 1, exact=exact), ", ", self.expression(type, scope, depth - 1))
            return expression(type, "nullif(", *parts, ")")
        if luck < 0.55 and self.subquery is not None:
            return expression(type, "(", self.subquery([type], scope, depth - 1), ")")
        if luck < 0.7 and type in ARRAYS:
            return expression(type, "(", self.expression(f"{type}[]", scope, depth - 1), f")[{self.random.randint(0, 3)}]")
        if luck < 0.85:
            return expression(type, "(", self.expression(type, scope, depth, exact=exact), ")")
        return None

    def _array(self, type: str, scope: Scope, depth: int, exact: bool) -> Node | None:
        element, luck = type[:-2], self.random.random()
        if luck < 0.6:
            items = [self.expression(element, scope, depth - 1) for _ in range(self.random.randint(1, 3))]
            return expression(type, "ARRAY[", listed(items), "]")
        if luck < 0.75:
            low, high = self.random.choice(["1:2", "2:", ":1", "0:1", "2:1"]).split(":")
            return expression(type, "(", self.expression(type, scope, depth - 1), f")[{low}:{high}]")
        if luck < 0.85 and self.subquery is not None and element in ARRAYS:
            return expression(type, "ARRAY(SELECT v FROM (", self.subquery([element], scope, depth - 1), ") AS q (v) ORDER BY v)")
        return None

    # ---- conditions -----------------------------------------------------------------------------

    def condition(self, scope: Scope, depth: int = DEPTH) -> Node:
        return self.expression("bool", scope, depth)

    def _condition(self, type: str, scope: Scope, depth: int, exact: bool) -> Node | None:
        return self.random.choice(self.CONDITIONS)(self, scope, depth)

    def _and(self, scope: Scope, depth: int) -> Node:
        word = self.random.choice([" AND ", " OR "])
        many = [self.condition(scope, depth) for _ in range(self.random.randint(2, 3))]
        return expression("bool", "(", listed(many, word), ")")

    def _not(self, scope: Scope, depth: int) -> Node:
        return expression("bool", "(NOT ", self.condition(scope, depth), ")")

    def _compared(self, scope: Scope, depth: int) -> Node:
        names = [n.type for n in scope if n.exact and n.type in COMPARED]
        of = self.random.choice(names) if names and self.random.random() < 0.7 else self.random.choice(COMPARED)
        sign = self.random.choice(["=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
        return expression("bool", "(", self.expression(of, scope, depth), f" {sign} ", self.expression(of, scope, depth), ")")

    def _mixed(self, scope: Scope, depth: int) -> Node:
        """Compares numbers of two types."""
        one, other = self.random.choice(NUMBERS), self.random.choice(NUMBERS)
        sign = self.random.choice(["=", "<", ">=", "<>"])
        return expression("bool", "(", self.expression(one, scope, depth), f" {sign} ", self.expression(other, scope, depth), ")")

    def _tested(self, scope: Scope, depth: int) -> Node:
        if self.random.random() < 0.5:
            of = self.random.choice(COMPARED)
            return expression("bool", "(", self.expression(of, scope, depth), self.random.choice([" IS NULL)", " IS NOT NULL)"]))
        test = self.random.choice(["TRUE", "FALSE", "UNKNOWN", "NOT TRUE", "NOT FALSE", "NOT UNKNOWN"])
        return expression("bool", "(", self.condition(scope, depth), f" IS {test})")

    def _in(self, scope: Scope, depth: int) -> Node:
        of = self.random.choice(COMPARED)
        items = [self.expression(of, scope, depth - 1) for _ in range(self.random.randint(1, 3))]
        word = self.random.choice(["IN", "NOT IN"])
        return expression("bool", "(", self.expression(of, scope, depth), f" {word} (", listed(items), "))")

    def _between(self, scope: Scope, depth: int) -> Node:
        of, word = self.random.choice(COMPARED[:9]), self.random.choice(["", "NOT "]) + "BETWEEN" + self.random.choice(["", " SYMMETRIC"])
        low, high = (self.expression(of, scope, depth - 1) for _ in range(2))
        return expression("bool", "(", self.expression(of, scope, depth - 1), f" {word} ", low, " AND ", high, ")")

    def _any(self, scope: Scope, depth: int) -> Node:
        of = self.random.choice(ARRAYS[:4])
        sign = self.random.choice(["=", "<>", "<", ">="]) + self.random.choice([" ANY", " ALL", " SOME"])
        left = self.expression(of, scope, depth - 1)
        return expression("bool", "(", left, f" {sign} (", self.expression(f"{of}[]", scope, depth - 1), "))")

    def _within(self, scope: Scope, depth: int) -> Node | None:
        """Generates EXISTS, IN or a quantified comparison with a subquery."""
        if self.subquery is None:
            return None
        luck = self.random.random()
        negated = self.random.choice(["", "NOT "])
        if luck < 0.4:
            return expression("bool", f"({negated}EXISTS (", self.subquery([self.random.choice(COMPARED)], scope, depth), "))")
        of = [self.random.choice(COMPARED[:9]) for _ in range(1 if luck < 0.9 else 2)]
        left: Node = self.expression(of[0], scope, depth - 1)
        if len(of) == 2:
            left = node("row", "(", left, ", ", self.expression(of[1], scope, depth - 1), ")")
        inner = self.subquery(of, scope, depth)
        if luck < 0.7 or len(of) == 2:
            return expression("bool", "(", left, f" {negated}IN (", inner, "))")
        sign = self.random.choice(["=", "<>", "<", ">="]) + self.random.choice([" ANY", " ALL"])
        return expression("bool", "(", left, f" {sign} (", inner, "))")

    def _rows(self, scope: Scope, depth: int) -> Node:
        of = [self.random.choice(COMPARED[:9]) for _ in range(2)]
        left, right = (listed([self.expression(t, scope, depth - 1) for t in of], least=2) for _ in range(2))
        sign = self.random.choice(["=", "<>", "<", ">=", "IS DISTINCT FROM"])
        return expression("bool", "((", left, f") {sign} (", right, "))")

    CONDITIONS = (
        _and,
        _and,
        _not,
        _compared,
        _compared,
        _compared,
        _compared,
        _mixed,
        _tested,
        _in,
        _between,
        _any,
        _within,
        _within,
        _rows,
    )


def spelled(signature: Signature, arguments: list[Node], chance: random.Random) -> tuple[Node | str, ...]:
    """Returns the parts of a call in the syntax of the function."""
    function = signature.function
    name, _, unit = function.name.partition(":")
    match function.kind:
        case "operator":
            return "(", arguments[0], f" {LIKES.get(name, name) if chance.random() < 0.7 else name} ", arguments[1], ")"
        case "prefix":
            return f"({name} ", arguments[0], ")"
        case "cast":
            return ("(", arguments[0], f")::{signature.result}") if chance.random() < 0.7 else (
                "CAST(", arguments[0], f" AS {signature.result})")  # fmt: skip
    if name == "extract":
        return f"extract({unit} FROM ", arguments[0], ")"
    if unit:
        return f"{name}('{unit}', ", arguments[0], ")"
    if name == "position":
        return "position(", arguments[1], " IN ", arguments[0], ")"
    if name == "normalize":
        return "normalize(", arguments[0], f", {chance.choice(('NFC', 'NFD', 'NFKC', 'NFKD'))})"
    if name == "timezone" and len(arguments) == 2 and chance.random() < 0.7:
        return "(", arguments[1], " AT TIME ZONE ", arguments[0], ")"
    if name == "substring" and signature.arguments[1:] == ("int4", "int4") and chance.random() < 0.5:
        return "substring(", arguments[0], " FROM ", arguments[1], " FOR ", arguments[2], ")"
    if name == "overlay" and len(arguments) > 2:
        more = (" FOR ", arguments[3]) if len(arguments) > 3 else ()
        return "overlay(", arguments[0], " PLACING ", arguments[1], " FROM ", arguments[2], *more, ")"
    return f"{name}(", listed(arguments, least=len(arguments)), ")"


LIKES = {"~~": "LIKE", "~~*": "ILIKE", "!~~": "NOT LIKE", "!~~*": "NOT ILIKE"}
