"""Prints the results of SQLAlchemy's suite (`suite.Results`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

import sqlalchemy.dialects.postgresql.provision  # noqa: E402, F401
from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "clients" / "python"))
from suite import Results  # noqa: E402

provision.post_configure_engine.fns["postgresql"] = lambda *_: None  # it creates the extensions citext and hstore

results = Results(Path(__file__).parent / "differences.txt")


def name_of(nodeid: str) -> str:
    """Returns Class::test[parameters], without the dialect and the server's version."""
    _, group, test = nodeid.split("::", 2)
    return f"{group.split('_postgresql')[0]}::{test}"


def pytest_runtest_logreport(report: Any) -> None:
    if report.skipped or (report.passed and report.when != "call"):
        return
    name = name_of(report.nodeid)
    if report.passed:
        results.passed(name)
    else:
        lines = [line[1:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")]
        results.failed(name, " | ".join(lines) or str(report.longrepr)[-300:])


def pytest_sessionfinish(session: Any) -> None:
    results.finish()
