"""Signatures of PostgreSQL's own functions and indexes, from the fixed rows.

They serve pg_get_function_arguments() and similar functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tailgate.gateway.catalog.relations.fixed_rows import values
from tailgate.lake.catalog.names import quoted

MODES = {"o": "OUT ", "b": "INOUT ", "v": "VARIADIC "}
# in the order of PostgreSQL's encoding numbers
ENCODINGS = (
    "SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "UTF8", "MULE_INTERNAL", "LATIN1", "LATIN2", "LATIN3", "LATIN4",
    "LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9", "LATIN10", "WIN1256", "WIN1258", "WIN866", "WIN874", "KOI8R", "WIN1251", "WIN1252",
    "ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8", "WIN1250", "WIN1253", "WIN1254", "WIN1255", "WIN1257", "KOI8U", "SJIS", "BIG5",
    "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a function.

    - `inputs`: types of the arguments of a call
    - `types`, `modes`, `names`: of all arguments, including results
    - `defaults`: of the last arguments of a call
    - `direct`: for an ordered-set aggregate, the number of arguments before WITHIN GROUP
    """

    inputs: tuple[int, ...]
    types: tuple[int, ...]
    modes: tuple[str, ...]
    names: tuple[str, ...]
    result: int
    is_set: bool
    kind: str
    defaults: tuple[str, ...] = ()
    direct: int | None = None

    def arguments(self, shown: Callable[[int], str | None], *, defaults: bool = True) -> str:
        texts, inputs = self._texts(shown, table=False), [n for n, mode in enumerate(self.modes) if mode in "ibv"]
        for n, default in zip(inputs[-len(self.defaults) :], self.defaults, strict=True) if defaults and self.defaults else ():
            texts[n] += f" DEFAULT {default}"
        if self.direct is None:
            return ", ".join(texts)
        ordered = texts[self.direct :] or texts[-1:]  # a VARIADIC argument is both direct and ordered
        return f"{', '.join(texts[: self.direct])} ORDER BY {', '.join(ordered)}".lstrip()

    def returns(self, shown: Callable[[int], str | None]) -> str | None:
        if self.kind == "p":
            return None
        columns = self._texts(shown, table=True)
        if columns:
            return f"TABLE({', '.join(columns)})"
        return f"{'SETOF ' if self.is_set else ''}{shown(self.result)}"

    def _texts(self, shown: Callable[[int], str | None], *, table: bool) -> list[str]:
        return [
            f"{MODES.get(mode, '')}{quoted(name) + ' ' if name else ''}{shown(type)}"
            for type, mode, name in zip(self.types, self.modes, self.names, strict=True)
            if (mode == "t") is table
        ]


@cache
def signatures() -> dict[int, Signature]:
    """Returns the signatures of PostgreSQL's own functions, by oid."""
    direct = {oid: number for oid, kind, number in values("pg_aggregate", "aggfnoid", "aggkind", "aggnumdirectargs") if kind != "n"}
    columns = "oid proargtypes proallargtypes proargmodes proargnames prorettype proretset prokind proargdefaults".split()
    out = {}
    for oid, inputs, types, modes, names, result, is_set, kind, defaults in values("pg_proc", *columns):
        every = tuple(types or inputs)
        out[oid] = Signature(
            tuple(inputs), every, tuple(modes or "i" * len(every)), tuple(names or [""] * len(every)), result, is_set, kind,
            tuple(listed(defaults or "")), direct.get(oid),
        )  # fmt: skip
    return out


def listed(expressions: str) -> list[str]:
    """Splits a list of expressions at its commas.

    >>> listed("NULL::text, '{a,b}'::text[], f(1, 2)")
    ['NULL::text', "'{a,b}'::text[]", 'f(1, 2)']
    """
    return [part.strip() for part in re.findall(r"(?:'(?:[^']|'')*'|\([^()]*\)|[^,'(])+", expressions)]


@cache
def index_definitions() -> dict[int, tuple[bool, int, tuple[str, ...]]]:
    """Returns PostgreSQL's own indexes by oid: whether unique, the relation's oid, the columns."""
    columns = {(relation, number): name for relation, number, name in values("pg_attribute", "attrelid", "attnum", "attname")}
    return {
        oid: (unique, relation, tuple(columns[relation, number] for number in key if (relation, number) in columns))
        for oid, unique, relation, key in values("pg_index", "indexrelid", "indisunique", "indrelid", "indkey")
    }
