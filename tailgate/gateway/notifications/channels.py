"""LISTEN and NOTIFY: the channels of sessions, and notifications from the COMMIT of a session to the clients that listen.

    NOTIFY ──► pending in the transaction ──COMMIT──► Channels ──► each listening session ──► client, when it is idle outside a block
                                                         └──► other gateways (`session.peers`), when their mirrors have the rows

Notifications of one session arrive in their order. They are not durable. A step of the event loop delivers STEP_MAX of them, so that
large transactions and many sessions do not delay others.

Source: PostgreSQL 15, "LISTEN", "NOTIFY"; src/backend/commands/async.c.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tailgate.gateway.resources.budgets import Budget, Charge
from tailgate.lake.errors import InvalidParameterValue, OutOfMemory, ProgramLimitExceeded

CHANNEL_BYTES_MAX, PAYLOAD_BYTES_MAX = 63, 7999
CHANNELS_MAX = 10_000  # of a session, with those of its transaction
FIXED_BYTES = 200  # memory of a notification without its texts
PENDING_BYTES_MAX = 8 << 20  # notifications of a transaction
QUEUE_BYTES_MAX = 64 << 20  # notifications of committed transactions that are not delivered, except those of the last transaction
STEP_MAX = 500  # notifications that one step of the event loop delivers to sessions, or that a session then sends to its client
WAITING_BYTES_MAX = 8 << 20  # notifications that wait for a session in a block, or for a client that does not read


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification. `process`: the process id of the session that sent it."""

    channel: str
    payload: str
    process: int

    @property
    def size(self) -> int:
        return FIXED_BYTES + len(self.channel) + len(self.payload)


class Channels:
    """The sessions of a gateway that listen, by channel, and the notifications that are delivered to them, in order.

    `forward` sends notifications, and the inbox entry of their rows, to other gateways.
    """

    def __init__(self, forward: Callable[[Sequence[Notification], int], None]) -> None:
        self._forward = forward
        self._listeners: dict[str, dict[Notifications, int]] = {}  # with the number of the first notification for each
        self._queue: deque[Notification] = deque()
        self._queue_bytes = 0
        self._first = 0  # number of the first notification of the queue

    @property
    def usage(self) -> float:
        """Returns the part of the queue that is in use, which is more than 1 after its limit was exceeded."""
        return self._queue_bytes / QUEUE_BYTES_MAX

    def add(self, channel: str, listener: Notifications) -> None:
        """Adds a session to a channel. It gets notifications that are sent from now on."""
        self._listeners.setdefault(channel, {}).setdefault(listener, self._first + len(self._queue))

    def remove(self, channel: str, listener: Notifications) -> None:
        """Removes a session from a channel."""
        listeners = self._listeners.get(channel, {})
        listeners.pop(listener, None)
        if not listeners:
            self._listeners.pop(channel, None)

    def has(self, channel: str) -> bool:
        """Returns whether a session of this gateway listens to a channel."""
        return channel in self._listeners

    def send(self, notifications: Sequence[Notification], inbox: int) -> None:
        """Sends the notifications of a transaction here and elsewhere. `inbox`: the entry with the rows that it has written, or 0."""
        self._forward(notifications, inbox)
        self.deliver(notifications)

    def deliver(self, notifications: Iterable[Notification]) -> None:
        """Delivers notifications to the sessions of this gateway: STEP_MAX at once, the others in the next steps of the event loop."""
        was_empty = not self._queue
        for notification in notifications:
            self._queue.append(notification)
            self._queue_bytes += notification.size
        if was_empty:
            self._step(self._deliveries())

    def _step(self, deliveries: Iterator[None]) -> None:
        for _ in islice(deliveries, STEP_MAX):
            pass
        if self._queue:
            asyncio.get_running_loop().call_soon(self._step, deliveries)

    def _deliveries(self) -> Iterator[None]:
        """Delivers the queue. Yields after each session and each notification."""
        while self._queue:
            notification = self._queue[0]
            for listener in tuple(self._listeners.get(notification.channel, ())):
                since = self._listeners.get(notification.channel, {}).get(listener)  # it may have left in an earlier step
                if since is not None and since <= self._first:
                    listener.receive(notification)
                yield
            self._queue.popleft()
            self._queue_bytes -= notification.size
            self._first += 1
            yield


