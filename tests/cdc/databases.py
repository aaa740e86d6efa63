"""MariaDB and PostgreSQL behind one interface: statements, rows as text, and their SQL dialects.

    Server ──session()──► Session: a connection that runs transactions and queries
       └──capture()─────► the settings of Debezium's connector

Rows are compared as text; `plain` converts values from other clients to that text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import psycopg

from tailgate.embedded.children import Child, free_port
from testing.postgres import Postgres, as_user, other_user
from tests.cdc import needed
from tests.cdc.scenarios import Table

SCHEMA = "shop"  # schema of the tables in both: a MariaDB database is a schema
READY = timedelta(seconds=60)  # 0.3 s measured
INSTALL_TIMEOUT_S = 120.0  # 1.1 s measured

Row: TypeAlias = tuple[str | None, ...]


class Refused(Exception):
    """The error when the server refuses a statement or disconnects; the transaction is rolled back."""


class Session(Protocol):
    def transaction(self, statements: Sequence[str], *, keep: bool = True) -> None:
        """Runs the statements, then COMMIT, or ROLLBACK without `keep`.

        Raises Refused; the session stays usable.
        """

    def query(self, sql: str) -> list[Row]: ...

    def close(self) -> None: ...


class Server(Protocol):
    name: str
    insert: tuple[str, str]  # text before and after the rows of an INSERT that skips existing keys

    def start(self) -> None: ...

    def define(self, table: Table) -> list[str]:
        """Returns the statements that create the table."""

    def session(self) -> Session: ...

    def capture(self, tables: Sequence[str]) -> dict[str, str]:
        """Prepares the capture of these tables of SCHEMA. Returns the connector's settings."""

    def stop(self) -> None: ...


def plain(value: Any) -> str | None:
    """Returns a value as both databases print it in the scenarios' queries."""
    match value:
        case None:
            return None
        case bool():
            return str(int(value))
        case datetime():
            return (value.astimezone(timezone.utc) if value.tzinfo else value).strftime("%Y-%m-%d %H:%M:%S.%f")
        case _:
            return str(value)


def _key(table: Table) -> str:
    return " PRIMARY KEY" if table.keyed else " NOT NULL"


# ---- MariaDB -----------------------------------------------------------------------------------


class MariaDB:
    """Debian's MariaDB over a temporary folder.

    A session is its command-line client, fed through a pipe.
    """

    name = "mariadb"
    insert = ("INSERT IGNORE INTO", "")

    def __init__(self) -> None:
        self._port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="tailgate-mariadb-"))
        self._user = other_user("mysql") if os.geteuid() == 0 else None
        self._child: Child | None = None

    def start(self) -> None:
        if self._user is not None:
            shutil.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        data = self._folder / "data"
        install = [str(needed.program("mariadb-install-db")), "--no-defaults", f"--datadir={data}"]
        install += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(self._as_user(install), cwd=self._folder, check=True, capture_output=True, timeout=INSTALL_TIMEOUT_S)
        command = [
            str(needed.program("mariadbd")),
            "--no-defaults",
            f"--datadir={data}",
            f"--socket={self._folder}/s",
            f"--port={self._port}",
        ]
        command += ["--bind-address=127.0.0.1", f"--pid-file={self._folder}/pid", "--server-id=223344", "--log-bin=binlog"]
        command += ["--binlog-format=ROW", "--binlog-row-image=FULL", "--character-set-server=utf8mb4", "--default-time-zone=+00:00"]
        command += ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"]
        log = self._folder / "log"
        self._child = Child("MariaDB", self._as_user(command), log=log, folder=self._folder, announces="ready for connections")
        self._child.wait_ready(self._child.announced, READY)
        session = self.session("")
        session.transaction([f"CREATE DATABASE {SCHEMA}"])
        session.close()

    def define(self, table: Table) -> list[str]:
        columns = table.columns.format(instant="TIMESTAMP(6) NOT NULL DEFAULT '2026-01-01 00:00:00'", long="MEDIUMTEXT")
        return [f"CREATE TABLE {table.name} (id BIGINT{_key(table)}, {columns})"]

    def session(self, schema: str = SCHEMA) -> Session:
        words = ["--no-defaults", "--host=127.0.0.1", f"--port={self._port}", "--user=root", "--default-character-set=utf8mb4"]
        words += ["--batch", "--skip-column-names", "--unbuffered", *([schema] if schema else [])]
        return _Client([str(needed.program("mariadb")), *words])

    def capture(self, tables: Sequence[str]) -> dict[str, str]:
        rights = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, BINLOG MONITOR, SLAVE MONITOR, LOCK TABLES"
        session = self.session()
        session.transaction(["CREATE USER 'cdc'@'127.0.0.1' IDENTIFIED BY 'cdc'", f"GRANT {rights} ON *.* TO 'cdc'@'127.0.0.1'"])
        session.close()
        return {
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(self._port),
            "database.user": "cdc",
            "database.password": "cdc",
            "database.server.id": "5401",
            "database.ssl.mode": "disable",
            "database.include.list": SCHEMA,
            "table.include.list": ",".join(f"{SCHEMA}.{table}" for table in tables),
        }

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _as_user(self, command: list[str]) -> list[str]:
        return command if self._user is None else as_user(self._user, command)


