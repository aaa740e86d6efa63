"""The command `ksql` against a server: its output, what lasts for a session, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailgate.ksql.api import Server, ServerError
from tailgate.ksql.main import main
from tailgate.ksql.session import Session
from tests.gateway.ksqldb.world import Api

PULL = """\
 SENSOR | AVERAGE | N
----------------------
 s1     | 1.5     | 2
 s2     | null    | 7
----------------------
Query terminated
"""
PUSH = """\
 SENSOR               | M
----------------------------------------------
 s1                   | 3
Limit Reached
Query terminated
"""
STREAMS = """\
 Stream Name | Kafka Topic | Key Format | Value Format | Windowed
------------------------------------------------------------------
 READINGS    | r           | KAFKA      | JSON         | false
------------------------------------------------------------------
"""
DESCRIBED = """\
Name                 : AVERAGES
 Field   | Type
------------------------------------------
 SENSOR  | VARCHAR(STRING)  (primary key)
 AVERAGE | DOUBLE
 N       | BIGINT
------------------------------------------
For runtime statistics and query details run: DESCRIBE <Stream,Table> EXTENDED;
"""


def output(api: Api, *texts: str) -> str:
    """Returns the output of a session."""
    lines: list[str] = []
    session = Session(Server(f"127.0.0.1:{api.port}"), lines.append)
    for text in texts:
        assert session.run_text(text) == ""
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT *\n  FROM averages; -- all", PULL),
        ("SET 'auto.offset.reset' = 'earliest'; SELECT sensor, n + 1 AS m FROM averages EMIT CHANGES LIMIT 1;", PUSH),
        ("list streams;", STREAMS),
        ("DESCRIBE averages;", DESCRIBED),
        ("INSERT INTO readings (sensor) VALUES ('k;');", ""),
        ("DEFINE t = 'averages'; DESCRIBE ${t};", DESCRIBED),
        (
            "OUTPUT JSON; SELECT n FROM averages WHERE sensor = 's1';",
            '{"row": {"columns": [2]}}\n{"finalMessage": "Query Completed"}\nQuery terminated\n',
        ),
    ],
)
def test_output(api: Api, text: str, expected: str) -> None:
    assert output(api, text).endswith(expected)


def test_settings_last_for_the_session(api: Api) -> None:
    session = Session(Server(f"127.0.0.1:{api.port}"), lambda line: None)
    session.run_text("SET 'auto.offset.reset' = 'earliest'; DEFINE a = 'it''s';")
    assert (session.properties, session.variables) == ({"auto.offset.reset": "earliest"}, {"a": "it's"})
    with pytest.raises(ServerError, match="Not recognizable as ksql"):
        session.run("SET 'bogus' = '1';")
    session.run_text("UNSET 'auto.offset.reset'; UNDEFINE a;")
    assert (session.properties, session.variables) == ({}, {})


def test_an_interrupt_ends_a_push_query(api: Api) -> None:
    lines: list[str] = []

    def write(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            raise KeyboardInterrupt

    session = Session(Server(f"127.0.0.1:{api.port}"), write)
    session.properties["auto.offset.reset"] = "earliest"
    session.run("SELECT * FROM averages EMIT CHANGES;")
    assert lines[-1] == "Query terminated"


def test_the_command_line(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{api.port}"
    assert main([url, "-e", "OUTPUT JSON; LIST STREAMS"]) == 0
    assert json.loads(capsys.readouterr().out.partition("\n")[2])["@type"] == "streams"
    script = tmp_path / "script.sql"
    script.write_text("LIST STREAMS;\nLIST NOTHING;\nLIST TABLES;\n")
    assert main([url, "-f", str(script)]) == 1
    captured = capsys.readouterr()
    assert captured.out == STREAMS
    assert captured.err == 'line 1:6: syntax error at or near "NOTHING"\n'
    script.write_text("LIST STREAMS;")
    assert main([url, "-e", f"RUN SCRIPT '{script}';"]) == 0
    assert main([url, "-e", "RUN SCRIPT '/nowhere';"]) == 1
    assert main(["http://127.0.0.1:1", "-e", "LIST STREAMS;"]) == 1
    assert "could not connect" in capsys.readouterr().err


def test_properties_of_kafka_streams_are_listed_with_their_prefix(api: Api) -> None:
    (listed,) = api.ksql("SHOW PROPERTIES;", streamsProperties={"auto.offset.reset": "earliest"})
    values = {each["name"]: each["value"] for each in listed["properties"]}
    assert values["ksql.streams.auto.offset.reset"] == "earliest"
    assert "auto.offset.reset" not in values
    assert "ksql.functions.collect_list.limit" in values
