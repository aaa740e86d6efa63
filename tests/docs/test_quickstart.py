"""Types every command and statement of docs/quickstart.md, in order, and compares their output.

    $ make setup              in this repository, which is set up already
    $ .venv/bin/tailgate up   in an empty folder, on a free port instead of 6875
    $ psql …                  a session for all statements: a Terminal, or the program itself

The tests' broker is the reader's own Kafka.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import Protocol

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tailgate.embedded.children import free_port
from tailgate.embedded.kafka import Kafka
from tests.docs.pages import DOCS, INTERRUPT, Example, Part, Records, parts, same
from tests.docs.terminal import Terminal

PAGE = DOCS / "quickstart.md"
ROOT = DOCS.parent
PORT, KAFKA = "6875", "localhost:9092"  # the addresses of the page
COMMAND_S = 120.0  # until a command has printed the lines of the page
SETTLE_S = 60.0  # until a record in the topic is seen by a statement
REPEATED = re.compile("SELECT|SHOW")  # statements that are typed again until the record is seen


class Session(Protocol):
    """A session as `psql` starts it."""

    def type(self, statement: str, data: tuple[str, ...] = (), interrupt_after: int | None = None) -> tuple[str, ...]: ...

    def close(self) -> None: ...


class Program:
    """A command that keeps running, and the lines that it prints."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self._words, self._folder = words, folder
        self._start()

    def _start(self) -> None:
        pipe = subprocess.PIPE
        environment = {**os.environ, "PSQLRC": os.devnull}
        self._process = subprocess.Popen(
            self._words, cwd=self._folder, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        self._lines: Queue[str | None] = Queue()
        self._reading = threading.Thread(target=self._read, args=(self._process, self._lines))
        self._reading.start()

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: Queue[str | None]) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                lines.put(line.rstrip("\n"))
        lines.put(None)

    def line(self) -> str | None:
        """Waits for the next line. Returns None at the end of the output."""
        try:
            return self._lines.get(timeout=COMMAND_S)
        except Empty:
            pytest.fail(f"{shlex.join(self._words)} printed nothing for {COMMAND_S} s")

    def close(self) -> None:
        self._process.terminate()
        self._await_end()

    def _await_end(self) -> None:
        self._process.wait(COMMAND_S)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reading.join(COMMAND_S)


class Psql(Program):
    """psql itself. It prints as the page says."""

    MARK = "=" * 20

    def __init__(self, words: list[str], folder: Path) -> None:
        super().__init__(["stdbuf", "-oL", *words], folder)

    def type(self, statement: str, data: tuple[str, ...] = (), interrupt_after: int | None = None) -> tuple[str, ...]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{statement}\n\\echo {self.MARK}\n")
        printed: list[str] = []
        while (line := self.line()) != self.MARK and line is not None:
            if line and not line.startswith("NOTICE:  filling "):
                printed.append(line.rstrip())
            if len(printed) == interrupt_after:
                self._process.send_signal(signal.SIGINT)
                self._await_end()  # psql ends after Ctrl-C if its input is not a terminal
                self._start()
                return (*printed, INTERRUPT)
        return tuple(printed)


def terminal(words: list[str], folder: Path) -> Session:
    """Connects as psql does with these arguments, and prints NULL as psql does by default."""
    options = dict(zip(words[1:-1:2], words[2:-1:2], strict=True))
    return Terminal(f"host={options['-h']} port={options['-p']} user=reader dbname={words[-1]}", null="")


class Reader:
    """A user who types the page. `start_session` opens a session from the words of a command."""

    def __init__(self, folder: Path, kafka: Kafka, start_session: Callable[[list[str], Path], Session]) -> None:
        self._folder, self._start_session = folder, start_session
        (folder / ".venv").symlink_to(ROOT / ".venv")
        self._addresses = {PORT: str(free_port()), KAFKA: kafka.address}
        self._producer = Producer({"bootstrap.servers": kafka.address, "enable.idempotence": True, "log_level": 2})
        self._up: Program | None = None
        self._session: Session | None = None
        self._topics: set[str] = set()
        self._kafka = kafka

    def close(self) -> None:
        for each in (self._session, self._up):
            if each is not None:
                each.close()
        admin = AdminClient({"bootstrap.servers": self._kafka.address})
        for deletion in admin.delete_topics(list(self._topics)).values():
            deletion.result()

    def _here(self, text: str) -> str:
        for address, own_address in self._addresses.items():
            text = text.replace(address, own_address)
        return text

    def command(self, command: str, output: tuple[str, ...]) -> None:
        """Types a command, and waits for the lines that the page shows."""
        words = shlex.split(self._here(command))
        if words[0] == "make":
            subprocess.run(words, cwd=ROOT, check=True, timeout=COMMAND_S)
        elif words[0] == "psql":
            self._session = self._start_session(words, self._folder)
        else:
            self._up = Program([*words, "--listen", f"127.0.0.1:{self._addresses[PORT]}"], self._folder)
            for line in output:
                assert self._up.line() == self._here(line)

    def statement(self, example: Example) -> tuple[str, ...]:
        """Types a statement, again if the page's last record has not been seen. Returns its last output."""
        assert self._session is not None
        deadline = time.monotonic() + SETTLE_S
        lines = len(example.output) - 1 if example.output[-1:] == (INTERRUPT,) else None
        while True:
            printed = self._session.type(self._here(example.statement), example.data, lines)
            if same(example.output, printed, example.ordered) or not REPEATED.match(example.statement) or time.monotonic() > deadline:
                return printed
            time.sleep(0.1)

    def write(self, records: Records) -> None:
        self._topics.add(records.topic)
        for key, value in records.records:
            self._producer.produce(records.topic, key=key, value=value)
        assert self._producer.flush(30) == 0


def commands(page: list[Part]) -> Iterator[tuple[str, tuple[str, ...]] | Example | Records]:
    """Yields the reader's input, in order: commands with the lines below them, statements, records."""
    at = 0
    while at < len(page):
        part = page[at]
        at += 1
        if not isinstance(part, str):
            yield part  # type: ignore[misc]  # the page has no change events
        elif part == "```console":
            while page[at] != "```":
                command, begin = str(page[at]), at + 1
                at = next(i for i in range(begin, len(page)) if str(page[i]).startswith(("$ ", "```")))
                yield command.removeprefix("$ "), tuple(map(str, page[begin:at]))
            at += 1


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("start_session", [terminal, pytest.param(Psql, marks=pytest.mark.clients)])
def test_a_reader_who_types_the_page_has_a_view(tmp_path: Path, kafka: Kafka, start_session: Callable[[list[str], Path], Session]) -> None:
    reader = Reader(tmp_path, kafka, start_session)
    kinds: list[str] = []
    try:
        for typed in commands(list(parts(PAGE.read_text()))):
            if isinstance(typed, Records):
                reader.write(typed)
            elif isinstance(typed, Example):
                printed = reader.statement(typed)
                assert same(typed.output, printed, typed.ordered), f"{PAGE}:{typed.line}: {typed.statement}\n" + "\n".join(printed)
            else:
                reader.command(*typed)
            kinds.append(type(typed).__name__)
    finally:
        reader.close()
    assert kinds.count("tuple") == 3 and kinds.count("Example") > 5 and "Records" in kinds
