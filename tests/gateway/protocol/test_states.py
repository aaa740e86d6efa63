"""Tests the states of a connection against PostgreSQL's."""

from __future__ import annotations

import pytest

from tailgate.gateway.protocol import messages as m
from tailgate.gateway.protocol.startup import Refused, negotiation, user_and_settings
from tailgate.gateway.protocol.states import EVENTS, TRANSITIONS, Event, Machine, Phase, ProtocolError, Verdict, diagram


def test_every_phase_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(Phase)
    assert all(kind is m.Malformed or any(kind in row for row in TRANSITIONS.values()) for kind in m.Message.__args__)  # type: ignore[attr-defined]
    assert all((phase, Event.CLOSED) in EVENTS for phase in Phase)


def test_after_an_error_everything_up_to_sync_is_ignored() -> None:
    machine = Machine(Phase.READY)
    assert machine.accept(m.Parse("", b"select", ())) is Verdict.PROCESS
    machine.happened(Event.FAILED)
    assert machine.phase is Phase.SKIPPING
    for message in (m.Bind("", "", (), (), ()), m.Query(b"select 1"), m.Execute("", 0), m.Flush()):
        assert machine.accept(message) is Verdict.IGNORE
    assert machine.accept(m.Sync()) is Verdict.PROCESS
    assert machine.phase is Phase.READY


def test_an_error_in_a_simple_query_ignores_nothing() -> None:
    machine = Machine(Phase.READY)
    machine.accept(m.Query(b"selec"))
    machine.happened(Event.FAILED)
    assert machine.accept(m.Query(b"select 1")) is Verdict.PROCESS


def test_left_over_copy_messages_are_ignored() -> None:
    machine = Machine(Phase.READY)
    assert machine.accept(m.CopyDone()) is Verdict.IGNORE
    assert machine.phase is Phase.READY


def test_queries_are_refused_before_authentication() -> None:
    machine = Machine()
    machine.accept(m.SSLRequest())
    machine.accept(m.StartupMessage((3, 0), ()))
    with pytest.raises(ProtocolError):
        machine.accept(m.Query(b"select 1"))
    machine.happened(Event.AUTHENTICATED)
    with pytest.raises(ProtocolError):
        machine.accept(m.StartupMessage((3, 0), ()))


def test_malformed_counts_as_its_letter() -> None:
    machine = Machine(Phase.READY)
    machine.malformed(m.Malformed("B", "08P01", "", False))
    machine.happened(Event.FAILED)
    assert machine.phase is Phase.SKIPPING
    assert machine.malformed(m.Malformed("E", "08P01", "", False)) is Verdict.IGNORE


def test_the_diagram_names_every_phase() -> None:
    assert [line.split(":")[0] for line in diagram().splitlines()] == [phase.value for phase in Phase]


def test_versions_are_negotiated() -> None:
    """No NegotiateProtocolVersion is sent if version and options are supported, as in PostgreSQL."""

    def reply(version: tuple[int, int], *options: tuple[str, str]) -> bytes:
        return negotiation(m.StartupMessage(version, (("user", "a"), *options)))

    assert reply((3, 0)) == reply((3, 2)) == b""
    assert reply((3, 9)) == b"v\0\0\0\x0c\0\3\0\2\0\0\0\0"
    assert reply((3, 0), ("_pq_.x", "1")) == b"v\0\0\0\x13\0\3\0\2\0\0\0\1_pq_.x\0"
    with pytest.raises(Refused, match="unsupported frontend protocol"):
        reply((2, 0))


def test_settings_of_a_start_up() -> None:
    message = m.StartupMessage((3, 0), (("user", "ann"), ("application_name", "psql"), ("options", r"-c search_path=a\ b --work_mem=1MB")))
    assert user_and_settings(message) == ("ann", "ann", [("search_path", "a b"), ("work_mem", "1MB"), ("application_name", "psql")])
    with pytest.raises(Refused, match="no PostgreSQL user name"):
        user_and_settings(m.StartupMessage((3, 0), (("database", "x"),)))
