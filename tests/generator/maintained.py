"""Runs random queries as materialized views of a running engine, through a gateway.

CREATE MATERIALIZED VIEW ──► SELECT ──► writes to its tables ──► SELECT, TAIL ──► DROP

Each SELECT must return the rows that PostgreSQL returns for the view's query.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from tests.generator import world
from tests.generator.answers import of_rows, verdict
from tests.generator.comparing import ATTEMPTS, template
from tests.generator.queries import Queries
from tests.generator.servers import Answer, Server
from tests.generator.statements import unfollowed
from tests.generator.values import quoted
from tests.generator.views import TYPES, named

BATCH = 10  # views that exist at the same time
WRITES = 6
AGREED = frozenset({"same", "failed", "evaluated"})


@dataclass
class Materialized:
    """Runs the views of a seed. Writes the same changes to the tables of both servers."""

    seed: str
    theirs: Server
    ours: Server
    verdicts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    _fresh: int = 1000  # key of the next inserted row

    def batch(self, number: int) -> list[str]:
        """Creates, reads and drops the views of a batch. Returns descriptions of the failures."""
        wrong, queries = [], {}
        for i in range(number * BATCH, (number + 1) * BATCH):
            query = self._query(i)
            answer = self.ours.query(f"CREATE MATERIALIZED VIEW g{i} AS {query}")
            outcome = self._created(answer, query)
            if outcome == "made":
                queries[i] = query
            else:
                self.verdicts[outcome] += 1
                if outcome not in ("refused", "failed"):
                    wrong.append(f"{outcome}: view {i} of seed {self.seed}: {answer.sqlstate} {answer.message}\n{query}")
        r = random.Random(f"{self.seed}/writes {number}")
        verdicts = {i: {self._compared(i, query)} for i, query in queries.items()}
        for _ in range(WRITES):
            self._write(r)
        for i, query in queries.items():
            verdicts[i].add(self._compared(i, query))
            followed = self._followed(i)
            if followed != "same":
                verdicts[i].add(f"follower: {followed}")
            self.ours.execute(f"DROP MATERIALIZED VIEW g{i}")
        for i, outcome in verdicts.items():
            bad = sorted(outcome - AGREED)
            self.verdicts[bad[0] if bad else max(outcome)] += 1
            wrong += [f"{f}: view {i} of seed {self.seed}\n{queries[i]}" for f in bad]
        return wrong

    def _query(self, number: int) -> str:
        for attempt in range(ATTEMPTS):
            r = random.Random(f"{self.seed}/materialized {number}/{attempt}")
            queries = Queries(r, world.RELATIONS)
            types = [r.choice(TYPES) for _ in range(r.randint(1, 3))]
            query = named(queries.select(types, [], r.choice([1, 2, 2, 3]), labelled=True).text, len(types))
            if not of_rows(self.theirs.query(query)):
                break
        return query

    def _created(self, answer: Answer, query: str) -> str:
        if not answer.failed:
            return "made"
        theirs = self.theirs.query(query)
        outcome = verdict(theirs, answer)
        if outcome == "refused":
            self.refusals[template(answer.message)] += 1
        return "failed" if outcome in ("evaluated", "limit") else outcome

    def _compared(self, number: int, query: str) -> str:
        theirs, ours = self.theirs.query(query), self.ours.query(f"SELECT * FROM g{number}")
        if theirs.sqlstate == "0A000":
            return "same"
        return verdict(theirs, ours)

    def _followed(self, number: int) -> str:
        """Compares the snapshot of a TAIL with the rows of a SELECT; "same" if they agree."""
        read = self.ours.query(f"SELECT * FROM g{number}")
        steps = ("BEGIN", f"DECLARE c CURSOR FOR TAIL g{number}", "FETCH ALL c WITH (timeout = '0s')", "COMMIT")
        follower = unfollowed(self.ours.run(steps))
        return "same" if read.failed and follower.failed else verdict(read, follower)

    def _write(self, r: random.Random) -> None:
        """Inserts or deletes the same rows on both servers."""
        table = r.choice(world.TABLES)
        column, _ = table.columns[0]
        text = f"DELETE FROM {table.name} WHERE {column} = {r.randint(0, 5)}"
        if r.random() < 0.7:
            row, self._fresh = world.row(table, self._fresh, r), self._fresh + 1
            text = f"INSERT INTO {table.name} VALUES ({', '.join('NULL' if v is None else quoted(v) for v in row)})"
        for server in (self.theirs, self.ours):
            server.execute(text)
