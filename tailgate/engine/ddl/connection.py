"""CREATE SECRET, ALTER SECRET and CREATE CONNECTION: the catalog items.

A connection's address and settings are copied to the sources and sinks that use it, so
these do not differ from sources and sinks whose statements contain the address. Secrets are read at
each use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tailgate.engine.ddl import access
from tailgate.engine.ddl.names import free, kept, of_kind
from tailgate.lake.catalog import CONNECTION, SECRET, Catalog, Item
from tailgate.lake.errors import InvalidParameterValue, WrongObjectType
from tailgate.lake.secrets import SEALED
from tailgate.sql.statements import AlterSecret, CreateConnection, CreateSecret, Name, Options
from tailgate.sql.statements.parsers.kafka.sources_and_sinks import addresses

HIDDEN = "'********'"  # replaces the value in the stored text of a secret's statement
Seal = Callable[[str, int], str]  # lake.secrets.Vault.sealed


def create_secret(statement: CreateSecret, text: str, catalog: Catalog, seal: Seal) -> Item:
    """Returns the item of a secret: the value is encrypted, and masked in the stored text."""
    schema = free(statement.name, catalog)
    begin, end = statement.value_at
    id = catalog.next_id
    options = {SEALED: seal(statement.value, id)}
    item = Item(id, SECRET, statement.name.name, sql=text[:begin] + HIDDEN + text[end:], options=options, schema=schema.id)
    return kept(item, statement, catalog)


def alter_secret(statement: AlterSecret, catalog: Catalog, seal: Seal) -> Item | None:
    """Returns the secret with its new value; None if it does not exist and IF EXISTS is given."""
    if statement.if_exists and catalog.find(statement.name) is None:
        return None
    item = of_kind(SECRET, statement.name, catalog)
    return replace(item, options={**item.options, SEALED: seal(statement.value, item.id)})


def create_connection(statement: CreateConnection, text: str, catalog: Catalog) -> Item:
    """Returns the item of a connection; `text` is the statement as typed."""
    schema = free(statement.name, catalog)
    options, said = _kafka(statement.options, catalog) if statement.kind == "kafka" else _registry(statement.options, catalog)
    item = Item(
        id=catalog.next_id,
        kind=CONNECTION,
        name=statement.name.name,
        depends=said.secrets,
        sql=text,
        options={"type": statement.kind, **options, "settings": said.settings},
        schema=schema.id,
    )
    return kept(item, statement, catalog)


def _kafka(options: Options, catalog: Catalog) -> tuple[dict[str, Any], access.Said]:
    brokers: list[str] = []
    rest: list[tuple[str, Any]] = []
    for name, value in options:
        if name in ("broker", "brokers"):
            brokers += [access.text(v, name) for v in (value if isinstance(value, tuple) else (value,))]
        else:
            rest.append((name, value))
    if not brokers:
        raise InvalidParameterValue("a connection to Kafka needs a BROKER", hint="Write TO KAFKA (BROKER 'host:port').")
    return {"brokers": addresses(",".join(brokers))}, access.kafka(tuple(rest), catalog)


def _registry(options: Options, catalog: Catalog) -> tuple[dict[str, Any], access.Said]:
    urls = [access.text(value, name) for name, value in options if name == "url"]
    if not urls:
        raise InvalidParameterValue("a connection to a schema registry needs a URL", hint="Write (URL 'http://host:port').")
    url = urls[-1].rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise InvalidParameterValue(f'"{url}" is not the URL of a schema registry', hint="Write http://host:port.")
    if "@" in url.split("/")[2]:
        raise InvalidParameterValue("the URL of a connection has no user and password in it", hint="Write USERNAME and PASSWORD = SECRET.")
    said = access.registry(tuple(o for o in options if o[0] != "url"), catalog)
    if url.startswith("http:") and {"ca", "certificate"} & said.settings.keys():
        raise InvalidParameterValue("options of SSL make no sense with a URL that begins with http:")
    return {"url": url}, said


# ---- for sources and sinks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reached:
    """The access to a Kafka or a registry that a source or sink uses.

    `address`: the brokers, or a URL. `depends`: ids of the connection and of secrets.
    """

    address: str
    settings: dict[str, Any]
    depends: tuple[int, ...]


def kafka(connection: Name | None, brokers: str, options: Options, catalog: Catalog) -> Reached:
    """Returns the access to the Kafka of a source or sink.

    Uses only the options that concern access. Raises 22023 if a connection and such options are
    given.
    """
    said = tuple(o for o in options if access.is_access(o[0]))
    if connection is None:
        found = access.kafka(said, catalog)
        return Reached(brokers, found.settings, found.secrets)
    if said:
        raise InvalidParameterValue(
            f'option "{said[0][0]}" is said by the connection', hint="Leave it out, or name the brokers themselves."
        )
    return _connection(connection, "kafka", catalog)


def registry(connection: Name | None, url: str, options: Options, catalog: Catalog) -> Reached:
    """Returns the access to the registry of a format. `options`: those that follow its URL."""
    if connection is None:
        found = access.registry(options, catalog)
        return Reached(url.rstrip("/"), found.settings, found.secrets)
    return _connection(connection, "schema registry", catalog)


def _connection(name: Name, kind: str, catalog: Catalog) -> Reached:
    """Returns the access that a connection gives. Raises 42809 if it has another kind."""
    item = of_kind(CONNECTION, name, catalog)
    if item.options["type"] != kind:
        raise WrongObjectType(f'connection "{item.name}" is not to {_WORDS[kind]}', position=name.position)
    return Reached(item.options["brokers" if kind == "kafka" else "url"], item.options["settings"], (item.id,))


_WORDS = {"kafka": "Kafka", "schema registry": "a schema registry"}
