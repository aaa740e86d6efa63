"""Sources of Debezium topics, and change messages of PostgreSQL and MySQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testing.change_data import Message, Source, message

TABLE = "id int, name text, PRIMARY KEY (id) NOT ENFORCED"
BAG = "id int, name text"


def json_source(session: Any, folder: Path, columns: str, rest: str = "FORMAT JSON ENVELOPE DEBEZIUM", partitions: int = 1) -> Source:
    return Source(session, folder, f"CREATE SOURCE s ({columns}) FROM KAFKA BROKER 'kafka:9092' TOPIC 't' {rest}", partitions)


def row(id: int, name: str | None) -> dict[str, Any]:
    return {"id": id, "name": name}


def postgres(op: str, lsn: int, after: Any = None, before: Any = None, **source: Any) -> Message:
    """Returns a message as PostgreSQL's connector writes it."""
    of = {"connector": "postgresql", "name": "shop", "db": "shop", "schema": "public", "table": "t", "ts_ms": lsn, "lsn": lsn, **source}
    of.setdefault("snapshot", "true" if op == "r" else "false")
    of.setdefault("sequence", json.dumps([str(lsn - 1), str(lsn)]))
    return message({"before": before, "after": after, "source": of, "op": op, "ts_ms": lsn}, {"id": (after or before or {}).get("id")}, lsn)


def mysql(op: str, gtid: str | None, file: int, pos: int, after: Any = None, before: Any = None, **source: Any) -> Message:
    """Returns a message as the connectors of MySQL and MariaDB write it."""
    of = {
        "connector": "mysql",
        "name": "shop",
        "db": "shop",
        "table": "t",
        "ts_ms": pos,
        "gtid": gtid,
        "file": f"binlog.{file:06}",
        "pos": pos,
        "row": 0,
    }
    of.update({"snapshot": "true" if op == "r" else "false", **source})
    return message({"before": before, "after": after, "source": of, "op": op}, None, pos)  # fmt: skip
