"""CREATE ALERT: the alert's catalog item. `tailgate watch` evaluates it, with the help of a gateway for its query."""

from __future__ import annotations

from typing import Literal

from tailgate.engine.ddl.durations import milliseconds
from tailgate.engine.ddl.kafka import connection
from tailgate.lake.catalog import Alert, AlertTopic, AlertWebhook, Catalog, Objective, Secret
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, ReservedName
from tailgate.operations.watch.checks import RESERVED
from tailgate.sql.bind import bind_query
from tailgate.sql.new_items import check_columns, find_item, normalized, schema_for
from tailgate.sql.plan.session_calls import separated
from tailgate.sql.statements import CreateAlert, Options, SecretName

HOLD_MAX_MS = 24 * 3_600_000
SEVERITY = "page"
SEVERITY_CHARACTERS_MAX = 63
URL_CHARACTERS_MAX = 2_000


def create_alert(statement: CreateAlert, text: str, catalog: Catalog) -> Alert:
    """Returns the item of an alert; `text` is the statement as typed."""
    schema = schema_for(statement.name, catalog)
    if statement.name.name in RESERVED:
        raise ReservedName(f'alert name "{statement.name.name}" is reserved', position=statement.name.position)
    depends: tuple[int, ...] = ()
    objective, query = 0, ""
    if statement.objective is not None:
        objective = find_item(Objective, statement.objective, catalog).id
        depends = (objective,)
    if statement.query is not None:
        bound = bind_query(statement.query, catalog, ())
        if calls := separated(bound.plan, 1).all_calls:
            raise FeatureNotSupported(f"{calls[0].name} in an alert is not supported")
        check_columns(bound.columns)
        depends, query = bound.depends, statement.query.text
    webhooks = tuple(_webhook(url, options, catalog) for url, options in statement.webhooks)
    places = [connection.kafka(topic.connection, topic.brokers, (), catalog) for topic in statement.topics]
    topics = tuple(AlertTopic(t.topic, place.address, place.settings) for t, place in zip(statement.topics, places, strict=True))
    reached = (*(w.secret for w in webhooks if w.secret), *(id for place in places for id in place.depends))
    item = Alert(
        catalog.next_id,
        statement.name.name,
        depends=tuple(dict.fromkeys((*depends, *reached))),
        sql=text,
        query=query,
        schema=schema.id,
        objective=objective,
        hold_ms=0 if statement.hold is None else _hold(statement.hold),
        severity=_severity(statement.severity),
        webhooks=webhooks,
        commands=tuple(map(_command, statement.commands)),
        topics=topics,
    )
    return normalized(item, statement, catalog)


def _hold(interval: str) -> int:
    length = milliseconds(interval)
    if not 0 <= length <= HOLD_MAX_MS:
        raise InvalidParameterValue(f'invalid FOR: "{interval}"', hint="It must be from 0 s to 1 day.")
    return length


def _severity(text: str | None) -> str:
    if text is not None and not 0 < len(text) <= SEVERITY_CHARACTERS_MAX:
        raise InvalidParameterValue(f'invalid SEVERITY: "{text}"', hint=f"It has 1 to {SEVERITY_CHARACTERS_MAX} characters.")
    return text or SEVERITY


def _command(path: str) -> str:
    """Returns the path of a program. `tailgate watch` checks whether it may be executed. Raises 22023."""
    if not path or path.startswith("/") or ".." in path.split("/") or "\0" in path or len(path) > URL_CHARACTERS_MAX:
        raise InvalidParameterValue(f'invalid COMMAND: "{path}"', hint="It is the path of a program below --secrets-dir of tailgate watch.")
    return path


def _webhook(url: str, options: Options, catalog: Catalog) -> AlertWebhook:
    """Returns a webhook. Raises 22023 or 0A000."""
    if not url.startswith(("http://", "https://")) or len(url) > URL_CHARACTERS_MAX:
        raise InvalidParameterValue(f'invalid WEBHOOK: "{url}"', hint="It is a URL of http or https.")
    format: Literal["plain", "alertmanager"] = "plain"
    secret = 0
    for option, value in options:
        if option == "format" and value in ("plain", "alertmanager"):
            format = "alertmanager" if value == "alertmanager" else "plain"
        elif option == "secret" and isinstance(value, SecretName):
            secret = find_item(Secret, value.name, catalog).id
        elif option in ("format", "secret"):
            hint = "format is 'plain' or 'alertmanager', and secret is SECRET name."
            raise InvalidParameterValue(f'invalid value for option "{option}"', hint=hint)
        else:
            raise FeatureNotSupported(f'option "{option}" of a webhook is not supported', hint="The options are format and secret.")
    return AlertWebhook(url, format, secret)
