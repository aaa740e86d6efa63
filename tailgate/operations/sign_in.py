"""The brokers and schema registries of a lake's items, and requests to them with the items' credentials, for `tailgate doctor`."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tailgate.lake import clients
from tailgate.lake.catalog import Catalog, Connection, Sink, Source
from tailgate.lake.catalog.secrets import Settings, settings

BROKER, REGISTRY = "broker", "schema registry"
ANSWER_S = 5.0
SUBJECTS = "/subjects"  # a request that each schema registry permits to its users


@dataclass(frozen=True, slots=True)
class Server:
    """The brokers or the schema registry of items, and the settings for access, with ciphertexts of secrets."""

    kind: str
    address: str
    access: Settings


def servers(catalog: Catalog) -> set[Server]:
    """Returns the servers of all sources, sinks and connections."""
    return {server for item in catalog.items.values() for server in _servers(item, catalog)}


def _servers(item: object, catalog: Catalog) -> Iterator[Server]:
    match item:
        case Connection():
            kind, address = (BROKER, item.brokers) if item.type == "kafka" else (REGISTRY, item.url)
            yield Server(kind, address, settings(item.settings, catalog))
        case Source() | Sink():
            yield Server(BROKER, item.brokers, settings(item.kafka, catalog))
            for format in (item.value_format, item.key_format):
                if registry := getattr(format, "registry", ""):
                    yield Server(REGISTRY, registry, settings(getattr(format, "access", None) or {}, catalog))


def failure(kind: str, address: str, access: Mapping[str, str]) -> str | None:
    """Returns why a request with this access fails; None if the server answers it."""
    return _broker(address, access) if kind == BROKER else _registry(address, access)


def _broker(brokers: str, access: Mapping[str, str]) -> str | None:
    """Asks for the topics, which needs a connection and a sign-in."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient

    errors: list[KafkaError] = []
    configuration: dict[str, Any] = {"bootstrap.servers": brokers, "log_level": 0, "error_cb": errors.append}
    try:
        client = AdminClient(configuration | clients.librdkafka(access))
    except KafkaException as error:  # the client refuses a setting
        return str(error.args[0].str())
    try:
        client.list_topics(timeout=ANSWER_S)
    except KafkaException as error:
        client.poll(0)  # calls `errors.append`
        causes = [e for e in errors if e.code() != KafkaError._ALL_BROKERS_DOWN]
        return str((causes or [error.args[0]])[0].str())
    return None


def _registry(url: str, access: Mapping[str, str]) -> str | None:
    """Asks for the subjects."""
    shown = clients.shown_url(url)
    request = urllib.request.Request(shown + SUBJECTS, headers=clients.login(urlsplit(url), access))
    context = clients.tls(access) if request.type == "https" else None
    try:
        clients.opener(context).open(request, timeout=ANSWER_S).close()
    except urllib.error.HTTPError as error:
        return f"it answers {error.code} {error.reason}"
    except (OSError, http.client.HTTPException) as error:
        return str(getattr(error, "reason", "") or type(error).__name__)
    return None
