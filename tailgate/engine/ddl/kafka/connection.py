"""CREATE SECRET, ALTER SECRET and CREATE CONNECTION: the catalog items.

A connection's address and settings are copied to the sources and sinks that use it, so
these do not differ from sources and sinks whose statements contain the address. Secrets are read at
each use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tailgate.engine.ddl.kafka import access
from tailgate.lake.catalog import Catalog, Connection, Secret
from tailgate.lake.catalog.formats import ConnectionSettings
from tailgate.lake.errors import InvalidParameterValue, WrongObjectType
from tailgate.sql.new_items import find_item, normalized, schema_for
from tailgate.sql.statements import AlterSecret, CreateConnection, CreateSecret, Name, Options
from tailgate.sql.statements.parsers.kafka.brokers import addresses

SERVICE_NAMES = {"kafka": "Kafka", "schema registry": "a schema registry"}
HIDDEN = "'********'"  # replaces the value in the stored text of a secret's statement
Seal = Callable[[str, int], str]  # lake.catalog.secrets.Vault.sealed


def create_secret(statement: CreateSecret, text: str, catalog: Catalog, seal: Seal) -> Secret:
    """Returns the item of a secret: the value is encrypted, and masked in the stored text."""
    schema = schema_for(statement.name, catalog)
    begin, end = statement.value_at
    id = catalog.next_id
    masked = text[:begin] + HIDDEN + text[end:]
    item = Secret(id, statement.name.name, sql=masked, schema=schema.id, ciphertext=seal(statement.value, id))
    return normalized(item, statement, catalog)


def alter_secret(statement: AlterSecret, catalog: Catalog, seal: Seal) -> Secret | None:
    """Returns the secret with its new value; None if it does not exist and IF EXISTS is given."""
    if statement.if_exists and catalog.find(statement.name) is None:
        return None
    item = find_item(Secret, statement.name, catalog)
    return replace(item, ciphertext=seal(statement.value, item.id))


def create_connection(statement: CreateConnection, text: str, catalog: Catalog) -> Connection:
    """Returns the item of a connection; `text` is the statement as typed."""
    schema = schema_for(statement.name, catalog)
    to_kafka = statement.kind == "kafka"
    address, settings = _kafka(statement.options, catalog) if to_kafka else _registry(statement.options, catalog)
    item = Connection(
        id=catalog.next_id,
        name=statement.name.name,
        depends=settings.secrets,
        sql=text,
        type="kafka" if to_kafka else "schema registry",
        brokers=address if to_kafka else "",
        url="" if to_kafka else address,
        settings=settings.settings,
        schema=schema.id,
    )
    return normalized(item, statement, catalog)


def _kafka(options: Options, catalog: Catalog) -> tuple[str, access.AccessSettings]:
    brokers: list[str] = []
    rest: list[tuple[str, Any]] = []
    for name, value in options:
        if name in ("broker", "brokers"):
            brokers += [access.text(v, name) for v in (value if isinstance(value, tuple) else (value,))]
        else:
            rest.append((name, value))
    if not brokers:
        raise InvalidParameterValue("a connection to Kafka needs a BROKER", hint="Write TO KAFKA (BROKER 'host:port').")
    return addresses(",".join(brokers)), access.kafka(tuple(rest), catalog)


def _registry(options: Options, catalog: Catalog) -> tuple[str, access.AccessSettings]:
    urls = [access.text(value, name) for name, value in options if name == "url"]
    if not urls:
        raise InvalidParameterValue("a connection to a schema registry needs a URL", hint="Write (URL 'http://host:port').")
    url = urls[-1].rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise InvalidParameterValue(f'"{url}" is not the URL of a schema registry', hint="Write http://host:port.")
    if "@" in url.split("/")[2]:
        raise InvalidParameterValue("the URL of a connection has no user and password in it", hint="Write USERNAME and PASSWORD = SECRET.")
    settings = access.registry(tuple(o for o in options if o[0] != "url"), catalog)
    if url.startswith("http:") and {"ca", "certificate"} & settings.settings.keys():
        raise InvalidParameterValue("options of SSL make no sense with a URL that begins with http:")
    return url, settings


# ---- for sources and sinks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The access to a Kafka or a registry that a source or sink uses.

    `address`: the brokers, or a URL. `depends`: ids of the connection and of secrets.
    """

    address: str
    settings: ConnectionSettings
    depends: tuple[int, ...]


def kafka(connection: Name | None, brokers: str, options: Options, catalog: Catalog) -> Endpoint:
    """Returns the access to the Kafka of a source or sink.

    Uses only the options that concern access. Raises 22023 if a connection and such options are
    given.
    """
    own_options = tuple(o for o in options if access.is_access(o[0]))
    if connection is None:
        settings = access.kafka(own_options, catalog)
        return Endpoint(brokers, settings.settings, settings.secrets)
    if own_options:
        raise InvalidParameterValue(
            f'option "{own_options[0][0]}" is said by the connection', hint="Leave it out, or name the brokers themselves."
        )
    return _connection(connection, "kafka", catalog)


def registry(connection: Name | None, url: str, options: Options, catalog: Catalog) -> Endpoint:
    """Returns the access to the registry of a format. `options`: those that follow its URL."""
    if connection is None:
        settings = access.registry(options, catalog)
        return Endpoint(url.rstrip("/"), settings.settings, settings.secrets)
    return _connection(connection, "schema registry", catalog)


def _connection(name: Name, kind: str, catalog: Catalog) -> Endpoint:
    """Returns the access that a connection gives. Raises 42809 if it has another kind."""
    item = find_item(Connection, name, catalog)
    if item.type != kind:
        raise WrongObjectType(f'connection "{item.name}" is not to {SERVICE_NAMES[kind]}', position=name.position)
    return Endpoint(item.brokers or item.url, item.settings, (item.id,))
