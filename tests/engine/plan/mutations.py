"""Change rules that are broken on purpose, one at a time: `mutations.txt`.

    Join: each pair has the product of the weights          a Java class of the engine, or a Python module; the rule
    - Math.multiplyExact(mine.weight(), weight)             the original text, at its first occurrence
    + mine.weight()                                         the replacement; nothing if it is missing

A star after the file means that circuits must be built again. Lines that begin with # are comments.
A mutation of Java keeps the shape of its classes, so that a running JVM can load it (tailgate/engine/java's
tests, Mutant). A mutation of Python changes only functions and tables.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JAVA_SOURCES = Path(__file__).parents[3] / "tailgate" / "engine" / "java" / "src" / "main" / "java" / "tailgate"


@dataclass(frozen=True)
class Mutation:
    """A text of a file that is replaced by another one, and the rule that this breaks.

    `built` means that circuits must be built again.
    """

    file: str
    built: bool
    rule: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file.removeprefix('tailgate.engine.plan.')}: {self.rule}"

    @property
    def source(self) -> Path:
        """Returns the source file."""
        if self.file[0].isupper():
            (path,) = JAVA_SOURCES.rglob(f"{self.file}.java")
            return path
        file = importlib.import_module(self.file).__file__
        assert file is not None
        return Path(file)

    def applied(self, text: str) -> str:
        assert self.old in text, f"{self.file} has no more: {self.old}"
        return text.replace(self.old, self.new, 1)


def read(text: str) -> tuple[Mutation, ...]:
    mutations = []
    for entry in text.split("\n\n"):
        lines = [line for line in entry.splitlines() if not line.startswith("#")]
        while lines:
            file, rule = lines.pop(0).split(": ", 1)
            old, new = ([lines.pop(0)[2:] for _ in range(leading(lines, sign))] for sign in "-+")
            mutations.append(Mutation(file.rstrip("*"), file.endswith("*"), rule, "\n".join(old), "\n".join(new)))
    return tuple(mutations)


def leading(lines: list[str], sign: str) -> int:
    """Returns the number of leading lines that begin with the sign."""
    return next((i for i, line in enumerate(lines) if line[:2] != f"{sign} "), len(lines))


@contextmanager
def broken(mutation: Mutation) -> Iterator[None]:
    """Replaces the functions and tables of a module by those of its mutated text."""
    module = importlib.import_module(mutation.file)
    assert module.__file__ is not None
    other = types.ModuleType(mutation.file)
    exec(compile(mutation.applied(Path(module.__file__).read_text()), module.__file__, "exec", dont_inherit=True), other.__dict__)
    pairs = list(functions(module, other))
    codes = [mine.__code__ for mine, _ in pairs]
    tables = [(value, dict(value), vars(other)[name]) for name, value in vars(module).items() if isinstance(value, dict) and name.isupper()]
    for mine, theirs in pairs:
        mine.__code__ = theirs.__code__
    for table, _, changed in tables:
        table.update(changed)
    try:
        yield
    finally:
        for (mine, _), code in zip(pairs, codes, strict=True):
            mine.__code__ = code
        for table, before, _ in tables:
            table.update(before)


def functions(module: Any, other: Any) -> Iterator[tuple[types.FunctionType, types.FunctionType]]:
    for key, value in vars(module).items():
        theirs = vars(other).get(key)
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__ and isinstance(theirs, types.FunctionType):
            yield value, theirs
        elif isinstance(value, type) and value.__module__ == module.__name__ and isinstance(theirs, type):
            yield from ((f, vars(theirs)[k]) for k, f in vars(value).items() if isinstance(f, types.FunctionType))


ALL = read(Path(__file__).with_name("mutations.txt").read_text())
# of sources; the tests of sources catch them
KEEPERS = tuple(m for m in ALL if m.file in ("Upsert", "CdcUpsert", "CdcBag"))
LOOPS = tuple(m for m in ALL if m.file == "Fixpoint")  # caught by random graphs (`test_recursion.py`)
JAVA = tuple(m for m in ALL if m.file[0].isupper() and m not in (*KEEPERS, *LOOPS))  # caught by the law
PYTHON = tuple(m for m in ALL if m.file.startswith("tailgate.engine."))  # caught by the law
# also used by the reference; caught by random subqueries
DECORRELATION = tuple(m for m in ALL if m.file.startswith("tailgate.sql."))
