"""The alerts of CREATE ALERT: their conditions, from rows that a gateway reads, and their targets.

    catalog ──► alert with a query ──► gateway: rows ──► a condition for each row
           └──► alert on an objective ──► a condition while it is violated

A thread asks the gateways, so that a slow query delays no other alert. If the query of an alert fails, or no gateway answers, its
conditions are unknown, and `alert_failing` fires.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tailgate.lake import peers
from tailgate.lake.catalog import Alert, AlertTopic, AlertWebhook, Catalog
from tailgate.lake.catalog.secrets import Vault, setting_of, settings
from tailgate.lake.clients import librdkafka
from tailgate.lake.errors import TailgateError
from tailgate.lake.folder import Lake
from tailgate.operations.watch.alerts import PAGE, Checked, Condition, Notification
from tailgate.operations.watch.delivery import Target, Webhook
from tailgate.operations.watch.targets.programs import Program
from tailgate.operations.watch.targets.topics import Topic

log = logging.getLogger("tailgate.watch")

FAILING = "alert_failing"
FAILING_S = 10.0  # a gateway or watch that starts does not know the alert yet
ASK_S = 2.0  # between two evaluations of all alerts
ANSWER_S = 4.0  # longer than a gateway lets a query run
KNOWN_S = 15.0  # an older answer says nothing about the present


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer of a gateway about an alert, and when it came, by the monotonic clock."""

    answer: Mapping[str, Any]
    at_s: float


class AlertItems(threading.Thread):
    """A thread that evaluates the alerts of a lake until `end`."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(name="alerts", daemon=True)
        self._lake = lake
        self._rows: dict[int, Rows] = {}
        self._ending = threading.Event()

    def run(self) -> None:
        while not self._ending.wait(ASK_S):
            try:
                self._ask()
            except (OSError, TailgateError) as error:
                log.warning("alerts cannot be evaluated: %s; trying again", error)

    def _ask(self) -> None:
        """Evaluates each alert at the first gateway that answers."""
        items = [item for item in self._lake.catalog().each(Alert) if item.query]
        gateways = peers.announced(self._lake) if items else []
        for item in items:
            answers = (peers.ask(gateway, {"do": "alert", "id": item.id}, ANSWER_S) for gateway in gateways)
            answer = next((a for a in answers if a), None)
            if answer is not None:
                self._rows[item.id] = Rows(answer, time.monotonic())
        self._rows = {item.id: self._rows[item.id] for item in items if item.id in self._rows}

    def end(self) -> None:
        self._ending.set()

    def checked(self, catalog: Catalog, violated: Mapping[int, Condition]) -> Iterator[Checked]:
        """Yields the result for each alert. `violated`: the conditions of objectives that are violated, by id."""
        failing = []
        for item in catalog.each(Alert):
            name = catalog.stored.name_of(item).sql
            conditions: tuple[Condition, ...] | None
            if item.objective:
                of = violated.get(item.objective)
                conditions = () if of is None else (Condition(name, "", item.severity, of.summary, of.hint, webhooks_of=_receiver(item)),)
            else:
                conditions = self._conditions(item, name)
                if conditions is None:
                    hint = "Run its query: SHOW CREATE ALERT. It needs a gateway that tailgate watch reaches."
                    failing.append(Condition(FAILING, name, PAGE, f"alert {name} cannot be evaluated", hint))
            yield Checked(name, conditions, item.hold_ms / 1000)
        yield Checked(FAILING, tuple(failing), FAILING_S)

    def _conditions(self, item: Alert, name: str) -> tuple[Condition, ...] | None:
        rows = self._rows.get(item.id)
        if rows is None or "rows" not in rows.answer or time.monotonic() - rows.at_s > KNOWN_S:
            return None
        return tuple(_condition(item, name, key, fields) for key, fields in rows.answer["rows"])


def _condition(item: Alert, name: str, key: str, fields: Mapping[str, Any]) -> Condition:
    """Returns the condition of a row. A column `summary` is its text."""
    summary = fields.get("summary")
    text = summary if isinstance(summary, str) else f"alert {name}: {key}" if key else f"alert {name}"
    return Condition(name, key, item.severity, text, fields=fields, webhooks_of=_receiver(item))


def targets(catalog: Catalog, lake: str, vault: Vault, programs: Path | None) -> list[Target]:
    """Returns the webhooks, programs and topics of all alerts. `programs`: the folder of programs, None if they are not allowed."""
    receivers: list[Target] = []
    for item in catalog.each(Alert):
        receivers += [_webhook(item, webhook, catalog, lake, vault) for webhook in item.webhooks]
        receivers += [Program(path, programs, lake, partial(_receives, item.id), str(item.id)) for path in item.commands]
        receivers += [_topic(item, topic, catalog, lake, vault) for topic in item.topics]
    return receivers


def _receiver(item: Alert) -> int:
    return item.id if item.webhooks or item.commands or item.topics else 0


def _receives(alert: int, notification: Notification) -> bool:
    return notification.condition.webhooks_of == alert


def _webhook(item: Alert, webhook: AlertWebhook, catalog: Catalog, lake: str, vault: Vault) -> Webhook:
    sealed = setting_of(webhook.secret, catalog) if webhook.secret else None

    def secret() -> str | None:
        return None if sealed is None else vault.opened((("secret", sealed),))["secret"]

    return Webhook(webhook.url, webhook.format, lake, secret, partial(_receives, item.id), str(item.id), sealed)


def _topic(item: Alert, topic: AlertTopic, catalog: Catalog, lake: str, vault: Vault) -> Topic:
    sealed = settings(topic.kafka, catalog)

    def client() -> dict[str, str]:
        return librdkafka(vault.opened(sealed))

    return Topic(topic.topic, topic.brokers, lake, client, partial(_receives, item.id), str(item.id))
