"""Notifications between the gateways of a lake.

    COMMIT ──► outgoing, in order ──► {"do": "notify"} to each other gateway ──► incoming ──► its sessions, when its mirrors have the rows

A gateway that does not answer in time misses them, and so do all gateways while the lake cannot be read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from tailgate.gateway.notifications.channels import Channels, Notification
from tailgate.gateway.resources.background import Background
from tailgate.lake.errors import TailgateError

QUEUE_BYTES_MAX = 8 << 20  # of outgoing and of incoming notifications; further ones are lost, with a warning in the log
REQUEST_BYTES = 8 << 10  # of notifications in one request, and one more

log = logging.getLogger("tailgate.gateway")


class _Queue(deque[tuple[Notification, int]]):
    """Notifications with the inbox entries of their rows."""

    size = 0

    def put(self, notifications: Sequence[Notification], inbox: int) -> bool:
        """Appends notifications, as far as there is room. Returns whether the queue was empty."""
        was_empty = not self
        for number, notification in enumerate(notifications):
            if self.size + notification.size > QUEUE_BYTES_MAX:
                log.warning("%d notifications for sessions of other gateways are lost: too many wait", len(notifications) - number)
                break
            self.append((notification, inbox))
            self.size += notification.size
        return was_empty and bool(self)

    def take(self) -> Notification:
        """Removes and returns the first."""
        notification, _ = self.popleft()
        self.size -= notification.size
        return notification

    def through(self, inbox: int) -> Iterator[Notification]:
        """Removes and yields the first ones, as far as their rows are in the inbox entry or in earlier ones."""
        while self and self[0][1] <= inbox:
            yield self.take()


class Exchange:
    """Sends notifications to other gateways and receives theirs.

    `ask`: sends a request to all other gateways. `wait`: waits until the mirrors have an inbox entry.
    """

    def __init__(
        self, ask: Callable[[dict[str, Any]], Awaitable[object]], wait: Callable[[int], Awaitable[object]], background: Background
    ) -> None:
        self._ask, self._wait, self._background = ask, wait, background
        self._outgoing, self._incoming = _Queue(), _Queue()
        self.channels = Channels(self._forward)

    @property
    def usage(self) -> float:
        """Returns the part that is in use of the fuller queue: of the sessions here, or of other gateways."""
        return max(self.channels.usage, self._outgoing.size / QUEUE_BYTES_MAX)

    def _forward(self, notifications: Sequence[Notification], inbox: int) -> None:
        if self._outgoing.put(notifications, inbox):
            self._background.run(self._send())

    async def _send(self) -> None:
        while self._outgoing:
            batch, size, newest = list[tuple[str, str, int]](), 0, 0
            for notification, inbox in self._outgoing:
                batch.append((notification.channel, notification.payload, notification.process))
                size, newest = size + notification.size, max(newest, inbox)
                if size > REQUEST_BYTES:
                    break
            try:
                await self._ask({"do": "notify", "inbox": newest, "notifications": batch})
            except (OSError, TailgateError) as error:
                log.warning("%d notifications for sessions of other gateways are lost: %s", len(batch), error)
            for _ in batch:
                self._outgoing.take()

    async def received(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Delivers the notifications of another gateway, in the background. Answers its request."""
        notifications = [Notification(channel, payload, process) for channel, payload, process in request["notifications"]]
        deliverable = [n for n in notifications if self.channels.has(n.channel)]
        if self._incoming.put(deliverable, int(request["inbox"])):
            self._background.run(self._deliver())
        return {}

    async def _deliver(self) -> None:
        while self._incoming:
            inbox = self._incoming[0][1]
            await self._wait(inbox)
            while self.channels.usage >= 1:
                await asyncio.sleep(0)  # each step of the event loop delivers some
            self.channels.deliver(self._incoming.through(inbox))
