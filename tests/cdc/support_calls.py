"""Scenario 2 of ksqlDB as its users type it: a connector for a database of calls, a stream over its topic, and two tables.

    python -m tests.cdc.support_calls

The connector has the old names of Debezium and its class for MySQL; Debezium's connector for MariaDB, which is installed, gets the new
ones. The converters are those of the compose file in `tailgate/examples/support_calls`. `make test-cdc` runs this program, too.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tailgate.embedded.children import free_port
from tailgate.embedded.connect_options import ConnectOptions
from tailgate.embedded.registry import Registry
from tailgate.embedded.supervisor import Plan, Supervisor
from tailgate.formats.converters import CONFLUENT_AVRO
from tailgate.ksql.api import Server, ServerError
from tailgate.ksql.session import Session
from tests.cdc import needed
from tests.cdc.databases import SCHEMA, MariaDB

WAIT_S = 120.0  # for the rows of the database in the tables; 5 s on an idle machine
CALLS = (
    ("michael", "purchase", 540), ("michael", "help", 224), ("colin", "help", 802), ("derek", "purchase", 10204), ("derek", "help", 600),
    ("colin", "refund", 105), ("michael", "help", 2030), ("colin", "purchase", 800), ("derek", "help", 2514), ("derek", "refund", 325),
)  # fmt: skip
TOPIC = f"call-center-db.{SCHEMA}.calls"
CONNECTOR = """\
CREATE SOURCE CONNECTOR calls_reader WITH (
    'connector.class' = 'io.debezium.connector.mysql.MySqlConnector',
    'database.hostname' = '127.0.0.1',
    'database.port' = '{port}',
    'database.user' = 'cdc',
    'database.password' = 'cdc',
    'database.ssl.mode' = 'disable',
    'database.allowPublicKeyRetrieval' = 'true',
    'database.server.id' = '184054',
    'database.server.name' = 'call-center-db',
    'database.whitelist' = '{schema}',
    'database.history.kafka.bootstrap.servers' = '{kafka}',
    'database.history.kafka.topic' = 'call-center',
    'table.whitelist' = '{schema}.calls',
    'include.schema.changes' = 'false'
);"""
STATEMENTS = f"""\
CREATE STREAM calls WITH (kafka_topic = '{TOPIC}', value_format = 'avro');
CREATE TABLE support_view AS
  SELECT after->name AS name, count_distinct(after->reason) AS distinct_reasons, latest_by_offset(after->reason) AS last_reason
  FROM calls GROUP BY after->name EMIT CHANGES;
CREATE TABLE lifetime_view AS
  SELECT after->name AS name, count(after->reason) AS total_calls, (sum(after->duration_seconds) / 60) AS minutes_engaged
  FROM calls GROUP BY after->name EMIT CHANGES;
"""
DEREK = "SELECT name, distinct_reasons, last_reason FROM support_view WHERE name = 'derek';"
MICHAEL = "SELECT name, total_calls, minutes_engaged FROM lifetime_view WHERE name = 'michael';"


def run(folder: Path) -> None:
    """Runs the scenario in a new system. Raises AssertionError."""
    database = MariaDB()
    database.start()
    plugins = folder / "plugins"
    plugins.mkdir()
    (plugins / "mariadb").symlink_to(needed.jars("mariadb"))
    http = f"127.0.0.1:{free_port()}"
    registry = Registry(folder / "registry")
    settings = {
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": CONFLUENT_AVRO,
        "value.converter.schema.registry.url": registry.url,
    }
    plan = Plan(
        folder / "tailgate", f"127.0.0.1:{free_port()}", "embedded", registry.url, connect="embedded",
        connect_options=ConnectOptions(plugins, settings), ksqldb=http,
    )  # fmt: skip
    try:
        registry.start()
        _fill(database)
        with Supervisor(plan, print) as supervisor:
            _scenario(Server(http), database, str(supervisor.kafka))
    finally:
        registry.stop()
        database.stop()


def _fill(database: MariaDB) -> None:
    rows = ", ".join(f"('{name}', '{reason}', {seconds})" for name, reason, seconds in CALLS)
    session = database.session()
    session.transaction(["CREATE TABLE calls (name TEXT, reason TEXT, duration_seconds INT)", f"INSERT INTO calls VALUES {rows}"])
    session.close()


def _scenario(server: Server, database: MariaDB, kafka: str) -> None:
    lines: list[str] = []
    session = Session(server, lines.append)

    def typed(text: str) -> str:
        """Runs statements and returns their output."""
        lines.clear()
        session.run_text(text)
        print(*lines, sep="\n", flush=True)
        return "\n".join(lines)

    port = database.capture(["calls"])["database.port"]
    typed("SET 'auto.offset.reset' = 'earliest';")
    created = typed(CONNECTOR.format(port=port, schema=SCHEMA, kafka=kafka))
    assert "Created connector CALLS_READER" in created, created
    assert "property database.server.name is passed as topic.prefix" in created, created
    _await(lambda: typed("SHOW TOPICS;"), TOPIC)
    _await(lambda: typed("DESCRIBE CONNECTOR calls_reader;"), "RUNNING")
    _await(lambda: typed(f"PRINT '{TOPIC}' FROM BEGINNING LIMIT 1;"), "rowtime")
    typed(STATEMENTS)
    _await(lambda: typed("DESCRIBE CONNECTOR calls_reader;"), "CALLS", TOPIC)
    _await(lambda: typed(DEREK), "derek", "3", "refund")
    _await(lambda: typed(MICHAEL), "michael", "3", "46")
    typed("DROP CONNECTOR calls_reader;")


def _await(output: Callable[[], str], *words: str) -> None:
    """Waits until a statement prints a line with these words."""
    deadline, last = time.monotonic() + WAIT_S, ""
    while time.monotonic() < deadline:
        try:
            last = output()
        except ServerError as error:
            last = str(error)
        if any(all(word in line for word in words) for line in last.splitlines()):
            return
        time.sleep(1)
    raise AssertionError(f"no line with {' and '.join(words)} in {WAIT_S:g} s:\n{last}")


def main() -> int:
    """Returns the exit code: 0, or 2 if a program is missing."""
    try:
        for name in needed.MARIADB:
            needed.program(name)
    except needed.Missing as error:
        print(f"test-cdc: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="tailgate-support-calls-") as folder:
        run(Path(folder))
    print("test-cdc: scenario 2 has the rows of its database")
    return 0


if __name__ == "__main__":
    sys.exit(main())