class Notifications:
    """The channels of one session, the changes of its transaction, and the notifications that wait for its client.

    `budget`: returns that of the session. `arrived`: called for each notification that arrives. `overflow`: called if too many wait.
    """

    def __init__(self, channels: Channels, budget: Callable[[], Budget], arrived: Callable[[], None], overflow: Callable[[], None]) -> None:
        self._all, self._budget, self._arrived, self._overflow = channels, budget, arrived, overflow
        self._charge: Charge | None = None
        self.channels: set[str] = set()
        self._actions: list[tuple[str | None, bool]] = []  # (channel or all, whether it listens) of the transaction
        self._pending: dict[Notification, None] = {}  # in order; equal ones of a transaction are one
        self._waiting: deque[Notification] = deque()
        self._pending_bytes = self._waiting_bytes = 0

    # --- statements

    def listen(self, channel: str) -> None:
        """Executes LISTEN at COMMIT. Raises 54000."""
        self._add(channel, listens=True)

    def unlisten(self, channel: str | None) -> None:
        """Executes UNLISTEN at COMMIT. None: of all channels. Raises 54000."""
        self._add(channel, listens=False)

    def _add(self, channel: str | None, *, listens: bool) -> None:
        if len(self._actions) >= CHANNELS_MAX or (listens and len(self.channels) + len(self._actions) >= CHANNELS_MAX):
            raise ProgramLimitExceeded("too many channels", detail=f"A session and its transaction can have {CHANNELS_MAX}.")
        self._actions.append((channel, listens))

    def notify(self, channel: str, payload: str, process: int) -> None:
        """Sends a notification at COMMIT. Raises 22023, 53200, 54000."""
        if not channel:
            raise InvalidParameterValue("channel name cannot be empty")
        if len(channel.encode()) > CHANNEL_BYTES_MAX:
            raise InvalidParameterValue("channel name too long")
        if len(payload.encode()) > PAYLOAD_BYTES_MAX:
            raise InvalidParameterValue("payload string too long")
        if self._all.usage >= 1:
            raise ProgramLimitExceeded("too many notifications in the NOTIFY queue")
        notification = Notification(channel, payload, process)
        if notification in self._pending:
            return
        if self._pending_bytes + notification.size > PENDING_BYTES_MAX:
            raise ProgramLimitExceeded("too many notifications in a transaction", detail=f"{PENDING_BYTES_MAX >> 20} MiB are the most.")
        self._charged(notification.size)
        self._pending[notification] = None
        self._pending_bytes += notification.size

    # --- transactions

    def mark(self) -> tuple[int, int]:
        """Returns the position of a savepoint."""
        return len(self._actions), len(self._pending)

    def back(self, mark: tuple[int, int]) -> None:
        """Returns to a savepoint."""
        actions, pending = mark
        del self._actions[actions:]
        self._keep(list(self._pending)[:pending])

    def commit(self, inbox: int) -> None:
        """Carries out LISTEN and UNLISTEN, and sends the notifications. `inbox`: as in `Channels.send`."""
        for channel, listens in self._actions:
            if listens and channel is not None:
                self.channels.add(channel)
                self._all.add(channel, self)
            else:
                for one in tuple(self.channels) if channel is None else (channel,):
                    self.channels.discard(one)
                    self._all.remove(one, self)
        self._actions.clear()
        if self._pending:
            notifications = tuple(self._pending)
            self._keep(())
            self._all.send(notifications, inbox)

    def rollback(self) -> None:
        """Forgets the notifications and the channels of the transaction."""
        self.back((0, 0))

    def end(self) -> None:
        """Ends the session."""
        self.rollback()
        self.unlisten(None)
        self.commit(0)
        self.take(len(self._waiting))

    def _keep(self, notifications: Iterable[Notification]) -> None:
        self._pending = dict.fromkeys(notifications)
        self._pending_bytes = sum(n.size for n in self._pending)
        self._charged(0)

    # --- delivery

    def receive(self, notification: Notification) -> None:
        """Adds a notification for the client."""
        if self._waiting_bytes > WAITING_BYTES_MAX:
            return  # the session ends
        try:
            self._charged(notification.size)
        except OutOfMemory:
            self._overflow()
            return
        self._waiting.append(notification)
        self._waiting_bytes += notification.size
        if self._waiting_bytes > WAITING_BYTES_MAX:
            self._overflow()
        else:
            self._arrived()

    @property
    def waits(self) -> bool:
        """Returns whether notifications wait for the client."""
        return bool(self._waiting)

    def take(self, most: int) -> list[Notification]:
        """Removes and returns the first notifications that wait for the client, at most `most`."""
        first = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        if first:
            self._waiting_bytes -= sum(notification.size for notification in first)
            self._charged(0)
        return first

    def _charged(self, more: int) -> None:
        """Charges the session for its notifications and `more` bytes. Raises 53200."""
        if self._charge is None:
            self._charge = Charge(self._budget())
        self._charge.set(self._pending_bytes + self._waiting_bytes + more)
