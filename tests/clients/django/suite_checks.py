"""Runs Django's own tests of introspection, schema changes and constraints, in a schema that is dropped afterwards.

With names of test modules, such as `schema.tests.SchemaTests.test_add_field`, it runs these only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg

HERE = Path(__file__).parent
APPLICATIONS = ("introspection", "schema", "constraints")
SCHEMA = "django_suite"


def main(names: tuple[str, ...]) -> None:
    address = f"{os.environ['PGUSER']}@{os.environ['PGHOST']}:{os.environ['PGPORT']}/postgres"
    with psycopg.connect(f"postgresql://{address}", autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
        # --keepdb: the database exists. An error is one line of the output, which the runner prints.
        command = [sys.executable, "runtests.py", "--settings", "suite_settings", "--keepdb", "--noinput", "--parallel", "1", *names]
        environment = {**os.environ, "PYTHONPATH": str(HERE)}
        subprocess.run(command, cwd=HERE / "source/tests", env=environment, check=False)
        connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE".encode())


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or APPLICATIONS)
