"""A process of a benchmark that answers requests over a pipe."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Process:
    """A process that runs `serve(pipe, *arguments)`. `end_s`: how long `stop` waits for its end."""

    def __init__(self, name: str, end_s: float, serve: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._end_s = end_s
        self._process = context.Process(target=serve, args=(theirs, *arguments), name=name, daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def send(self, request: Any) -> None:
        self._pipe.send(request)

    def ask(self, *request: Any) -> Any:
        """Returns the answer to a request. Raises the error with which the process has answered."""
        with suppress(BrokenPipeError):  # the process has failed, and its last answer is the error
            self._pipe.send(request)
        return self.answer()

    def answer(self) -> Any:
        """Returns the next answer, or raises it if it is an error."""
        answer = self._pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop(self) -> None:
        self._pipe.close()
        self._process.join(self._end_s)