class _Client:
    """A `mariadb --batch` process as a connection.

    It exits at the first error; the server then rolls back.
    """

    END = "that was all"

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def transaction(self, statements: Sequence[str], *, keep: bool = True) -> None:
        self._run(["START TRANSACTION", *statements, "COMMIT" if keep else "ROLLBACK"])

    def query(self, sql: str) -> list[Row]:
        return [tuple(None if value == "NULL" else value for value in line.split("\t")) for line in self._run([sql])]

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate(timeout=30)
            self._process = None

    def _run(self, statements: Sequence[str]) -> list[str]:
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8")
        assert self._process.stdin is not None and self._process.stdout is not None
        lines = []
        try:
            self._process.stdin.write("".join(f"{statement};\n" for statement in (*statements, f"SELECT '{self.END}'")))
            self._process.stdin.flush()
            while line := self._process.stdout.readline():
                if line.rstrip("\n") == self.END:
                    return lines
                lines.append(line.rstrip("\n"))
        except BrokenPipeError:
            pass
        process, self._process = self._process, None
        process.stdin = None  # so that communicate() does not flush to a closed pipe
        raise Refused(process.communicate(timeout=30)[1].strip())


# ---- PostgreSQL --------------------------------------------------------------------------------


class PostgreSQL:
    """Debian's PostgreSQL with logical decoding by pgoutput."""

    name = "postgres"
    insert = ("INSERT INTO", " ON CONFLICT DO NOTHING")

    def __init__(self) -> None:
        self._server = Postgres({"wal_level": "logical"}, needed.postgresql())

    def start(self) -> None:
        self._server.start()
        session = self.session()
        session.transaction([f"CREATE SCHEMA {SCHEMA}", f"ALTER ROLE postgres SET search_path = {SCHEMA}"])
        session.close()

    def define(self, table: Table) -> list[str]:
        columns = table.columns.format(instant="TIMESTAMPTZ(6) NOT NULL", long="TEXT")
        statements = [f"CREATE TABLE {table.name} (id BIGINT{_key(table)}, {columns})"]
        # External storage is not compressed, so long values are TOASTed, and an update of another
        # column sends a placeholder.
        statements += [
            f"ALTER TABLE {table.name} ALTER COLUMN {name} SET STORAGE EXTERNAL" for name in re.findall(r"(\w+) \{long\}", table.columns)
        ]
        return [*statements, f"ALTER TABLE {table.name} REPLICA IDENTITY FULL"] if table.full else statements

    def session(self) -> Session:
        return _Connection(self._server.dsn)

    def capture(self, tables: Sequence[str]) -> dict[str, str]:
        session = self.session()
        session.transaction(
            [
                "CREATE ROLE cdc REPLICATION LOGIN PASSWORD 'cdc'",
                f"GRANT USAGE ON SCHEMA {SCHEMA} TO cdc",
                f"GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO cdc",
                f"CREATE PUBLICATION cdc FOR TABLE {', '.join(tables)}",
            ]
        )
        session.close()
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(self._server.port),
            "database.user": "cdc",
            "database.password": "cdc",
            "database.dbname": "postgres",
            "schema.include.list": SCHEMA,
            "table.include.list": ",".join(f"{SCHEMA}.{table}" for table in tables),
            "plugin.name": "pgoutput",
            "slot.name": "cdc",
            "slot.max.retries": "60",  # the slot of a killed worker stays active until the server notices
            "slot.retry.delay.ms": "1000",
            "publication.name": "cdc",
            "publication.autocreate.mode": "disabled",
        }

    def stop(self) -> None:
        self._server.stop()


class _Connection:
    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn)

    def transaction(self, statements: Sequence[str], *, keep: bool = True) -> None:
        try:
            for statement in statements:
                self._connection.execute(statement)  # type: ignore[call-overload]
        except psycopg.Error as error:
            self._connection.rollback()
            raise Refused(str(error)) from error
        (self._connection.commit if keep else self._connection.rollback)()

    def query(self, sql: str) -> list[Row]:
        rows = [tuple(map(plain, row)) for row in self._connection.execute(sql).fetchall()]  # type: ignore[call-overload]
        self._connection.rollback()
        return rows

    def close(self) -> None:
        self._connection.close()


SERVERS = {"mariadb": MariaDB, "postgres": PostgreSQL}
