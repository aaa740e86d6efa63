"""Renders the regular expressions, LIKE patterns and paths of jsonpath of a call."""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.compute.jsonb.paths import for_java
from tailgate.sql.compute.regexp import likes, patterns
from tailgate.sql.functions.arrays import EACH
from tailgate.sql.plan import Call, Literal
from tailgate.sql.render.dialects import Dialect


@dataclass(frozen=True, slots=True)
class Patterns:
    """The pattern arguments of a call, whose rendered arguments are `texts`.

    The flags are the last argument, or follow from the operator. For ANY (array) and ALL (array) the
    pattern is the element, as in `functions.arrays.quantified`.
    """

    call: Call
    texts: list[str]
    dialect: Dialect

    def __call__(self, kind: str, index: int) -> str:
        """Returns the SQL for the pattern that is argument `index`, by kind:

        - `test`: the pattern, to test whether a text matches
        - `search`: the pattern, to find where a text matches
        - `global`: 0 if the flags ask for all matches, else 1
        - `like`: DuckDB's complete test of argument 0. It uses DuckDB's own regular expressions if they
          support the pattern, because their time is linear in the length of the text.
        - `fits`: the complete test with LIKE
        - `path`: a parsed jsonpath
        """
        if kind == "path":
            return self.dialect.quoted(for_java(self._value(index, "a jsonpath that is")))
        if kind == "like":
            return self._like(index)
        if kind == "fits":
            return self._fits(index)
        call = self.call
        flags = self._value(len(call.arguments) - 1) if len(call.arguments) > index + 1 and call.function.flagged else ""
        flags += "i" if self._sign.endswith("~*") else ""
        plain, everywhere = patterns.options(flags, global_allowed=call.function.name in ("regexp_replace", "regexp_matches"))
        if kind == "global":
            return "0" if everywhere else "1"
        return self.dialect.quoted(patterns.for_java(self._value(index), plain, kind == "search"))

    @property
    def _sign(self) -> str:
        return self.call.function.name.removesuffix(" ANY").removesuffix(" ALL")

    def _text(self, index: int) -> str:
        return EACH if self.call.arguments[index].type.is_array else self.texts[index]

    def _value(self, index: int, what: str = "a regular expression or its flags that are") -> str:
        argument = self.call.arguments[index]
        if not isinstance(argument, Literal) or not isinstance(argument.value, str):
            verb = what.rpartition(" ")[2]
            raise FeatureNotSupported(f"{what} no literal{self.dialect.where} {verb} not supported")
        return argument.value

    def _like(self, index: int) -> str:
        """Returns the test whether argument 0 matches the regular expression."""
        flagged = self.call.function.flagged
        implied = "i" if self._sign.endswith("~*") else ""
        if all(isinstance(a, Literal) and isinstance(a.value, str) for a in self.call.arguments[index:]):
            flags = self._value(index + 1) if flagged else implied
            if (pattern := patterns.for_duckdb(self._value(index), patterns.options(flags)[0])) is not None:
                return f"regexp_matches({self.texts[0]}, {self.dialect.quoted(pattern)})"
        return f"tg_regexp_like({self.texts[0]}, {self._text(index)}, {self.texts[-1] if flagged else self.dialect.quoted(implied)})"

    def _fits(self, index: int) -> str:
        """Returns the test whether argument 0 matches the pattern of LIKE or ILIKE."""
        argument, folds = self.call.arguments[index], self._sign.endswith("*")
        pattern = argument.value if isinstance(argument, Literal) and isinstance(argument.value, str) else None
        sides = ", ".join(f"lower({self._text(i)})" if folds else self._text(i) for i in (0, index))
        if self.dialect.parameter is None:
            if pattern is not None and likes.is_simple(pattern):
                return f"{self.texts[0]} {'ILIKE' if folds else 'LIKE'} tg_like_pattern({self._text(index)})"
            return f"tg_like({sides})"
        if pattern is not None and not folds:
            return likes.for_duckdb(self.texts[0], pattern)
        if pattern is not None and len(pattern.lower()) == len(pattern):
            return likes.for_duckdb(f"lower({self.texts[0]})", pattern.lower())
        return f"tg_like_any({sides})"
