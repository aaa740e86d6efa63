"""ASSERT TOPIC and ASSERT SCHEMA: wait until a topic or a schema exists, or does not exist.

Source: ksqlDB 0.29, documentation, "ASSERT TOPIC", "ASSERT SCHEMA".
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep

from tailgate.engine.ddl.kafka.registry import Registry
from tailgate.engine.ddl.ksqldb import Endpoints
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.secrets import Vault, settings
from tailgate.lake.errors import InvalidParameterValue, UndefinedObject
from tailgate.sql.ksqldb.statements import AssertSchema, AssertTopic

TIMEOUT_MS = 1000  # without TIMEOUT
TIMEOUT_MAX_MS = 600_000  # a statement that waits holds a connection to the engine
LOOK_S = 0.1  # between two checks
CONFIGURATIONS = ("PARTITIONS", "REPLICAS")


class Assertions:
    """Executes these statements, in the catalog that `catalog` returns. Thread safe. `vault`: for the secrets of its connections."""

    def __init__(self, endpoints: Endpoints, registry: Registry, catalog: Callable[[], Catalog], vault: Vault) -> None:
        self._endpoints, self._registry, self._catalog, self._vault = endpoints, registry, catalog, vault

    def check(self, statement: AssertTopic | AssertSchema, check_canceled: Callable[[], None]) -> None:
        """Waits until the assertion is true. Raises 42704 if it is not true in time, 22023 for an invalid one."""
        timeout = TIMEOUT_MS if statement.timeout is None else statement.timeout
        if timeout > TIMEOUT_MAX_MS:
            raise InvalidParameterValue(f"a TIMEOUT has at most {TIMEOUT_MAX_MS // 1000} seconds")
        check = self._topic(statement) if isinstance(statement, AssertTopic) else self._schema(statement)
        deadline = monotonic() + timeout / 1000
        while (failure := check()) is not None:
            if monotonic() > deadline:
                raise UndefinedObject(failure)
            check_canceled()
            sleep(LOOK_S)

    def _topic(self, statement: AssertTopic) -> Callable[[], str | None]:
        """Returns a function that returns why the assertion about a topic is not true, or None."""
        catalog, topic = self._catalog(), statement.topic
        endpoints = self._endpoints.within(catalog)
        brokers, access = endpoints.brokers(), self._vault.opened(settings(endpoints.kafka_settings, catalog))
        for name, value in statement.properties:
            if name not in CONFIGURATIONS or not str(value).isdigit():
                raise InvalidParameterValue(f"invalid configuration of a topic: {name} = {value}", hint="Use PARTITIONS and REPLICAS.")
        expected = [(name, int(str(value))) for name, value in statement.properties]

        def check() -> str | None:
            topics = {name: {"PARTITIONS": p, "REPLICAS": r} for name, p, r in kafka.listed(brokers, access)}
            actual = topics.get(topic)
            if statement.absent:
                return None if actual is None else f"Topic {topic} exists"
            if actual is None:
                return f"Topic {topic} does not exist"
            others = [f"For config {name}, expected {value} got {actual[name]}" for name, value in expected if actual[name] != value]
            return f"Mismatched configuration for topic {topic}: {', '.join(others)}" if others else None

        return check

    def _schema(self, statement: AssertSchema) -> Callable[[], str | None]:
        """Returns a function that returns why the assertion about a schema is not true, or None."""
        catalog, subject, id = self._catalog(), statement.subject, statement.id
        endpoints = self._endpoints.within(catalog)
        url, access = endpoints.schemas(), settings(endpoints.registry_settings, catalog)
        parts = [f"subject name {subject}" if subject is not None else "", f"id {id}" if id is not None else ""]
        what = f"Schema with {' '.join(filter(None, parts))}"

        def check() -> str | None:
            exists = self._registry.has(url, subject, id, access)
            if exists == (not statement.absent):
                return None
            return f"{what} {'exists' if exists else 'does not exist'}"

        return check
