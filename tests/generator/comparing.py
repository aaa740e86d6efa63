"""Runs random statements on both servers and shrinks those with different answers."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.generator.answers import AGREED, of_rows
from tests.generator.servers import Answer, Server
from tests.generator.signatures import Signature
from tests.generator.statements import Case, Statements
from tests.generator.trees import Node, shrunk

ATTEMPTS = 4  # attempts to generate a statement whose rows do not fail on PostgreSQL
SHRINKING_S = 60.0  # limit of the search for a smaller failing statement


@dataclass
class Failure:
    """A statement with different answers. `small` is its shrunk form, to which the answers belong."""

    seed: str
    number: int
    verdict: str
    case: Case
    small: Case
    theirs: Answer
    ours: Answer

    def __str__(self) -> str:
        lines = [f"{self.verdict}: statement {self.number} of seed {self.seed}, a {self.case.kind}", self.small.text]
        if self.small.values is not None:
            lines.append(f"  with {list(self.small.values)}")
        for name, answer in (("PostgreSQL", self.theirs), ("Tailgate", self.ours)):
            rows = [(r.names, r.rows[:5]) for r in answer.results]
            lines.append(f"  {name}: {f'{answer.sqlstate} {answer.message}' if answer.sqlstate else rows}")
        return "\n".join(lines)


@dataclass
class Comparison:
    """Runs the statements of a seed on both servers.

    `revive` restarts Tailgate's gateway after a crash or a hang.
    """

    statements: Statements
    theirs: Server
    ours: Server
    revive: Callable[[], None] = lambda: None
    shrinking_s: float = SHRINKING_S
    verdicts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    used: Counter[Signature] = field(default_factory=Counter)
    clauses: Counter[str] = field(default_factory=Counter)

    def run(self, number: int) -> Failure | None:
        """Runs one statement. Returns its failure, or None if the answers agree."""
        for attempt in range(ATTEMPTS):
            case = self.statements.case(number, attempt)
            theirs = case.run(self.theirs, ours=False)
            if not of_rows(theirs):
                break
        ours, verdict = self._ours(case, theirs)
        self.verdicts[verdict] += 1
        self.kinds[case.kind] += 1
        self.clauses.update(case.clauses)
        if verdict == "refused":
            self.refusals[template(ours.message)] += 1
        else:
            self.used.update(case.used)
        return None if verdict in AGREED else self._failure(number, case, verdict, ours)

    def _ours(self, case: Case, theirs: Answer) -> tuple[Answer, str]:
        ours = case.run(self.ours, ours=True)
        verdict = case.verdict(theirs, ours)
        if verdict in ("crash", "hang"):
            self.revive()
        return ours, verdict

    def _failure(self, number: int, case: Case, verdict: str, ours: Answer) -> Failure:
        expected = (verdict, template(ours.message))

        def fails(tree: Node) -> bool:
            less = replace(case, tree=tree)
            theirs = less.run(self.theirs, ours=False)
            if theirs.sqlstate[:2] in ("42", "25") and theirs.sqlstate not in verdict:
                return False
            ours, now = self._ours(less, theirs)
            return (now, template(ours.message)) == expected

        seconds = self.shrinking_s if verdict not in ("hang", "crash") else 3 * self.shrinking_s
        small = replace(case, tree=shrunk(case.tree, fails, seconds))
        theirs, (ours, _) = small.run(self.theirs, ours=False), self._ours(small, small.run(self.theirs, ours=False))
        return Failure(self.statements.seed, number, verdict, case, small, theirs, ours)

    def report(self, seconds: float) -> str:
        """Returns a summary of the run for people."""
        total = sum(self.verdicts.values())
        shown = ", ".join(f"{n} {v}" for v, n in self.verdicts.most_common())
        kinds = ", ".join(f"{n} {k}" for k, n in self.kinds.most_common())
        functions = len({str(s.function) for s in self.used})
        return (
            f"{total} statements in {seconds:.0f} s: {shown}\n  {kinds}\n  {functions} functions and operators, {len(self.clauses)} clauses"
        )


def template(message: str) -> str:
    """Replaces the parts of a message that depend on the statement."""
    return re.sub(r'"[^"]*"|[0-9]+|\([^)]*\)', "_", message)[:80]


def now() -> float:
    return time.monotonic()
