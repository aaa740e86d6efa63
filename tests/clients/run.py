"""Runs the checks of real clients against Tailgate and, for comparison, against PostgreSQL 15.

    .clients/<kind>/      packages of a kind of client, installed once from its registry, outside of the repository
    tailgate up           over an empty lake ─┐
    PostgreSQL 15         (testing/postgres)   ─┴─ world.sql ──► each program of CLIENTS, twice ──► `passed/total passed/total  client`

A program reads the server's address from PGHOST, PGPORT, PGUSER and PGDATABASE, and its kind from
FLAVOUR. It prints its checks in the Test Anything Protocol. `python tests/clients/run.py [client …]`
runs some of the clients. The exit code is 1 if any check failed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from tailgate.embedded.children import Child, free_port  # noqa: E402
from testing.postgres import Postgres  # noqa: E402

HERE = Path(__file__).parent
CACHE = REPOSITORY / ".clients"
READY_TIMEOUT = timedelta(seconds=120)  # a JVM with Spark: 12 s measured on two cores
CHECKS_TIMEOUT_S = 1800.0  # of one program; SQLAlchemy's suite takes longest, 8 minutes on two busy cores
PYTHON = [str(CACHE / "python/bin/python")]
DEBIAN = "apt-get install postgresql-client unixodbc odbc-postgresql chromium ruby-activerecord ruby-pg"


@dataclass(frozen=True)
class Client:
    """A client. `kind` is the folder of its program; `command` is run in that folder of the cache, against each of `servers`."""

    name: str
    kind: str
    command: tuple[str, ...]
    servers: tuple[str, ...] = ("tailgate", "postgres")


def _python(name: str, module: str) -> Client:
    return Client(name, "python", (*PYTHON, f"{module}_checks.py"))


CLIENTS = (
    _python("psql", "psql"),
    _python("psycopg2", "psycopg2"),
    _python("psycopg 3", "psycopg3"),
    _python("asyncpg", "asyncpg"),
    _python("pg8000", "pg8000"),
    _python("SQLAlchemy", "sqlalchemy"),
    _python("pandas, ADBC", "adbc"),
    Client("node pg", "node", ("node", "pg_checks.js")),
    Client("postgres.js", "node", ("node", "postgres_checks.js")),
    Client("pgjdbc", "jdbc", ("java", "-cp", "target/classes:target/lib/*", "Checks")),
    Client("pgx", "go", ("./checks",)),
    Client("tokio-postgres", "rust", ("target/debug/checks",)),
    _python("psqlodbc", "odbc"),
    _python("pgcli", "pgcli"),
    _python("statements of BI tools", "bi"),
    Client("console in Chromium", "console", ("node", "console_checks.js"), ("tailgate",)),
    Client("page of user_information in Chromium", "console", ("node", "page_checks.js"), ("tailgate",)),
    Client("schemas of Kubernetes", "kubernetes", (str(CACHE / "kubernetes/bin/python"), "kubernetes_checks.py"), ("tailgate",)),
    Client("Superset", "superset", (str(CACHE / "superset/bin/python"), "superset_checks.py")),
    Client("Alembic", "migrations", (str(CACHE / "migrations/bin/python"), "alembic_checks.py")),
    Client("SQLAlchemy's dialect suite", "sqlalchemy", (str(CACHE / "sqlalchemy/bin/python"), "suite_checks.py")),
    Client("Django", "migrations", (str(CACHE / "migrations/bin/python"), "django_checks.py")),
    Client("Django's own tests", "django", (str(CACHE / "django/bin/python"), "suite_checks.py")),
    # Their programs run each step on both servers.
    *(
        Client(name, "orms", ("node", f"{name.lower()}_checks.js"), ("tailgate",))
        for name in ("Sequelize", "Knex", "TypeORM", "MikroORM", "Drizzle")
    ),
    *(
        Client(
            name,
            "java",
            ("java", "-XX:TieredStopAtLevel=1", "-cp", "target/classes:target/lib/*", f"{name.capitalize()}Checks"),
            ("tailgate",),
        )
        for name in ("Hibernate", "Flyway", "Liquibase", "jOOQ")
    ),
    Client("GORM", "gorm", ("./checks",), ("tailgate",)),
    Client("ActiveRecord", "activerecord", ("ruby", "-W0", "activerecord_checks.rb"), ("tailgate",)),
    # They create streams and tables, which the catalog queries of the others would find.
    Client("ksqldb-client", "node", ("node", "ksqldb_checks.js"), ("tailgate",)),
    Client("curl", "ksqldb", (str(CACHE / "ksqldb/bin/python"), "curl_checks.py"), ("tailgate",)),
    Client("PyPI's ksqldb", "ksqldb", (str(CACHE / "ksqldb/bin/python"), "ksqldb_checks.py"), ("tailgate",)),
    Client("PyPI's ksql", "ksql", (str(CACHE / "ksql/bin/python"), "ksql_checks.py"), ("tailgate",)),
    Client("Vert.x as ksqlDB's Java client", "vertx", ("java", "-cp", "target/classes:target/lib/*", "VertxChecks"), ("tailgate",)),
    Client("dbt", "dbt", (str(CACHE / "dbt/bin/python"), "dbt_checks.py")),  # the last one: it creates roles
)
# How a kind is installed, in its folder of the cache, if its source has changed.
INSTALL = {
    "python": ["python3 -m venv .", "bin/pip install -q --disable-pip-version-check -r requirements.txt"],
    "console": ["npm install --silent --no-audit --no-fund"],
    "ksqldb": ["python3 -m venv .", "bin/pip install -q --disable-pip-version-check -r requirements.txt"],
    # ksql 0.10 does not name the packages that it is built with
    "ksql": [
        "python3 -m venv .",
        "bin/pip install -q --disable-pip-version-check setuptools==80.9.0 wheel==0.45.1",
        "bin/pip install -q --disable-pip-version-check --no-build-isolation -r requirements.txt",
    ],
    "kubernetes": ["python3 -m venv .", "bin/pip install -q --disable-pip-version-check -r requirements.txt"],
    "dbt": ["python3 -m venv .", "bin/pip install -q --disable-pip-version-check -r requirements.txt"],
    "sqlalchemy": ["python3 -m venv .", "bin/pip install -q --disable-pip-version-check -r requirements.txt"],
    "migrations": ["python3 -m venv .", "bin/pip install -q --disable-pip-version-check -r requirements.txt"],
    # the tests are in the source distribution only
    "django": [
        "python3 -m venv .",
        "bin/pip install -q --disable-pip-version-check -r requirements.txt",
        "rm -rf source sdist && mkdir source",
        "bin/pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d sdist $(bin/pip freeze | grep -i ^django=)",
        "tar -xzf sdist/*.tar.gz --strip-components=1 -C source",
    ],
    "node": ["npm install --silent --no-audit --no-fund"],
    "orms": ["npm install --silent --no-audit --no-fund"],
    "vertx": ["mvn -B -q package dependency:copy-dependencies -DoutputDirectory=target/lib"],
    "java": ["mvn -B -q package dependency:copy-dependencies -DoutputDirectory=target/lib"],
    "jdbc": ["mvn -B -q package dependency:copy-dependencies -DoutputDirectory=target/lib"],
    "go": ["go mod tidy", "go build -o checks ."],
    "gorm": ["go mod tidy", "go build -o checks ."],
    "activerecord": ["ruby -r active_record -r pg -e ''"],  # both are Debian's
    "rust": ["cargo build -q"],
    "superset": [
        "python3 -m venv .",
        "bin/pip install -q --disable-pip-version-check -r requirements.txt",
        "npm install --silent --no-audit --no-fund",
    ],
}


def main(names: list[str]) -> int:
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # A shell's background job ignores Ctrl-C, and its child processes inherit that.
    chosen = [client for client in CLIENTS if not names or client.name in names or client.kind in names]
    for kind in dict.fromkeys(client.kind for client in chosen):
        install(kind)
    folder = Path(tempfile.mkdtemp(prefix="tailgate-clients-"))
    control = Postgres()
    port, console, http, ksqldb = (free_port() for _ in range(4))
    command = [
        str(REPOSITORY / ".venv/bin/python"),
        "-m",
        "tailgate",
        "up",
        "--data",
        str(folder / "lake"),
        "--listen",
        f"127.0.0.1:{port}",
        "--console",
        f"127.0.0.1:{console}",
        "--http",
        f"127.0.0.1:{http}",
        "--http-origin",
        "*",
        "--ksqldb",
        f"127.0.0.1:{ksqldb}",
        "--kafka",
        "embedded",
    ]
    tailgate = Child("tailgate", command, log=folder / "log", folder=REPOSITORY, announces="ready postgresql=")
    passed = True
    try:
        control.start()
        tailgate.wait_ready(tailgate.announced, READY_TIMEOUT)
        kafka = re.search(r"ready postgresql=.* kafka=(\S+)", (folder / "log").read_text())
        assert kafka is not None
        servers = {"tailgate": port, "postgres": control.port}
        psql(control.port, "-d", "postgres", "-c", "CREATE DATABASE shop")
        for each in servers.values():
            psql(each, "-d", "shop", "-f", str(HERE / "world.sql"))
        print(f"{'tailgate':>10} {'postgres':>10}  client", flush=True)
        for client in chosen:
            results = {
                flavour: checks(client, flavour, {**servers, "console": console, "http": http, "ksqldb": ksqldb}, kafka[1], folder)
                for flavour in client.servers
            }
            counts = {flavour: f"{len(good)}/{len(good) + len(bad)}" for flavour, (good, bad, _) in results.items()}
            print(f"{counts['tailgate']:>10} {counts.get('postgres', ''):>10}  {client.name}", flush=True)
            for flavour, (good, bad, figures) in results.items():
                passed = passed and bool(good) and not bad
                for line in (*figures, *bad):
                    print(f"           {flavour}: {line}", flush=True)
    finally:
        tailgate.stop(timedelta(seconds=20))
        control.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if passed else 1


def install(kind: str) -> None:
    """Returns the cache folder with the program and its dependencies.

    Installs them if the source has changed.
    """
    source, folder = HERE / kind, CACHE / kind
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    if any(source.glob("*.js")):
        shutil.copy(HERE / "tap.js", folder)  # which their programs import
    made_from = "\n".join(
        f"{path.name} {path.read_bytes()!r}"
        for path in sorted(source.rglob("*"))
        if path.suffix not in (".py", ".js") and path.name != "differences.txt" and path.is_file()
    )
    stamp = folder / ".installed"
    if stamp.exists() and stamp.read_text() == made_from:
        return
    print(f"test-clients: installing what {kind} needs", flush=True)
    for command in INSTALL[kind]:
        subprocess.run(command, shell=True, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    stamp.write_text(made_from)


def psql(port: int, *arguments: str) -> None:
    if shutil.which("psql") is None:
        raise FileNotFoundError(f"psql is not on PATH; on Debian: {DEBIAN}")
    words = ["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-v", "ON_ERROR_STOP=1", *arguments]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def checks(client: Client, flavour: str, servers: dict[str, int], kafka: str, folder: Path) -> tuple[list[str], list[str], list[str]]:
    """Parses a program's output. Returns the passed checks, the failed ones with the reason, and the figures (lines that begin with #)."""
    own = folder / f"{client.kind}-{flavour}"
    own.mkdir(exist_ok=True)
    environment = {
        **os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(servers[flavour]), "PGUSER": "postgres", "PGDATABASE": "shop", "PGTZ": "UTC",
        "FLAVOUR": flavour, "CONTROL_PORT": str(servers["postgres"]),
        "CONSOLE_PORT": str(servers["console"]), "HTTP_PORT": str(servers["http"]), "KSQLDB_PORT": str(servers["ksqldb"]),
        "KAFKA": kafka,
        "PAGE": str(REPOSITORY / "tailgate/examples/user_information/page.html"),
        "MANIFESTS": str(REPOSITORY / "deploy/kubernetes"),
        "CHECKS_FOLDER": str(own), "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    start = time.monotonic()
    try:
        run = subprocess.run(
            client.command, cwd=CACHE / client.kind, env=environment, capture_output=True, text=True, timeout=CHECKS_TIMEOUT_S, check=False
        )
        output, end = run.stdout, f"ended with {run.returncode}: {run.stderr[-300:]}"
    except subprocess.TimeoutExpired as late:
        output, end = (late.stdout or b"").decode(), f"took more than {time.monotonic() - start:.0f} s"
    good = re.findall(r"^ok \d+ - (.*)", output, re.MULTILINE)
    bad = [f"{name}: {why[:1500]}" for name, why in re.findall(r"^not ok \d+ - (.*)\n +# (.*)", output, re.MULTILINE)]
    if not re.search(r"^1\.\.\d+", output, re.MULTILINE):  # it did not run to the end
        bad.append(end.replace("\n", " | "))
    return good, bad, re.findall(r"^# (.*)", output, re.MULTILINE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
