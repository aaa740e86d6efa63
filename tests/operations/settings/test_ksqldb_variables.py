"""Tests the variables of ksqldb-server's image as options of `tailgate up`, also those of the example's compose file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tailgate import cli
from tailgate.embedded.connect import Connect
from tailgate.embedded.connect_options import checked
from tailgate.formats.converters import APICURIO_AVRO
from tailgate.lake.errors import TailgateError
from tailgate.operations.settings import configuration
from tailgate.operations.settings.ksqldb_variables import applied, translated

ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "tailgate" / "examples" / "support_calls" / "docker-compose.yml"


def variables_of(service: str) -> dict[str, str]:
    """Returns the variables of a service of the compose file."""
    (block,) = re.findall(rf"^  {service}:\n((?:    .*\n|\n)*)", COMPOSE.read_text(), re.MULTILINE)
    return {name: value.strip('"') for name, value in re.findall(r"^      (KSQL_\w+): (.+)$", block, re.MULTILINE)}


def test_the_compose_file_of_scenario_2(tmp_path: Path) -> None:
    messages: list[str] = []
    words = applied(["up", "--data", "/lake"], variables_of("ksqldb-server"), messages.append)
    options = configuration.parse(cli.parser(), words, {})
    assert (options.ksqldb, options.kafka, options.schema_registry) == ("0.0.0.0:8088", "broker:9092", "http://schema-registry:8081")
    assert (str(options.data), options.listen, options.insecure) == ("/lake", "127.0.0.1:6875", True)
    assert options.processing_log
    assert messages == []
    worker = Connect(tmp_path, options.kafka, options.schema_registry, checked(options)).settings()
    assert worker["group.id"] == "ksql-connect-cluster"
    assert worker["bootstrap.servers"] == "broker:9092"
    assert worker["key.converter"] == "org.apache.kafka.connect.storage.StringConverter"
    assert worker["value.converter"] == APICURIO_AVRO
    assert worker["value.converter.apicurio.registry.url"] == "http://schema-registry:8081/apis/registry/v2"
    assert worker["config.storage.topic"] == "_ksql-connect-configs"
    assert worker["plugin.path"] == f"{tmp_path}/plugins,/usr/share/kafka/plugins"


def test_options_of_the_command_line_take_precedence() -> None:
    words = applied(["up", "--kafka", "other:9092"], {"KSQL_BOOTSTRAP_SERVERS": "PLAINTEXT://broker:9092"}, print)
    assert configuration.parse(cli.parser(), words, {}).kafka == "other:9092"


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({}, ()),
        ({"KSQL_HOME": "/opt", "KSQL_CONNECT_GROUP_ID": "g"}, ()),
        ({"KSQL_LISTENERS": "http://[::]:8088"}, ("--ksqldb", "[::]:8088", "--insecure")),
        ({"KSQL_LISTENERS": "https://0.0.0.0:8088"}, ("--ksqldb", "0.0.0.0:8088")),
        ({"KSQL_BOOTSTRAP_SERVERS": "a:1, PLAINTEXT://b:2"}, ("--kafka", "a:1,b:2")),
        (
            {"KSQL_BOOTSTRAP_SERVERS": "a:1", "KSQL_KSQL_CONNECT_URL": "http://c:8083", "KSQL_CONNECT_GROUP_ID": "g"},
            ("--kafka", "a:1", "--connect", "http://c:8083"),
        ),
    ],
)
def test_variables(environment: dict[str, str], options: tuple[str, ...]) -> None:
    assert translated(environment).options == options


@pytest.mark.parametrize(
    ("name", "value", "sqlstate"),
    [
        ("KSQL_LISTENERS", "0.0.0.0", "22023"),
        ("KSQL_LISTENERS", "http://a:1,http://b:2", "0A000"),
        ("KSQL_BOOTSTRAP_SERVERS", "SASL_SSL://a:1", "0A000"),
        ("KSQL_SECURITY_PROTOCOL", "SASL_SSL", "0A000"),
        ("KSQL_AUTHENTICATION_METHOD", "BASIC", "0A000"),
        ("KSQL_KSQL_QUERIES_FILE", "/queries.sql", "0A000"),
    ],
)
def test_what_is_refused_by_name(name: str, value: str, sqlstate: str) -> None:
    with pytest.raises(TailgateError) as error:
        translated({"KSQL_BOOTSTRAP_SERVERS": "a:1", name: value})
    assert error.value.sqlstate == sqlstate
    assert name in error.value.message
