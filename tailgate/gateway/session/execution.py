"""The running statement of a session: its time limit and cancellation, and the idle timeout between statements."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tailgate.gateway.session.activity import Activity
from tailgate.lake.errors import QueryCanceled


class Execution:
    """The running statement of a session.

    `activity`: what pg_stat_activity shows of it. `following`: a TAIL is running, which ends when the client disconnects.
    """

    def __init__(self) -> None:
        self.activity = Activity()
        self.following = False
        self._interruption: str | None = None
        self._task: asyncio.Task[object] | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def run(self, work: Awaitable[None], limit_ms: int, fail: Callable[[BaseException], None]) -> None:
        """Runs `work` for at most `limit_ms` milliseconds, 0 for no limit. Passes its error, or its cancellation, to `fail`."""
        self._task = asyncio.current_task()
        self._interruption = None
        timer = None
        if limit_ms:
            reason = "canceling statement due to statement timeout"
            timer = asyncio.get_running_loop().call_later(limit_ms / 1000, self.interrupt, reason)
        try:
            await work
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # sent to the client; logged if it is a bug
            fail(self.reported(error))
        finally:
            self._task = None
            if timer is not None:
                timer.cancel()

    def interrupt(self, reason: str) -> None:
        """Cancels the running statement, if there is one."""
        if self._task is not None:
            self._interruption = reason
            self._task.cancel()

    def interruption(self) -> str | None:
        """Returns why the statement was canceled, or None if the session itself ends. Clears the cancellation of the task."""
        reason, self._interruption = self._interruption, None
        uncancel = getattr(asyncio.current_task(), "uncancel", None)  # not in Python 3.10
        if reason is not None and uncancel is not None:
            uncancel()
        return reason

    def reported(self, error: BaseException) -> BaseException:
        """Returns the error for the client: 57014 for the cancellation of the statement. Raises that of the session."""
        if not isinstance(error, asyncio.CancelledError):
            return error
        reason = self.interruption()
        if reason is None:
            raise error
        return QueryCanceled(reason)

    def wait_idle(self, limit_ms: int, expire: Callable[[], None]) -> None:
        """Calls `expire` if the session stays idle for `limit_ms` milliseconds."""
        self._idle = asyncio.get_running_loop().call_later(limit_ms / 1000, expire)

    def stop_idle(self) -> None:
        """Ends the idle timeout: a message has arrived, or the session ends."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
