"""The versions that precede a version of the state, in Spark's changelogs (`Lineages` in Java)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

Lineage = Sequence[tuple[int, str]]  # versions and their ids, oldest first; the last one is the version itself


class Lineages:
    """The lineages in the changelogs of a session's state. They are by the folder of the partition, below that of the state."""

    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session._jvm
        self._session, self._java = session._jsparkSession, jvm.tailgate.state.Lineages

    def of(self, path: str, state: str) -> Mapping[str, Lineage]:
        """Returns the lineages of the versions that the ids `state` name. `path`: the folder of the state."""
        lineages: dict[str, Lineage] = json.loads(self._java.of(self._session, path, state))
        return lineages

    def copy(self, source: str, target: str, lineages: Mapping[str, Lineage]) -> None:
        """Copies the changelogs of the last version of each lineage to another folder of state, and replaces the lineage in them."""
        self._java.copy(self._session, source, target, json.dumps(lineages))
