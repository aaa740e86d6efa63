"""The table of statement kinds covers all statements."""

from __future__ import annotations

import typing

import pytest

from tailgate.gateway.handlers.dispatch import EXECUTORS
from tailgate.gateway.security.ownership import check_change
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.roles import Role
from tailgate.lake.errors import FeatureNotSupported, InsufficientPrivilege
from tailgate.sql.statements import Empty, Statement, kinds, parse
from tailgate.sql.statements.kinds import KINDS, TABLE, Place, nothing, running_at


def test_each_statement_has_one_row() -> None:
    assert sorted(kind.statement.__name__ for kind in TABLE) == sorted(c.__name__ for c in typing.get_args(Statement))


def test_each_change_of_the_catalog_needs_something() -> None:
    assert [c.__name__ for c in running_at(Place.CATALOG) if KINDS[c].needs is nothing] == []


def test_the_gateway_executes_each_statement() -> None:
    assert [kind.statement.__name__ for kind in TABLE if kind.statement is not Empty and kind.statement not in EXECUTORS] == []


def test_each_statement_returns_rows_or_a_tag() -> None:
    computed = {"Begin", "Commit", "Rollback", "RollbackTo", "Discard", "Deallocate", "CloseCursor", "Empty", "CopyFrom", "CreateTableAs"}
    computed |= {
        "CreateKsqldbItem",
        "AlterKsqldbItem",
        "Define",
        "Drop",
        "DropAbsent",
        "AlterItem",
        "Pause",
        "ControlQueries",
        "AssertKafka",
        "ChangeConnector",
        "RetryDeadLetters",
        "DeleteDeadLetters",
        "CreateRole",
        "AlterRole",
        "AlterSettings",
        "DropRole",
        "Grant",
        "GrantRole",
        "Merge",
        "Vacuum",
    }
    assert {kind.statement.__name__ for kind in TABLE if not kind.rows and not kind.tag} == computed


def test_other_statements_need_a_superuser() -> None:
    with pytest.raises(InsufficientPrivilege, match="must be superuser"):
        check_change(parse("SELECT 1"), Role(7, "ann"), Catalog(), "tailgate")


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("delete dead letters of s", "DeleteDeadLetters"),
        ("delete from s", "Delete"),
        ("unlisten *", "Unlisten"),
        ("revoke r from a", "GrantRole"),
    ],
)
def test_the_longest_words_choose_the_parser(text: str, statement: str) -> None:
    assert type(parse(text)).__name__ == statement
    assert kinds.kind_of(parse(text)).statement.__name__ == statement


def test_load_is_refused() -> None:
    with pytest.raises(FeatureNotSupported, match="LOAD is not supported"):
        parse("LOAD 'library'")


@pytest.mark.parametrize("start", ["INSERT INTO s", "CREATE STREAM s AS", "CREATE OR REPLACE STREAM s AS"])
def test_explain_of_a_query_of_ksqldb_needs_what_the_statement_does(start: str) -> None:
    statement, explained = (parse(f"{word}{start} SELECT a FROM r EMIT CHANGES", "ksqldb") for word in ("", "EXPLAIN "))
    assert KINDS[type(explained)].needs(explained) == KINDS[type(statement)].needs(statement) != ()
