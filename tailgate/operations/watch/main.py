"""The process `tailgate watch`: observes, checks, and appends notifications; a thread for each target delivers them.

It observes once a second. In a bucket, where an observation takes some requests, it asks only the processes once a second, and observes
the lake when they answer otherwise than before, and every 20 seconds.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tailgate.lake.catalog import Alert
from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.errors import Gone, InvalidParameterValue
from tailgate.lake.folder import Lake
from tailgate.operations.data_folder import Location
from tailgate.operations.definitions import WATCH
from tailgate.operations.endpoint import Address, Endpoint, opened
from tailgate.operations.metrics import labeled
from tailgate.operations.settings.process import ProcessSettings
from tailgate.operations.watch import checks, missed, objectives, payloads, silences
from tailgate.operations.watch.alert_items import AlertItems, targets
from tailgate.operations.watch.alerts import Checked, Event, Identity, Notification, alerts
from tailgate.operations.watch.delivery import Deliverers, Target, Webhook
from tailgate.operations.watch.history import Recorder, endpoints, recorded
from tailgate.operations.watch.notifications import Writer
from tailgate.operations.watch.observation import Observation, Observer
from tailgate.operations.watch.states import States

log = logging.getLogger("tailgate.watch")

POLL_S = 1.0  # between two observations
LOOKS = 40  # the same while processes answer as before, at least so many times `Store.look_s`: 20 s in a bucket
OVERDUE_S = 30.0  # an observation takes at most some seconds
CLEAN_S = 3600.0  # between two removals of old notifications, after which space for new ones is reserved
SECRET_BYTES_MAX = 1 << 10


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tailgate watch`. `webhooks`: URLs that receive the notifications of all alerts without webhooks."""

    data: Location
    work_dir: Path | None = None
    webhooks: tuple[str, ...] = ()
    form: payloads.Format = "plain"
    secret_file: Path | None = None
    metrics: Address | None = None
    vault: Vault = field(default_factory=Vault)
    programs: bool = False  # NOTIFY COMMAND may execute programs of the vault's folder
    settings: ProcessSettings | None = None  # of this process, which SIGHUP reads again


class Watcher:
    """Observes a lake until `stop()`. `targets`: of the alerts without their own; may be replaced. `vault`: for the secrets of webhooks.

    `programs`: the folder of the programs of NOTIFY COMMAND, None if they are not allowed.
    """

    def __init__(self, lake: Lake, targets: Sequence[Target], vault: Vault | None = None, programs: Path | None = None) -> None:
        self._lake, self.targets, self._vault, self._programs = lake, targets, vault or Vault(), programs
        self._stopping = threading.Event()
        self._observer, self._memory = Observer(lake), checks.Memory()
        self._writer = Writer(lake)
        self._history = Recorder(lake, time.time())
        self._objectives = objectives.Objectives(lake, self._history.recent(0))
        history = self._writer.read.all()
        self._states = States(alerts(history), time.monotonic())
        self._known = {notification.condition.identity for notification in history}
        active = [alert.first for alert in alerts(history) if alert.resolved_at is None]
        # a new target gets the alerts that are active
        self._deliverers = Deliverers(lake, min([self._writer.newest, *(first - 1 for first in active)]))
        self._alert_items = AlertItems(lake)
        self._missed: list[Event] = []  # of the time in which no process observed, not written yet
        self._seen_at = self._cleaned_at = -math.inf  # the monotonic clock starts with the machine
        self._observed_at = time.monotonic()

    @property
    def newest(self) -> int:
        """Returns the id of the newest notification; 0 before the first."""
        return self._writer.newest

    def active(self) -> dict[str, int]:
        """Returns the number of active alerts by name."""
        return Counter(name for name, _ in list(self._states.active))

    def undelivered(self) -> dict[str, int]:
        """Returns the number of notifications that each target has not received yet."""
        return self._deliverers.undelivered(self.newest)

    def unready(self) -> str | None:
        """Returns why the lake is not observed, or None."""
        age_s = time.monotonic() - self._observed_at
        return f"the lake was not observed for {age_s:.0f} s" if age_s > OVERDUE_S else None

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        """Runs until `stop()`. Raises 55000 if another process writes notifications."""
        self._alert_items.start()
        condition = missed.outage(self._lake, missed.seen(self._lake))
        if condition is not None and condition.identity not in self._known:
            self._missed = [Event("fired", condition), Event("resolved", condition)]
        try:
            while not self._stopping.is_set():
                self._wait(self._observe())
        finally:
            self._alert_items.end()
            self._deliverers.end()
            self._writer.close()

    def _wait(self, last: Observation | None) -> None:
        """Waits until the next observation. `last`: the one before it, None if it has failed."""
        end_s = time.monotonic() + LOOKS * self._lake.store.look_s
        own = [] if last is None else self._own_alerts(last)
        while not self._stopping.wait(POLL_S) and time.monotonic() < end_s and last is not None and not self._states.changes_soon:
            try:
                now = self._observer.again(last, self._history.newest)
            except OSError:  # the next observation logs it
                return
            if checks.differ(last, now) or own != self._own_alerts(last):
                return

    def _own_alerts(self, at: Observation) -> list[Identity]:
        """Returns the conditions of the users' alerts that hold."""
        own = self._alert_items.checked(at.catalog, self._objectives.violated(at.catalog))
        return [condition.identity for checked in own for condition in checked.conditions or ()]

    def _observe(self) -> Observation | None:
        """Observes once. A failure of the file system is logged, the same events are appended after it, and the result is None."""
        now_s = time.monotonic()
        try:
            at = self._observer.observe(self._history.newest)
            self._observed_at = at.at_s
            while self._missed:
                self._append(self._missed[:1])
                del self._missed[0]
            silenced = silences.silenced(self._lake)
            self._append(self._states.events(list(self._checked(at)), at.at_s, silenced), at.at_s, silenced)
            receiving = {active.condition.webhooks_of for active in self._states.active.values()} - {0}
            self._deliverers.update(
                [*self.targets, *targets(at.catalog, self._lake.id, self._vault, self._programs)], self.newest, receiving
            )
            self._record(at)
            if now_s - self._seen_at >= missed.SEEN_S:
                missed.record(self._lake, at)
                self._seen_at = now_s
            if now_s - self._cleaned_at >= CLEAN_S:
                self._writer.maintain()
                self._cleaned_at = now_s
            return at
        except (OSError, Gone) as error:
            log.warning("the lake cannot be observed, or a notification cannot be written: %s; trying again", error)
            return None

    def _checked(self, at: Observation) -> Iterator[Checked]:
        """Yields the results of all checks."""
        yield from checks.checked(at, self._memory)
        violated = self._objectives.violated(at.catalog)
        explicit = {item.objective for item in at.catalog.each(Alert)}
        yield Checked(objectives.ALERT, tuple(condition for id, condition in violated.items() if id not in explicit))
        yield from self._alert_items.checked(at.catalog, violated)

    def _record(self, at: Observation) -> None:
        """Records the freshness lags and latencies that gateways have reported, and the sizes of relations. Judges the objectives."""
        rows = [row for gateway in at.gateways or () for row in (gateway.answer or {}).get("rows", ())]
        ids = [item.id for item in recorded(at.catalog)]
        steps = self._history.reported(rows, ids, at.now / 1000, endpoints(at.catalog), at.engine.health.get("sizes"))
        self._objectives.judge(at.catalog, steps)

    def _append(self, events: Sequence[Event], now_s: float | None = None, silenced: Collection[str] = ()) -> None:
        """Makes events durable, and changes the state by those that `States` has returned."""
        for event in events:
            notification = self._writer.append(event, silenced=event.condition.alert in silenced)
            _log(notification)
            if now_s is not None:
                self._states.apply(notification, now_s)
        if events:
            self._deliverers.wake()


