"""Tests the translation of a connector's properties for the plugins that are installed."""

from __future__ import annotations

import pytest

from tailgate.engine.runtime.connect import secrets
from tailgate.engine.runtime.connect.translation import installed_class, plugin_of, translated
from tailgate.formats.converters import APICURIO_AVRO, CONFLUENT_AVRO

MYSQL, MARIADB = "io.debezium.connector.mysql.MySqlConnector", "io.debezium.connector.mariadb.MariaDbConnector"
NEW = ("topic.prefix", "table.include.list", "schema.name.adjustment.mode", "database.hostname")
CALLS = {
    "connector.class": MYSQL,
    "database.hostname": "mysql",
    "database.server.name": "call-center-db",
    "table.whitelist": "call-center.calls",
    "database.history.kafka.topic": "call-center",
}


def test_scenario_2_with_todays_debezium_for_mariadb() -> None:
    result = translated(CALLS, [MARIADB], NEW)
    assert result.config == {
        "connector.class": MARIADB,
        "database.hostname": "mysql",
        "topic.prefix": "call-center-db",
        "table.include.list": "call-center.calls",
        "schema.history.internal.kafka.topic": "call-center",
        "schema.name.adjustment.mode": "avro",
    }
    assert result.notices == (
        f"connector.class {MYSQL} is not installed, {MARIADB} is used",
        "property database.server.name is passed as topic.prefix",
        "property table.whitelist is passed as table.include.list",
        "property database.history.kafka.topic is passed as schema.history.internal.kafka.topic",
        "property schema.name.adjustment.mode is avro, the default of Debezium 1.x",
    )


def test_a_plugin_that_knows_the_old_names_gets_them() -> None:
    assert translated(CALLS, [MYSQL, MARIADB], [*CALLS, *NEW]).config == CALLS
    assert translated(CALLS, [MYSQL], ()).config == CALLS


def test_new_names_pass_and_take_precedence() -> None:
    config = {"connector.class": MYSQL, "topic.prefix": "a"}
    assert translated(config, [MYSQL], NEW).config == config
    assert translated({**config, "database.server.name": "b"}, [MYSQL], NEW).config["topic.prefix"] == "a"


@pytest.mark.parametrize("installed", [[MYSQL], [MYSQL, APICURIO_AVRO], [MYSQL, APICURIO_AVRO, CONFLUENT_AVRO]])
def test_converters(installed: list[str]) -> None:
    config = {
        "connector.class": MYSQL,
        "value.converter": CONFLUENT_AVRO,
        "value.converter.schema.registry.url": "http://r:8081/, http://s",
    }
    result = translated(config, installed, NEW)
    if APICURIO_AVRO not in installed or CONFLUENT_AVRO in installed:
        assert result.config == config
        return
    assert result.config["value.converter"] == APICURIO_AVRO
    assert result.config["value.converter.apicurio.registry.url"] == "http://r:8081/apis/registry/v2"
    assert "value.converter.schema.registry.url" not in result.config
    assert result.notices == (f"value.converter {CONFLUENT_AVRO} is not installed, {APICURIO_AVRO} is used",)


def test_classes_may_be_short() -> None:
    assert plugin_of("MySql", [MYSQL]) == plugin_of("MySqlConnector", [MYSQL]) == plugin_of(MYSQL, [MYSQL]) == MYSQL
    assert plugin_of("Sql", [MYSQL]) is None
    assert installed_class("MySql", [MARIADB]) == "MySql"


@pytest.mark.parametrize("name", ["database.password", "aws.secret.access.key", "sasl.jaas.config", "basic.auth.user.info", "login"])
def test_confidential_values(name: str) -> None:
    config, definitions = {name: "guarded", "topic": "guar"}, {"login": "PASSWORD"}
    assert secrets.shown(config, definitions) == {name: secrets.MASK, "topic": "guar"}
    assert secrets.masked("failed: guarded, topic", config, definitions) == "failed: ********, topic"


def test_passwords_of_urls() -> None:
    config = {"connection.url": "jdbc:postgresql://ann:guarded@host/db"}
    assert secrets.shown(config, {}) == {"connection.url": "jdbc:postgresql://********@host/db"}
    assert "guarded" not in secrets.masked("no route to jdbc:postgresql://ann:guarded@host/db", config, {})