def _log(notification: Notification) -> None:
    """Logs a notification, but not the values of a row."""
    condition = notification.condition
    text = f": {condition.summary}" if condition.alert in checks.RESERVED else ""
    level = logging.INFO if notification.kind == "resolved" else logging.WARNING
    log.log(level, "alert %s %s (notification %d)%s", condition.alert, notification.kind, notification.n, text)


def _connect(endpoint: Endpoint, watcher: Watcher) -> None:
    """Sets the readers of the metrics. The process is ready while it observes."""
    metrics, prefix = endpoint.metrics, "tailgate_watch_"
    metrics.read(prefix + "alerts", lambda: labeled(watcher.active()))
    metrics.read_one(prefix + "notifications_total", lambda: watcher.newest)
    metrics.read(prefix + "undelivered", lambda: labeled(watcher.undelivered()))
    endpoint.health.started(watcher.unready)


def _targets(options: Options, secret: str | None, lake: Lake) -> list[Target]:
    return [Webhook(url, options.form, lake.id, lambda: secret, _without_webhooks) for url in dict.fromkeys(options.webhooks)]


def _without_webhooks(notification: Notification) -> bool:
    return not notification.condition.webhooks_of


def _secret(path: Path) -> str:
    """Returns the key of the signatures. Raises 22023 if the file cannot be used."""
    try:
        with path.open("rb") as file:
            secret = file.read(SECRET_BYTES_MAX).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidParameterValue(f"--webhook-secret-file {path} cannot be read: {type(error).__name__}") from None
    if not secret:
        raise InvalidParameterValue(f"--webhook-secret-file {path} is empty")
    return secret


def run(options: Options) -> int:
    """Runs `tailgate watch` until SIGTERM or SIGINT, and returns the exit code."""
    options.vault.check()
    secret = None if options.secret_file is None else _secret(options.secret_file)
    endpoint = opened(options.metrics, WATCH)
    stopping = threading.Event()
    watchers: list[Watcher] = []

    def stop(*_: object) -> None:
        stopping.set()
        for watcher in watchers:
            watcher.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if not Lake.wait_until_created(options.data, log, stopping.wait):
        return 0
    lake = Lake(options.data, options.work_dir)
    watchers.append(Watcher(lake, _targets(options, secret, lake), options.vault, options.vault.folder if options.programs else None))
    if endpoint is not None:
        _connect(endpoint, watchers[0])
    if options.settings is not None:
        _follow(options.settings, options, watchers[0], secret, lake)
    print(f"ready watch={options.data}", flush=True)
    if not stopping.is_set():
        watchers[0].run()
    if options.settings is not None:
        options.settings.withdraw()
    return 0


def _follow(settings: ProcessSettings, options: Options, watcher: Watcher, secret: str | None, lake: Lake) -> None:
    """Replaces the targets of the watcher when the settings change."""
    at: dict[str, Any] = {"webhook": options.webhooks, "webhook-format": options.form}

    def change(name: str, value: Any) -> None:
        at[name] = value
        watcher.targets = _targets(replace(options, webhooks=tuple(at["webhook"]), form=at["webhook-format"]), secret, lake)

    for name in at:
        settings.on_change(name, partial(change, name))
    settings.publish(lake.store)
